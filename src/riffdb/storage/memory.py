"""The store that keeps everything in this process: for tests and simulation, with the results of `sqlite`.

A state is never changed once it is the store's: a transaction writes to a copy of what it touches and puts it in place
when its block ends, so a snapshot is a reference and blocks nobody. Rows are sorted when they are asked for. Absent:
durability, and speed at many rows.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from os import urandom
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import hit
from riffdb.core.layout import Index, Key, Row, Table
from riffdb.core.records import (
    Batch,
    Capability,
    CommitRecord,
    DeployedContract,
    EventRecord,
    Head,
    Identity,
    Mutation,
    SecretPart,
    Trim,
)
from riffdb.storage.clock import Chance, Clock, StoreClock
from riffdb.storage.layouts import additions, check_index, moved_row
from riffdb.storage.protocol import SECRET_BYTES, Scan
from riffdb.storage.refusals import contradiction, store_closed, unknown_table, write_failed
from riffdb.storage.turn import WriterTurn
from riffdb.storage.views import View, served
from riffdb.storage.walks import walk_columns

Name = TypeVar("Name")
Value = TypeVar("Value")


@dataclass(slots=True)
class State:
    """All that the store keeps."""

    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, dict[Key, Row]] = field(default_factory=dict)
    heads: dict[bytes, Head] = field(default_factory=dict)
    records: dict[bytes, dict[int, CommitRecord]] = field(default_factory=dict)
    secrets: dict[bytes, dict[int, SecretPart]] = field(default_factory=dict)
    answered: dict[bytes, dict[Identity, CommitRecord]] = field(default_factory=dict)
    capabilities: dict[str, Capability] = field(default_factory=dict)
    contracts: list[DeployedContract] = field(default_factory=list)

    def copy(self) -> "State":
        """A state of its own; the containers of rows and records are shared until a writer copies them."""
        return State(
            dict(self.tables),
            dict(self.rows),
            dict(self.heads),
            dict(self.records),
            dict(self.secrets),
            dict(self.answered),
            dict(self.capabilities),
            list(self.contracts),
        )


class MemoryStore:
    """A database in memory. `clock`: whatever gives microseconds, so that a test moves time; `chance`: bytes."""

    def __init__(self, clock: Clock | None = None, chance: Chance = urandom) -> None:
        self.incarnation = str(uuid4())
        self.secret = urandom(SECRET_BYTES)
        self.failure: RiffError | None = None
        self.clock = clock or StoreClock()
        self.chance = chance
        self.state = State()
        self.turn = WriterTurn()
        self.is_closed = False

    def snapshot(self) -> "MemorySnapshot":
        """A consistent read."""
        return MemorySnapshot(self)

    def transaction(self) -> "MemoryTransaction":
        """The write transaction."""
        return MemoryTransaction(self)

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator["MemoryStore"]:
        """An empty store."""
        yield MemoryStore()

    async def close(self) -> None:
        """Serve nothing more; what was kept is gone with the store."""
        self.is_closed = True


class MemoryReader(View):
    """What snapshots and transactions read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._store = store
        self._state = store.state

    def check_store(self) -> None:
        """Refuse to serve after the store was closed."""
        if self._store.is_closed:
            raise store_closed()

    def _open(self) -> None:
        self.check_store()
        self._state = self._store.state
        self.is_open = True

    def _rows(self, name: str) -> dict[Key, Row]:
        if name not in self._state.tables:
            raise unknown_table(name)
        return self._state.rows[name]

    def _rows_as(self, table: Table) -> dict[Key, Row]:
        """The rows in the layout of a caller, which may be an older one than that of the state."""
        rows, kept = self._rows(table.name), self._state.tables[table.name]
        if kept is table or kept.columns == table.columns:
            return rows
        return {key: moved_row(kept, table, row) for key, row in rows.items()}

    @served
    async def time(self) -> int:
        return self._store.clock()

    @served
    async def heads(self, partitions: Collection[bytes]) -> dict[bytes, Head]:
        return _known(self._state.heads, partitions)

    @served
    async def heads_after(self, partition: bytes | None, limit: int) -> list[Head]:
        known = sorted(found for found in self._state.heads if partition is None or found > partition)
        return [self._state.heads[found] for found in known[:limit]]

    @served
    async def commits(self) -> int:
        return sum(len(records) for records in self._state.records.values())

    @served
    async def rows(self, table: Table, keys: Collection[Key]) -> dict[Key, Row]:
        return _known(self._rows_as(table), keys)

    @served
    async def scan(self, scan: Scan) -> list[Row]:
        check_index(self._state.tables, scan.table, scan.index)
        columns = walk_columns(scan)
        positions = tuple(position for position, _ in columns)
        found = [row for row in self._rows_as(scan.table).values() if _is_within(row, positions, scan)]
        for position, descends in reversed(columns):
            found.sort(key=_null_first(position), reverse=descends)
        if scan.start is not None:
            rest = columns[len(scan.prefix) :]
            found = [row for row in found if _is_behind(row, rest, *scan.start)]
        found = found[: max(scan.limit, 0)]
        return found if scan.only is None else [tuple(row[position] for position in scan.only) for row in found]

    @served
    async def explain(self, scan: Scan) -> str:
        check_index(self._state.tables, scan.table, scan.index)
        return f"all rows of {scan.table.name} in memory, filtered and sorted"

    @served
    async def answered(self, identities: Collection[Identity]) -> dict[Identity, CommitRecord]:
        known = self._state.answered
        return {
            identity: known[identity[0]][identity] for identity in identities if identity in known.get(identity[0], ())
        }

    @served
    async def log(self, partition: bytes, after: int, limit: int) -> list[CommitRecord]:
        known = self._state.records.get(partition, {})
        return [known[sequence] for sequence in sorted(known) if sequence > after][: max(limit, 0)]

    @served
    async def events(self, partition: bytes, after: int, limit: int) -> list[EventRecord]:
        known = self._state.records.get(partition, {})
        until = min(after + limit, next(reversed(known), 0))  # sequences only grow
        found = [known[sequence] for sequence in range(max(after, 0) + 1, until + 1) if sequence in known]
        return [EventRecord(part.sequence, part.time, part.events) for part in found if part.events != "[]"]

    @served
    async def records(self, partition: bytes, sequences: Collection[int]) -> dict[int, CommitRecord]:
        return _known(self._state.records.get(partition, {}), sequences)

    @served
    async def secrets(self, partition: bytes, sequences: Collection[int]) -> dict[int, SecretPart]:
        return _known(self._state.secrets.get(partition, {}), sequences)

    @served
    async def capabilities(self, token_hashes: Collection[bytes]) -> dict[bytes, Capability]:
        by_hash = {capability.token_hash: capability for capability in self._state.capabilities.values()}
        return _known(by_hash, token_hashes)

    @served
    async def capability_list(self) -> list[Capability]:
        return list(self._state.capabilities.values())

    @served
    async def capability_family(self, identity: str) -> list[Capability]:
        members = {identity}
        found = []
        for capability in self._state.capabilities.values():
            if capability.id in members or capability.parent in members:
                members.add(capability.id)
                found.append(capability)
        return found

    @served
    async def contracts(self) -> list[DeployedContract]:
        return list(self._state.contracts)

    @served
    async def recent(self, before: int | None, limit: int) -> list[tuple[int, CommitRecord]]:
        records = [record for of_partition in self._state.records.values() for record in of_partition.values()]
        records.sort(key=lambda record: (record.time, record.partition, record.sequence))
        places = range(len(records) if before is None else before - 1, 0, -1)
        return [(place, records[place - 1]) for place in places[: max(limit, 0)]]

    @served
    async def copy(self, path: str, progress: Callable[[int, int], None] | None) -> None:
        raise RiffError("RDB-E-USAGE", "a database in memory keeps no file, so there is nothing to back up")

    @served
    async def damages(self) -> list[str]:
        return []


