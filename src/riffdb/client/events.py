"""Server-sent events of a server: read out of the pieces of an answer that lasts, and gone on from where it broke.

`RemoteEvents` connects again by itself, with the id of the last event, so that nothing is told twice or missed. It
gives up when the server refuses for good, or when nothing has come for the patience of the budget. Sync and async
differ in the `Exchange` alone. Absent: what the events say.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import msgspec

from riffdb.client.exchanges import (
    BrokenError,
    Exchange,
    NotSentError,
    PassingError,
    Pieces,
    Request,
    Response,
    RetryBudget,
    asked_seconds,
)
from riffdb.core.errors import RiffError

_read_problem = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True)
class Event:
    """One event; the id is empty where there is nothing to go on from."""

    kind: str
    id: str
    data: bytes


class RemoteEvents:
    """The events of one watch of a server. `refusal`: the error that a response tells of."""

    def __init__(
        self, exchange: Exchange, budget: RetryBudget, request: Request, refusal: Callable[[Response], Exception]
    ) -> None:
        self._exchange = exchange
        self._budget = budget
        self._request = request
        self._refusal = refusal
        self._pieces: Pieces | None = None
        self._unread = b""
        self._failures = 0
        self._heard_at: float | None = None
        self._is_open = True

    async def next(self) -> Event | None:
        """The next event, over as many connections as it takes; None once it was closed here."""
        while self._is_open:
            try:
                event = await self._read()
            except (NotSentError, BrokenError, PassingError) as error:
                self._drop()
                if self._is_open:
                    await self._wait(error)
                continue
            self._failures, self._heard_at = 0, monotonic()
            if event.id:
                self._request = replace(self._request, last_event_id=event.id)
            return event
        return None

    def close(self) -> None:
        """End it; a `next` that waits, on another thread or task, ends too."""
        self._is_open = False
        self._drop()

    def _drop(self) -> None:
        pieces, self._pieces, self._unread = self._pieces, None, b""
        if pieces is not None:
            pieces.close()

    async def _wait(self, error: Exception) -> None:
        """Wait before the next connection; raise instead where that is of no use any more."""
        self._failures += 1
        is_late = self._heard_at is None or monotonic() - self._heard_at >= self._budget.patience_seconds
        if self._failures >= self._budget.attempts and is_late:
            if isinstance(error, PassingError):
                raise error.refusal from None
            raise RiffError("RDB-E-UNAVAILABLE", f"the watch has lost its server: {error}") from error
        asked = asked_seconds(error)
        wait = self._budget.delay_seconds(self._failures)
        await self._exchange.pause(wait if asked is None else max(wait, min(asked, self._budget.patience_seconds)))

    async def _read(self) -> Event:
        if self._pieces is None:
            begun = await self._exchange.begin(self._request)
            if isinstance(begun, Response):
                raise self._refusal(begun)
            self._pieces = begun
        while b"\n\n" not in self._unread:
            piece = await self._pieces.read()
            if not piece:
                raise BrokenError("the stream of events ended")
            self._unread += piece
        text, _, self._unread = self._unread.partition(b"\n\n")
        event = _parsed(text)
        if event.kind == "error":
            raise self._refusal(Response(_status(event.data), event.data))
        return event


def _parsed(text: bytes) -> Event:
    fields: dict[bytes, bytes] = {}
    for line in text.split(b"\n"):
        name, colon, value = line.partition(b": ")
        if not colon:
            raise BrokenError("what came back are no events of RiffDB")
        fields[name] = value
    kind, identity = fields.get(b"event", b""), fields.get(b"id", b"")
    if not kind or b"data" not in fields:
        raise BrokenError("what came back are no events of RiffDB")
    return Event(kind.decode(errors="replace"), identity.decode(errors="replace"), fields[b"data"])


def _status(problem: bytes) -> int:
    try:
        status = _read_problem(problem).get("status")
    except ValueError:
        status = None
    return status if isinstance(status, int) else 500
