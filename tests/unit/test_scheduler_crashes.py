"""The turn crashed, paused and cancelled between any two operations; what its successor then finds and does.

Here and not in a wider suite because a moment between two operations can only be reached from behind the port.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from riffdb.scheduler import (
    Cancelled,
    Completed,
    Deferred,
    Evidence,
    Failed,
    Handler,
    LeaseLost,
    Recovered,
    Schedule,
    Success,
    TurnResult,
    Work,
    run_once,
)
from tests.unit.scheduler_world import (
    FIRST,
    SCHEDULE,
    WHOLE_TURN,
    Crash,
    Moment,
    World,
    WorldPort,
    a_worker,
    a_world,
    assert_done_once,
    at,
    business_key,
    crash,
    drain,
    moments,
    name_of,
    turn,
)

WITH_FAIL = replace(SCHEDULE, fails=True)


# --- crashes ----------------------------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[Schedule, dict[str, bool]]] = {
    "plain": (SCHEDULE, {}),
    "leftovers selected": (SCHEDULE, {"selects_leftovers": True}),
    "fails": (WITH_FAIL, {"selects_leftovers": True}),
    "run releases": (replace(SCHEDULE, run_ends_lease=True), {"run_releases": True}),
}


def failing_once(world: World) -> Handler:
    """A handler that fails until one failure is in the row."""

    async def handler(work: Work) -> None:
        if not world.failed:
            raise RuntimeError

    return handler


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("second", [None, *moments(WHOLE_TURN)], ids=name_of)
@pytest.mark.parametrize("first", moments(WHOLE_TURN), ids=name_of)
def test_after_crashes_of_two_workers_a_third_finds_the_work_done_once(
    first: Moment, second: Moment | None, variant: str
) -> None:
    schedule, properties = VARIANTS[variant]
    world = a_world(**properties)
    handler = failing_once(world) if schedule.fails else None
    for number, moment in enumerate([first, second], 1):
        world.advance(1_000)
        look = at(moment, crash) if moment is not None else at(Moment(99, "", ""), crash)
        try:
            turn(a_worker(WorldPort(world, schedule, look), number, handler=handler))
        except Crash:
            assert moment is not None
    drain(a_worker(WorldPort(world, schedule), 3, handler=handler), world)
    assert len(world.failed) == schedule.fails
    assert_done_once(world, is_released=world.selects_leftovers or world.run_releases)


@pytest.mark.parametrize("moment", moments(WHOLE_TURN), ids=name_of)
def test_every_moment_of_a_crash_is_reached(moment: Moment) -> None:
    with pytest.raises(Crash):
        turn(a_worker(WorldPort(a_world(), at=at(moment, crash))))


def test_the_successor_of_a_crash_after_business_recovers_and_cleans_up() -> None:
    world = a_world(selects_leftovers=True)
    with pytest.raises(Crash):
        turn(a_worker(WorldPort(world, at=at(Moment(3, "execute", "after"), crash))))
    assert world.rows[FIRST].owner is not None
    port = WorldPort(world)
    (result,) = drain(a_worker(port, 2), world)
    assert isinstance(result, Recovered) and result.outcome == "Completed"
    assert port.names[:5] == ["next", "resolve", "claim", "release", "acknowledge"]
    assert world.fences == [1, 2]
    assert_done_once(world)


# --- zombies ----------------------------------------------------------------------------------------------------------


async def paused(world: World, moment: Moment, meanwhile: Callable[[], Awaitable[None]]) -> TurnResult:
    """The end of a turn that is paused at the moment, longer than its lease, while something else happens."""

    async def look(now: Moment) -> None:
        if (now.number, now.side) == (moment.number, moment.side):
            world.advance(1_000)
            await meanwhile()

    return await run_once(a_worker(WorldPort(world, at=look)), asyncio.Event())


@pytest.mark.parametrize("moment", moments(WHOLE_TURN)[2:], ids=name_of)
def test_a_paused_worker_changes_nothing_after_its_successor(moment: Moment) -> None:
    world = a_world(selects_leftovers=True)
    ends: list[TurnResult] = []
    rows = []

    async def successor() -> None:
        ends.append(await run_once(a_worker(WorldPort(world), 2), asyncio.Event()))
        rows.append(world.rows[FIRST])

    zombie = asyncio.run(paused(world, moment, successor))
    order = moments(WHOLE_TURN)
    is_committed = order.index(moment) >= order.index(Moment(3, "execute", "after"))
    if is_committed:
        assert isinstance(zombie, Completed)
    else:
        assert isinstance(ends[0], Completed)
        assert isinstance(zombie, LeaseLost | Deferred | Recovered)
    assert world.rows[FIRST] == rows[0] or isinstance(zombie, Recovered)
    drain(a_worker(WorldPort(world), 3), world)
    assert_done_once(world)


def test_a_worker_paused_at_the_door_of_execute_is_refused_by_the_fence() -> None:
    world = a_world()

    async def successor() -> None:
        assert isinstance(await run_once(a_worker(WorldPort(world), 2), asyncio.Event()), Completed)

    zombie = asyncio.run(paused(world, Moment(3, "execute", "before"), successor))
    # The successor's answer is under the key by now, with another input, so the zombie learns of it and cleans up.
    assert isinstance(zombie, Recovered)
    assert world.fences == [1, 2]
    assert_done_once(world)


def test_a_zombies_evidence_failure_moves_its_successor_to_the_next_generation() -> None:
    """The successor has resolved; then the zombie's late command stores a failure; the successor goes on."""
    world = a_world()
    zombies: list[TurnResult] = []

    async def successor() -> None:
        async def look(moment: Moment) -> None:
            if moment == Moment(2, "claim", "after"):
                resume.set()
                await stored.wait()

        port = WorldPort(world, at=look)
        assert isinstance(await run_once(a_worker(port, 2), asyncio.Event()), Completed)
        assert port.names == ["next", "resolve", "claim", "execute", "resolve", "resolve", "execute", *WHOLE_TURN[4:]]

    async def zombie() -> None:
        async def look(moment: Moment) -> None:
            if moment == Moment(3, "execute", "before"):
                world.advance(1_000)
                claimed.set()
                await resume.wait()

        zombies.append(await run_once(a_worker(WorldPort(world, at=look)), asyncio.Event()))
        stored.set()

    async def both() -> None:
        first = asyncio.ensure_future(zombie())
        await claimed.wait()
        await asyncio.gather(first, successor())

    claimed, resume, stored = asyncio.Event(), asyncio.Event(), asyncio.Event()
    asyncio.run(both())
    assert isinstance(zombies[0], LeaseLost)
    assert isinstance(world.records["CompleteWork", business_key(1)][1], Evidence)
    assert isinstance(world.records["CompleteWork", business_key(2)][1], Success)
    assert_done_once(world)