class MemorySnapshot(MemoryReader):
    """One consistent view: the state at its beginning."""

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False


class MemoryTransaction(MemoryReader):
    """The one writer: reads and changes a copy, which becomes the store's state when the block ends in peace."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self._has_written = False
        self._has_failed = False

    async def __aenter__(self) -> Self:
        self._store.turn.take()
        try:
            self._open()
            self._state = self._state.copy()
        except BaseException:
            self._store.turn.give_back()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        try:
            if kind is None:
                self._commit()
        finally:
            self._store.turn.give_back()

    def _commit(self) -> None:
        if self._has_failed:
            raise write_failed()
        if self._has_written:
            hit("commit.before")
        self._store.state = self._state
        if self._has_written:
            hit("commit.after")

    @served
    async def write(self, batch: Batch) -> None:
        if self._has_written:
            raise AssertionError("a transaction writes at most once")
        self._has_written = self._has_failed = True
        for table in {mutation.table for mutation in batch.mutations}:
            self._write_rows(table, [mutation for mutation in batch.mutations if mutation.table == table])
        for record in batch.records:
            self._write_record(record)
        for part in batch.secrets:
            of_partition = self._state.secrets.get(part.partition, {})
            if part.sequence in of_partition:
                raise contradiction("two secret parts of one record")
            self._state.secrets[part.partition] = of_partition | {part.sequence: part}
        self._state.heads.update((head.partition, head) for head in batch.heads)
        if batch.capabilities:
            known = self._state.capabilities
            known.update((capability.id, capability) for capability in batch.capabilities)
            if len({capability.token_hash for capability in known.values()}) < len(known):
                raise contradiction("two capabilities of one token")
        self._state.contracts.extend(batch.contracts)
        for trim in batch.trims:
            self._trim(trim)
        self._has_failed = False

    @served
    async def entropy(self, size: int) -> bytes:
        return self._store.chance(size)

    @served
    async def prepare(self, tables: Sequence[Table]) -> None:
        for addition in additions(self._state.tables, tables):
            table = addition.table
            rows = {} if addition.is_new else self._rows_as(table)
            self._state.rows[table.name], self._state.tables[table.name] = rows, table

    def _write_rows(self, table: str, mutations: Sequence[Mutation]) -> None:
        rows = self._state.rows[table] = dict(self._rows(table))
        for mutation in mutations:
            if (mutation.existed and mutation.key not in rows) or (
                not mutation.existed and mutation.row is not None and mutation.key in rows
            ):
                raise contradiction(f"a row of {table} was there, or was not")
            if mutation.row is not None:
                rows[mutation.key] = mutation.row
            elif mutation.existed:
                del rows[mutation.key]
        for index in self._state.tables[table].indexes:
            if index.unique:
                _check_unique(table, index, rows.values())

    def _write_record(self, record: CommitRecord) -> None:
        state, partition = self._state, record.partition
        if state.records.get(partition) is self._store.state.records.get(partition):
            state.records[partition] = dict(state.records.get(partition, {}))
            state.answered[partition] = dict(state.answered.get(partition, {}))
        if record.sequence in state.records[partition]:
            raise contradiction("a second record of one sequence")
        state.records[partition][record.sequence] = record
        if record.identity is not None:
            state.answered[partition][record.identity] = record

    def _trim(self, trim: Trim) -> None:
        state, partition = self._state, trim.partition
        state.records[partition] = _behind(state.records.get(partition, {}), trim.through)
        state.secrets[partition] = _behind(state.secrets.get(partition, {}), trim.through)
        state.answered[partition] = {
            identity: record
            for identity, record in state.answered.get(partition, {}).items()
            if record.sequence > trim.through
        }


def _behind(parts: dict[int, Value], through: int) -> dict[int, Value]:
    return {sequence: part for sequence, part in parts.items() if sequence > through}


def _known(values: dict[Name, Value], names: Iterable[Name]) -> dict[Name, Value]:
    return {name: values[name] for name in names if name in values}


def _null_first(position: int) -> Callable[[Row], Any]:
    return lambda row: (row[position] is not None, row[position])


def _is_behind(row: Row, columns: Sequence[tuple[int, bool]], values: tuple[Any, ...], is_inclusive: bool) -> bool:
    """Whether the row comes behind the position, or at it."""
    for (position, descends), value in zip(columns, values, strict=False):
        if row[position] != value:
            is_above = value is None or (row[position] is not None and bool(row[position] > value))
            return is_above != descends
    return is_inclusive


def _is_within(row: Row, columns: tuple[int, ...], scan: Scan) -> bool:
    if any(row[position] != value for position, value in zip(columns, scan.prefix, strict=False)):
        return False
    if scan.lower is None and scan.upper is None:
        return True
    value = row[columns[len(scan.prefix)]]
    if value is None:
        return False
    if scan.lower is not None and (value < scan.lower[0] or (value == scan.lower[0] and not scan.lower[1])):
        return False
    return scan.upper is None or value < scan.upper[0] or (value == scan.upper[0] and scan.upper[1])


def _check_unique(table: str, index: Index, rows: Iterable[Row]) -> None:
    values = [tuple(row[position] for position in index.columns) for row in rows]
    whole = [value for value in values if None not in value]
    if len(set(whole)) < len(whole):
        raise contradiction(f"two rows of {table} in its unique index {index.name}")
