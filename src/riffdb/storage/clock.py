"""The one clock of a store: microseconds since 1970-01-01 UTC.

It follows the wall clock, and within a process it never goes back and advances by at most the boot time that has
passed (suspend included) plus five seconds. A wall clock that leaves this range, in either direction, is ignored until
it is back: the clock then goes on at the pace of boot time, and the jump is counted and logged. The sources are passed
in, so that a test moves them. Absent: any order between commits, which is the matter of their transaction times.
"""

import logging
import time
from collections.abc import Callable
from threading import Lock

Clock = Callable[[], int]
Chance = Callable[[int], bytes]
"""So many bytes that nobody can foretell; passed in beside the clock, and like it by nobody but tests."""

ALLOWANCE = 5_000_000
"""How far (µs) the wall clock may move against boot time since the clock was made."""

logger = logging.getLogger(__name__)

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_time() -> int:
    """The machine's wall clock, µs since 1970."""
    return time.time_ns() // 1_000


def boot_time() -> int:
    """Time since the machine was started, µs, suspend included."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000


class StoreClock:
    """The clock; call it for the time. `jumps` counts the jumps of the wall clock that it ignored."""

    def __init__(self, wall: Clock = wall_time, boot: Clock = boot_time) -> None:
        self._wall = wall
        self._boot = boot
        self._lock = Lock()
        self._last = wall()
        self._first_lead = self._lead = self._last - boot()
        self._ignored_lead: int | None = None
        self.jumps = 0

    def __call__(self) -> int:
        """The time now; usable from several threads."""
        with self._lock:
            boot = self._boot()
            lead = self._wall() - boot
            if abs(lead - self._first_lead) <= ALLOWANCE:
                self._lead, self._ignored_lead = lead, None
            else:
                self._ignore(lead)
            self._last = max(self._last, boot + self._lead)
            return self._last

    def _ignore(self, lead: int) -> None:
        if self._ignored_lead is not None and abs(lead - self._ignored_lead) <= ALLOWANCE:
            return
        self._ignored_lead = lead
        self.jumps += 1
        if self.jumps & (self.jumps - 1) == 0:  # the 1st, 2nd, 4th …: a clock that swings must not fill the log
            logger.warning(
                "the wall clock jumped by %+.1f seconds and is ignored until it is back or the process is started anew"
                " (%d jumps so far)",
                (lead - self._lead) / 1_000_000,
                self.jumps,
            )
