"""Live queries over HTTP: the events, how a stream resumes and ends, readers that are slow, and those that vanish."""

import ctypes
import json
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any, Self
from uuid import uuid4

import pytest

from tests.conformance.databases import plan_of
from tests.surface.http_server import LOCAL, TIMEOUT_SECONDS, HttpClient, HttpServer, new_work, running

PATH_NOTES = "/v1/queries/Notes/watch"
PATH = "/v1/queries/DueWork/watch"
VANISHING = 1_000
SO_ATTACH_FILTER = 26

NOTES = """
contract Notes version 1 {
  entity Note { key (owner: uuid, number: u64) field text: string<8000> }
  command Write {
    input request_key: uuid
    input owner: uuid
    input number: u64
    input text: string<8000>
    idempotency_key request_key
    init_or_mutate Note(owner, number) as note initialize { text: "" }
    set note.text = text
    return Written {}
  }
}
query Notes($owner: uuid) {
  many notes from Note where owner == $owner order by number take 10
  return Read { notes: notes { number text } }
}
"""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A running server."""
    with running() as here:
        yield here.server


class Told:
    """One event."""

    def __init__(self, kind: str, identity: str | None, data: Any) -> None:
        self.kind = kind
        self.id = identity
        self.data = data


class Stream:
    """One open watch, over a connection of its own."""

    def __init__(self, server: HttpServer, path: str, params: object, last: str | None, token: str | None) -> None:
        self.client = HttpClient(server.host, server.port, token or server.operator)
        body = json.dumps({"params": params}).encode()
        headers = {"Authorization": f"Bearer {token or server.operator}"}
        if last is not None:
            headers["Last-Event-ID"] = last
        self.client.connection.request("POST", path, body=body, headers=headers)
        self.response = self.client.connection.getresponse()
        self.status = self.response.status

    @property
    def socket(self) -> socket.socket:
        """The socket below."""
        connected: socket.socket = self.client.connection.sock
        return connected

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.response.close()
        self.client.connection.close()

    def next(self) -> Told | None:
        """The next event, waited for; None at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            if line == b"\n":
                return Told(fields["event"], fields.get("id"), json.loads(fields["data"]))
            name, _, value = line.decode().rstrip("\n").partition(": ")
            fields[name] = value
        assert not fields, "the stream ended within an event"
        return None

    def take(self, kind: str) -> Told:
        """The next event, which must be of this kind."""
        told = self.next()
        assert told is not None
        assert told.kind == kind, told.data
        return told


def watch(
    server: HttpServer, organization: str, last: str | None = None, token: str | None = None, path: str = PATH
) -> Stream:
    """A watch of what is due."""
    return Stream(server, path, {"organization_id": organization}, last, token)


def until(condition: Callable[[], bool]) -> None:
    """Return once it holds; the limit only stops a test that would hang."""
    for _ in range(int(TIMEOUT_SECONDS / 0.01)):
        if condition():
            return
        Event().wait(0.01)
    raise AssertionError("it never came to be")


def create(server: HttpServer, organization: str, count: int = 1) -> None:
    """Commit items that are due."""
    with server.client() as client:
        for _ in range(count):
            assert client.command("CreateWork", new_work(organization_id=organization)).status == 200


def test_a_snapshot_and_then_changes(server: HttpServer) -> None:
    organization = str(uuid4())
    create(server, organization)
    with watch(server, organization, token=server.worker) as stream, server.client() as client:
        assert stream.status == 200
        headers = {name.lower(): value for name, value in stream.response.getheaders()}
        assert headers["content-type"] == "text/event-stream"
        assert headers["cache-control"] == "no-store"
        asked = client.call("POST", "/v1/queries/DueWork", {"params": {"organization_id": organization}}).json
        snapshot = stream.take("snapshot")
        assert (snapshot.data["outcome"], snapshot.data["payload"]) == (asked["outcome"], asked["payload"])
        assert snapshot.data["as_of"]["sequence"] == "1"
        create(server, organization)
        change = stream.take("change")
        assert change.data["as_of"]["sequence"] == "2"
        assert [step["op"] for step in change.data["changes"]] == ["insert"]
        assert snapshot.id != change.id


