"""A small world behind the scheduler's port: leased rows, revisions, fences, answers recorded by key, one clock.

The port is the boundary of `riffdb.scheduler`, which may know nothing of a database, so the world is written here, by
the tables of the semantics and nothing else. Every operation has a moment before and one after it, at which a test may
crash the worker, pause it, cancel it or move the clock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

from riffdb.scheduler import (
    Absent,
    Answer,
    Evidence,
    Handler,
    Idle,
    Item,
    KeyReused,
    Lease,
    Policy,
    Refusal,
    Schedule,
    Selection,
    Source,
    Stored,
    Success,
    Target,
    Timer,
    TurnResult,
    Worker,
    run_once_sync,
)
from riffdb.scheduler.identity import Subject, business_identity

SECOND = 1_000_000
ORGANIZATION = UUID(int=7)
QUERY = Source("query", bytes(range(32)), "DueWork")
SCHEDULE = Schedule("DueWorkItems", QUERY, "CompleteWork", renews=True)


class Crash(BaseException):
    """The worker's process is gone."""


Result = TypeVar("Result")


async def until(condition: Callable[[], bool]) -> None:
    """Give the others the loop until it is so; that they never come to it is a failure, not a wait."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to this")


async def ended(task: "asyncio.Task[Result]") -> Result:
    """The result of a task that needs nothing more from outside the loop."""
    await until(task.done)
    return task.result()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the leased entity; times in µs."""

    state: str = "Queued"
    due: int = 0
    revision: int = 1
    owner: UUID | None = None
    expires: int | None = None
    fence: int = 0
    attempts: int = 0


@dataclass
class World:
    """The database as a worker can see it. The business command looks at no state: only the turn keeps it from running
    twice."""

    time: int = 1_000 * SECOND
    rows: dict[Target, Row] = field(default_factory=dict)
    records: dict[tuple[str, str], tuple[object, Success | Evidence | Refusal]] = field(default_factory=dict)
    completed: list[Target] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    refusing: frozenset[str] = frozenset()
    run_releases: bool = False
    selects_leftovers: bool = False
    selects_held: bool = False
    sleepers: list[tuple[float, "asyncio.Future[None]"]] = field(default_factory=list)

    def advance(self, seconds: float) -> None:
        """Move the clock, waking whoever sleeps until then."""
        self.time += round(seconds * SECOND)
        for moment, sleeper in self.sleepers:
            if moment <= self.time and not sleeper.done():
                sleeper.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Sleep by the world's clock."""
        sleeper = asyncio.get_running_loop().create_future()
        entry = (self.time + seconds * SECOND, sleeper)
        self.sleepers.append(entry)
        try:
            await sleeper
        finally:
            self.sleepers.remove(entry)

    async def quiet(self, task: "asyncio.Task[Any]") -> None:
        """Until the task, and all that it started, can do nothing but sleep; or until it has ended."""
        for _ in range(100):
            await asyncio.sleep(0)
        await until(lambda: task.done() or any(not sleeper.done() for _, sleeper in self.sleepers))

    def timer(self) -> Timer:
        """The worker's clock, which runs as the world's does, from another beginning."""
        return Timer(lambda: self.time / SECOND + 5e6, self.sleep)

    def is_selected(self, row: Row) -> bool:
        expires = 0 if row.expires is None or self.selects_held else row.expires
        if row.state == "Complete":
            return self.selects_leftovers and row.owner is not None and expires <= self.time
        return row.state == "Queued" and max(row.due, expires) <= self.time

    def send(self, command: str, key: str, target: Target, **operands: Any) -> Answer:
        """One command: the stored answer if the key is known, else evaluated at the next time and recorded."""
        given = (target, tuple(sorted(operands.items())))
        if (command, key) in self.records:
            stored_input, stored = self.records[command, key]
            return stored if stored_input == given else KeyReused()
        self.time += 1
        answer = self._evaluate(command, target, operands)
        self.records[command, key] = (given, answer)
        return answer

    def _evaluate(self, command: str, target: Target, operands: Mapping[str, Any]) -> Success | Evidence | Refusal:
        row = self.rows.get(target)
        if row is None:
            return Evidence("Missing", "missing")
        if operands["revision"] != row.revision:
            return Evidence("Stale", "stale", revision=row.revision)
        wrong = self._claimable(row) if command == "ClaimWork" else self._holds(command, row, operands)
        if wrong is not None:
            return wrong
        if command in self.refusing:
            return Refusal("AlreadyClosed")
        changed = self._changed(command, target, row, operands)
        self.rows[target] = replace(changed, revision=row.revision + 1)
        return Success(command.replace("Work", "d"), row.revision + 1, changed.fence)

    def _claimable(self, row: Row) -> Evidence | None:
        if row.owner is not None and row.expires is not None and self.time < row.expires:
            return Evidence("AlreadyClaimed", "unavailable", remaining_microseconds=row.expires - self.time)
        return None

    def _holds(self, command: str, row: Row, operands: Mapping[str, Any]) -> Evidence | None:
        if (operands["owner"], operands["fencing_token"]) != (row.owner, row.fence):
            return Evidence("WrongHolder", "invalid")
        if command in ("CompleteWork", "RenewWork") and row.expires is not None and self.time >= row.expires:
            return Evidence("LeaseExpired", "expired")
        return None

    def _changed(self, command: str, target: Target, row: Row, operands: Mapping[str, Any]) -> Row:
        match command:
            case "ClaimWork":
                self.fences.append(row.fence + 1)
                expires = self.time + operands["seconds"] * SECOND
                row = replace(row, fence=row.fence + 1, attempts=row.attempts + 1)
                return replace(row, owner=operands["owner"], expires=expires)
            case "RenewWork":
                return replace(row, expires=self.time + operands["seconds"] * SECOND)
            case "CompleteWork":
                self.completed.append(target)
                done = replace(row, state="Complete")
                return replace(done, owner=None, expires=None) if self.run_releases else done
            case "FailWork":
                self.failed.append(operands["seconds"])
                due = self.time + operands["seconds"] * SECOND
                return replace(row, owner=None, expires=None, due=due)
        return replace(row, owner=None, expires=None)


