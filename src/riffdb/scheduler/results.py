"""How a turn can end: a closed set of values, each with the item that it was about.

What is acknowledged: `Completed`, `Recovered`, `Refused`, `Gone`. What goes back: `Deferred`, `LeaseLost`, `Failed`,
each with the seconds to wait. `Idle` had no item, and of a `DeliveryLost` another worker has it already.
"""

from dataclasses import dataclass
from typing import TypeAlias

from riffdb.scheduler.failures import SchedulerFailure
from riffdb.scheduler.port import Item


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing was selected within the wait."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The business command was committed by this turn."""

    item: Item
    outcome: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """A predecessor had committed the business command; this turn cleaned up after it."""

    item: Item
    outcome: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The business said no, now or to a predecessor."""

    item: Item
    outcome: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The row is no longer there."""

    item: Item


@dataclass(frozen=True, slots=True)
class Deferred:
    """The row could not be claimed now: another worker was first, or it has changed since it was selected."""

    item: Item
    delay_seconds: int


@dataclass(frozen=True, slots=True)
class DeliveryLost:
    """The delivery had run out before the claim was made; the lease was given back."""

    item: Item


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The lease ended before the business command could commit."""

    item: Item
    delay_seconds: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn ended on a failure, the handler's among them; without an item the selection itself failed."""

    item: Item | None
    failure: SchedulerFailure
    delay_seconds: int = 0


Resolved: TypeAlias = Recovered | Refused
TurnResult: TypeAlias = Idle | Completed | Recovered | Refused | Gone | Deferred | DeliveryLost | LeaseLost | Failed
