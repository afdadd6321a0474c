"""Long polls over HTTP: idle ones cost nothing, all end when they should, one whose client goes away at once."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.surface.http_server import TIMEOUT_SECONDS, HttpServer, new_work, running
from tests.surface.long_polls import answer, ask, cpu_seconds, until
from tests.surface.processes import Deployment, Server, deployed

PATH = "/v1/wakeup"
IDLE_POLLS = 200
CPU_SHARE_MAX = 0.25
"""Of one processor, over the window: far above what an idle server takes, far below one that polls."""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A running server."""
    with running() as here:
        yield here.server


def poll(connection: socket.socket, token: str, partition: str, after: object = 0, seconds: float = 30) -> None:
    """Send the question for the generation."""
    ask(connection, PATH, token, {"partition": partition, "after": after, "wait_seconds": seconds})


def waiting(server: HttpServer, count: int) -> None:
    """Return once exactly so many wait."""
    until(lambda: server.database.wakeups.waiting == count)


def test_a_poll_is_answered_by_the_commit(server: HttpServer) -> None:
    organization = str(uuid4())
    with server.socket() as connection, server.client() as client:
        assert client.call("POST", PATH, {"partition": organization}).json == {"generation": "0"}
        poll(connection, server.worker, organization)
        waiting(server, 1)
        assert client.command("CreateWork", new_work(organization_id=organization)).status == 200
        assert answer(connection) == {"generation": "1"}
        reply = client.call("POST", PATH, {"partition": organization, "after": "0", "wait_seconds": 30})
        assert reply.json == {"generation": "1"}
        assert server.database.wakeups.waiting == 0


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "partition"),
        ({"partition": None}, "partition"),
        ({"partition": "x"}, "partition"),
        ({"partition": str(uuid4()), "after": "-1"}, "after"),
        ({"partition": str(uuid4()), "wait_seconds": 31}, "wait_seconds"),
        ({"partition": str(uuid4()), "seconds": 3}, "seconds"),
    ],
)
def test_what_is_not_understood_is_refused(server: HttpServer, body: dict[str, object], path: str) -> None:
    with server.client() as client:
        reply = client.call("POST", PATH, body)
        assert (reply.status, reply.json["code"], reply.json["path"]) == (400, "RDB-E-INPUT", path)
        assert client.call("POST", PATH, body, token=None).status == 401


def test_one_commit_answers_those_of_its_partition_alone(server: HttpServer) -> None:
    organizations = [str(uuid4()) for _ in range(10)]
    with ExitStack() as stack:
        connections = [stack.enter_context(server.socket()) for _ in organizations]
        for connection, organization in zip(connections, organizations, strict=True):
            poll(connection, server.operator, organization)
        waiting(server, 10)
        client = stack.enter_context(server.client())
        assert client.command("CreateWork", new_work(organization_id=organizations[3])).status == 200
        assert answer(connections[3]) == {"generation": "1"}
        assert server.database.wakeups.woken == 1
        waiting(server, 9)


def test_a_client_that_goes_away_frees_its_wait(server: HttpServer) -> None:
    organization = str(uuid4())
    with ExitStack() as stack:
        connections = [stack.enter_context(server.socket()) for _ in range(20)]
        for connection in connections:
            poll(connection, server.operator, organization)
        waiting(server, 20)
        for connection in connections[5:]:
            connection.close()
        waiting(server, 5)
        with server.client() as client:
            assert client.command("CreateWork", new_work(organization_id=organization)).status == 200
        assert [answer(connection) for connection in connections[:5]] == [{"generation": "1"}] * 5


def test_a_stop_answers_long_polls_at_once() -> None:
    with running() as here, here.server.socket() as connection:
        poll(connection, here.server.operator, str(uuid4()))
        waiting(here.server, 1)
        here.server.stop()
        assert answer(connection) == {"generation": "0"}
        here.ended.result(TIMEOUT_SECONDS)


@contextmanager
def idle(server: Server, token: str, organization: str) -> Iterator[list[socket.socket]]:
    """So many polls that wait; a small one after them tells that the server has read them all."""
    with ExitStack() as stack:
        connections = [stack.enter_context(server.socket()) for _ in range(IDLE_POLLS)]
        for connection in connections:
            poll(connection, token, organization)
        window(server, token, 0.5)
        yield connections


def window(server: Server, token: str, seconds: float) -> None:
    """Let so much time pass by the server's own measure: a poll of a partition in which nothing happens."""
    with server.socket() as connection:
        poll(connection, token, str(uuid4()), seconds=seconds)
        assert answer(connection) == {"generation": "0"}


def check_idle(deployment: Deployment, server: Server) -> None:
    """For a while the server writes nothing and takes no processor."""
    files = [deployment.file, Path(f"{deployment.file}-wal")]
    before = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    taken = cpu_seconds(server.process.pid)
    window(server, deployment.operator, 2)
    assert cpu_seconds(server.process.pid) - taken < 2 * CPU_SHARE_MAX
    assert [(file.stat().st_size, file.stat().st_mtime_ns) for file in files] == before


def test_idle_long_polls_write_nothing_and_take_no_processor(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment, deployment.serving() as server:
        organization = str(uuid4())
        with (
            idle(server, deployment.operator, organization) as connections,
            server.client(deployment.operator) as client,
        ):
            check_idle(deployment, server)
            assert client.command("CreateWork", new_work(organization_id=organization)).status == 200
            assert [answer(connection) for connection in connections] == [{"generation": "1"}] * IDLE_POLLS


def test_idle_watches_write_nothing_and_take_no_processor(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment, deployment.serving() as server, ExitStack() as stack:
        for _ in range(IDLE_POLLS):
            connection = stack.enter_context(server.socket())
            params = {"params": {"organization_id": str(uuid4())}}
            ask(connection, "/v1/queries/DueWork/watch", deployment.operator, params)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        window(server, deployment.operator, 0.5)
        check_idle(deployment, server)