def test_a_stream_resumes_where_it_broke(server: HttpServer) -> None:
    organization = str(uuid4())
    with watch(server, organization) as stream:
        last = stream.take("snapshot").id
    create(server, organization, 3)
    with watch(server, organization, last) as stream:
        told = stream.take("change")
        assert len(told.data["changes"]) == 3
    with watch(server, organization, "of-another-server") as stream:
        assert len(stream.take("reset").data["payload"]["items"]) == 3


def test_an_idle_stream_pings() -> None:
    with running(heartbeat_seconds=0.05) as here, watch(here.server, str(uuid4())) as stream:
        stream.take("snapshot")
        for _ in range(3):
            told = stream.take("ping")
            assert (told.id, told.data) == (None, {})


def test_what_is_refused_is_refused_before_the_stream_begins(server: HttpServer) -> None:
    with server.client() as client:
        for path, params, token, status, code in [
            (PATH, {}, None, 401, "RDB-E-UNAUTHENTICATED"),
            (PATH, {"organization_id": str(uuid4())}, server.token("WorkProducer"), 403, "RDB-E-FORBIDDEN"),
            ("/v1/queries/Nothing/watch", {}, server.operator, 404, "RDB-E-NOT-FOUND"),
            (PATH, {"organization_id": "x"}, server.operator, 400, "RDB-E-INPUT"),
        ]:
            reply = client.call("POST", path, {"params": params}, token=token)
            assert (reply.status, reply.json["code"]) == (status, code)
            assert reply.headers["content-type"] == "application/problem+json"
        assert client.call("GET", PATH).status == 405
    assert server.database.watches.open == 0


def test_watches_beyond_the_limit_are_told_when_to_come_again() -> None:
    with running(watches_max=2) as here, ExitStack() as stack:
        streams = [stack.enter_context(watch(here.server, str(uuid4()))) for _ in range(2)]
        for stream in streams:
            stream.take("snapshot")
        with watch(here.server, str(uuid4())) as refused:
            assert (refused.status, refused.response.getheader("retry-after")) == (429, "5")
            assert json.loads(refused.response.read())["code"] == "RDB-E-WATCHES"
        streams[0].client.connection.close()
        streams[0].response.close()
        until(lambda: here.server.database.watches.open == 1)
        stack.enter_context(watch(here.server, str(uuid4()))).take("snapshot")


def test_a_revocation_ends_the_stream_with_its_error(server: HttpServer) -> None:
    created = server.run(server.database.operations.create(LOCAL, role="WorkScheduler"))
    with watch(server, str(uuid4()), token=created["token"]) as stream, server.client() as client:
        stream.take("snapshot")
        assert client.call("POST", f"/v1/admin/capabilities/{created['id']}/revoke").status == 200
        told = stream.take("error")
        assert (told.data["code"], told.data["status"]) == ("RDB-E-UNAUTHENTICATED", 401)
        assert stream.next() is None
    until(lambda: server.database.watches.open == 0)


def test_one_commit_wakes_those_of_its_partition_alone(server: HttpServer) -> None:
    organizations = [str(uuid4()) for _ in range(10)]
    with ExitStack() as stack:
        streams = [stack.enter_context(watch(server, organization)) for organization in organizations for _ in "ab"]
        for stream in streams:
            stream.take("snapshot")
        before = server.database.watches.evaluations
        create(server, organizations[3])
        for stream in streams[6:8]:
            assert len(stream.take("change").data["changes"]) == 1
        assert server.database.wakeups.woken == 1
        assert before == 10


def test_a_client_that_goes_frees_its_watch_at_once() -> None:
    with running(heartbeat_seconds=1_000) as here:
        with ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(watch(here.server, str(uuid4()))).take("snapshot")
            assert here.server.database.watches.open == 20
        until(lambda: here.server.database.watches.open == 0)
        assert here.server.database.wakeups.waiting == 0


def test_a_stop_ends_streams_in_peace() -> None:
    with running() as here, watch(here.server, str(uuid4())) as stream:
        stream.take("snapshot")
        here.server.stop()
        assert stream.next() is None
        here.ended.result(TIMEOUT_SECONDS)
    assert here.server.database.watches.open == 0


# --- readers that are slow, and those that vanish -------------------------------------------------------------------