@dataclass(frozen=True, slots=True)
class Moment:
    """Before or after the operation of that number, from 0, and name."""

    number: int
    name: str
    side: str


async def _nothing(moment: Moment) -> None:
    return None


@dataclass
class WorldPort:
    """The port of one worker to the world; `is_lossy` loses the first answer of each command."""

    world: World
    schedule: Schedule = SCHEDULE
    at: Callable[[Moment], Awaitable[None]] = _nothing
    is_lossy: bool = False
    names: list[str] = field(default_factory=list)
    inputs: list[Mapping[str, object]] = field(default_factory=list)

    async def _operate(self, name: str, act: Callable[[], Any]) -> Any:
        number = len(self.names)
        self.names.append(name)
        await self.at(Moment(number, name, "before"))
        answer = act()
        await self.at(Moment(number, name, "after"))
        return answer

    async def _send(self, name: str, command: str, item: Item, key: str, **operands: Any) -> Answer:
        def act() -> Answer:
            if self.is_lossy:
                self.world.send(command, key, item.target, **operands)
            return self.world.send(command, key, item.target, **operands)

        answer: Answer = await self._operate(name, act)
        return answer

    async def _send_held(self, name: str, command: str, item: Item, key: str, lease: Lease, **operands: Any) -> Answer:
        held = {"owner": lease.owner, "fencing_token": lease.fencing_token, "revision": lease.revision}
        return await self._send(name, command, item, key, **held, **operands)

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        def act() -> tuple[Item, ...]:
            found = [
                Item(self.schedule, row.due, target, self.world.time, row.revision, {"work_id": target[-1]})
                for target, row in sorted(self.world.rows.items(), key=lambda entry: entry[1].due)
                if self.world.is_selected(row) and not selection.passes_over(target)
            ]
            return tuple(found[: selection.items_max])

        items: tuple[Item, ...] = await self._operate("next", act)
        return items

    async def resolve(self, item: Item, key: str) -> Stored:
        def act() -> Stored:
            record = self.world.records.get(("CompleteWork", key))
            return Absent() if record is None else record[1]

        stored: Stored = await self._operate("resolve", act)
        return stored

    async def claim(self, item: Item, key: str, owner: UUID, lease_seconds: int, revision: int) -> Answer:
        return await self._send("claim", "ClaimWork", item, key, owner=owner, seconds=lease_seconds, revision=revision)

    async def renew(self, item: Item, key: str, lease: Lease, lease_seconds: int) -> Answer:
        return await self._send_held("renew", "RenewWork", item, key, lease, seconds=lease_seconds)

    async def execute(self, item: Item, key: str, lease: Lease, inputs: Mapping[str, object]) -> Answer:
        self.inputs.append(inputs)
        return await self._send_held("execute", "CompleteWork", item, key, lease, inputs=tuple(inputs.items()))

    async def release(self, item: Item, key: str, lease: Lease) -> Answer:
        return await self._send_held("release", "ReleaseWork", item, key, lease)

    async def fail(self, item: Item, key: str, lease: Lease, retry_seconds: int) -> Answer:
        return await self._send_held("fail", "FailWork", item, key, lease, seconds=retry_seconds)

    async def acknowledge(self, item: Item) -> None:
        await self._operate("acknowledge", lambda: None)

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        await self._operate("negative_acknowledge", lambda: None)


