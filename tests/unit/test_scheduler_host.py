"""The host: how many turns at once, what it selects, when it waits, how it stops.

Here and not in a wider suite because the count of selections is exact only on a clock that the test moves.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from riffdb.core import failpoints
from riffdb.scheduler import (
    AuthorizationRevoked,
    Cancelled,
    Completed,
    Failed,
    Item,
    Permanent,
    Policy,
    Retryable,
    SchedulerFailure,
    Selection,
    TurnResult,
    Work,
    run_host,
)
from tests.unit.scheduler_world import FIRST, ORGANIZATION, Moment, WorldPort, a_worker, a_world, ended, until


class Stage:
    """A host at work, with what it told."""

    def __init__(self, port: WorldPort, policy: Policy, handler: Any = None, number: int = 1) -> None:
        self.port, self.world = port, port.world
        self.cancellation, self.draining = asyncio.Event(), asyncio.Event()
        self.results: list[TurnResult] = []
        worker = a_worker(port, number, handler=handler, policy=policy)
        self.host = asyncio.ensure_future(
            run_host(worker, self.cancellation, draining=self.draining, observe=self.results.append)
        )

    async def move(self, seconds: float) -> None:
        """Move the clock of a quiet host, until it is quiet again."""
        await self.world.quiet(self.host)
        self.world.advance(seconds)
        await self.world.quiet(self.host)

    async def stop(self) -> list[TurnResult]:
        """Let the turns in flight finish."""
        self.draining.set()
        await ended(self.host)
        return self.results


def play(scene: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(scene())


@pytest.mark.parametrize("in_flight", [1, 3, 8])
def test_at_most_so_many_turns_run_at_once_and_no_item_twice(in_flight: int) -> None:
    running: list[object] = []
    most: list[int] = []

    async def scene() -> list[TurnResult]:
        release = asyncio.Event()

        async def handler(work: Work) -> None:
            assert work.target not in running
            running.append(work.target)
            most.append(len(running))
            if len(running) == in_flight:
                release.set()
            await release.wait()
            running.remove(work.target)

        stage = Stage(WorldPort(a_world(20)), Policy(in_flight=in_flight), handler)
        await until(lambda: len(stage.results) >= 20 - 20 % in_flight)
        release.set()
        await until(lambda: len(stage.results) == 20)
        assert sorted(stage.world.completed, key=str) == sorted(stage.world.rows, key=str)
        return await stage.stop()

    results = play(scene)
    assert all(isinstance(result, Completed) for result in results)
    assert max(most) == in_flight


def test_a_selection_asks_for_as_many_items_as_there_are_free_turns() -> None:
    asked: list[int] = []

    class Recording(WorldPort):
        async def next(self, selection: Selection) -> tuple[Item, ...]:
            asked.append(selection.items_max)
            return await super().next(selection)

    async def scene() -> None:
        never = asyncio.Event()

        async def handler(work: Work) -> None:
            await never.wait()

        stage = Stage(Recording(a_world(5)), Policy(in_flight=8), handler)
        await stage.world.quiet(stage.host)
        await until(lambda: len(asked) == 2)
        never.set()
        await stage.stop()

    play(scene)
    assert asked[:2] == [8, 3]


def test_an_idle_host_makes_one_selection_a_wait() -> None:
    async def scene() -> None:
        stage = Stage(WorldPort(a_world(0)), Policy(wait_seconds=10))
        await stage.world.quiet(stage.host)
        for selections in range(1, 6):
            assert stage.port.names == ["next"] * selections
            await stage.move(9.5)
            assert stage.port.names == ["next"] * selections
            await stage.move(0.5)
        await stage.stop()

    play(scene)


def test_a_policy_without_a_wait_still_does_not_spin() -> None:
    async def scene() -> None:
        stage = Stage(WorldPort(a_world(0)), Policy(wait_seconds=0))
        await stage.move(0.9)
        assert stage.port.names == ["next"]
        await stage.move(0.1)
        assert stage.port.names == ["next"] * 2
        await stage.stop()

    play(scene)


def test_a_failing_item_waits_for_its_delay_and_holds_up_no_other() -> None:
    async def handler(work: Work) -> None:
        if work.target == FIRST and work.tries < 3:
            raise RuntimeError

    async def scene() -> None:
        stage = Stage(WorldPort(a_world(3)), Policy(wait_seconds=30, base_retry_seconds=4), handler)
        await until(lambda: len(stage.results) == 3)
        assert [type(result) for result in stage.results] == [Failed, Completed, Completed]
        await stage.move(3.5)
        assert len(stage.results) == 3
        await stage.move(0.5)
        await until(lambda: len(stage.results) == 4)
        await stage.move(8)
        await until(lambda: len(stage.results) == 5)
        assert isinstance(stage.results[-1], Completed)
        assert stage.world.completed[-1] == FIRST
        await stage.stop()

    play(scene)


def test_draining_lets_the_turns_in_flight_finish() -> None:
    async def scene() -> None:
        started, let_go = asyncio.Event(), asyncio.Event()

        async def handler(work: Work) -> None:
            started.set()
            await let_go.wait()

        stage = Stage(WorldPort(a_world(5)), Policy(), handler)
        await started.wait()
        stage.draining.set()
        let_go.set()
        await ended(stage.host)
        assert [type(result) for result in stage.results] == [Completed]
        assert stage.world.completed == [FIRST]

    play(scene)


def test_cancelling_ends_the_turns_between_operations_with_nothing_held() -> None:
    async def scene() -> None:
        started, let_go = asyncio.Event(), asyncio.Event()

        async def handler(work: Work) -> None:
            started.set()
            await let_go.wait()

        stage = Stage(WorldPort(a_world(5)), Policy(in_flight=2), handler)
        await started.wait()
        stage.cancellation.set()
        let_go.set()
        await ended(stage.host)
        assert stage.results
        for result in stage.results:
            assert isinstance(result, Failed) and isinstance(result.failure, Cancelled)
        assert stage.world.completed == []
        assert all(row.owner is None for row in stage.world.rows.values())

    play(scene)


def test_an_idle_host_stops_at_once() -> None:
    async def scene() -> None:
        stage = Stage(WorldPort(a_world(0)), Policy(wait_seconds=30))
        await stage.world.quiet(stage.host)
        await stage.stop()
        assert stage.port.names == ["next"]

    play(scene)


class Failing(WorldPort):
    """A port whose selections fail as they are told, one by one."""

    failures: list[SchedulerFailure]

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        if self.failures:
            self.names.append("next")
            raise self.failures.pop(0)
        return await super().next(selection)


def test_failed_selections_back_off_and_are_told() -> None:
    async def scene() -> None:
        port = Failing(a_world(1))
        port.failures = [Retryable(), Retryable()]
        stage = Stage(port, Policy(base_retry_seconds=5))
        await stage.world.quiet(stage.host)
        assert port.names == ["next"]
        await stage.move(5)
        await stage.move(9)
        assert port.names == ["next"] * 2
        assert [getattr(result, "delay_seconds", None) for result in stage.results] == [5, 10]
        await stage.move(1)
        await until(lambda: len(stage.results) == 3)
        assert isinstance((await stage.stop())[-1], Completed)

    play(scene)


@pytest.mark.parametrize("failure", [AuthorizationRevoked(), Permanent()], ids=["revoked", "permanent"])
def test_a_selection_that_is_refused_for_good_ends_the_host(failure: SchedulerFailure) -> None:
    async def scene() -> None:
        port = Failing(a_world(1))
        port.failures = [failure]
        await ended(Stage(port, Policy()).host)

    with pytest.raises(type(failure)):
        play(scene)


def raising(error: BaseException, name: str) -> Any:
    async def look(moment: Moment) -> None:
        if (moment.name, moment.side) == (name, "before"):
            raise error

    return look


def test_a_revoked_capability_ends_the_host_after_the_turn_is_told() -> None:
    stages: list[Stage] = []

    async def scene() -> None:
        stages.append(Stage(WorldPort(a_world(3), at=raising(AuthorizationRevoked(), "execute")), Policy()))
        await ended(stages[0].host)

    with pytest.raises(AuthorizationRevoked):
        play(scene)
    assert [type(result) for result in stages[0].results] == [Failed]
    assert stages[0].port.names.count("next") == 1


def test_a_fault_in_one_turn_is_raised_when_the_others_have_ended() -> None:
    stages: list[Stage] = []

    async def scene() -> None:
        async def handler(work: Work) -> None:
            if work.target != FIRST:
                await let_go.wait()

        async def look(moment: Moment) -> None:
            if (moment.name, moment.side) == ("execute", "before") and not let_go.is_set():
                let_go.set()
                raise failpoints.FailpointError("planted")

        let_go = asyncio.Event()
        stages.append(Stage(WorldPort(a_world(3), at=look), Policy(in_flight=3), handler))
        await ended(stages[0].host)

    with pytest.raises(failpoints.FailpointError, match="planted"):
        play(scene)
    assert len(stages[0].world.completed) == 2


def test_faults_in_several_turns_are_raised_together() -> None:
    async def scene() -> None:
        await ended(Stage(WorldPort(a_world(3), at=raising(ZeroDivisionError(), "claim")), Policy(in_flight=3)).host)

    with pytest.raises(BaseExceptionGroup) as raised:
        play(scene)
    assert [type(fault) for fault in raised.value.exceptions] == [ZeroDivisionError] * 3


def test_cancelling_the_hosts_task_cancels_its_turns() -> None:
    async def scene() -> None:
        started, never = asyncio.Event(), asyncio.Event()

        async def handler(work: Work) -> None:
            started.set()
            await never.wait()

        stage = Stage(WorldPort(a_world(1)), Policy(), handler)
        await started.wait()
        stage.host.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended(stage.host)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(scene)


def test_hosts_of_several_workers_do_the_work_once_whatever_crashes() -> None:
    """Three hosts on one query, the first dying in each of its turns; the others take over when its leases end."""

    async def scene() -> None:
        world = a_world(12)
        dying = WorldPort(world, at=raising(SystemError("dead"), "execute"))
        with pytest.raises((SystemError, BaseExceptionGroup)):
            await run_host(a_worker(dying, 1, policy=Policy(in_flight=3)), asyncio.Event())
        assert sum(row.owner is not None for row in world.rows.values()) == 3
        stages = [Stage(WorldPort(world), Policy(in_flight=4), number=number) for number in (2, 3)]
        await until(lambda: len(world.completed) == 9)
        for _ in range(10):
            await stages[0].move(10)
            await world.quiet(stages[1].host)
        await until(lambda: len(world.completed) == 12)
        for stage in stages:
            await stage.stop()
        assert len(set(world.completed)) == len(world.completed) == 12
        assert {target[0] for target in world.completed} == {ORGANIZATION}

    play(scene)
