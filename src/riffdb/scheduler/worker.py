"""Who runs turns, and the state of one turn: frozen values that the steps hand on.

The worker's clock is given: monotonic seconds for its own deadlines only, never compared with the database's times. A
lease is counted from before its claim or renewal was sent, so the worker's end is never later than the database's.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import UUID

from riffdb.core.limits import U64_MAX
from riffdb.scheduler.backoff import Backoff
from riffdb.scheduler.failures import Permanent
from riffdb.scheduler.handler import Handler
from riffdb.scheduler.identity import Purpose, Subject, attempt_identity, business_identity
from riffdb.scheduler.policy import Policy
from riffdb.scheduler.port import Item, Lease, Port, Success


class Cancellation(Protocol):
    """Whether to stop; an `asyncio.Event` or a `threading.Event` is one."""

    def is_set(self) -> bool:
        """True from the moment of cancelling on."""


@dataclass(frozen=True, slots=True)
class Timer:
    """Monotonic seconds, best of a clock that runs on while the machine is suspended; and a wait of so many seconds."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker of one schedule. `owner` marks its leases and grants nothing; each process has its own."""

    port: Port = field(repr=False)
    policy: Policy
    owner: UUID = field(repr=False)
    timer: Timer = field(repr=False)
    handler: Handler | None = field(default=None, repr=False)
    backoff: Backoff = field(default_factory=Backoff, repr=False)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that the worker holds, by its own monotonic time from `since` to `ends`; renewed first at a third."""

    lease: Lease
    since: float
    lease_seconds: int
    claimed: Success = field(repr=False)

    @property
    def ends(self) -> float:
        """The moment from which the lease counts as over."""
        return self.since + self.lease_seconds

    @property
    def renew_at(self) -> float:
        """The moment at which to renew."""
        return self.since + self.lease_seconds / 3

    def advanced(self, answer: Success) -> "Held":
        """The same lease with the successor revision of a command; `Permanent` if that is not presented + 1."""
        return replace(self, lease=replace(self.lease, revision=successor(self.lease.revision, answer)))

    def renewed(self, answer: Success, since: float) -> "Held":
        """The lease after a renewal that was first sent at `since`."""
        return replace(self.advanced(answer), since=since)


def successor(presented: int, answer: Success) -> int:
    """The answer's successor revision; `Permanent` unless it is the presented one + 1 and a u64."""
    if presented >= U64_MAX or answer.revision != presented + 1:
        raise Permanent(reason="invalid evidence: the successor revision is not the presented one + 1")
    return answer.revision


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn on one item: its try from 1, and the identities of its attempts."""

    worker: Worker = field(repr=False)
    item: Item
    tries: int
    cancellation: Cancellation = field(repr=False)
    subject: Subject

    @property
    def delay(self) -> int:
        """Seconds to back off after this try."""
        return self.worker.policy.retry_delay(self.tries)

    def now(self) -> float:
        """The worker's monotonic seconds."""
        return self.worker.timer.monotonic()

    def key(self, purpose: Purpose, revision: int) -> str:
        """The request key of a claim, renewal, release or fail of this delivery that presents `revision`."""
        return attempt_identity(self.subject, purpose, self.item.ordinal, revision)

    def business_key(self, generation: int) -> str:
        """The request key of the business command, the same in every turn on this work."""
        return business_identity(self.subject, self.item.schedule.run, generation)


def begin(worker: Worker, item: Item, cancellation: Cancellation) -> Turn:
    """The turn on an item; `Permanent` if the item is outside the bounds of an identity."""
    try:
        subject = Subject(item.schedule.name, item.schedule.source, item.due, item.target)
    except ValueError as error:
        raise Permanent(error, "the item is outside the bounds of an attempt identity") from None
    return Turn(worker, item, worker.backoff.tries(item), cancellation, subject)