def a_world(count: int = 1, **properties: Any) -> World:
    """A world with so many due rows, the first due first."""
    rows: dict[Target, Row] = {(ORGANIZATION, number): Row(due=number) for number in range(count)}
    return World(rows=rows, **properties)


FIRST: Target = (ORGANIZATION, 0)


def a_worker(
    port: WorldPort, number: int = 1, *, handler: Handler | None = None, policy: Policy | None = None
) -> Worker:
    """A worker of its own process."""
    return Worker(port, policy or Policy(lease_seconds=60), UUID(int=number), port.world.timer(), handler)


WHOLE_TURN = ["next", "resolve", "claim", "execute", "release", "acknowledge"]


def turn(worker: Worker, cancellation: asyncio.Event | None = None) -> TurnResult:
    return run_once_sync(worker, cancellation or asyncio.Event())


def business_key(generation: int) -> str:
    return business_identity(Subject(SCHEDULE.name, QUERY, 0, FIRST), SCHEDULE.run, generation)


def at(when: Moment, act: Callable[[], None]) -> Callable[[Moment], Awaitable[None]]:
    async def look(moment: Moment) -> None:
        if (moment.number, moment.side) == (when.number, when.side):
            act()

    return look


def crash() -> None:
    raise Crash


def moments(names: list[str]) -> list[Moment]:
    return [Moment(number, name, side) for number, name in enumerate(names) for side in ("before", "after")]


def name_of(value: object) -> str:
    return f"{value.number}-{value.name}-{value.side}" if isinstance(value, Moment) else str(value)


def assert_done_once(world: World, *, is_released: bool = True) -> None:
    row = world.rows[FIRST]
    assert row.state == "Complete"
    assert world.completed == [FIRST]
    assert world.fences == sorted(set(world.fences))
    assert row.owner is None or not is_released


def drain(worker: Worker, world: World, turns: int = 12) -> list[TurnResult]:
    """Turns until one is idle, each after every lease and delay of the one before."""
    results: list[TurnResult] = []
    while not results or not isinstance(results[-1], Idle):
        assert len(results) < turns, "the row never comes to rest"
        world.advance(1_000)
        results.append(turn(worker))
    return results[:-1]
