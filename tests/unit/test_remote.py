"""The remote client against servers that drop, stall, lie and refuse: what is sent again, settled, and told.

Units, since no server of ours behaves like that. Every test runs over both exchanges, blocking and suspending.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest

import riffdb
import riffdb.aio
from riffdb.client.calls import AsyncClient, Client
from riffdb.client.exchanges import BrokenError, Exchange, NotSentError, Pieces, Request, Response, RetryBudget
from riffdb.client.remote import RemoteTransport, retry_after_seconds
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step
from riffdb.database.tokens import new_token
from riffdb.plan.plan import to_json
from tests.conformance.databases import ORGANIZATION, changed_ledger, ledger_plan, queue_plan, work
from tests.unit.scripted_server import (
    ANSWER,
    DIE,
    DROP,
    GARBAGE,
    HALF_HEAD,
    ScriptedServer,
    Step,
    answer,
    free_port,
    problem,
    reply,
    scripted,
)

TOKEN = new_token()
ATTEMPTS = 4
BUDGET = RetryBudget(attempts=ATTEMPTS, base_seconds=0)
VALUES = work("the key")


class Remote:
    """A client of one kind; calls wait for their end."""

    def __init__(
        self, kind: str, url: str, token: str = TOKEN, *, timeout_seconds: float = 60, budget: RetryBudget = BUDGET
    ) -> None:
        self.runner = asyncio.Runner()
        connect: Callable[..., Client | AsyncClient] = riffdb.connect if kind == "blocking" else riffdb.aio.connect
        self.client = connect(url, token, timeout_seconds=timeout_seconds, budget=budget)

    def call(self, name: str, *args: object, **kwargs: object) -> Any:
        """Call a method of the client."""

        async def calling() -> Any:
            called = getattr(self.client, name)(*args, **kwargs)
            return await called if isinstance(called, Awaitable) else called

        return self.runner.run(calling())

    def idle(self) -> None:
        """Let the loop see what came meanwhile, as one does that is not run for one call only."""

        async def idling() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.runner.run(idling())

    def create(self, **values: object) -> Any:
        """Run `CreateWork`."""
        return self.call("command", "CreateWork", **(VALUES | values))

    def error(self, name: str = "command", *args: object, **kwargs: object) -> RiffError:
        """The error that a call ends with; that of `CreateWork` by default."""
        call = self.create if name == "command" and not args else partial(self.call, name, *args, **kwargs)
        with pytest.raises(RiffError) as caught:
            call()
        return caught.value


@contextmanager
def connected(kind: str, url: str, **settings: Any) -> Iterator[Remote]:
    """A client while the block runs."""
    remote = Remote(kind, url, **settings)
    try:
        yield remote
    finally:
        remote.call("close")
        remote.runner.close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted(queue_plan()) as server:
        yield server


@pytest.fixture(params=["blocking", "suspending"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def remote(kind: str, server: ScriptedServer) -> Iterator[Remote]:
    with connected(kind, server.url) as remote:
        yield remote


UNKNOWN = {
    "dropped": DROP,
    "garbage": GARBAGE,
    "half a head": HALF_HEAD,
    "half a body": reply(200, answer()[:20], said=400, closes=True),
    "a body cut short": reply(200, answer()[:-10]),
    "an empty body": reply(200, b""),
    "a page": reply(200, b"<html>It works!</html>"),
    "another document": reply(200, b'{"outcome":"Created"}'),
    "a list": reply(200, b"[]"),
    "no UTF-8": reply(200, answer().replace(b"Created", b"\xff\xfe")),
    "a gateway that failed": reply(502, b"<html>Bad Gateway</html>"),
    "a gateway that waited": reply(504, b""),
    "a gateway that is busy": reply(503, b"busy", {"Retry-After": "0"}),
    "too many for a gateway": reply(429, b""),
    "a server that does not know": problem("RDB-E-OUTCOME-UNKNOWN", 503),
}
PASSING = {
    "overloaded": problem("RDB-E-OVERLOADED", 503),
    "stopping": problem("RDB-E-UNAVAILABLE", 503),
    "contention": problem("RDB-E-CONTENTION", 409),
    "a code of tomorrow": problem("RDB-E-TOMORROW", 503, retryable=True),
}
FINAL = {
    "RDB-E-INPUT": 400,
    "RDB-E-UNAUTHENTICATED": 401,
    "RDB-E-FORBIDDEN": 403,
    "RDB-E-NOT-FOUND": 404,
    "RDB-E-IDEMPOTENCY-REUSED": 409,
    "RDB-E-TOO-LARGE": 413,
    "RDB-E-ARITHMETIC": 422,
    "RDB-E-INTERNAL": 500,
    "RDB-E-STORAGE": 503,
}
any_unknown = pytest.mark.parametrize("broken", UNKNOWN.values(), ids=UNKNOWN.keys())
any_passing = pytest.mark.parametrize("refusal", PASSING.values(), ids=PASSING.keys())


def sent_once(server: ScriptedServer, times: int) -> None:
    """The same request was sent so many times."""
    assert len(server.received) == times
    assert {(request.path, request.body) for request in server.received} == {
        ("/v1/commands/CreateWork", server.received[0].body)
    }
    assert {request.headers["authorization"] for request in server.received} == {f"Bearer {TOKEN}"}


# --- what is sent again ---------------------------------------------------------------------------------------------


@any_unknown
def test_what_is_unknown_is_settled_by_the_same_key(server: ScriptedServer, remote: Remote, broken: Step) -> None:
    server.play(broken, broken, reply(200, answer(replayed=True)))
    found = remote.create()
    assert (found.outcome, found.replayed) == ("Created", True)
    sent_once(server, 3)


@any_unknown
def test_what_stays_unknown_is_told_with_its_key(server: ScriptedServer, remote: Remote, broken: Step) -> None:
    server.play(*[broken] * ATTEMPTS)
    error = remote.error()
    assert (error.code, error.key, error.facts.retryable) == ("RDB-E-OUTCOME-UNKNOWN", "the key", True)
    assert "send the same key and input again" in error.message
    sent_once(server, ATTEMPTS)


def test_a_key_that_is_made_is_told_too(server: ScriptedServer, remote: Remote) -> None:
    server.play(*[DROP] * ATTEMPTS)
    values = {name: value for name, value in VALUES.items() if name != "request_key"}
    error = remote.error("command", "CreateWork", **values)
    assert error.key == server.received[0].key
    assert UUID(error.key).version == 7
    assert len({request.key for request in server.received}) == 1
    server.play(ANSWER)
    assert remote.call("command", "CreateWork", **values, request_key=error.key).outcome == "Created"


@any_passing
def test_what_passes_is_sent_again(server: ScriptedServer, remote: Remote, refusal: Step) -> None:
    server.play(refusal, refusal, ANSWER)
    assert remote.create().outcome == "Created"
    sent_once(server, 3)


@any_passing
def test_what_does_not_pass_is_told_as_it_is(server: ScriptedServer, remote: Remote, refusal: Step) -> None:
    server.play(*[refusal] * ATTEMPTS)
    error = remote.error()
    assert error.code in ("RDB-E-OVERLOADED", "RDB-E-UNAVAILABLE", "RDB-E-CONTENTION")
    assert (error.message, error.key) == ("said so", "the key")
    sent_once(server, ATTEMPTS)


@any_passing
def test_a_refusal_in_passing_does_not_settle_what_was_unknown(
    server: ScriptedServer, remote: Remote, refusal: Step
) -> None:
    server.play(DROP, *[refusal] * (ATTEMPTS - 1))
    assert remote.error().code == "RDB-E-OUTCOME-UNKNOWN"


@pytest.mark.parametrize(("code", "status"), FINAL.items(), ids=FINAL.keys())
def test_a_refusal_is_not_sent_again(server: ScriptedServer, remote: Remote, code: str, status: int) -> None:
    server.play(problem(code, status, path="work_id"))
    error = remote.error()
    assert (error.code, error.message, error.path) == (code, "said so", "work_id")
    sent_once(server, 1)


@pytest.mark.parametrize(("code", "status"), FINAL.items(), ids=FINAL.keys())
def test_a_later_refusal_settles_nothing_of_an_earlier_attempt(
    server: ScriptedServer, remote: Remote, code: str, status: int
) -> None:
    server.play(DROP, problem(code, status))
    error = remote.error()
    if code == "RDB-E-IDEMPOTENCY-REUSED":
        assert error.code == code, "the key belongs to another input, so this one was never done"
    else:
        assert (error.code, error.key) == ("RDB-E-OUTCOME-UNKNOWN", "the key")
        assert "said so" in error.message
    sent_once(server, 2)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 404, 405, 407, 413, 418])
def test_who_is_no_server_of_ours_is_asked_once(server: ScriptedServer, remote: Remote, status: int) -> None:
    elsewhere = {"Location": f"{server.url}/v1/commands/CreateWork"}
    server.play(reply(status, b"<html>nothing here</html>", elsewhere), ANSWER)
    error = remote.error()
    assert error.code == "RDB-E-USAGE"
    assert f"status {status}" in error.message
    sent_once(server, 1)


def test_a_code_of_tomorrow_that_is_final_is_final(server: ScriptedServer, remote: Remote) -> None:
    server.play(problem("RDB-E-TOMORROW", 422, retryable=False))
    assert remote.error().message == "said so"
    sent_once(server, 1)


def test_nothing_sent_is_nothing_unknown(kind: str) -> None:
    port = free_port()
    with connected(kind, f"http://127.0.0.1:{port}") as remote:
        error = remote.error()
    assert (error.code, error.facts.exit) == ("RDB-E-UNAVAILABLE", 9)
    assert f"127.0.0.1:{port} cannot be reached" in error.message


def test_a_server_that_is_gone_after_an_attempt_leaves_it_unknown(server: ScriptedServer, remote: Remote) -> None:
    server.play(DIE)
    error = remote.error()
    assert (error.code, error.key) == ("RDB-E-OUTCOME-UNKNOWN", "the key")
    assert "cannot be reached" in error.message
    assert len(server.received) == 1
    assert remote.error().code == "RDB-E-UNAVAILABLE", "the next one is not sent at all"


def test_reads_are_sent_again_and_leave_nothing_unknown(server: ScriptedServer, remote: Remote) -> None:
    queried = b'{"outcome":"Due","payload":{"items":[]},"as_of":{"time":"2027-01-01T00:00:00.000000Z","sequence":"7"}}'
    server.play(DROP, reply(200, queried))
    assert remote.call("query", "DueWork", organization_id=ORGANIZATION).sequence == 7
    server.play(*[DROP] * ATTEMPTS)
    error = remote.error("query", "DueWork", organization_id=ORGANIZATION)
    assert (error.code, error.key) == ("RDB-E-UNAVAILABLE", None)
    server.play(GARBAGE, problem("RDB-E-ABSENT", 404))
    error = remote.error("resolve", "CreateWork", organization_id=ORGANIZATION, request_key="k")
    assert error.code == "RDB-E-ABSENT"
    server.play(DROP, reply(200, b'{"sequence":"1"}\n{"sequence":"2"}\n'))
    assert remote.call("history", "WorkItem", ORGANIZATION, UUID(int=1)) == [{"sequence": "1"}, {"sequence": "2"}]


def test_a_capability_is_asked_for_once(server: ScriptedServer, remote: Remote) -> None:
    server.play(DROP, ANSWER)
    error = remote.error("create_capability", role="WorkScheduler")
    assert error.code == "RDB-E-OUTCOME-UNKNOWN"
    assert "may have been made" in error.message
    assert len(server.received) == 1
    server.script.clear()
    server.play(problem("RDB-E-OVERLOADED", 503))
    assert remote.error("create_capability", role="WorkScheduler").code == "RDB-E-OVERLOADED"
    server.play(reply(201, b'{"id":"i","token":"t","role":null,"expires_at":null}'))
    assert remote.call("create_capability", partition=ORGANIZATION)["id"] == "i"
    assert str(ORGANIZATION).encode() in server.received[-1].body


# --- connections ----------------------------------------------------------------------------------------------------


def test_a_connection_is_kept(server: ScriptedServer, remote: Remote) -> None:
    server.play(*[ANSWER] * 5)
    for _ in range(5):
        remote.create()
    assert len({request.connection for request in server.received}) == 1


def test_a_kept_connection_that_ended_is_not_used(server: ScriptedServer, remote: Remote) -> None:
    for _ in range(3):
        server.play(ANSWER)
        remote.create()
        server.close_connections()
        remote.idle()
    assert len(server.received) == 3, "each was sent once"
    assert len({request.connection for request in server.received}) == 3
    server.play(reply(201, b'{"id":"i"}'))
    assert remote.call("create_capability") == {"id": "i"}, "nor by what is sent only once"


def test_a_server_that_answers_late_is_unknown(kind: str, server: ScriptedServer) -> None:
    stalled = Step(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", closes=False)
    with connected(kind, server.url, timeout_seconds=0.5, budget=RetryBudget(attempts=1)) as remote:
        server.play(stalled)
        assert remote.error().code == "RDB-E-OUTCOME-UNKNOWN"
    sent_once(server, 1)


# --- how long is waited ---------------------------------------------------------------------------------------------


class Waited:
    """An exchange that tells how long was waited; its responses are scripted."""

    def __init__(self, *responses: Response | Exception) -> None:
        self.responses = list(responses)
        self.waits: list[float] = []

    async def exchange(self, request: Request) -> Response:
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    async def begin(self, request: Request) -> Response | Pieces:
        return await self.exchange(request)

    async def pause(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def close(self) -> None:
        """Nothing is open."""


def waited(*responses: Response | Exception, budget: RetryBudget | None = None) -> list[float]:
    """The waits between the attempts of one command."""
    exchange = Waited(*responses)
    checked: Exchange = exchange
    transport = RemoteTransport(checked, budget or RetryBudget(attempts=len(responses), base_seconds=0))
    with suppress(RiffError):
        step(transport.command("CreateWork", {"request_key": "k"}, "request_key"))
    assert exchange.responses == []
    return exchange.waits


def overloaded(retry_after: float | None = None, body: bytes = b'{"code":"RDB-E-OVERLOADED"}') -> Response:
    return Response(503, body, retry_after)


def asking(wait: bytes) -> Response:
    """A problem that asks for a wait in its body."""
    return overloaded(body=b'{"code":"RDB-E-OVERLOADED","retry_after":%b}' % wait)


def test_a_server_is_given_the_time_that_it_asks_for() -> None:
    done = Response(200, answer())
    assert waited(overloaded(3), overloaded(7), done) == [3, 7]
    assert waited(asking(b"2"), done) == [2]
    assert waited(overloaded(5, body=b"a gateway"), done) == [5]
    assert waited(overloaded(86_400), asking(b"1e300"), done) == [30, 30]
    for nonsense in (b'"soon"', b"true", b"null", b"[1]", b"-5"):
        assert waited(asking(nonsense), done) == [0]


def test_waits_double_up_to_their_bound() -> None:
    budget = RetryBudget(attempts=8, base_seconds=0.1, max_seconds=1.0)
    waits = waited(*[NotSentError("x"), BrokenError("y")] * 4, budget=budget)
    assert len(waits) == 7
    for number, wait in enumerate(waits):
        assert 0 <= wait <= min(0.1 * 2**number, 1.0)
    assert len(set(waits)) > 1, "with jitter"


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1.5", "", "\u0661", None])
def test_a_wait_that_is_none_is_not_read(header: str | None) -> None:
    assert retry_after_seconds(header) is None
    assert retry_after_seconds("17") == 17


# --- a contract that grows ------------------------------------------------------------------------------------------


GROWN = (
    ("return Opened {", "return Frozen {"),
    ("command Look {", "command Glance {"),
    ("Look }", "Glance }"),
    ("return Seen {", "return Looked {"),
)


def test_a_contract_that_grew_is_read_anew(kind: str) -> None:
    values: dict[str, object] = {"owner": ORGANIZATION, "number": 1}
    with scripted(ledger_plan()) as server, connected(kind, server.url) as remote:
        server.play(reply(200, answer("Opened")), reply(200, answer("Frozen")), reply(200, answer("Looked")))
        assert remote.call("command", "OpenAccount", **values).is_success
        server.plan = changed_ledger(*GROWN)
        assert remote.call("command", "OpenAccount", **values).outcome == "Frozen"
        assert server.contracts_asked == 2
        assert remote.call("command", "Glance", **values).outcome == "Looked"
        assert server.contracts_asked == 2
        server.play(reply(200, answer("NeverDeclared")))
        assert remote.error("command", "OpenAccount", **values).code == "RDB-E-CLIENT-TOO-OLD"
        server.play(problem("RDB-E-FORBIDDEN", 403))
        assert remote.error("command", "NoSuch").code == "RDB-E-FORBIDDEN"


def test_what_the_client_does_not_know_is_left_out_or_told(server: ScriptedServer, remote: Remote) -> None:
    body = answer().replace(b'"payload": {}', b'"payload": {"more": 1, "work": {"state": "Queued", "colour": "Red"}}')
    server.play(reply(200, body), reply(200, body.replace(b"Queued", b"Lost")))
    assert remote.create().payload == {"work": {"state": "Queued"}}
    unknown = remote.create()
    with pytest.raises(RiffError) as caught:
        _ = unknown.payload
    assert caught.value.code == "RDB-E-CLIENT-TOO-OLD"
    assert b"Lost" in unknown.raw


def test_a_contract_that_is_none_is_asked_for_again(server: ScriptedServer, remote: Remote) -> None:
    server.contract = reply(200, to_json(queue_plan()).encode()[:1_000])
    error = remote.error("plan")
    assert (error.code, server.contracts_asked) == ("RDB-E-UNAVAILABLE", ATTEMPTS)


# --- what is never shown --------------------------------------------------------------------------------------------


def test_a_token_is_never_shown(server: ScriptedServer, remote: Remote, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown = [repr(remote.client), str(remote.client), repr(vars(remote.client))]
    for broken in (*UNKNOWN.values(), problem("RDB-E-INTERNAL", 500), reply(404, b"")):
        server.script.clear()
        server.play(*[broken] * ATTEMPTS)
        error = remote.error()
        shown += [repr(error), "".join(traceback.format_exception(error)), repr(error.to_json())]
        cause: BaseException | None = error
        while cause is not None:
            shown += [repr(cause), repr(cause.args)]
            cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    server.script.clear()
    server.play(ANSWER)
    shown += [repr(remote.create()), caplog.text]
    assert not [text for text in shown if TOKEN[4:30] in text]


@pytest.mark.parametrize("token", ["", "rdb_abc def", "rdb_abc\n", "rdb_abc\r\nX: y", " rdb_abc", "rdb_ä", "rdb_\x00"])
def test_what_no_token_can_be_is_refused_and_not_shown(kind: str, token: str) -> None:
    with pytest.raises(RiffError) as caught:
        Remote(kind, "http://127.0.0.1:1", token)
    assert caught.value.code == "RDB-E-UNAUTHENTICATED"
    assert "abc" not in repr(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:7433",
        "ftp://127.0.0.1",
        "sqlite:work.db",
        "http://",
        "http://:80",
        "http://host:0",
        "http://host:99999",
        "http://host/path",
        "http://host?query",
        "http://user:secret@host",
        "http://[::1",
    ],
)
def test_an_address_that_is_none_is_refused(kind: str, url: str) -> None:
    with pytest.raises(RiffError) as caught:
        Remote(kind, url)
    assert caught.value.code == "RDB-E-USAGE"
    assert "secret" not in caught.value.message
