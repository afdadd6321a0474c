"""Workers on one row whose operations interleave as a seed says, with crashes, long pauses and evidence lost to them.

A turn without a handler suspends nowhere but in the port, so each worker is stepped by hand, operation by operation.
Here and not in a wider suite because only behind the port can every order of operations be chosen.
"""

import asyncio
from collections.abc import Coroutine, Generator
from dataclasses import replace
from random import Random
from types import coroutine
from typing import Any

import pytest

from riffdb.scheduler import Idle, Policy, Schedule, TurnResult, run_once
from tests.unit.scheduler_world import FIRST, SCHEDULE, Moment, World, WorldPort, a_worker, a_world

WORKERS = 3
SEEDS = 100


@coroutine
def _suspend(moment: Moment) -> Generator[None, None, None]:
    yield


class Process:
    """A worker that runs turn after turn and is stepped from operation to operation; a crash begins it anew."""

    def __init__(self, world: World, schedule: Schedule, number: int) -> None:
        self.world, self.schedule, self.number = world, schedule, number
        self.results: list[TurnResult] = []
        self.begin()

    def begin(self) -> None:
        port = WorldPort(self.world, self.schedule, at=self.suspend)
        self.worker = a_worker(port, self.number, policy=Policy(lease_seconds=60))
        self.turn: Coroutine[Any, Any, TurnResult] = run_once(self.worker, asyncio.Event())

    async def suspend(self, moment: Moment) -> None:
        await _suspend(moment)

    def step(self) -> None:
        """On to the next moment before or after an operation."""
        try:
            self.turn.send(None)
        except StopIteration as end:
            self.results.append(end.value)
            self.turn = run_once(self.worker, asyncio.Event())

    def crash(self) -> None:
        self.turn.close()
        self.begin()

    def drain(self) -> None:
        """Turns until one is idle, with every lease and delay over before each."""
        self.crash()
        for _ in range(12):
            self.world.advance(4_000)
            seen = len(self.results)
            while len(self.results) == seen:
                self.step()
            if isinstance(self.results[-1], Idle):
                self.turn.close()
                return
        raise AssertionError("the row never comes to rest")


@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("run_releases", [False, True])
def test_whatever_interleaves_business_runs_once_and_nothing_is_lost(run_releases: bool, block: int) -> None:
    for seed in range(block * SEEDS, (block + 1) * SEEDS):
        world = a_world(selects_leftovers=True, run_releases=run_releases)
        schedule = replace(SCHEDULE, run_ends_lease=run_releases)
        play(Random(seed), world, [Process(world, schedule, number) for number in range(1, WORKERS + 1)])
        row = world.rows[FIRST]
        assert (row.state, row.owner, world.completed) == ("Complete", None, [FIRST]), f"seed {seed}"
        assert world.fences == list(range(1, row.fence + 1)), f"seed {seed}"


def play(choice: Random, world: World, processes: list[Process]) -> None:
    """Some steps, crashes and pauses; then all workers but the last are gone, and it works on."""
    for _ in range(choice.randrange(60)):
        process = choice.choice(processes)
        match choice.choices(["step", "crash", "pause"], [12, 1, 3])[0]:
            case "step":
                for _ in range(choice.randrange(1, 6)):
                    process.step()
            case "crash":
                process.crash()
            case "pause":
                world.advance(choice.choice([1, 59, 61, 1_000]))
    for process in processes[:-1]:
        process.turn.close()
    processes[-1].drain()
