"""`Policy`: the bounds within which a worker may act, and the delay before a retry.

A policy outside the bounds cannot be made: `RDB-E-USAGE` names the value and what it may be. All values are whole
seconds or counts. Absent on purpose: jitter, which whoever waits may add; the delay itself is exact.
"""

from dataclasses import dataclass

from riffdb.core.errors import RiffError

IN_FLIGHT_MAX = 8
ATTEMPTS_MAX = 10
WAIT_SECONDS_MAX = 30
LEASE_SECONDS_MIN = 5
LEASE_SECONDS_MAX = 900
RETRY_SECONDS_MAX = 3_600

_DOUBLINGS_MAX = RETRY_SECONDS_MAX.bit_length()


@dataclass(frozen=True, slots=True)
class Policy:
    """How many items at once, how many deliveries of one event, how long to wait, to hold a lease, to back off.

    `attempts` bounds the deliveries of a stream; from a query the contract's own `fail` command decides that.
    """

    in_flight: int = 1
    attempts: int = ATTEMPTS_MAX
    wait_seconds: int = 5
    lease_seconds: int = 60
    base_retry_seconds: int = 1
    max_retry_seconds: int = 300

    def __post_init__(self) -> None:
        _require("in_flight", self.in_flight, 1, IN_FLIGHT_MAX)
        _require("attempts", self.attempts, 1, ATTEMPTS_MAX)
        _require("wait_seconds", self.wait_seconds, 0, WAIT_SECONDS_MAX)
        _require("lease_seconds", self.lease_seconds, LEASE_SECONDS_MIN, LEASE_SECONDS_MAX)
        _require("max_retry_seconds", self.max_retry_seconds, 1, RETRY_SECONDS_MAX)
        _require("base_retry_seconds", self.base_retry_seconds, 1, self.max_retry_seconds)

    def retry_delay(self, attempt: int) -> int:
        """Seconds before the retry that follows the attempt of that number, counted from 1."""
        if attempt < 1:
            raise ValueError("attempts are counted from 1")
        doublings = min(attempt - 1, _DOUBLINGS_MAX)
        return min(self.base_retry_seconds << doublings, self.max_retry_seconds)

    def fit_lease(self, seconds_min: int, seconds_max: int) -> None:
        """Refuse a claim duration outside the bounds (inclusive) of the workflow's lease: `RDB-E-USAGE`."""
        _require("lease_seconds", self.lease_seconds, seconds_min, seconds_max)


def _require(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        message = f"the policy's {name} must be a whole number between {low} and {high}"
        raise RiffError("RDB-E-USAGE", message, path=name)
