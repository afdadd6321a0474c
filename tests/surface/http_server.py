"""A real server on a port of its own, in a thread with its own loop, and a plain HTTP client for it.

The database is the memory store with the application of `examples/queue`; a test may give another store.
"""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

from riffdb.client.application import compiled_plan
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.database import Database
from riffdb.database.doors import LoopDoor
from riffdb.http.server import serve_until
from riffdb.plan import Plan
from riffdb.storage.memory import MemoryStore
from riffdb.storage.protocol import Store

QUEUE = Path(__file__).parent.parent.parent / "examples" / "queue"
LOCAL = Caller("local:test", OPERATOR, "test")
QUEUE_PLAN = compiled_plan(QUEUE)
TIMEOUT_SECONDS = 60
UNKNOWN_TOKEN = "rdb_00000000000000000000000000000000000000000002CZclj"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class HttpClient:
    """One connection that is kept alive, and the token that its requests carry unless they say otherwise."""

    def __init__(self, host: str, port: int, token: str | None) -> None:
        self.connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        self._token = token

    def call(
        self,
        method: str,
        path: str,
        document: object = None,
        *,
        raw: Any = None,
        token: str | None = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request; `token` None sends none, `raw` is sent as it is."""
        sent = self._token if token == "" else token
        body = raw if raw is not None or document is None else json.dumps(document).encode()
        authorization = {} if sent is None else {"Authorization": f"Bearer {sent}"}
        self.connection.request(method, path, body=body, headers=authorization | dict(headers or {}))
        response = self.connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def command(self, name: str, values: Mapping[str, object], **more: Any) -> Reply:
        """Run a command."""
        return self.call("POST", f"/v1/commands/{name}", {"input": values}, **more)


class HttpServer:
    """The running server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, database: Database, url: str) -> None:
        self.url = url
        self.host, port = url.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self.database = database
        self._loop, self._stop = loop, stop

    @cached_property
    def operator(self) -> str:
        """An operator's token."""
        return self.token("")

    @cached_property
    def worker(self) -> str:
        """A token of the role of workers."""
        return self.token("WorkScheduler")

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_SECONDS)

    def token(self, role: str, **restrictions: Any) -> str:
        """The token of a new capability."""
        wanted: dict[str, Any] = {"role": role} if role else {"operator": True}
        return str(self.run(self.database.operations.create(LOCAL, **wanted, **restrictions))["token"])

    @contextmanager
    def client(self, token: str | None = None) -> Iterator[HttpClient]:
        """A client; an operator's, unless another token is given."""
        client = HttpClient(self.host, self.port, self.operator if token is None else token)
        try:
            yield client
        finally:
            client.connection.close()

    @contextmanager
    def socket(self) -> Iterator[socket.socket]:
        """A bare connection, for what no client would send."""
        with socket.create_connection((self.host, self.port), timeout=TIMEOUT_SECONDS) as connection:
            yield connection

    def stop(self) -> None:
        """Begin the stop."""
        self._loop.call_soon_threadsafe(self._stop.set)


@dataclass(frozen=True)
class Running:
    """A server and the future that ends with it."""

    server: HttpServer
    ended: "Future[None]"


@contextmanager
def running(store: Store | None = None, *, plan: Plan | None = QUEUE_PLAN, **options: Any) -> Iterator[Running]:
    """A server of the plan's contract while the block runs; `ended` has what `serve_until` raised, if it did."""
    started: Future[HttpServer] = Future()
    ended: Future[None] = Future()

    async def run() -> None:
        database = await Database.open(store or MemoryStore(), LoopDoor)
        if plan is not None:
            await database.deploy(LOCAL, plan)
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def on_ready(url: str) -> None:
            started.set_result(HttpServer(loop, stop, database, url))

        await serve_until(stop, database, "127.0.0.1:0", on_ready=on_ready, **options)

    def main() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001  # the test thread raises it
            for future in (started, ended):
                if not future.done():
                    future.set_exception(error)
        else:
            ended.set_result(None)

    thread = Thread(target=main)
    thread.start()
    try:
        yield Running(started.result(TIMEOUT_SECONDS), ended)
    finally:
        if started.done() and not ended.done():
            started.result().stop()
        thread.join(TIMEOUT_SECONDS)


def new_work(**changes: object) -> dict[str, object]:
    """The input of `CreateWork` for a new item."""
    values: dict[str, object] = {
        "request_key": str(uuid4()),
        "organization_id": str(uuid4()),
        "work_id": str(uuid4()),
        "due_at": "2026-01-01T00:00:00Z",
    }
    return values | changes
