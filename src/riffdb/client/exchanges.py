"""What a transport over HTTP rests on: requests and responses as plain values, and an `Exchange` that carries them.

An exchange has two twins, `blocking` and `suspending`. It raises `NotSentError` or `BrokenError` and nothing else, and
decides nothing; whoever sends knows what may be sent again. Absent: what an answer means.
"""

import random
from dataclasses import dataclass
from typing import Protocol

from riffdb.core.errors import RiffError
from riffdb.core.limits import HEARTBEAT_SECONDS

TIMEOUT_SECONDS = 30.0

SILENCE_SECONDS_MAX = 2 * HEARTBEAT_SECONDS
"""After this a server that says nothing in an answer that lasts is taken for lost."""


class NotSentError(Exception):
    """The request did not reach the server; the text says why."""


class BrokenError(Exception):
    """The request may have reached the server; no whole answer came back. The text says what came instead.

    `retry_after`: the wait that was asked for, in seconds.
    """

    def __init__(self, what: str, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class PassingError(Exception):
    """A refusal that another attempt may change."""

    def __init__(self, refusal: RiffError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `wait_seconds` is how long the server may wait on purpose before it answers, `last_event_id`
    what a watch goes on from."""

    method: str
    path: str
    body: bytes | None
    wait_seconds: float = 0
    last_event_id: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response; `retry_after` in seconds, where the server named it."""

    status: int
    body: bytes
    retry_after: float | None = None


class Pieces(Protocol):
    """The body of an answer that lasts, as it comes."""

    async def read(self) -> bytes:
        """The next piece, waited for at most `SILENCE_SECONDS_MAX`; empty at the end. `BrokenError` where it breaks."""
        ...

    def close(self) -> None:
        """Let go of the connection; a `read` that waits, on another thread or task, ends."""
        ...


class Exchange(Protocol):
    """Carries requests to one server. It raises `NotSentError` or `BrokenError`, nothing else."""

    async def exchange(self, request: Request) -> Response:
        """The response of the server."""
        ...

    async def begin(self, request: Request) -> Response | Pieces:
        """The pieces of an answer that lasts, or the whole response where the server refuses."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How often a request is sent again and how long is waited between, doubling, with full jitter; a server may ask
    for a longer wait, up to `patience_seconds`."""

    attempts: int = 6
    base_seconds: float = 0.05
    max_seconds: float = 2.0
    patience_seconds: float = 30.0

    def delay_seconds(self, attempt: int) -> float:
        """The wait after attempt number `attempt` (from 1)."""
        ceiling = min(self.base_seconds * 2 ** (attempt - 1), self.max_seconds)
        return random.uniform(0, ceiling)


def asked_seconds(last: Exception) -> float | None:
    """The wait that the server asked for, if it did and it is one."""
    asked = last.retry_after if isinstance(last, BrokenError) else None
    if isinstance(last, PassingError):
        told = last.refusal.detail.get("retry_after")
        asked = told if isinstance(told, int | float) and not isinstance(told, bool) else None
    return asked
