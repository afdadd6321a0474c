"""The closed port: everything that a turn asks of the world, and everything that it may be answered.

An adapter implements `Port` over a client of the application; one port serves one schedule. A command is sent with the
request key that it is given and, when its answer is lost, again with the same key and input until the outcome is
known or the adapter's budget is spent (`Retryable`). An operation returns one of the answers below or raises a
`SchedulerFailure`, and ends within a bound. No `repr` here shows an owner, token, revision, key or field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias
from uuid import UUID

from riffdb.scheduler.identity import Source, Target

EvidenceKind: TypeAlias = Literal[
    "stale", "unavailable", "invalid", "exhausted", "expired", "active", "missing", "other"
]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as a turn needs it. `run` is the business command's name, which its identity binds.

    `renews`, `fails`: whether the schedule names such a command. `run_ends_lease`: whether every success of `run`
    leaves no lease to release, because it releases it or deletes the row.
    """

    name: str
    source: Source
    run: str
    renews: bool = False
    fails: bool = False
    run_ends_lease: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of selected work; `due` is in µs since 1970-01-01 UTC.

    From a query the ordinal is the observed time in µs and the expected revision the selected `revision`; from a stream
    they are the durable attempt and the event's field. `fields` (native values) and `delivery` (what the adapter needs
    to settle it) are not looked at by the turn.
    """

    schedule: Schedule
    due: int
    target: Target = field(repr=False)
    ordinal: int
    expected_revision: int = field(repr=False)
    fields: Mapping[str, object] = field(default_factory=dict, repr=False)
    delivery: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to select: at most `items_max` (1 to 8) items, waiting at most `wait_seconds` for the first.

    `passes_over` is asked anew at every look: rows of a query with such a target are left out, not waited for.
    """

    wait_seconds: float
    items_max: int = 1
    passes_over: Callable[[Target], bool] = field(default=lambda target: False, repr=False)


@dataclass(frozen=True, slots=True)
class Lease:
    """The evidence that a fenced command presents: the owner, its fencing token, the row's newest revision."""

    owner: UUID = field(repr=False)
    fencing_token: int = field(repr=False)
    revision: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Success:
    """A declared success. `revision` is the successor revision of the leased row; None if the row was deleted.

    A claim also gives the fencing token and, from a stream, whether the delivery could be extended (`delivery_kept`).
    """

    outcome: str
    revision: int | None = field(default=None, repr=False)
    fencing_token: int | None = field(default=None, repr=False)
    payload: Mapping[str, object] = field(default_factory=dict, repr=False)
    delivery_kept: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """An evidence failure: the caller's evidence was wrong, nothing was decided about the work.

    `kind` is the clause that names the outcome; `missing` the `else` of the leased row's own binding; `other` where no
    single clause of the leased row can be told. `revision`: the row's, where the payload shows it (stale).
    `remaining_microseconds`: from the answer's commit time to the lease expiry, where it shows that (unavailable).
    """

    outcome: str
    kind: EvidenceKind
    revision: int | None = field(default=None, repr=False)
    remaining_microseconds: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Any other declared failure: the business said no."""

    outcome: str


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The request key is taken with another input (`RDB-E-IDEMPOTENCY-REUSED`); nothing was done."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing is recorded under the request key now (`RDB-E-ABSENT`)."""


Answer: TypeAlias = Success | Evidence | Refusal | KeyReused
Stored: TypeAlias = Success | Evidence | Refusal | Absent


class Port(Protocol):
    """The nine operations of a worker; there is no other way from a turn to the database."""

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        """Select items in the source's order; none when there is none within the wait, or at once if it cannot wait."""

    async def resolve(self, item: Item, key: str) -> Stored:
        """Fetch the stored answer of `run` under `key`, executing nothing."""

    async def claim(self, item: Item, key: str, owner: UUID, lease_seconds: int, revision: int) -> Answer:
        """Claim the row at `revision`; from a stream then extend the delivery and say whether that was applied."""

    async def renew(self, item: Item, key: str, lease: Lease, lease_seconds: int) -> Answer:
        """Renew the row's lease; from a stream extend the delivery too."""

    async def execute(self, item: Item, key: str, lease: Lease, inputs: Mapping[str, object]) -> Answer:
        """Send `run` with the handler's further inputs; an input that is not one of them is `Permanent`."""

    async def release(self, item: Item, key: str, lease: Lease) -> Answer:
        """Release the row's lease."""

    async def fail(self, item: Item, key: str, lease: Lease, retry_seconds: int) -> Answer:
        """Send the schedule's `fail` command, with `retry_seconds` where it takes such an input."""

    async def acknowledge(self, item: Item) -> None:
        """Settle the delivery, `StateChanged` counting as settled; from a query nothing."""

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        """Put the delivery back, `StateChanged` counting as done; from a query nothing."""
