"""Every way to a database: `riffdb.open`, `riffdb.connect`, both of `riffdb.aio`; the remote ones over a real server.

Calls of either interface wait for their end, so that one script runs through all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import riffdb
import riffdb.aio
from riffdb.client.application import compiled_plan
from riffdb.client.calls import AsyncClient, Client
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step
from riffdb.storage import open_store
from tests.surface.http_server import running

KINDS = ("open", "aio.open", "connect", "aio.connect")


class Way:
    """A client of one kind, an operator's."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner) -> None:
        self.client = client
        self.runner = runner

    @property
    def is_async(self) -> bool:
        """Whether its calls are coroutines."""
        return isinstance(self.client, AsyncClient)

    def call(self, name: str, /, *args: object, **kwargs: object) -> Any:
        """Call a method of the client."""
        return self.wait(getattr(self.client, name), *args, **kwargs)

    def wait(self, function: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
        """What a function returns, which may be a coroutine function."""

        async def calling() -> Any:
            called = function(*args, **kwargs)
            return await called if isinstance(called, Awaitable) else called

        return self.runner.run(calling())

    def refusal(self, name: str, /, *args: object, **kwargs: object) -> RiffError:
        """The error that a call ends with."""
        with pytest.raises(RiffError) as caught:
            self.call(name, *args, **kwargs)
        return caught.value


@contextmanager
def opened(kind: str, url: str, folder: Path) -> Iterator[Way]:
    """A way of that kind to the database at `url`, with the application of the folder deployed on it."""
    with asyncio.Runner() as runner:
        if kind.endswith("open"):
            made = runner.run(riffdb.aio.open(url, folder)) if "aio" in kind else riffdb.open(url, folder)
            way = Way(made, runner)
            yield way
            way.call("close")
        else:
            with running(step(open_store(url)), plan=compiled_plan(folder)) as here:
                connect = riffdb.aio.connect if "aio" in kind else riffdb.connect
                way = Way(connect(here.server.url, here.server.operator), runner)
                yield way
                way.call("close")