def text(number: int) -> str:
    """8,000 bytes that tell the number."""
    return f"{number:08}" * 1_000


def write(server: HttpServer, owner: str, numbers: range) -> None:
    """Commit a change of 8,000 bytes for each number."""
    with server.client() as client:
        for number in numbers:
            values = {"request_key": str(uuid4()), "owner": owner, "number": "1", "text": text(number)}
            assert client.command("Write", values).status == 200


@contextmanager
def reader(server: HttpServer, owner: str) -> Iterator[Stream]:
    """A reader of notes who has read the snapshot; his system takes little more."""
    with Stream(server, PATH_NOTES, {"owner": owner}, None, None) as stream:
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        stream.take("snapshot")
        yield stream


def notes(told: Told) -> list[str]:
    """The texts in an event."""
    if told.kind == "change":
        return [step["value"]["text"] for step in told.data["changes"]]
    return [note["text"] for note in told.data["payload"]["notes"]]


def test_a_slow_reader_is_told_to_reset_and_costs_little() -> None:
    with running(plan=plan_of(NOTES, "notes"), heartbeat_seconds=1_000) as here:
        server, owner = here.server, str(uuid4())
        with reader(server, owner) as slow, Stream(server, PATH_NOTES, {"owner": owner}, None, None) as prompt:
            prompt.take("snapshot")
            for number in range(500):
                write(server, owner, range(number, number + 1))
                assert notes(prompt.take("change")) == [text(number)]
            taken = 0
            told = slow.next()
            while told is not None and told.kind == "change":
                assert notes(told) == [text(taken)]
                taken += 1
                told = slow.next()
            assert told is not None
            assert (told.kind, notes(told)) == ("reset", [text(499)])
            assert taken < 400, "only those that the connection had taken"
            write(server, owner, range(500, 501))
            assert notes(slow.take("change")) == [text(500)]


def test_a_slow_reader_alone_is_told_the_whole_change_at_once() -> None:
    with running(plan=plan_of(NOTES, "notes"), heartbeat_seconds=1_000) as here:
        server, owner = here.server, str(uuid4())
        with reader(server, owner) as slow:
            write(server, owner, range(1_000))
            before = server.database.watches.evaluations
            count = 1
            while notes(slow.take("change")) != [text(999)]:
                count += 1
            assert count < 1_000
            assert server.database.watches.evaluations - before <= count


def test_a_reader_who_takes_nothing_for_a_heartbeat_is_gone() -> None:
    with running(plan=plan_of(NOTES, "notes"), heartbeat_seconds=0.5) as here:
        owner = str(uuid4())
        with reader(here.server, owner):
            write(here.server, owner, range(400))
            until(lambda: here.server.database.watches.open == 0)


def test_a_stop_waits_for_no_reader_who_takes_nothing() -> None:
    with running(plan=plan_of(NOTES, "notes"), heartbeat_seconds=1_000) as here:
        owner = str(uuid4())
        with reader(here.server, owner):
            write(here.server, owner, range(400))
            here.server.stop()
            here.ended.result(TIMEOUT_SECONDS)


def vanish(connected: socket.socket) -> None:
    """Let nothing more reach this socket, so that it acknowledges nothing and says no farewell."""
    instruction = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # "keep 0 bytes of each packet"
    program = struct.pack("HL", 1, ctypes.addressof(instruction))
    connected.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Leave for the descriptors of a thousand watches, of both sides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_watchers_that_vanish_without_closing_are_gone_within_two_heartbeats() -> None:
    with running(heartbeat_seconds=2) as here, ExitStack() as stack:
        streams = [stack.enter_context(watch(here.server, str(uuid4()))) for _ in range(VANISHING)]
        for stream in streams:
            stream.take("snapshot")
        witness = stack.enter_context(watch(here.server, str(uuid4())))
        witness.take("snapshot")
        assert here.server.database.watches.open == VANISHING + 1
        for stream in streams:
            vanish(stream.socket)
        for _ in range(3):  # it may be about to come when the last one vanishes, so two heartbeats lie in three pings
            witness.take("ping")
        assert here.server.database.watches.open == 1
        assert here.server.database.wakeups.waiting == 1
