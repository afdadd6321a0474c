"""The bounds of a policy, its delays to the second, what a worker remembers, and which failure an error is.

Here and not in a wider suite because the bounds are numbers, and whether each is held is plainest at the number.
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.codes import CODES
from riffdb.core.errors import RiffError
from riffdb.scheduler import (
    AuthorizationRevoked,
    Completed,
    Deferred,
    DeliveryLost,
    Failed,
    Gone,
    Idle,
    Item,
    LeaseLost,
    Permanent,
    Policy,
    Recovered,
    Retryable,
    Schedule,
    Source,
    failure_of,
)
from riffdb.scheduler.backoff import Backoff

BOUNDS = {
    "in_flight": (1, 8),
    "attempts": (1, 10),
    "wait_seconds": (0, 30),
    "lease_seconds": (5, 900),
    "max_retry_seconds": (1, 3_600),
}
WIDE: dict[str, Any] = {"base_retry_seconds": 1, "max_retry_seconds": 3_600}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_policy_keeps_its_bounds_inclusively(name: str) -> None:
    low, high = BOUNDS[name]
    for value in (low, high):
        assert getattr(Policy(**WIDE | {name: value}), name) == value
    wrong: list[Any] = [low - 1, high + 1, True, 7.0, "7", None]
    for value in wrong:
        with pytest.raises(RiffError, match=f"{name} must be a whole number between {low} and {high}") as refused:
            Policy(**WIDE | {name: value})
        assert (refused.value.code, refused.value.path) == ("RDB-E-USAGE", name)


def test_the_first_delay_lies_between_one_second_and_the_greatest() -> None:
    assert Policy(base_retry_seconds=7, max_retry_seconds=7).retry_delay(1) == 7
    for base in (0, 8):
        with pytest.raises(RiffError, match="base_retry_seconds must be a whole number between 1 and 7"):
            Policy(base_retry_seconds=base, max_retry_seconds=7)


def test_the_defaults_are_within_the_bounds() -> None:
    assert Policy().in_flight == 1


def test_a_lease_outside_the_workflows_bounds_is_refused() -> None:
    policy = Policy(lease_seconds=60)
    policy.fit_lease(60, 60)
    for bounds in ((61, 900), (5, 59)):
        with pytest.raises(RiffError, match="lease_seconds"):
            policy.fit_lease(*bounds)


@pytest.mark.parametrize("base", [1, 3, 3_600])
@pytest.mark.parametrize("greatest", [3_600])
@pytest.mark.parametrize("attempt", [1, 2, 10, 12, 13, 27, 63, 64, 65, 1_024, 10**30])
def test_a_retry_delay_is_exact_at_every_attempt(base: int, greatest: int, attempt: int) -> None:
    policy = Policy(base_retry_seconds=base, max_retry_seconds=greatest)
    expected = min(base * 2 ** (attempt - 1), greatest) if attempt < 5_000 else greatest
    assert policy.retry_delay(attempt) == expected


def test_there_is_no_attempt_before_the_first() -> None:
    with pytest.raises(ValueError, match="from 1"):
        Policy().retry_delay(0)


ITEM = Item(Schedule("S", Source("query", bytes(32), "Q"), "Run"), 0, (UUID(int=1), 1), 5, 1)
POLICY = Policy(base_retry_seconds=2, max_retry_seconds=10)


def test_failures_count_and_a_completion_forgets_them() -> None:
    backoff = Backoff()
    for tries, delay in ((1, 2), (2, 4)):
        assert backoff.tries(ITEM) == tries
        backoff.note(LeaseLost(ITEM, delay), POLICY, 100.0)
        assert backoff.passes_over(ITEM.target, 99.0 + delay)
        assert not backoff.passes_over(ITEM.target, 100.0 + delay)
    assert backoff.tries(ITEM) == 3
    backoff.note(Completed(ITEM, "Done"), POLICY, 100.0)
    assert backoff.tries(ITEM) == 1
    assert not backoff.passes_over(ITEM.target, 100.0)


def test_being_second_is_no_failure() -> None:
    backoff = Backoff()
    backoff.note(Deferred(ITEM, 50), POLICY, 100.0)
    assert backoff.tries(ITEM) == 1
    assert backoff.passes_over(ITEM.target, 149.0)
    assert backoff.seconds_to_next(140.0) == 10.0
    assert backoff.seconds_to_next(150.0) is None


def test_what_was_resolved_and_stays_selected_backs_off() -> None:
    backoff = Backoff()
    for delay in (2, 4, 8, 10, 10):
        backoff.note(Recovered(ITEM, "Done"), POLICY, 0.0)
        assert backoff.passes_over(ITEM.target, delay - 0.5)
        assert not backoff.passes_over(ITEM.target, delay)


def test_a_row_that_is_gone_is_forgotten() -> None:
    backoff = Backoff()
    backoff.note(Failed(ITEM, Permanent(), 10), POLICY, 0.0)
    backoff.note(Gone(ITEM), POLICY, 0.0)
    assert backoff.tries(ITEM) == 1


def test_ends_without_an_item_of_ours_change_nothing() -> None:
    backoff = Backoff()
    for result in (Idle(), DeliveryLost(ITEM), Failed(None, Retryable(), 10)):
        backoff.note(result, POLICY, 0.0)
    assert backoff.seconds_to_next(0.0) is None


def test_a_streams_item_counts_by_its_durable_attempt_and_is_not_remembered() -> None:
    backoff = Backoff()
    schedule = replace(ITEM.schedule, source=Source("stream", bytes(32), "S"))
    item = replace(ITEM, schedule=schedule, ordinal=4)
    backoff.note(Failed(item, Permanent(), 10), POLICY, 0.0)
    assert backoff.tries(item) == 4
    assert not backoff.passes_over(item.target, 0.0)


def test_the_memory_is_bounded_by_what_still_matters() -> None:
    backoff = Backoff()
    for number in range(5_000):
        item = replace(ITEM, target=(UUID(int=1), number))
        backoff.note(LeaseLost(item, 10), POLICY, number * 10.0)
    assert backoff.tries(replace(ITEM, target=(UUID(int=1), 0))) == 1
    assert backoff.tries(replace(ITEM, target=(UUID(int=1), 4_999))) == 2
    assert len(backoff._entries) <= 1_024


@pytest.mark.parametrize("code", CODES)
def test_every_error_belongs_to_one_class(code: str) -> None:
    error = RiffError(code, "the tenant's secret")
    failure = failure_of(error)
    if code in ("RDB-E-UNAUTHENTICATED", "RDB-E-FORBIDDEN"):
        expected: type = AuthorizationRevoked
    else:
        expected = Retryable if CODES[code].retryable else Permanent
    assert type(failure) is expected
    assert failure.cause is error
    assert "secret" not in f"{failure} {failure!r}"
