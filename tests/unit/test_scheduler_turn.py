"""The turn, step by step, and crashed, paused and cancelled between any two operations.

Here and not in a wider suite because a moment between two operations can only be reached from behind the port.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from riffdb.core import failpoints
from riffdb.scheduler import (
    Completed,
    Deferred,
    Evidence,
    Failed,
    Gone,
    HandlerError,
    Idle,
    Permanent,
    Policy,
    Recovered,
    Refusal,
    Refused,
    Schedule,
    Selection,
    Success,
    Work,
    run_once,
)
from tests.unit.scheduler_world import (
    FIRST,
    SCHEDULE,
    SECOND,
    WHOLE_TURN,
    Crash,
    Moment,
    Row,
    WorldPort,
    a_worker,
    a_world,
    assert_done_once,
    at,
    business_key,
    crash,
    drain,
    turn,
)

WITH_FAIL = replace(SCHEDULE, fails=True)


def test_a_turn_takes_its_six_steps_in_order() -> None:
    world = a_world()
    port = WorldPort(world)
    result = turn(a_worker(port))
    assert isinstance(result, Completed) and result.outcome == "Completed"
    assert port.names == WHOLE_TURN
    assert_done_once(world)
    assert world.rows[FIRST].revision == 4


def test_nothing_to_select_is_idle() -> None:
    port = WorldPort(a_world(0))
    assert turn(a_worker(port)) == Idle()
    assert port.names == ["next"]


def test_a_turn_takes_one_item_and_waits_as_the_policy_says() -> None:
    class Recording(WorldPort):
        async def next(self, selection: Selection) -> Any:
            self.inputs.append({"wait": selection.wait_seconds, "items": selection.items_max})
            return await super().next(selection)

    port = Recording(a_world(3))
    turn(a_worker(port, policy=Policy(wait_seconds=17)))
    assert port.inputs[0] == {"wait": 17, "items": 1}
    assert port.world.completed == [FIRST]


def test_run_that_releases_is_not_released_again() -> None:
    world = a_world(run_releases=True)
    port = WorldPort(world, replace(SCHEDULE, run_ends_lease=True))
    assert isinstance(turn(a_worker(port)), Completed)
    assert port.names == ["next", "resolve", "claim", "execute", "acknowledge"]
    assert_done_once(world)


def test_run_that_deletes_shows_no_successor() -> None:
    class Deleting(WorldPort):
        async def execute(self, *operands: Any) -> Any:
            answer: Any = await super().execute(*operands)
            return replace(answer, revision=None)

    ends, does_not = Deleting(a_world(), replace(SCHEDULE, run_ends_lease=True)), Deleting(a_world())
    assert isinstance(turn(a_worker(ends)), Completed)
    failed = turn(a_worker(does_not))
    assert isinstance(failed, Failed) and isinstance(failed.failure, Permanent)


# --- resolve ----------------------------------------------------------------------------------------------------------


def test_an_evidence_failure_under_the_business_identity_is_passed_over() -> None:
    world = a_world()
    world.records["CompleteWork", business_key(1)] = ((), Evidence("Stale", "stale"))
    port = WorldPort(world)
    assert isinstance(turn(a_worker(port)), Completed)
    assert port.names == ["next", "resolve", *WHOLE_TURN[1:]]
    assert isinstance(world.records["CompleteWork", business_key(2)][1], Success)


def test_when_all_generations_are_full_the_work_counts_as_refused() -> None:
    world = a_world()
    for generation in range(1, 256):
        world.records["CompleteWork", business_key(generation)] = ((), Evidence("Stale", "stale"))
    port = WorldPort(world, WITH_FAIL)
    result = turn(a_worker(port))
    assert isinstance(result, Refused) and result.outcome == "Stale"
    assert port.names.count("resolve") == 255
    assert port.names[256:] == ["claim", "fail", "acknowledge"]


def test_a_predecessors_late_success_is_recovered() -> None:
    world = a_world()

    def land() -> None:
        world.records["CompleteWork", business_key(1)] = ("another input", Success("Completed", 3))

    port = WorldPort(world, at=at(Moment(2, "claim", "after"), land))
    assert isinstance(turn(a_worker(port)), Recovered)
    assert port.names == ["next", "resolve", "claim", "execute", "resolve", "release", "acknowledge"]
    assert world.rows[FIRST].owner is None


def test_a_key_that_is_taken_and_absent_is_invalid_evidence() -> None:
    world = a_world()

    def take() -> None:
        world.records["CompleteWork", business_key(1)] = ("another input", Success("Completed", 3))

    def lose() -> None:
        del world.records["CompleteWork", business_key(1)]

    async def look(moment: Moment) -> None:
        if moment == Moment(2, "claim", "after"):
            take()
        elif moment == Moment(4, "resolve", "before"):
            lose()

    result = turn(a_worker(WorldPort(world, at=look)))
    assert isinstance(result, Failed) and isinstance(result.failure, Permanent)


# --- claim ------------------------------------------------------------------------------------------------------------


def test_an_unavailable_row_is_deferred_until_its_lease_ends() -> None:
    world = a_world(selects_held=True)
    world.rows[FIRST] = replace(world.rows[FIRST], owner=UUID(int=99), expires=world.time + 90 * SECOND + 1)
    port = WorldPort(world)
    worker = a_worker(port)
    result = turn(worker)
    # The claim's own commit takes the first of the 90,000,001 µs.
    assert isinstance(result, Deferred) and result.delay_seconds == 90
    assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]
    world.advance(89)
    assert turn(worker) == Idle()
    world.advance(2)
    assert isinstance(turn(worker), Completed)


def test_a_row_that_changed_since_the_selection_is_left_to_the_next_one() -> None:
    world = a_world()

    def change() -> None:
        world.rows[FIRST] = replace(world.rows[FIRST], revision=5)

    port = WorldPort(world, at=at(Moment(0, "next", "after"), change))
    worker = a_worker(port, policy=Policy(base_retry_seconds=3))
    result = turn(worker)
    assert isinstance(result, Deferred) and result.delay_seconds == 3
    assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]
    world.advance(3)
    assert isinstance(turn(worker), Completed)


def test_a_deleted_row_is_acknowledged_as_gone() -> None:
    world = a_world()
    port = WorldPort(world, at=at(Moment(0, "next", "after"), world.rows.clear))
    assert isinstance(turn(a_worker(port)), Gone)
    assert port.names == ["next", "resolve", "claim", "acknowledge"]


@pytest.mark.parametrize("predecessor_dies", [True, False])
def test_of_two_workers_with_one_observation_only_one_claims(predecessor_dies: bool) -> None:
    """Both select at one time and revision, so both claims have one identity; the second finds its key taken."""
    world = a_world()
    death = Moment(2, "claim", "after")
    first = WorldPort(world, at=at(death, crash)) if predecessor_dies else WorldPort(world)

    async def look(moment: Moment) -> None:
        if moment == Moment(0, "next", "after"):
            with suppress(Crash):
                await run_once(a_worker(first, 2), asyncio.Event())

    port = WorldPort(world, at=look)
    assert isinstance(turn(a_worker(port)), Deferred)
    assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]
    assert world.fences == [1]
    drain(a_worker(WorldPort(world), 3), world)
    assert_done_once(world, is_released=not predecessor_dies)


def test_a_claim_that_the_business_refuses_is_deferred() -> None:
    world = a_world(refusing=frozenset(["ClaimWork"]))
    port = WorldPort(world)
    assert isinstance(turn(a_worker(port)), Deferred)
    assert port.names[-1] == "negative_acknowledge"


# --- handler ----------------------------------------------------------------------------------------------------------


def test_a_handler_is_given_the_work_and_gives_the_inputs() -> None:
    given: list[Work] = []

    def handler(work: Work) -> Mapping[str, object]:
        given.append(work)
        return {"summary": "done"}

    port = WorldPort(a_world())
    assert isinstance(turn(a_worker(port, handler=handler)), Completed)
    (work,) = given
    assert (work.schedule, work.due, work.target, work.tries) == ("DueWorkItems", 0, FIRST, 1)
    assert (work.key, work.fencing_token, work.fields) == (business_key(1), 1, {"work_id": 0})
    assert port.inputs == [{"summary": "done"}]


class AsyncCallable:
    async def __call__(self, work: Work) -> dict[str, object]:
        return {"summary": work.tries}


async def async_handler(work: Work) -> dict[str, object]:
    return {"summary": work.tries}


@pytest.mark.parametrize("handler", [async_handler, AsyncCallable(), lambda work: async_handler(work)])
def test_a_handler_may_be_async(handler: Any) -> None:
    port = WorldPort(a_world())
    assert isinstance(turn(a_worker(port, handler=handler)), Completed)
    assert port.inputs == [{"summary": 1}]


def test_the_key_given_to_outside_systems_is_the_same_in_a_later_generation() -> None:
    world = a_world()
    world.records["CompleteWork", business_key(1)] = ((), Evidence("Stale", "stale"))
    keys: list[str] = []
    turn(a_worker(WorldPort(world), handler=lambda work: keys.append(work.key)))
    assert keys == [business_key(1)]


def raising(error: BaseException) -> Callable[[Work], None]:
    def handler(work: Work) -> None:
        raise error

    return handler


@pytest.mark.parametrize("error", [RuntimeError("the tenant's secret"), StopIteration()], ids=["error", "iteration"])
def test_a_handlers_error_fails_the_row_and_the_delay_grows_with_each_try(error: Exception) -> None:
    world = a_world()
    port = WorldPort(world, WITH_FAIL)
    worker = a_worker(port, handler=raising(error), policy=Policy(base_retry_seconds=10, max_retry_seconds=25))
    for delay in (10, 20, 25, 25):
        result = turn(worker)
        assert isinstance(result, Failed) and isinstance(result.failure, HandlerError)
        assert result.failure.cause is error
        assert result.delay_seconds == delay
        assert "secret" not in f"{result!r} {result.failure} {result.failure!r}"
        assert turn(worker) == Idle()
        world.advance(delay)
    assert port.names[:6] == ["next", "resolve", "claim", "fail", "negative_acknowledge", "next"]
    assert world.failed == [10, 20, 25, 25]
    assert world.rows[FIRST].owner is None
    assert world.completed == []


def test_a_handlers_error_without_fail_releases_and_the_worker_keeps_the_delay() -> None:
    world = a_world()
    tries: list[int] = []

    def handler(work: Work) -> None:
        tries.append(work.tries)
        if len(tries) < 3:
            raise RuntimeError

    port = WorldPort(world)
    worker = a_worker(port, handler=handler, policy=Policy(base_retry_seconds=4))
    for delay in (4, 8):
        assert isinstance(turn(worker), Failed)
        assert world.rows[FIRST].owner is None
        world.advance(delay - 0.5)
        assert turn(worker) == Idle()
        world.advance(0.5)
    assert isinstance(turn(worker), Completed)
    assert tries == [1, 2, 3]
    assert_done_once(world)


def test_fail_that_is_refused_is_followed_by_a_release() -> None:
    world = a_world(refusing=frozenset(["FailWork"]))
    port = WorldPort(world, WITH_FAIL)
    assert isinstance(turn(a_worker(port, handler=raising(RuntimeError()))), Failed)
    assert port.names[3:] == ["fail", "release", "negative_acknowledge"]
    assert world.rows[FIRST].owner is None


def test_fail_without_a_lease_any_more_is_not_followed_by_a_release() -> None:
    world = a_world()

    def lose() -> None:
        world.rows[FIRST] = replace(world.rows[FIRST], revision=9)

    port = WorldPort(world, WITH_FAIL, at(Moment(3, "fail", "before"), lose))
    assert isinstance(turn(a_worker(port, handler=raising(RuntimeError()))), Failed)
    assert port.names[3:] == ["fail", "negative_acknowledge"]


def test_what_is_no_mapping_is_the_handlers_error() -> None:
    handler: Any = lambda work: ["summary"]  # noqa: E731  # a wrong handler, which no declared type admits
    result = turn(a_worker(WorldPort(a_world()), handler=handler))
    assert isinstance(result, Failed) and isinstance(result.failure.cause, TypeError)


def test_what_ends_the_process_is_no_handlers_error() -> None:
    with pytest.raises(Crash):
        turn(a_worker(WorldPort(a_world()), handler=raising(Crash())))


def test_inputs_that_are_refused_count_as_the_handlers_failure() -> None:
    class Refusing(WorldPort):
        async def execute(self, *operands: Any) -> Any:
            raise Permanent(ValueError("no such input"))

    world = a_world()
    port = Refusing(world, WITH_FAIL)
    result = turn(a_worker(port))
    assert isinstance(result, Failed) and isinstance(result.failure.cause, ValueError)
    assert port.names[3:] == ["fail", "negative_acknowledge"]


# --- refusal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("schedule", "cleaning"), [(SCHEDULE, ["release"]), (WITH_FAIL, ["fail"])])
def test_a_refusal_is_settled_and_acknowledged(schedule: Schedule, cleaning: list[str]) -> None:
    world = a_world(refusing=frozenset(["CompleteWork"]))
    port = WorldPort(world, schedule)
    worker = a_worker(port)
    result = turn(worker)
    assert isinstance(result, Refused) and result.outcome == "AlreadyClosed"
    assert port.names == [*WHOLE_TURN[:4], *cleaning, "acknowledge"]
    assert world.rows[FIRST].owner is None
    assert turn(worker) == Idle(), "a refused row that stays selected backs off"


def test_a_refusal_of_a_predecessor_is_not_asked_for_again() -> None:
    world = a_world()
    world.records["CompleteWork", business_key(1)] = ((), Refusal("AlreadyClosed"))
    port = WorldPort(world, WITH_FAIL)
    assert isinstance(turn(a_worker(port)), Refused)
    assert port.names == ["next", "resolve", "claim", "fail", "acknowledge"]


def test_a_recovered_row_that_stays_selected_backs_off() -> None:
    world = a_world()
    world.records["CompleteWork", business_key(1)] = ((), Success("Completed", 3))
    worker = a_worker(WorldPort(world), policy=Policy(base_retry_seconds=2))
    assert isinstance(turn(worker), Recovered)
    assert turn(worker) == Idle()
    world.advance(2)
    assert isinstance(turn(worker), Recovered)
    world.advance(2)
    assert turn(worker) == Idle()


# --- evidence, keys, names --------------------------------------------------------------------------------------------


def test_lost_answers_are_settled_by_their_keys() -> None:
    world = a_world()
    port = WorldPort(world, is_lossy=True)
    assert isinstance(turn(a_worker(port)), Completed)
    assert_done_once(world)
    assert world.rows[FIRST].revision == 4


@pytest.mark.parametrize("revision", [None, 1, 3, 1 << 64])
@pytest.mark.parametrize("operation", ["claim", "execute"])
def test_a_successor_revision_other_than_the_next_is_permanent(operation: str, revision: int | None) -> None:
    class Lying(WorldPort):
        async def claim(self, *operands: Any) -> Any:
            answer: Any = await super().claim(*operands)
            return replace(answer, revision=revision) if operation == "claim" else answer

        async def execute(self, *operands: Any) -> Any:
            answer: Any = await super().execute(*operands)
            return replace(answer, revision=revision if revision != 3 else 4)

    result = turn(a_worker(Lying(a_world())))
    assert isinstance(result, Failed) and isinstance(result.failure, Permanent)


def test_a_claim_without_a_fencing_token_is_permanent() -> None:
    class Lying(WorldPort):
        async def claim(self, *operands: Any) -> Any:
            answer: Any = await super().claim(*operands)
            return replace(answer, fencing_token=None)

    result = turn(a_worker(Lying(a_world())))
    assert isinstance(result, Failed) and isinstance(result.failure, Permanent)


def test_an_item_outside_the_bounds_of_an_identity_is_permanent_and_backs_off() -> None:
    world = a_world(0)
    world.rows[("x" * 257,)] = Row()
    worker = a_worker(WorldPort(world))
    result = turn(worker)
    assert isinstance(result, Failed) and isinstance(result.failure.cause, ValueError)
    assert turn(worker) == Idle()


def test_no_text_shows_an_owner_a_token_a_revision_or_a_key() -> None:
    seen: list[object] = []

    def handler(work: Work) -> None:
        seen.append(work)

    class Watching(WorldPort):
        async def execute(self, *operands: Any) -> Any:
            answer = await super().execute(*operands)
            seen.extend([*operands[:1], operands[2], answer])
            return answer

    world = a_world()
    worker = a_worker(Watching(world), 0xABCDEF, handler=handler)
    seen += [worker, turn(worker), Evidence("Stale", "stale", revision=424242, remaining_microseconds=434343)]
    text = " ".join(repr(value) for value in seen)
    for hidden in ("abcdef", "sched_", str(FIRST[0]), "fencing_token=", "revision=", "work_id", "4242", "4343"):
        assert hidden not in text, hidden


def test_the_labels_of_a_turn_are_hit_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[str] = []
    monkeypatch.setattr("riffdb.scheduler.turn.hit", hits.append)
    turn(a_worker(WorldPort(a_world())))
    steps = ("selection", "resolve", "claim", "business", "event", "release", "checkpoint")
    assert hits == [f"turn.{step}.{side}" for step in steps for side in ("before", "after")]
    assert set(hits) == {label for label in failpoints.LABELS if label.startswith("turn.")}


def test_an_armed_label_stops_the_turn_there() -> None:
    world = a_world()
    port = WorldPort(world)
    failpoints.arm("turn.business.before:raise")
    try:
        with pytest.raises(failpoints.FailpointError):
            turn(a_worker(port))
    finally:
        failpoints.arm(None)
    assert port.names == ["next", "resolve", "claim"]
