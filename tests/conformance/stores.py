"""What the suite of the stores shares: where a store is opened, how a test reads and writes, records with few words.

A `Place` opens its store as often as a test wants; at `reopened` every look at what was written is a look at a file
that was closed and opened again.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from riffdb.core.layout import Column, ColumnKind, Index, Row, Table
from riffdb.core.records import Batch, Capability, CommitRecord, Head, Mutation
from riffdb.core.stepping import step
from riffdb.storage import open_store
from riffdb.storage.protocol import Reader, Scan, Store, Transaction

Result = TypeVar("Result")

KINDS = ("memory", "sqlite", "reopened")
U64_MAX = (1 << 64) - 1
I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1
ALL_UNICODE = "".join(chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF)

VALUES: dict[ColumnKind, list[Any]] = {
    "bool": [False, True],
    "int": [I64_MIN, -1, 0, 1, I64_MAX],
    "u64": [0, 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, U64_MAX],
    "text": ["", "A", "a", "a b", "ab", "ä", "\uffff", "\U0001f600", "\U0010ffff"],
    "blob": [b"", b"\0", b"\0\0", b"a", b"a\0", b"\xff", b"\xff\xff"],
    "decimal": [-(10**38) + 1, -(1 << 64), -1, 0, 1, 1 << 64, 10**38 - 1],
}
"""Values of every kind, ascending."""

P, Q = b"\x01" + b"p" * 16, b"\x01" + b"q" * 16


WORK = Table(
    "work",
    (
        Column("id", "blob"),
        Column("tenant", "text"),
        Column("due", "int"),
        Column("owner", "blob", True),
        Column("token", "u64"),
        Column("revision", "u64"),
        Column("commit_sequence", "u64"),
    ),
    (1, 0),
    (Index("work__due", (1, 2, 0), (False, False, False)), Index("work__owner", (1, 3, 0), (False, False, False))),
)


@dataclass(slots=True)
class Place:
    """A kind of store and its one open instance."""

    kind: str
    url: str
    store: Store

    def settle(self) -> None:
        """At `reopened`, close the file and open it again."""
        if self.kind == "reopened":
            self.reopen()

    def reopen(self) -> None:
        """Close the store and open what is kept of it; a memory store keeps nothing and goes on."""
        if self.kind != "memory":
            step(self.store.close())
            self.store = step(open_store(self.url, create=False))

    def write(self, batch: Batch, *tables: Table) -> None:
        """One transaction: prepare the tables, write the batch."""

        async def work(transaction: Transaction) -> None:
            if tables:
                await transaction.prepare(tables)
            await transaction.write(batch)

        self.transact(work)
        self.settle()

    def transact(self, work: Callable[[Transaction], Awaitable[Result]]) -> Result:
        """One transaction around `work`."""

        async def run() -> Result:
            async with self.store.transaction() as transaction:
                return await work(transaction)

        return step(run())

    def read(self, work: Callable[[Reader], Coroutine[Any, Any, Result]]) -> Result:
        """One snapshot around `work`."""

        async def run() -> Result:
            async with self.store.snapshot() as reader:
                return await work(reader)

        return step(run())

    def all_rows(self, table: Table) -> set[Row]:
        """Every row of a table that the tests keep small."""
        from_scan = self.read(lambda reader: reader.scan(everything(table)))
        return set(from_scan)


def place_of(kind: str, folder: Path) -> Place:
    """A place with an empty store."""
    url = "memory:" if kind == "memory" else f"sqlite:{folder / 'store.db'}"
    return Place(kind, url, step(open_store(url)))


def everything(table: Table) -> Scan:
    """The walk over the whole table."""

    return Scan(table, None, (), limit=10_000)


def inserts(table: Table, *rows: Row) -> list[Mutation]:
    """The mutations that make the rows."""
    return [Mutation(table.name, table.key_of(row), row, existed=False) for row in rows]


def updates(table: Table, *rows: Row) -> list[Mutation]:
    """The mutations that replace the rows."""
    return [Mutation(table.name, table.key_of(row), row, existed=True) for row in rows]


def deletes(table: Table, *rows: Row) -> list[Mutation]:
    """The mutations that remove the rows."""
    return [Mutation(table.name, table.key_of(row), None, existed=True) for row in rows]


def record(partition: bytes, sequence: int, key: str | None = None, command: str = "Claim") -> CommitRecord:
    """A commit record whose texts tell it from others."""
    return CommitRecord(
        partition=partition,
        sequence=sequence,
        time=1_000_000 + sequence,
        command=command,
        key=key,
        input_hash=b"h" * 32,
        input=f'{{"n":{sequence}}}',
        sealed='{"made":"1"}' if sequence % 2 else "",
        secret_hash="",
        outcome="Claimed",
        answer=f'{{"outcome":"Claimed","text":"ärger {sequence}"',
        principal="worker",
        capability="c1",
        role="worker",
        ingress="http",
        contract_version=3,
        plan_hash=b"p" * 32,
        changes="[]",
        events="[]",
        chain=sequence.to_bytes(32, "big"),
    )


def head(partition: bytes, sequence: int) -> Head:
    """A head."""
    return Head(partition, sequence, 1_000_000 + sequence, sequence.to_bytes(32, "big"))


def capability(name: str, *, revoked_at: int | None = None, token: str | None = None) -> Capability:
    """A capability with a token hash of its own."""
    return Capability(
        id=name,
        token_hash=(token or name).encode().ljust(32, b"."),
        principal="someone",
        role="worker",
        partition=None,
        created_at=5,
        expires_at=None,
        revoked_at=revoked_at,
        parent=None,
        creator="operator",
    )


def wide(kind: ColumnKind) -> Table:
    """A table whose column `value` is of the kind, null allowed, with an index each way."""
    return Table(
        f"of_{kind}",
        (Column("home", "blob"), Column("id", "int"), Column("value", kind, True), Column("revision", "u64")),
        (0, 1),
        (Index("up", (0, 2, 1), (False, False, False)), Index("down", (0, 2, 1), (False, True, False))),
    )


def work(number: int, tenant: str = "a", *, due: int = 0, owner: bytes | None = None, revision: int = 1) -> Row:
    """A row of `WORK`."""
    return (bytes([number]), tenant, due, owner, number, revision, revision)


def scan(place: Place, *arguments: Any, **bounds: Any) -> list[Row]:
    """The rows of a walk."""
    return place.read(lambda reader: reader.scan(Scan(*arguments, **bounds)))


def rows_of(place: Place, table: Table, *rows: Row) -> dict[Any, Row]:
    """Those of the rows that are there now, by key."""
    return place.read(lambda reader: reader.rows(table, [table.key_of(row) for row in rows]))
