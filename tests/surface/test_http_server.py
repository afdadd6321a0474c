"""The life of a server: where it listens, when it is ready, how it stops, and that it ends when its store fails."""

import asyncio
import json
import logging
import os
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any, Self

import pytest

from riffdb.core.errors import RiffError
from riffdb.http.listening import open_socket, url_of
from riffdb.storage.memory import MemorySnapshot, MemoryStore, MemoryTransaction
from tests.surface.http_server import TIMEOUT_SECONDS, UNKNOWN_TOKEN, HttpServer, new_work, running
from tests.surface.processes import Deployment, deployed

COMMAND = "/v1/commands/CreateWork"


class PlannedStore(MemoryStore):
    """A memory store whose next transactions a test holds up or lets fail."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: asyncio.Event | None = None
        self.has_come = Event()
        self.raises: Exception | None = None
        self.snapshot_raises: Exception | None = None

    def transaction(self) -> "PlannedTransaction":
        """The write transaction, as planned."""
        return PlannedTransaction(self)

    def snapshot(self) -> MemorySnapshot:
        """A consistent read, as planned."""
        if self.snapshot_raises is not None:
            raise self.snapshot_raises
        return super().snapshot()


class PlannedTransaction(MemoryTransaction):
    """Waits at the gate, or fails, before it begins."""

    def __init__(self, store: PlannedStore) -> None:
        super().__init__(store)
        self._planned = store

    async def __aenter__(self) -> Self:
        if self._planned.gate is not None:
            self._planned.has_come.set()
            await self._planned.gate.wait()
        if self._planned.raises is not None:
            raise self._planned.raises
        return await super().__aenter__()


async def new_event() -> asyncio.Event:
    """An event of the loop that runs this."""
    return asyncio.Event()


async def set_event(event: asyncio.Event) -> None:
    """Set the event on its own loop."""
    event.set()


@pytest.mark.parametrize(
    "listen",
    [
        "",
        "7433",
        ":7433",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:٣",
        "::1:7433",
        "[127.0.0.1]:7433",
        "http://127.0.0.1:7433",
        "a..b:1",
        "192.0.2.1:0",
        "0.0.0.0:0",
        "[::]:0",
    ],
)
def test_an_address_that_cannot_be_served(listen: str) -> None:
    with pytest.raises(RiffError) as caught:
        open_socket(listen, allow_public=False).close()
    assert caught.value.code == "RDB-E-USAGE"


def test_a_public_address_needs_leave() -> None:
    with open_socket("0.0.0.0:0", allow_public=True) as listening:
        assert re.fullmatch(r"http://0\.0\.0\.0:[1-9][0-9]*", url_of(listening))


def test_a_port_in_use_is_told_before_anything_is_served() -> None:
    with running() as here, pytest.raises(RiffError) as caught:
        open_socket(f"{here.server.host}:{here.server.port}", allow_public=False)
    assert caught.value.code == "RDB-E-UNAVAILABLE"
    assert str(here.server.port) in caught.value.message


def test_a_stop_finishes_what_was_admitted_and_takes_nothing_more() -> None:
    store = PlannedStore()
    with (
        running(store) as here,
        here.server.client() as client,
        here.server.socket() as idle,
        ThreadPoolExecutor() as pool,
    ):
        server = here.server
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        store.gate = server.run(new_event())
        answering = pool.submit(client.command, "CreateWork", new_work())
        assert store.has_come.wait(TIMEOUT_SECONDS)
        server.stop()
        assert idle.recv(65_536) == b""
        assert not answering.done()
        server.run(set_event(store.gate))
        assert answering.result(TIMEOUT_SECONDS).status == 200
        assert here.ended.result(TIMEOUT_SECONDS) is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((server.host, server.port))


def test_a_stop_finishes_what_was_admitted_though_nobody_waits_for_it() -> None:
    store = PlannedStore()
    work = new_work()
    body = json.dumps({"input": work})
    with running(store) as here, here.server.socket() as idle:
        server = here.server
        head = [f"POST {COMMAND} HTTP/1.1", "Host: here", f"Authorization: Bearer {server.operator}"]
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        store.gate = server.run(new_event())
        with server.socket() as hasty:
            hasty.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", body]).encode())
            assert store.has_come.wait(TIMEOUT_SECONDS)
        server.stop()
        assert idle.recv(65_536) == b""
        server.run(set_event(store.gate))
        assert here.ended.result(TIMEOUT_SECONDS) is None
    assert [record.key for records in store.state.answered.values() for record in records.values()] == [
        work["request_key"]
    ]


LENGTHS = {"Content-Length: 9": b"{", "Transfer-Encoding: chunked": b"9\r\n{"}


@contextmanager
def half_sent(server: HttpServer, length: str) -> Iterator[socket.socket]:
    """A connection whose request the server reads, and whose body does not come."""
    head = [f"POST {COMMAND} HTTP/1.1", "Host: here", f"Authorization: Bearer {server.operator}", length]
    with server.socket() as connection:
        connection.sendall("\r\n".join([*head, "Expect: 100-continue", "", ""]).encode())
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(LENGTHS[length])
        yield connection


def read_problem(connection: socket.socket) -> Any:
    """The problem that a bare connection receives before it is closed."""
    received = b""
    while part := connection.recv(65_536):
        received += part
    return json.loads(received.split(b"\r\n\r\n", 1)[1])


@pytest.mark.parametrize("length", LENGTHS)
def test_a_stop_does_not_wait_for_a_body(length: str) -> None:
    with running() as here, half_sent(here.server, length) as connection:
        here.server.stop()
        assert read_problem(connection)["code"] == "RDB-E-UNAVAILABLE"
        assert here.ended.result(TIMEOUT_SECONDS) is None


def test_a_stop_does_not_wait_for_a_head() -> None:
    with running() as here, here.server.socket() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        here.server.stop()
        assert here.ended.result(TIMEOUT_SECONDS) is None
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_body_that_does_not_come_is_given_up(length: str) -> None:
    with running(body_wait_seconds_max=1) as here:
        with half_sent(here.server, length) as connection:
            problem = read_problem(connection)
        with here.server.socket() as connection:
            head = [f"POST {COMMAND} HTTP/1.1", "Host: here", "Connection: close", length]
            connection.sendall("\r\n".join([*head, "", ""]).encode() + LENGTHS[length])
            refused = read_problem(connection)
    assert (problem["code"], problem["path"]) == ("RDB-E-INPUT", "body")
    assert refused["code"] == "RDB-E-UNAUTHENTICATED"


def test_a_failed_store_is_answered_and_ends_the_server() -> None:
    store = PlannedStore()
    with running(store) as here, here.server.client() as client:
        store.raises = store.failure = RiffError("RDB-E-STORAGE", "the disk is gone")
        reply = client.command("CreateWork", new_work(request_key="again"))
        with pytest.raises(RiffError) as caught:
            here.ended.result(TIMEOUT_SECONDS)
    assert (reply.status, reply.json["code"], reply.json["key"]) == (503, "RDB-E-STORAGE", "again")
    assert reply.headers["retry-after"] == "1"
    assert caught.value is store.failure


def test_readiness_tells_what_is_missing() -> None:
    with running(plan=None) as here, here.server.client(UNKNOWN_TOKEN) as client:
        alive = client.call("GET", "/healthz")
        unready = client.call("GET", "/readyz")
        refused = client.command("CreateWork", new_work())
    assert alive.status == 200
    assert (unready.status, unready.json["code"]) == (503, "RDB-E-UNAVAILABLE")
    assert "deploy" in unready.json["detail"]
    assert refused.status == 401


def test_a_fault_of_ours_is_logged_once_without_values(caplog: pytest.LogCaptureFixture) -> None:
    store = PlannedStore()
    with running(store) as here, here.server.client() as client:
        store.snapshot_raises = ValueError("a secret value")
        reply = client.command("CreateWork", new_work())
        store.snapshot_raises = None
        assert client.command("CreateWork", new_work()).status == 200
    assert (reply.status, reply.json["code"]) == (500, "RDB-E-INTERNAL")
    incident = reply.json["incident"]
    assert incident in reply.json["detail"]
    assert [incident in record.getMessage() for record in caplog.records] == [True]
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text + reply.body.decode()


def test_requests_are_logged_without_what_they_say(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with running() as here, here.server.client() as client:
        client.command("CreateWork", new_work(request_key="hidden"))
        client.command("hidden%0aname", {"hidden": 1})
        client.call("GET", "/hidden?hidden=1")
        token = here.server.operator
    lines = [record.getMessage() for record in caplog.records if record.name == "riffdb.http.edge"]
    assert [re.sub(r"[0-9.]+ ms", "… ms", line) for line in lines[-3:]] == [
        "POST /v1/commands/{Name} 200  … ms",
        "POST /v1/commands/{Name} 404 RDB-E-NOT-FOUND … ms",
        "GET - 404 RDB-E-NOT-FOUND … ms",
    ]
    assert "hidden" not in caplog.text
    assert token not in caplog.text


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("serve")) as found:
        yield found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_peace(deployment: Deployment, number: signal.Signals) -> None:
    with deployment.serving() as server:
        with server.client(UNKNOWN_TOKEN) as client:
            assert client.call("GET", "/readyz").status == 200
        server.process.signal(number)
        assert server.process.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(deployment: Deployment, number: signal.Signals) -> None:
    with deployment.serving() as server, server.socket() as idle, server.socket() as lingering:
        lingering.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        server.process.signal(signal.SIGTERM)
        assert idle.recv(65_536) == b""
        server.process.signal(number)
        assert server.process.ended() == -number


def test_more_connections_than_files_wait_for_their_turn(deployment: Deployment) -> None:
    with (
        deployment.serving(files_max=160) as server,
        server.client(deployment.operator) as client,
        ExitStack() as opened,
    ):
        assert client.command("CreateWork", new_work()).status == 200
        for _ in range(200):
            opened.enter_context(server.socket())
        assert client.command("CreateWork", new_work()).status == 200
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 100
        with server.client(deployment.operator) as late:
            late.connection.connect()
            opened.close()
            assert late.command("CreateWork", new_work()).status == 200


def test_an_answer_was_durable_before_it_was_sent(deployment: Deployment) -> None:
    work = new_work()
    with deployment.serving("answer.sent:kill") as server, server.client(deployment.operator) as client:
        # The process dies as soon as it has handed the answer on, so it may arrive or not.
        try:
            first = client.command("CreateWork", work).body
        except OSError:
            first = b""
        assert server.process.ended() == -signal.SIGKILL
    with deployment.serving() as server, server.client(deployment.operator) as client:
        again = client.command("CreateWork", work)
    assert again.json["replayed"] is True
    assert first in (b"", again.body.replace(b'"replayed":true}', b'"replayed":false}'))
