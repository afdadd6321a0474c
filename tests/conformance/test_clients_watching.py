"""Live queries through every way to a database: embedded and over HTTP, sync and async, with the same updates."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest

import riffdb
import riffdb.aio
from riffdb.client.calls import AsyncClient, Client
from riffdb.client.embedded import EmbeddedTransport
from riffdb.client.watching import Update
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step
from riffdb.database.database import Database
from riffdb.storage import open_store
from tests.conformance.databases import ORGANIZATION, QUEUE, queue_plan, work
from tests.surface.http_server import TIMEOUT_SECONDS, running


class Way:
    """A client of one kind, and the database behind it."""

    def __init__(self, client: Client | AsyncClient, database: Database, runner: asyncio.Runner, url: str = "") -> None:
        self.client = client
        self.url = url
        self.database = database
        self.runner = runner

    def wait(self, found: Any) -> Any:
        """What a call comes to."""
        if isinstance(found, Awaitable):

            async def waited() -> Any:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return await found

            return self.runner.run(waited())
        return found

    def call(self, name: str, /, *args: object, **kwargs: object) -> Any:
        """Call a method of the client."""
        if isinstance(self.client, Client):
            return getattr(self.client, name)(*args, **kwargs)

        async def calling() -> Any:
            called = getattr(self.client, name)(*args, **kwargs)
            return await called if isinstance(called, Awaitable) else called

        return self.runner.run(calling())

    def watch(self, **params: object) -> Any:
        """A live query for what is due."""
        return self.call("watch", "DueWork", **({"organization_id": ORGANIZATION} | params))

    def until(self, condition: Callable[[], bool]) -> None:
        """Return once it holds; the limit only stops a test that would hang."""
        for _ in range(int(TIMEOUT_SECONDS / 0.01)):
            if condition():
                return
            Event().wait(0.01)
            self.runner.run(asyncio.sleep(0))
        raise AssertionError("it never came to be")

    def create(self, item: int) -> None:
        """Commit an item that is due."""
        self.call("command", "CreateWork", **work(f"k{item}", item, due_at="2026-01-01T00:00:00Z"))


@contextmanager
def opened(kind: str, url: str) -> Iterator[Way]:
    """A way of that kind to a database of the queue."""
    with asyncio.Runner() as runner:
        if kind.endswith("open"):
            client = runner.run(riffdb.aio.open(url, QUEUE)) if "aio" in kind else riffdb.open(url, QUEUE)
            assert isinstance(client._transport, EmbeddedTransport)
            way = Way(client, client._transport._database, runner)
            yield way
            way.call("close")
        else:
            with running(step(open_store(url)), plan=queue_plan(), heartbeat_seconds=1_000) as here:
                connect = riffdb.aio.connect if "aio" in kind else riffdb.connect
                way = Way(connect(here.server.url, here.server.operator), here.server.database, runner, here.server.url)
                yield way
                way.call("close")


@pytest.fixture(params=["open", "aio.open", "connect", "aio.connect"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """A client of each kind."""
    with opened(request.param, f"sqlite:{tmp_path / 'work.db'}") as way:
        yield way


@pytest.fixture(params=["connect", "aio.connect"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """A client of each kind that speaks to a server."""
    with opened(request.param, f"sqlite:{tmp_path / 'work.db'}") as way:
        yield way


def items(update: Update) -> list[int]:
    """The numbers of the items in the answer."""
    return [item["work_id"].int for item in update.answer.payload["items"]]


def test_updates_hold_the_answer_as_it_is_then(way: Way) -> None:
    way.create(2)
    updates = way.watch()
    update = way.wait(updates.next())
    assert (update.kind, items(update), update.changes) == ("snapshot", [2], ())
    assert update.answer.outcome == "Due"
    assert update.answer.sequence == 1
    way.create(1)
    update = way.wait(updates.next())
    assert (update.kind, sorted(items(update)), update.answer.sequence) == ("change", [1, 2], 2)
    (change,) = update.changes
    assert (change.path, change.op) == ("items", "insert")
    assert change.value["work_id"] == UUID(int=1)
    assert update.answer.payload["items"][change.index] == change.value
    asked = way.call("query", "DueWork", organization_id=ORGANIZATION)
    assert update.answer.payload == asked.payload
    assert str(UUID(int=1)) not in repr(update)
    updates.close()
    assert way.wait(updates.next()) is None
    way.until(lambda: way.database.watches.open == 0)


def test_leaving_the_loop_ends_the_watch(way: Way) -> None:
    way.create(1)

    def plain() -> list[list[int]]:
        seen = []
        for update in way.watch():
            seen.append(items(update))
            if len(seen) == 2:
                break
            way.create(2)
        return seen

    async def suspending() -> list[list[int]]:
        assert isinstance(way.client, AsyncClient)
        seen = []
        async with way.client.watch("DueWork", organization_id=ORGANIZATION) as updates:
            async for update in updates:
                seen.append(items(update))
                if len(seen) == 2:
                    break
                await way.client.command("CreateWork", **work("k2", 2, due_at="2026-01-01T00:00:00Z"))
        return seen

    assert way.wait(suspending() if isinstance(way.client, AsyncClient) else plain()) == [[1], [1, 2]]
    way.until(lambda: way.database.watches.open == 0)


def test_closing_ends_a_loop_that_waits(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riffdb.client.blocking.SILENCE_SECONDS_MAX", 1_000)
    updates = way.watch()
    assert way.wait(updates.next()).kind == "snapshot"
    if isinstance(way.client, Client):
        ended: list[object] = []
        thread = Thread(target=lambda: ended.extend(updates), daemon=True)
        thread.start()
        way.until(lambda: way.database.watches.open == 1)
        updates.close()
        thread.join(TIMEOUT_SECONDS)
        assert (thread.is_alive(), ended) == (False, [])
        return

    async def close_meanwhile() -> object:
        task = asyncio.ensure_future(anext(aiter(updates), None))
        await asyncio.sleep(0)
        updates.close()
        return await task

    assert way.wait(close_meanwhile()) is None


def test_what_is_wrong_is_an_error_of_the_first_update(way: Way) -> None:
    def refusal(name: str, **params: object) -> RiffError:
        with pytest.raises(RiffError) as caught:
            way.wait(way.call("watch", name, **params).next())
        return caught.value

    assert refusal("Nothing").code == "RDB-E-NOT-FOUND"
    error = refusal("DueWork", organization_id="x")
    assert (error.code, error.path) == ("RDB-E-INPUT", "organization_id")
    assert refusal("DueWork", organization_id=ORGANIZATION, more=1).code == "RDB-E-INPUT"


def test_a_revocation_is_raised(remote: Way) -> None:
    made = remote.call("create_capability", role="WorkScheduler")
    connect = riffdb.connect if isinstance(remote.client, Client) else riffdb.aio.connect
    worker = Way(connect(remote.url, made["token"]), remote.database, remote.runner)
    updates = worker.watch()
    assert worker.wait(updates.next()).kind == "snapshot"
    remote.call("revoke_capability", made["id"])
    with pytest.raises(RiffError) as caught:
        worker.wait(updates.next())
    assert (caught.value.code, "revoked" in caught.value.message) == ("RDB-E-UNAUTHENTICATED", True)
    worker.call("close")


def test_a_watch_goes_on_over_a_connection_that_broke(remote: Way) -> None:
    remote.create(1)
    updates = remote.watch()
    assert items(remote.wait(updates.next())) == [1]
    for item in (2, 3):
        pieces = updates._source._pieces
        if isinstance(remote.client, Client):
            pieces._socket.shutdown(2)
        else:
            pieces._response.close()
        remote.create(item)
        update = remote.wait(updates.next())
        assert (update.kind, len(items(update)), len(update.changes)) == ("change", item, 1)
    updates.close()
    remote.until(lambda: remote.database.watches.open == 0)