# --- cancellation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", moments(WHOLE_TURN), ids=name_of)
def test_cancelling_begins_nothing_new_and_leaves_nothing_held(moment: Moment) -> None:
    world = a_world()
    cancellation = asyncio.Event()
    port = WorldPort(world, at=at(moment, cancellation.set))
    handled: list[Work] = []
    result = turn(a_worker(port, handler=handled.append), cancellation)
    assert bool(handled) is (moment.number >= 3)
    if moment.number == 0:
        assert port.names == ["next", "negative_acknowledge"]
    if moment.number < 3:
        assert isinstance(result, Failed) and isinstance(result.failure, Cancelled)
        assert "execute" not in port.names
        assert port.names.count("claim") == (moment.number == 2)
        assert port.names[-1] == "negative_acknowledge"
    else:
        assert isinstance(result, Completed)
        assert port.names == WHOLE_TURN
    assert world.rows[FIRST].owner is None
    fresh = a_worker(WorldPort(world), 2)
    drain(fresh, world)
    assert_done_once(world)


def test_a_cancelled_turn_counts_as_no_try() -> None:
    world = a_world()
    cancellation = asyncio.Event()
    port = WorldPort(world, at=at(Moment(2, "claim", "after"), cancellation.set))
    works: list[Work] = []
    worker = a_worker(port, handler=works.append)
    assert isinstance(turn(worker, cancellation), Failed)
    assert isinstance(turn(worker), Completed)
    assert [work.tries for work in works] == [1]


def test_cancelling_before_the_selection_selects_nothing() -> None:
    cancellation = asyncio.Event()
    cancellation.set()
    port = WorldPort(a_world())
    result = turn(a_worker(port), cancellation)
    assert isinstance(result, Failed) and result.item is None
    assert port.names == []


def test_cancelling_while_the_handler_runs_gives_the_claim_back() -> None:
    world = a_world()
    cancellation = asyncio.Event()

    async def handler(work: Work) -> None:
        cancellation.set()

    port = WorldPort(world, WITH_FAIL)
    result = turn(a_worker(port, handler=handler), cancellation)
    assert isinstance(result, Failed) and isinstance(result.failure, Cancelled)
    assert port.names[3:] == ["release", "negative_acknowledge"]
