"""Trimming the log: its oldest commits go, and the rows that they had left take their place.

First those rows are made from the log, in a scratch store, and written as a base of a new generation, some at a time;
then one act puts the base in force and tells its hash; then the commits go, some at a time. Between these, commands
go on. Whatever was interrupted leaves a database that agrees, and the next run clears what is left over. Absent: which
commits may go; giving room back to the file system, since new pages take the place of those that went.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from riffdb.core.keys import partition_value
from riffdb.core.layout import TOMBSTONE_FENCE, TOMBSTONE_REVISION, Row, Table
from riffdb.core.records import Batch, CommitRecord, Mutation, Trim
from riffdb.database.acts import system_commit
from riffdb.database.bases import (
    BASE_ROWS,
    BASES,
    ROWS_AT_ONCE,
    Base,
    BaseHash,
    BaseRow,
    base_of,
    rows_of,
    told_row,
    told_tombstone,
)
from riffdb.database.callers import Caller
from riffdb.database.contracts import Contract
from riffdb.database.doors import Door
from riffdb.database.rebuilding import RECORDS_AT_ONCE, History, Rebuilding
from riffdb.database.secrets import SALT_BYTES
from riffdb.database.trimmable import LeftOver, Trimmable, settled_through
from riffdb.database.walks import Walk
from riffdb.storage.protocol import Scan, Store, Transaction

PARTITIONS_AT_ONCE = 64
Result = TypeVar("Result")


class Perform(Protocol):
    """Does something in a transaction of its own, between the batches of commands."""

    def __call__(self, caller: Caller, perform: Callable[[Transaction], Awaitable[Result]], /) -> Awaitable[Result]: ...


class Trimming:
    """One run over a database. `partitions`, `commits` and `rows` count what was trimmed, and what stands for it."""

    def __init__(
        self, store: Store, contract: Callable[[], Contract], door: Door, caller: Caller, act: Perform
    ) -> None:
        self._store = store
        self._contract = contract
        self._door = door
        self._caller = caller
        self._act = act
        self.partitions = self.commits = self.rows = 0

    async def clear(self, found: Sequence[LeftOver]) -> None:
        """Remove what an interrupted run has left."""
        for part in found:
            for generation in part.generations:
                await self._drop_rows(part.partition, generation)
            await self._drop_commits(part.partition, part.through)

    async def run(self, found: Sequence[Trimmable]) -> None:
        """Trim these, of which nothing is left over."""
        for start in range(0, len(found), PARTITIONS_AT_ONCE):
            await self._trim(found[start : start + PARTITIONS_AT_ONCE])

    async def _trim(self, found: Sequence[Trimmable]) -> None:
        async with self._store.scratch() as scratch:
            made = _Made(self._store, scratch)
            await self._door.beside(lambda: made.rebuild(found))
            for part in found:
                async with aclosing(made.rows(part)) as pieces:
                    async for rows in pieces:
                        await self._write(part, rows)
            bases = await self._door.beside(lambda: made.bases(found))
        trimmed = await self._act(self._caller, lambda transaction: self._conclude(transaction, found, bases))
        for part, base in zip(found, bases, strict=True):
            if base in trimmed:
                await self._drop_rows(part.partition, part.generation)
                await self._drop_commits(part.partition, part.through)
                self.partitions += 1
                self.commits += part.commits
                self.rows += base.rows
            else:
                await self._drop_rows(part.partition, base.generation)

    async def _write(self, part: Trimmable, rows: Sequence[BaseRow]) -> None:
        async def write(transaction: Transaction) -> None:
            chance = await transaction.entropy(SALT_BYTES * len(rows))
            salts = [chance[place : place + SALT_BYTES] for place in range(0, len(chance), SALT_BYTES)]
            salted = [row.salted(salt) if row.secret else row for row, salt in zip(rows, salts, strict=True)]
            await transaction.write(
                Batch(mutations=[Mutation(BASE_ROWS.name, BASE_ROWS.key_of(row), row, False) for row in salted])
            )

        await self._act(self._caller, write)

    async def _conclude(
        self, transaction: Transaction, found: Sequence[Trimmable], bases: Sequence[Base]
    ) -> list[Base]:
        """Put the bases in force, save those of partitions whose commits are to be kept by now."""
        trimmed = []
        for part, base in zip(found, bases, strict=True):
            is_same = await base_of(transaction, part.partition) == part.base
            if is_same and await settled_through(transaction, part.partition) >= part.through:
                trimmed.append(base)
        if trimmed:
            await put_in_force(transaction, self._contract(), self._caller, trimmed)
        return trimmed

    async def _drop_rows(self, partition: bytes, generation: int) -> None:
        """Remove the rows of a generation."""

        async def drop(transaction: Transaction) -> bool:
            scan = Scan(BASE_ROWS, None, (partition, generation), limit=ROWS_AT_ONCE)
            rows = await transaction.scan(scan)
            if rows:
                mutations = [Mutation(BASE_ROWS.name, BASE_ROWS.key_of(row), None, True) for row in rows]
                await transaction.write(Batch(mutations=mutations))
            return bool(rows)

        while await self._act(self._caller, drop):
            pass

    async def _drop_commits(self, partition: bytes, through: int) -> None:
        """Remove the commits that a base stands for."""

        async def drop(transaction: Transaction) -> bool:
            records = await transaction.log(partition, 0, ROWS_AT_ONCE)
            oldest = [record.sequence for record in records if record.sequence <= through]
            if oldest:
                await transaction.write(Batch(trims=[Trim(partition, oldest[-1])]))
            return bool(oldest)

        while await self._act(self._caller, drop):
            pass


async def put_in_force(transaction: Transaction, contract: Contract, caller: Caller, bases: Sequence[Base]) -> None:
    """Let the bases stand for the commits that they go up to, and the log tell of them."""
    facts = {"partitions": [base.facts() for base in bases]}
    head, record = await system_commit(transaction, contract, caller, "retention.trim", facts, "done")
    known = await transaction.rows(BASES, [BASES.key_of(base) for base in bases])
    rows = [base._replace(commit_sequence=record.sequence) for base in bases]
    mutations = [Mutation(BASES.name, key, row, key in known) for row in rows for key in [BASES.key_of(row)]]
    await transaction.write(Batch(heads=[head], records=[record], mutations=mutations))


class _Made:
    """The rows of partitions as their trimmed commits had left them, made in a scratch store."""

    def __init__(self, store: Store, scratch: Store) -> None:
        self._store = store
        self._scratch = scratch
        self._ends: dict[bytes, CommitRecord] = {}

    async def rebuild(self, found: Sequence[Trimmable]) -> None:
        """Make them from the log."""
        async with self._store.snapshot() as reader:
            history = History(await reader.contracts())
            self._newest, self._rebuilding = history.newest, Rebuilding(reader, history)
            await self._rebuilding.tables(self._scratch)
            for part in found:
                if part.base is not None:
                    await self._rebuilding.begin(self._scratch, part.base)
                sequence = part.after
                while sequence < part.through:
                    limit = min(RECORDS_AT_ONCE, part.through - sequence)
                    records = await reader.log(part.partition, sequence, limit)
                    secrets = await self._rebuilding.secrets(records)
                    await self._rebuilding.apply(self._scratch, records, secrets)
                    self._ends[part.partition] = records[-1]
                    sequence = records[-1].sequence

    async def rows(self, part: Trimmable) -> AsyncGenerator[list[BaseRow]]:
        """The rows of the next generation, some at a time, in no order; their secrets have no salt yet."""
        place = (part.partition, part.generation + 1)
        async with self._scratch.snapshot() as made:
            for entity in self._newest.plan.entities:
                value = partition_value(entity.types[entity.partition], part.partition)
                if value is None:
                    continue
                for table in (self._newest.tables[entity.name], self._newest.tombstones[entity.name]):
                    walk = Walk(made, table, (value,), at_once=ROWS_AT_ONCE)
                    while found := await walk.piece():
                        yield [self._row(place, entity.name, table, row) for row in found]

    def _row(self, place: tuple[bytes, int], entity: str, table: Table, row: Row) -> BaseRow:
        codec, key = self._newest.rows[entity], table.key_of(row)
        name, secret = codec.key(key), ""
        if table is self._newest.tombstones[entity]:
            told = told_tombstone(entity, name, row[TOMBSTONE_FENCE], row[TOMBSTONE_REVISION])
        else:
            told, secret = told_row(codec, key, row, self._rebuilding.erased.get((entity, key), frozenset()))
        return BaseRow(*place, entity, name, told, "", b"", secret, 1, row[-1])

    async def bases(self, found: Sequence[Trimmable]) -> list[Base]:
        """The bases of the next generation, whose rows are written."""
        bases = []
        async with self._store.snapshot() as reader:
            for part in found:
                made = BaseHash()
                walk = rows_of(reader, part.partition, part.generation + 1)
                while (row := await walk.next()) is not None:
                    made.add(BaseRow._make(row))
                end = self._ends[part.partition]
                bases.append(
                    Base(
                        partition=part.partition,
                        through=part.through,
                        time=end.time,
                        chain=end.chain,
                        generation=part.generation + 1,
                        rows=made.rows,
                        hash=made.digest(),
                        plan_hash=self._newest.hash,
                        revision=part.generation + 1,
                        commit_sequence=0,
                    )
                )
        return bases
