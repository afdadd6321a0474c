"""A twin beside two real databases, memory and SQLite, that are given the same rows, clock and commands.

A `World` runs batches: the twin one command after the other, each database all of a batch in one transaction, through
the whole `Database`. It compares every answer byte for byte, then rows, tombstones, indexes and the log. The door
gathers what was submitted and runs it when it is told, so no event loop is needed.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from riffdb.core.errors import RiffError
from riffdb.core.keys import partition_encoder
from riffdb.core.layout import Index, Table
from riffdb.core.records import Batch, CommitRecord, Mutation
from riffdb.core.stepping import step
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.database import Database
from riffdb.database.doors import Run
from riffdb.database.wakeups import Signal, ThreadSignal
from riffdb.plan import Plan
from riffdb.storage import open_store
from riffdb.storage.protocol import Reader, Scan, Store, Transaction
from tests.model.expressions import ordered
from tests.model.running import Row
from tests.model.twin import Twin, chance
from tests.model.wire import RefusedError

CALLER = Caller("local:model", OPERATOR, "model")
ALL = 1_000_000

Call = tuple[str, dict[str, Any]]


@dataclass
class Moment:
    """Commands that run as one batch at one reading of the clock."""

    now: int
    calls: list[Call]


@dataclass
class Story:
    """What a run is given: rows that are there from the beginning, by entity, and steps."""

    rows: list[tuple[str, Row]]
    moments: list[Moment] = field(default_factory=list)


class DisagreementError(AssertionError):
    """Twin and databases differ."""


class GatheringDoor:
    """Holds what is submitted until `open` runs all of it as one batch."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: list[Any] = []

    async def submit(self, work: Any) -> None:
        """Wait for the batch."""
        self._waiting.append(work)
        await _Parked()

    def make_signal(self) -> Signal:
        """A signal that blocks, which nobody waits for."""
        return ThreadSignal()

    async def beside(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do it at once."""
        return await work()

    def open(self) -> None:
        """Run what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            step(self._run(waiting))


class _Parked:
    def __await__(self) -> Generator[None, None, None]:
        yield


class Side:
    """One real database."""

    def __init__(self, kind: str, url: str, plan: Plan, clock: Callable[[], int]) -> None:
        self.kind = kind
        self._doors: list[GatheringDoor] = []
        self.store: Store = step(open_store(url, clock=clock, chance=chance))
        self.database: Database = step(Database.open(self.store, self._door))
        self._now(self.database.deploy(CALLER, plan))

    def _door(self, run: Run) -> GatheringDoor:
        self._doors.append(GatheringDoor(run))
        return self._doors[-1]

    def _now(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._together([call])[0]

    def run(self, calls: Sequence[Call]) -> list[bytes]:
        """The answers of a batch; an error is its code."""
        found = self._together([self.database.command(CALLER, name, values) for name, values in calls])
        return [one.code.encode() if isinstance(one, RiffError) else one for one in found]

    def _together(self, calls: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        found: list[Any] = [None] * len(calls)
        parked = [place for place, call in enumerate(calls) if not _resume(call, place, found)]
        self._doors[-1].open()
        for place in parked:
            assert _resume(calls[place], place, found), "one batch settles a command"
        return found

    def seed(self, mutations: list[Mutation]) -> None:
        """Write rows as no command could."""

        async def work(transaction: Transaction) -> None:
            await transaction.write(Batch(mutations=mutations))

        async def run() -> None:
            async with self.store.transaction() as transaction:
                await work(transaction)

        step(run())

    def read(self, work: Callable[[Reader], Awaitable[Any]]) -> Any:
        """Read in one snapshot."""

        async def run() -> Any:
            async with self.store.snapshot() as reader:
                return await work(reader)

        return step(run())

    def verify(self) -> str | None:
        """Where what is kept and the log differ, None if they agree."""
        found = step(self.database.operations.verify(CALLER))
        told: str | None = found["first_difference"]
        return told

    def close(self) -> None:
        """Release the store."""
        step(self.store.close())


def _resume(call: Coroutine[Any, Any, Any], place: int, found: list[Any]) -> bool:
    """Go on with a call until it waits or ends; whether it has ended."""
    try:
        call.send(None)
    except StopIteration as end:
        found[place] = end.value
    except RiffError as error:
        found[place] = error
    else:
        return False
    return True


class World:
    """A twin and its two databases."""

    def __init__(self, plan: Plan, folder: Path, rows: list[tuple[str, Row]]) -> None:
        self.plan, self.twin = plan, Twin(plan)
        self._compared: dict[tuple[str, Any], int] = {}
        self._path = folder / "model.db"
        for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
            (folder / name).unlink(missing_ok=True)
        urls = {"memory": "memory:", "sqlite": f"sqlite:{self._path}"}
        self.sides = [Side(kind, url, plan, lambda: self.twin.now) for kind, url in urls.items()]
        self._tables = self.sides[0].database.contract.tables
        mutations = []
        for name, row in rows:
            entity, table = plan.entity(name), self._tables[name]
            whole = tuple_of(entity.columns, self.twin.seed(entity, row))
            mutations.append(Mutation(table.name, table.key_of(whole), whole, existed=False))
        for side in self.sides:
            side.seed(mutations)
        self._is_seeded = bool(mutations)

    def verify(self) -> None:
        """Hold both stores against their logs, unless they began with rows of which no log tells."""
        for side in self.sides:
            difference = None if self._is_seeded else side.verify()
            if difference is not None:
                raise DisagreementError(f"the log of {side.kind} disagrees with its rows: {difference}")

    def close(self) -> None:
        """Release both stores."""
        for side in self.sides:
            side.close()

    def expected(self, call: Call) -> bytes:
        """The twin's answer, or the code of its error."""
        try:
            return self.twin.command(*call)
        except RefusedError as error:
            self.twin.ended[error.code] += 1
            return error.code.encode()

    def compare_answers(self, moment: Moment, expected: list[bytes]) -> None:
        """Run the batch on both databases; their answers must be the twin's."""
        for side in self.sides:
            for call, own, other in zip(moment.calls, expected, side.run(moment.calls), strict=True):
                if own != other:
                    raise DisagreementError(
                        f"{side.kind} answers otherwise than the twin\n  command {call}\n"
                        f"  twin   {own.decode()}\n  {side.kind:6} {other.decode()}"
                    )

    def compare_state(self) -> None:
        """Rows, tombstones, every index, and the log."""
        for side in self.sides:
            for entity in self.plan.entities:
                table = self._tables[entity.name]
                rows = [tuple_of(entity.columns, row) for row in self.twin.tables[entity.name].values()]
                for index in (None, *table.indexes):
                    self._same(side, f"rows of {entity.name} by {index}", in_order(rows, table, index), table, index)
                self._compare_graves(side, entity.name)
            self._compare_logs(side)

    def _same(self, side: Side, what: str, own: list[Any], table: Table, index: Index | None) -> None:
        found = side.read(lambda reader: reader.scan(Scan(table, index, (), limit=ALL)))
        if index is not None and index.unique:  # rows with a null in it may be equal there, and then have no order
            found = in_order(found, table, index)
        if own != found:
            raise DisagreementError(f"{what} differ\n  twin   {own}\n  {side.kind:6} {found}")

    def _compare_graves(self, side: Side, entity: str) -> None:
        table = side.database.contract.tombstones[entity]
        graves = [
            (*key, *(one[part] for part in ("fence", "revision", "commit")))
            for key, one in self.twin.graves[entity].items()
        ]
        self._same(side, f"tombstones of {entity}", in_order(graves, table, None), table, None)

    def _compare_logs(self, side: Side) -> None:
        kind = self.plan.entities[0].types[self.plan.entities[0].partition]
        for partition, log in self.twin.logs.items():
            key = partition_encoder(kind)(partition)
            before = self._compared.get((side.kind, partition), 0)
            records = side.read(_log_of(key, before))
            if before + len(records) != len(log):
                raise DisagreementError(f"{side.kind} has {before + len(records)} commits, and the twin {len(log)}")
            self._compared[side.kind, partition] = len(log)
            for own, record in zip(log[before:], records, strict=True):
                for name, value in own._asdict().items():
                    if getattr(record, name) != value:
                        raise DisagreementError(
                            f"`{name}` of commit {own.sequence}, {own.command}, differs\n  twin   {value}\n"
                            f"  {side.kind:6} {getattr(record, name)}"
                        )


def tuple_of(columns: Sequence[str], row: Row) -> tuple[Any, ...]:
    """A row as the stores keep it."""
    return (*(row[name] for name in columns), row["revision"], row["commit"])


def in_order(rows: list[tuple[Any, ...]], table: Table, index: Index | None) -> list[tuple[Any, ...]]:
    """The rows as a walk over the index gives them: null first, strings by their bytes."""
    columns = table.key if index is None else index.columns
    descending = (False,) * len(columns) if index is None else index.descending
    found = list(rows) if index is None else in_order(rows, table, None)
    for position, descends in reversed(list(zip(columns, descending, strict=True))):
        found.sort(key=_rank_at(position), reverse=descends)
    return found


def _rank_at(position: int) -> Callable[[tuple[Any, ...]], Any]:
    return lambda row: (row[position] is not None, ordered(row[position]))


def _log_of(partition: bytes, after: int) -> Callable[[Reader], Awaitable[list[CommitRecord]]]:
    return lambda reader: reader.log(partition, after, ALL)
