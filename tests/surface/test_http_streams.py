"""Consumers over HTTP: bodies and answers as documented, every refusal with its place, long polls that end in time."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from riffdb.core.codes import CODES
from tests.surface.completing import completed
from tests.surface.http_server import TIMEOUT_SECONDS, HttpClient, HttpServer, Reply, running
from tests.surface.long_polls import answer, cpu_seconds, until
from tests.surface.long_polls import ask as send
from tests.surface.processes import deployed

PATH = "/v1/streams/WorkActivity"
ADMIN = "/v1/admin/streams/WorkActivity"
VERBS = ("next", "ack", "nack", "extend", "status")
OPERATORS = ("seek", "redrive", "retire")


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with running() as here:
        yield here.server


@pytest.fixture
def client(server: HttpServer) -> Iterator[HttpClient]:
    with server.client() as client:
        yield client


@pytest.fixture
def organization() -> str:
    return str(uuid4())


def named(organization: str, **more: object) -> dict[str, object]:
    """The members that name a consumer, and others."""
    return {"params": {"organization_id": organization}, "consumer": "mailer", **more}


def ask(client: HttpClient, verb: str, body: object, **more: Any) -> Reply:
    """One call of a consumer."""
    return client.call("POST", f"{ADMIN if verb in OPERATORS else PATH}/{verb}", body, **more)


def delivered(client: HttpClient, organization: str, **taking: object) -> list[dict[str, Any]]:
    """What `next` gives, each with the incarnation, so that it names itself."""
    reply = ask(client, "next", named(organization, **taking))
    assert reply.status == 200, reply.body
    found = reply.json
    assert found.keys() == {"incarnation", "deliveries"}
    return [delivery | {"incarnation": found["incarnation"]} for delivery in found["deliveries"]]


def settle(client: HttpClient, organization: str, verb: str, delivery: dict[str, Any], **more: object) -> Reply:
    """Settle a delivery, or something that is not quite one."""
    members = {name: delivery[name] for name in ("event_id", "token", "incarnation")}
    return ask(client, verb, named(organization) | members | more)


def refused(reply: Reply, code: str) -> dict[str, Any]:
    """The problem, which must be of that code."""
    assert (reply.status, reply.json["code"]) == (CODES[code].status, code), reply.body
    problem: dict[str, Any] = reply.json
    return problem


def test_a_delivery_is_as_documented(client: HttpClient, organization: str) -> None:
    work = completed(client, organization)
    (delivery,) = delivered(client, organization)
    assert delivery.keys() == {"event_id", "event", "attempt", "token", "time", "fields", "incarnation"}
    assert delivery["event"] == "WorkCompleted"
    assert delivery["attempt"] == 1 and type(delivery["attempt"]) is int
    assert delivery["fields"] == {"organization_id": organization, "work_id": work, "revision": "3"}
    assert delivery["event_id"].split(":")[0] == "3", "the commit's sequence"
    reply = settle(client, organization, "extend", delivery, seconds=900)
    assert (reply.status, reply.json) == (200, {"disposition": "Applied"})
    assert settle(client, organization, "ack", delivery).json == {"disposition": "Applied"}
    assert settle(client, organization, "ack", delivery).json == {"disposition": "StateChanged"}
    assert delivered(client, organization) == []


def test_next_takes_what_it_is_told(client: HttpClient, organization: str) -> None:
    for _ in range(3):
        completed(client, organization)
    assert delivered(client, organization, consumer="late", **{"from": "now"}) == []
    assert len(delivered(client, organization)) == 1, "one, unless more are asked for"
    rest = delivered(client, organization, max_items=8, delivery_lease_seconds=900, wait_seconds=0)
    assert [delivery["event_id"].split(":")[0] for delivery in rest] == ["6", "9"]
    completed(client, organization)
    (late,) = delivered(client, organization, consumer="late", **{"from": "start"})
    assert late["event_id"].startswith("12:"), "only a new consumer begins anywhere"


def test_what_is_put_back_comes_again(client: HttpClient, organization: str) -> None:
    completed(client, organization)
    (first,) = delivered(client, organization)
    assert settle(client, organization, "nack", first).json == {"disposition": "Applied"}
    (second,) = delivered(client, organization)
    assert (second["event_id"], second["attempt"]) == (first["event_id"], 2)
    assert second["token"] != first["token"]
    assert settle(client, organization, "ack", first).json == {"disposition": "StateChanged"}
    assert settle(client, organization, "nack", second, delay_seconds=3_600).json == {"disposition": "Applied"}
    assert delivered(client, organization) == []


def test_status_tells_where_a_consumer_stands(client: HttpClient, organization: str) -> None:
    for _ in range(3):
        completed(client, organization)
    first, second = delivered(client, organization, max_items=2)
    settle(client, organization, "ack", second)
    status = ask(client, "status", named(organization)).json
    assert status["incarnation"] == first["incarnation"]
    assert status["oldest_unsettled"]["event_id"] == first["event_id"]
    assert status["oldest_unsettled"]["attempt"] == 1
    assert (status["unsettled"], status["dead_letters"]) == (1, 0)
    settle(client, organization, "ack", first)
    oldest = ask(client, "status", named(organization)).json["oldest_unsettled"]
    assert (oldest["event_id"].split(":")[0], oldest["attempt"]) == ("9", 0), "the third was never delivered"


def test_what_operators_do(client: HttpClient, organization: str) -> None:
    completed(client, organization)
    (delivery,) = delivered(client, organization)
    for attempt in range(2, 11):
        settle(client, organization, "nack", delivery)
        (delivery,) = delivered(client, organization)
        assert delivery["attempt"] == attempt
    settle(client, organization, "nack", delivery)
    assert delivered(client, organization) == []
    assert ask(client, "status", named(organization)).json["dead_letters"] == 1
    refused(ask(client, "redrive", named(organization, event_id="77:1")), "RDB-E-NOT-FOUND")
    assert ask(client, "redrive", named(organization, event_id=delivery["event_id"])).status == 200
    (redriven,) = delivered(client, organization)
    assert (redriven["event_id"], redriven["attempt"]) == (delivery["event_id"], 11)
    assert settle(client, organization, "ack", redriven).json == {"disposition": "Applied"}
    assert ask(client, "seek", named(organization, to="start")).status == 200
    assert [again["attempt"] for again in delivered(client, organization)] == [12]
    assert ask(client, "retire", named(organization)).status == 200
    refused(ask(client, "status", named(organization)), "RDB-E-NOT-FOUND")
    assert [again["attempt"] for again in delivered(client, organization)] == [13], "it is made anew"


# --- what is refused ------------------------------------------------------------------------------------------------

TOKEN = "A" * 32
DELIVERY: dict[str, object] = {"event_id": "1:1", "token": TOKEN, "incarnation": "i"}
BODIES: dict[str, dict[str, object]] = {
    "next": {},
    "ack": DELIVERY,
    "nack": DELIVERY,
    "extend": DELIVERY | {"seconds": 5},
    "status": {},
    "seek": {"to": "now"},
    "redrive": {},
    "retire": {},
}


@pytest.mark.parametrize("verb", BODIES)
def test_a_member_that_is_unknown_or_missing_is_refused_with_its_path(
    client: HttpClient, organization: str, verb: str
) -> None:
    whole = named(organization) | BODIES[verb]
    for name in ("seconds" if verb == "ack" else "delay", "start", "event", "token " if verb != "next" else "token"):
        problem = refused(ask(client, verb, whole | {name: 5}), "RDB-E-INPUT")
        assert problem["path"] == name
        assert "is no member of this body" in problem["detail"]
    for name in whole:
        problem = refused(ask(client, verb, {known: whole[known] for known in whole if known != name}), "RDB-E-INPUT")
        assert (problem["path"], "is missing" in problem["detail"]) == (name, True)
    params: object
    for params in (None, [], "x", 5):
        assert refused(ask(client, verb, whole | {"params": params}), "RDB-E-INPUT")["path"] == "params"
    for consumer in (None, 5, "", "n" * 5_000, "a\u0000b"):
        assert refused(ask(client, verb, whole | {"consumer": consumer}), "RDB-E-INPUT")["path"] == "consumer"
    for body in (b"", b"[]", b"{", b'{"consumer":"a","consumer":"b"}'):
        refused(ask(client, verb, None, raw=body), "RDB-E-INPUT")


@pytest.mark.parametrize("verb", BODIES)
@pytest.mark.parametrize(
    ("params", "path"),
    [({}, "organization_id"), ({"organization_id": "one"}, "organization_id"), ({"organization_id": None}, "")],
)
def test_a_parameter_that_cannot_be_is_refused(
    client: HttpClient, verb: str, params: dict[str, object], path: str
) -> None:
    problem = refused(ask(client, verb, {"consumer": "c", **BODIES[verb], "params": params}), "RDB-E-INPUT")
    assert problem["path"].endswith(path or "organization_id")


@pytest.mark.parametrize(
    ("verb", "change", "bounds"),
    [
        ("next", {"max_items": 0}, "1 8"),
        ("next", {"max_items": 9}, "1 8"),
        ("next", {"max_items": "1"}, ""),
        ("next", {"max_items": 1.5}, ""),
        ("next", {"max_items": True}, ""),
        ("next", {"max_items": None}, ""),
        ("next", {"delivery_lease_seconds": 4}, "5 900"),
        ("next", {"delivery_lease_seconds": 901}, "5 900"),
        ("next", {"delivery_lease_seconds": []}, ""),
        ("next", {"wait_seconds": -1}, "0 30"),
        ("next", {"wait_seconds": 30.5}, "0 30"),
        ("next", {"wait_seconds": "5"}, ""),
        ("next", {"from": "end"}, "start now"),
        ("next", {"from": 5}, "start now"),
        ("nack", {"delay_seconds": -1}, "0 3600"),
        ("nack", {"delay_seconds": 3_601}, "0 3600"),
        ("nack", {"delay_seconds": "5"}, ""),
        ("extend", {"seconds": 4}, "5 900"),
        ("extend", {"seconds": 901}, "5 900"),
        ("extend", {"seconds": None}, ""),
        ("ack", {"event_id": "one"}, ""),
        ("ack", {"event_id": 1}, ""),
        ("ack", {"token": 5}, "32"),
        ("ack", {"token": "guessed"}, "32"),
        ("ack", {"incarnation": 5}, ""),
        ("seek", {"to": "tomorrow"}, "start now"),
        ("seek", {"to": None}, "start now"),
        ("redrive", {"event_id": "x"}, ""),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_path_and_its_bounds(
    client: HttpClient, organization: str, verb: str, change: dict[str, object], bounds: str
) -> None:
    delivered(client, organization)
    incarnation = ask(client, "status", named(organization)).json["incarnation"]
    body = BODIES[verb] | ({"incarnation": incarnation} if "incarnation" in BODIES[verb] else {}) | change
    problem = refused(ask(client, verb, named(organization) | body), "RDB-E-INPUT")
    assert problem["path"] == next(iter(change))
    for bound in bounds.split():
        assert bound in problem["detail"].replace(",", "")


def test_a_stale_delivery_is_no_error_and_one_of_another_incarnation_is_one(
    client: HttpClient, organization: str
) -> None:
    completed(client, organization)
    (delivery,) = delivered(client, organization)
    for stale in ({"token": TOKEN}, {"event_id": "99:1"}, {"event_id": "1:1"}):
        for verb, more in (("ack", {}), ("nack", {}), ("extend", {"seconds": 5})):
            reply = settle(client, organization, verb, delivery | stale, **more)
            assert (reply.status, reply.json) == (200, {"disposition": "StateChanged"})
    for incarnation in (str(uuid4()), "another", ""):
        reply = settle(client, organization, "ack", delivery | {"incarnation": incarnation})
        problem = refused(reply, "RDB-E-INCARNATION")
        assert (CODES["RDB-E-INCARNATION"].status, CODES["RDB-E-INCARNATION"].exit) == (409, 6)
        assert problem["retryable"] is False
    assert settle(client, organization, "ack", delivery).json == {"disposition": "Applied"}


@pytest.mark.parametrize("body", [b"", b"{", b'{"params":{},"consumer":"c"}'])
def test_a_stream_that_is_not_granted_is_as_one_that_is_not_there(
    server: HttpServer, client: HttpClient, body: bytes
) -> None:
    for verb in VERBS:
        replies = [
            client.call("POST", f"/v1/streams/{name}/{verb}", raw=body, token=server.worker)
            for name in ("WorkActivity", "NoSuchStream")
        ]
        assert refused(replies[0], "RDB-E-FORBIDDEN") == refused(replies[1], "RDB-E-FORBIDDEN")
        assert "`WorkActivity`" in refused(
            client.call("POST", f"/v1/streams/WorkActivty/{verb}", raw=body), "RDB-E-NOT-FOUND"
        ).get("detail", "")
    for verb in OPERATORS:
        refused(client.call("POST", f"{ADMIN}/{verb}", raw=body, token=server.worker), "RDB-E-FORBIDDEN")
        refused(client.call("POST", f"{ADMIN}/{verb}", raw=body, token=server.token("WorkFollower")), "RDB-E-FORBIDDEN")


def test_a_role_consumes_what_it_lists_in_its_partition(
    server: HttpServer, client: HttpClient, organization: str
) -> None:
    completed(client, organization)
    follower = server.token("WorkFollower", partition=organization)
    with server.client(follower) as restricted:
        (delivery,) = delivered(restricted, organization)
        assert settle(restricted, organization, "ack", delivery).json == {"disposition": "Applied"}
        for verb in VERBS:
            refused(ask(restricted, verb, named(str(uuid4())) | BODIES[verb]), "RDB-E-FORBIDDEN")
    identity = server.run(server.database.authenticate(follower, "test")).capability
    client.call("POST", f"/v1/admin/capabilities/{identity}/revoke")
    refused(ask(client, "next", named(organization), token=follower), "RDB-E-UNAUTHENTICATED")


def test_only_posts_are_answered(client: HttpClient) -> None:
    for verb in (*VERBS, *OPERATORS):
        reply = client.call("GET", f"{ADMIN if verb in OPERATORS else PATH}/{verb}")
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
    refused(client.call("POST", f"{PATH}/seek", named("x")), "RDB-E-NOT-FOUND")


# --- long polls -----------------------------------------------------------------------------------------------------


def poll(connection: socket.socket, token: str, organization: str, seconds: float = 30, **more: object) -> None:
    """Send a long poll."""
    send(connection, f"{PATH}/next", token, named(organization, wait_seconds=seconds) | more)


def test_a_long_poll_is_answered_by_the_event_it_waits_for(server: HttpServer, client: HttpClient) -> None:
    organizations = [str(uuid4()) for _ in range(5)]
    with ExitStack() as stack:
        connections = [stack.enter_context(server.socket()) for _ in organizations]
        for connection, organization in zip(connections, organizations, strict=True):
            poll(connection, server.operator, organization)
        until(lambda: server.database.wakeups.waiting == 5)
        before = server.database.wakeups.woken
        work = completed(client, organizations[2])
        (delivery,) = answer(connections[2])["deliveries"]
        assert delivery["fields"]["work_id"] == work
        assert server.database.wakeups.woken == before + 1, "neither the others nor by commits without an event"
        assert server.database.wakeups.waiting == 4
        for connection in connections[1:]:
            connection.close()
        until(lambda: server.database.wakeups.waiting == 1)


def test_one_event_goes_to_one_of_those_who_wait_as_one_consumer(
    server: HttpServer, client: HttpClient, organization: str
) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(server.socket()) for _ in range(4)]
        for connection in connections:
            poll(connection, server.operator, organization, seconds=2)
        until(lambda: server.database.wakeups.waiting == 4)
        completed(client, organization)
        found = [answer(connection)["deliveries"] for connection in connections]
        assert sorted(len(deliveries) for deliveries in found) == [0, 0, 0, 1]


def test_a_delivery_that_is_put_back_wakes_who_waits(server: HttpServer, client: HttpClient, organization: str) -> None:
    completed(client, organization)
    (delivery,) = delivered(client, organization, delivery_lease_seconds=900)
    with server.socket() as connection:
        poll(connection, server.operator, organization)
        until(lambda: server.database.wakeups.waiting == 1)
        assert settle(client, organization, "nack", delivery).json == {"disposition": "Applied"}
        assert [again["attempt"] for again in answer(connection)["deliveries"]] == [2]


def test_a_stop_answers_long_polls_at_once(organization: str) -> None:
    with running() as here, here.server.socket() as connection:
        poll(connection, here.server.operator, organization)
        until(lambda: here.server.database.wakeups.waiting == 1)
        here.server.stop()
        assert answer(connection)["deliveries"] == []
        here.ended.result(TIMEOUT_SECONDS)


IDLE_POLLS = 200
CPU_SHARE_MAX = 0.25
"""Of one processor, over the window: far above what an idle server takes, far below one that polls."""


def test_idle_consumers_write_nothing_and_take_no_processor(tmp_path: Path, organization: str) -> None:
    with deployed(tmp_path) as deployment, deployment.serving() as server, ExitStack() as stack:
        client = stack.enter_context(server.client(deployment.operator))
        connections = [stack.enter_context(server.socket()) for _ in range(IDLE_POLLS)]
        for number, connection in enumerate(connections):
            poll(connection, deployment.operator, organization, consumer=f"consumer {number}")
        assert delivered(client, organization, consumer="the last", wait_seconds=1) == [], "all others wait by now"
        files = [deployment.file, Path(f"{deployment.file}-wal")]
        before = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        taken = cpu_seconds(server.process.pid)
        assert delivered(client, organization, consumer="the last", wait_seconds=2) == []
        assert cpu_seconds(server.process.pid) - taken < 2 * CPU_SHARE_MAX
        assert [(file.stat().st_size, file.stat().st_mtime_ns) for file in files] == before
        completed(client, organization)
        assert [len(answer(connection)["deliveries"]) for connection in connections] == [1] * IDLE_POLLS
