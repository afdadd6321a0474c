"""The events of a server over one connection after another: what is asked again, when it gives up, what is no event.

Units, since a connection that breaks at a chosen byte is not brought about from outside; real connections break in
`tests/conformance/test_clients_watching.py`.
"""

from collections.abc import Sequence

import pytest

from riffdb.client.events import RemoteEvents
from riffdb.client.exchanges import BrokenError, NotSentError, Pieces, Request, Response, RetryBudget
from riffdb.client.remote import RemoteTransport
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step

SNAPSHOT = b'event: snapshot\nid: t-1\ndata: {"n":1}\n\n'
CHANGE = b'event: change\nid: t-2\ndata: {"n":2}\n\n'
PING = b"event: ping\ndata: {}\n\n"


class Played(Pieces):
    """An answer that lasts, in pieces; an exception is where it breaks."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = [*pieces, b""]
        self.is_closed = False

    async def read(self) -> bytes:
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def close(self) -> None:
        self.is_closed = True


class Scripted:
    """An exchange whose answers are scripted; what was asked and waited is kept."""

    def __init__(self, answers: Sequence[Played | Response | Exception]) -> None:
        self.answers = list(answers)
        self.played = [answer for answer in answers if isinstance(answer, Played)]
        self.asked: list[Request] = []
        self.waits: list[float] = []

    async def exchange(self, request: Request) -> Response:
        raise AssertionError("a watch begins an answer that lasts")

    async def begin(self, request: Request) -> Response | Pieces:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pause(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def close(self) -> None:
        """Nothing is open."""


def watching(
    *answers: Played | Response | Exception, patience_seconds: float = 0, attempts: int = 3
) -> tuple[RemoteEvents, Scripted]:
    """The events of a server that answers so, in this order."""
    exchange = Scripted(answers)
    budget = RetryBudget(attempts=attempts, base_seconds=0, patience_seconds=patience_seconds)
    return RemoteTransport(exchange, budget).watch("Q", {"owner": 1}), exchange


def kinds(events: RemoteEvents, count: int) -> list[str]:
    """The kinds of the next events."""
    return [event.kind for event in (step(events.next()) for _ in range(count)) if event is not None]


def error_of(events: RemoteEvents) -> RiffError:
    """The error that the next event is."""
    with pytest.raises(RiffError) as caught:
        step(events.next())
    return caught.value


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_events_are_read_out_of_pieces_of_any_size(size: int) -> None:
    text = SNAPSHOT + PING + CHANGE
    events, _ = watching(Played(*(text[i : i + size] for i in range(0, len(text), size))))
    found = [step(events.next()) for _ in range(3)]
    assert [(event.kind, event.id, event.data) for event in found if event is not None] == [
        ("snapshot", "t-1", b'{"n":1}'),
        ("ping", "", b"{}"),
        ("change", "t-2", b'{"n":2}'),
    ]


def test_it_goes_on_with_the_id_of_the_last_event() -> None:
    events, exchange = watching(
        NotSentError("nobody listens"),
        Played(SNAPSHOT + PING, BrokenError("it broke")),
        Response(503, b'{"code":"RDB-E-UNAVAILABLE"}', 2.5),
        Played(CHANGE + b"event: change\nid: t-3\nda"),
        Played(PING),
        patience_seconds=1_000,
        attempts=2,
    )
    assert kinds(events, 4) == ["snapshot", "ping", "change", "ping"]
    assert [request.last_event_id for request in exchange.asked] == [None, None, "t-1", "t-1", "t-2"]
    assert {(request.method, request.path, request.body) for request in exchange.asked} == {
        ("POST", "/v1/queries/Q/watch", b'{"params": {"owner": 1}}')
    }
    assert exchange.waits == [0, 0, 2.5, 0]
    assert [played.is_closed for played in exchange.played] == [True, True, False]
    events.close()
    assert exchange.played[-1].is_closed
    assert step(events.next()) is None


def test_it_gives_up_after_so_many_attempts_if_it_was_never_heard() -> None:
    events, exchange = watching(*[NotSentError("nobody listens")] * 3, patience_seconds=1_000)
    error = error_of(events)
    assert (error.code, "nobody listens" in error.message) == ("RDB-E-UNAVAILABLE", True)
    assert len(exchange.asked) == 3


def test_it_gives_up_once_nothing_was_heard_for_its_patience() -> None:
    silent = [Response(503, b'{"code":"RDB-E-OVERLOADED","detail":"busy"}')] * 3
    events, exchange = watching(Played(SNAPSHOT), *silent)
    assert kinds(events, 1) == ["snapshot"]
    error = error_of(events)
    assert (error.code, error.message) == ("RDB-E-OVERLOADED", "busy")
    assert len(exchange.asked) == 3


@pytest.mark.parametrize(
    "refusal",
    [
        Response(403, b'{"code":"RDB-E-FORBIDDEN","detail":"no"}'),
        Played(b'event: error\ndata: {"code":"RDB-E-FORBIDDEN","status":403,"detail":"no"}\n\n'),
    ],
)
def test_a_refusal_for_good_is_raised_at_once(refusal: Response | Played) -> None:
    events, exchange = watching(refusal)
    error = error_of(events)
    assert (error.code, error.message, len(exchange.asked)) == ("RDB-E-FORBIDDEN", "no", 1)


def test_an_error_that_passes_is_no_end() -> None:
    stopping = b'event: error\ndata: {"code":"RDB-E-UNAVAILABLE","status":503}\n\n'
    events, _ = watching(Played(SNAPSHOT + stopping), Played(CHANGE))
    assert kinds(events, 2) == ["snapshot", "change"]


@pytest.mark.parametrize(
    "garbage", [b"<html>\n\n", b"event: change\n\n", b"data: {}\n\n", b"event: error\ndata: \xff\n\n", b"\n\n"]
)
def test_what_is_no_event_breaks_the_connection_and_no_more(garbage: bytes) -> None:
    events, exchange = watching(Played(SNAPSHOT + garbage), Played(CHANGE))
    assert kinds(events, 2) == ["snapshot", "change"]
    assert exchange.played[0].is_closed
