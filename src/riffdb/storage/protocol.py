"""The Store protocol: what every storage engine offers to `database`, and all that it offers.

A store keeps rows by layout, commit records and what is secret of them, heads, capabilities and contracts, and owns the
one clock and the one source of chance. Writing goes through `transaction` alone: what `write` was given is durable when
the block has been left, and nothing of it is kept when the block raises. Methods are coroutines so that one pipeline
serves every store; `memory` and `sqlite` never suspend, so a caller without an event loop may step them
(`core.stepping.step`). Driver exceptions become `RiffError` here and nowhere else. Absent: any knowledge of plans,
commands or outcomes.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from riffdb.core.errors import RiffError
from riffdb.core.layout import Index, Key, Row, Table
from riffdb.core.records import (
    Batch,
    Capability,
    CommitRecord,
    DeployedContract,
    EventRecord,
    Head,
    Identity,
    SecretPart,
)

SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Scan:
    """A bounded walk over one index (None: the key) of a table.

    `prefix`: values that the first columns equal (null equals null). `lower` and `upper`: bounds of the column after
    them as (value, inclusive), values never null; where either stands, rows with null there are left out. Null sorts
    first, and rows that the index does not tell apart stand in the order of the key. `reverse` walks backwards. At most
    `limit` rows come back.

    `start`: the walk begins behind these values of the columns after the prefix (the rest of the key among them, as
    many as are known), or with them if the flag stands. `only`: the positions of the columns that are wanted, in this
    order, in the place of whole rows.
    """

    table: Table
    index: Index | None
    prefix: tuple[Any, ...]
    lower: tuple[Any, bool] | None = None
    upper: tuple[Any, bool] | None = None
    reverse: bool = False
    limit: int = 100
    start: tuple[tuple[Any, ...], bool] | None = None
    only: tuple[int, ...] | None = None


class Reader(Protocol):
    """One consistent view of the store."""

    async def time(self) -> int:
        """The store's clock now: microseconds since 1970-01-01 UTC, never going back within a process."""
        ...

    async def heads(self, partitions: Collection[bytes]) -> dict[bytes, Head]:
        """The heads of those of the partitions that have one; in a transaction they are held until its end."""
        ...

    async def heads_after(self, partition: bytes | None, limit: int) -> list[Head]:
        """At most `limit` heads of the partitions behind this one (None: of all), in the order of their bytes."""
        ...

    async def commits(self) -> int:
        """How many commit records there are."""
        ...

    async def rows(self, table: Table, keys: Collection[Key]) -> dict[Key, Row]:
        """Those of the rows that exist."""
        ...

    async def scan(self, scan: Scan) -> list[Row]:
        """The rows of a bounded walk, in index order."""
        ...

    async def explain(self, scan: Scan) -> str:
        """How the store would make that walk, in its own words; no value of the walk stands in them."""
        ...

    async def answered(self, identities: Collection[Identity]) -> dict[Identity, CommitRecord]:
        """The newest commit record of each of those idempotency identities that has one."""
        ...

    async def log(self, partition: bytes, after: int, limit: int) -> list[CommitRecord]:
        """At most `limit` records of a partition with a sequence above `after`, ascending."""
        ...

    async def events(self, partition: bytes, after: int, limit: int) -> list[EventRecord]:
        """Of the `limit` records that follow the sequence `after`, those that have events, ascending."""
        ...

    async def records(self, partition: bytes, sequences: Collection[int]) -> dict[int, CommitRecord]:
        """Those of the records that exist, by sequence."""
        ...

    async def secrets(self, partition: bytes, sequences: Collection[int]) -> dict[int, SecretPart]:
        """The secret parts of those of the records that have one, by sequence."""
        ...

    async def capabilities(self, token_hashes: Collection[bytes]) -> dict[bytes, Capability]:
        """The capabilities with those token hashes."""
        ...

    async def capability_list(self) -> list[Capability]:
        """All capabilities in order of creation."""
        ...

    async def capability_family(self, identity: str) -> list[Capability]:
        """The capability with this id and all that were derived from it, in order of creation; empty if unknown."""
        ...

    async def contracts(self) -> list[DeployedContract]:
        """All deployed contracts, oldest first."""
        ...

    async def recent(self, before: int | None, limit: int) -> list[tuple[int, CommitRecord]]:
        """At most `limit` records of all partitions, newest first, each with its place in the store's own order; below
        the place `before`, None for the newest."""
        ...

    async def copy(self, path: str, progress: Callable[[int, int], None] | None) -> None:
        """Write what this snapshot sees to a new file, from which a database can be restored; `progress` is told the
        pages left, and of how many. `RDB-E-USAGE` for a store that keeps no file."""
        ...

    async def damages(self) -> list[str]:
        """What is wrong with the store's own structures, such as an index that disagrees with its table; they are read
        whole. What cannot be read at all is `RDB-E-STORAGE`, and the store serves nothing more."""
        ...


class Transaction(Reader, Protocol):
    """The one writer's view: reads see the state that its writes will follow."""

    async def write(self, batch: Batch) -> None:
        """Write the batch; durable once the transaction's block is left. Called at most once in a transaction.

        A key stands at most once in the mutations. A batch that contradicts what is stored is `RDB-E-INTERNAL`, and
        nothing of the transaction can be kept any more.
        """
        ...

    async def entropy(self, size: int) -> bytes:
        """So many bytes that nobody can foresee."""
        ...

    async def prepare(self, tables: Sequence[Table]) -> None:
        """Make the tables, columns and indexes that are missing and drop the indexes of these tables that are not
        wanted; the rest of the transaction may use them.

        In a new column older rows have its `initial`. The store remembers the layouts. A table that would have to be
        laid out anew is refused with `RDB-E-APPROVAL`.
        """
        ...


class Store(Protocol):
    """A place that keeps one database."""

    incarnation: str
    """The history's id (a UUID text), made with the database; a restore makes a new one."""
    secret: bytes
    """32 bytes made with the database, which sign what it hands out; they stand in no answer, log or error."""

    @property
    def failure(self) -> RiffError | None:
        """Why the store serves nothing more; None while it serves. The process ought to end when it stands."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Reader]:
        """A consistent read; it blocks no writer."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """The write transaction: committed and durable when the block ends, rolled back when it raises."""
        ...

    def scratch(self) -> "AbstractAsyncContextManager[Store]":
        """An empty store of the same kind, which is gone when the block ends."""
        ...

    async def close(self) -> None:
        """Release the file; the store serves nothing more."""
        ...
