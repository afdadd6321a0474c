"""A worker's memory between turns over a query: per target, how often it failed here and for how long to leave it.

A stream keeps both durably, so nothing of a stream is remembered. Only failures count as tries: being second to
another worker is no failure. An item is never given up: the delay stops growing at the policy's maximum.
"""

from dataclasses import dataclass

from riffdb.scheduler.failures import Cancelled
from riffdb.scheduler.identity import Target
from riffdb.scheduler.policy import RETRY_SECONDS_MAX, Policy
from riffdb.scheduler.port import Item
from riffdb.scheduler.results import (
    Completed,
    Deferred,
    DeliveryLost,
    Failed,
    Gone,
    Idle,
    LeaseLost,
    Recovered,
    Refused,
    TurnResult,
)

_ENTRIES_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class _Entry:
    failures: int
    until: float


class Backoff:
    """The memory of one worker; moments are its monotonic seconds."""

    def __init__(self) -> None:
        self._entries: dict[Target, _Entry] = {}
        self._lapse_at = _ENTRIES_KEPT

    def tries(self, item: Item) -> int:
        """The number of the try that a turn on this item is, from 1."""
        if item.schedule.source.kind == "stream":
            return item.ordinal
        entry = self._entries.get(item.target)
        return 1 if entry is None else entry.failures + 1

    def passes_over(self, target: Target, now: float) -> bool:
        """Whether the target's delay still runs."""
        entry = self._entries.get(target)
        return entry is not None and now < entry.until

    def seconds_to_next(self, now: float) -> float | None:
        """Seconds until the next delay ends, None if none runs."""
        return min((entry.until - now for entry in self._entries.values() if now < entry.until), default=None)

    def note(self, result: TurnResult, policy: Policy, now: float) -> None:
        """Remember what the turn's end asks for."""
        match result:
            case Idle() | DeliveryLost() | Failed(item=None) | Failed(failure=Cancelled()):
                return
            case Completed(item=item) | Gone(item=item):
                self._entries.pop(item.target, None)
            case Deferred(item=item, delay_seconds=delay):
                self._pass_over(item, self.tries(item) - 1, now + delay)
            case Recovered(item=item) | Refused(item=item):
                # The contract may leave a resolved row selected; without a delay it would be taken again at once.
                tries = self.tries(item)
                self._pass_over(item, tries, now + policy.retry_delay(tries))
            case LeaseLost(item=item, delay_seconds=delay) | Failed(item=Item() as item, delay_seconds=delay):
                self._pass_over(item, self.tries(item), now + delay)
        if len(self._entries) > self._lapse_at:
            self._forget(now)

    def _pass_over(self, item: Item, failures: int, until: float) -> None:
        if item.schedule.source.kind == "query":
            self._entries[item.target] = _Entry(failures, until)

    def _forget(self, now: float) -> None:
        kept = {target: entry for target, entry in self._entries.items() if now < entry.until + RETRY_SECONDS_MAX}
        self._entries = kept
        self._lapse_at = max(_ENTRIES_KEPT, 2 * len(kept))
