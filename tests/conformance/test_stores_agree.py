"""The memory and the SQLite store, given the same operations one by one, answer alike: rows, orders, refusals."""

import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riffdb.core.errors import RiffError
from riffdb.core.layout import Column, Index, Key, Row, Table
from riffdb.core.records import Batch, Mutation
from riffdb.core.stepping import step
from riffdb.storage.protocol import Reader, Scan, Transaction
from tests.conformance.stores import Place, capability, everything, head, place_of, record

COLUMNS = (
    Column("home", "text"),
    Column("id", "u64"),
    Column("flag", "bool", True),
    Column("count", "u64", True),
    Column("amount", "decimal", True),
    Column("name", "text", True),
    Column("revision", "u64"),
)
TABLE = Table(
    "thing",
    COLUMNS,
    (0, 1),
    (
        Index("count", (0, 3, 1), (False, False, False)),
        Index("amount", (0, 4, 2, 1), (False, True, False, False)),
        Index("name", (0, 5), (False, False), unique=True),
    ),
)
WIDER = Table(TABLE.name, COLUMNS, TABLE.key, (*TABLE.indexes, Index("flag", (0, 2, 1), (False, True, True))))

U64 = st.sampled_from([0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
VALUES = (
    st.sampled_from(["a", "b"]),
    U64,
    st.none() | st.booleans(),
    st.none() | U64,
    st.none() | st.sampled_from([-(10**30), -1, 0, 1, 10**30]),
    st.none() | st.sampled_from(["", "x", "y", "ÿ", "\U0001f600"]),
    U64,
)
ROWS = st.tuples(*VALUES)
PARTITIONS = st.sampled_from([b"", b"\1p", b"\1q"])


class BlockError(Exception):
    """Raised in a block to leave it."""


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[Row, bool]]:
    """Rows by distinct keys, and whether each is to be removed."""
    rows = draw(st.lists(ROWS, max_size=5, unique_by=lambda row: row[:2]))
    return [(row, draw(st.booleans())) for row in rows]


@st.composite
def scans(draw: st.DrawFn) -> Scan:
    """Any walk over the key or an index, bounds on the column after the prefix."""
    index = draw(st.sampled_from([None, *TABLE.indexes]))
    named = TABLE.key if index is None else index.columns
    positions = (*named, *(position for position in TABLE.key if position not in named))
    length = draw(st.integers(0, len(positions)))
    bounds: list[Any] = [None, None]
    if length < len(positions):
        values = VALUES[positions[length]].filter(lambda value: value is not None)
        bounds = [draw(st.none() | st.tuples(values, st.booleans())) for _ in range(2)]
    prefix = tuple(draw(VALUES[position]) for position in positions[:length])
    depth = draw(st.integers(0, len(positions) - length))
    position = tuple(draw(VALUES[position]) for position in positions[length : length + depth])
    start = draw(st.none() | st.tuples(st.just(position), st.booleans()))
    only = draw(st.none() | st.lists(st.integers(0, len(COLUMNS) - 1), min_size=1, max_size=3).map(tuple))
    return Scan(TABLE, index, prefix, bounds[0], bounds[1], draw(st.booleans()), draw(st.integers(0, 6)), start, only)


class StoresAgree(RuleBasedStateMachine):
    """Two stores side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.places = [place_of("memory", self.folder), place_of("reopened", self.folder)]
        self.keys: set[Key] = set()
        self.sequences: dict[bytes, int] = {}
        self.snapshots: list[list[Any]] = []

    def teardown(self) -> None:
        self.end_snapshots()
        for place in self.places:
            step(place.store.close())
        shutil.rmtree(self.folder)

    def both(self, work: Callable[[Place], Any]) -> Any:
        """The one answer of both stores; an error is its code."""
        answers = []
        for place in self.places:
            try:
                answers.append(work(place))
            except RiffError as error:
                answers.append(error.code)
            except BlockError:
                answers.append("left")
        assert answers[0] == answers[1]
        return answers[0]

    def transact(self, work: Callable[[Transaction], Coroutine[Any, Any, Any]]) -> Any:
        return self.both(lambda place: place.transact(work))

    @initialize()
    def make_table(self) -> None:
        self.transact(lambda transaction: transaction.prepare([TABLE]))

    @rule(changes=mutations(), read=st.booleans(), lies=st.sampled_from([0, 0, 0, 1]), fails=st.sampled_from([0, 0, 1]))
    def write_rows(self, changes: list[tuple[Row, bool]], read: bool, lies: int, fails: int) -> None:
        batch = Batch(
            mutations=[
                Mutation(
                    TABLE.name, row[:2], None if removed else row, (row[:2] in self.keys) != (lies and number == 0)
                )
                for number, (row, removed) in enumerate(changes)
            ]
        )

        async def work(transaction: Transaction) -> Any:
            found = await transaction.rows(TABLE, [row[:2] for row, _ in changes]) if read else {}
            await transaction.write(batch)
            written = await transaction.scan(everything(TABLE))
            if fails:
                raise BlockError
            return found, written

        answer = self.transact(work)
        if isinstance(answer, tuple):
            self.keys = {row[:2] for row in answer[1]}

    @rule(partition=PARTITIONS, keys=st.lists(st.none() | st.sampled_from("klm"), min_size=1, max_size=3))
    def write_records(self, partition: bytes, keys: list[str | None]) -> None:
        first = self.sequences.get(partition, 0) + 1
        records = [record(partition, first + number, key) for number, key in enumerate(keys)]
        batch = Batch(heads=[head(partition, records[-1].sequence)], records=records)
        if self.transact(lambda transaction: transaction.write(batch)) is None:
            self.sequences[partition] = records[-1].sequence

    @rule(name=st.sampled_from("abc"), token=st.sampled_from("abc"), revoked_at=st.none() | st.just(5))
    def write_capability(self, name: str, token: str, revoked_at: int | None) -> None:
        batch = Batch(capabilities=[capability(name, token=token, revoked_at=revoked_at)])
        self.transact(lambda transaction: transaction.write(batch))

    @rule(scan=scans())
    def scan_alike(self, scan: Scan) -> None:
        self.both(lambda place: place.read(lambda reader: reader.scan(scan)))

    @rule(partition=PARTITIONS, after=st.integers(0, 6), limit=st.integers(0, 4))
    def log_alike(self, partition: bytes, after: int, limit: int) -> None:
        self.both(lambda place: place.read(lambda reader: reader.log(partition, after, limit)))

    @rule()
    def add_an_index(self) -> None:
        self.transact(lambda transaction: transaction.prepare([WIDER]))

    @rule()
    def refuse_a_layout(self) -> None:
        other = Table(TABLE.name, COLUMNS[:-1], TABLE.key)
        assert self.transact(lambda transaction: transaction.prepare([other])) == "RDB-E-APPROVAL"

    @rule()
    def begin_snapshot(self) -> None:
        if len(self.snapshots) < 3:
            self.snapshots.append([step(self.begin(place)) for place in self.places])

    async def begin(self, place: Place) -> Any:
        block = place.store.snapshot()
        reader = await block.__aenter__()
        return block, reader, await contents(reader)

    @rule()
    def end_snapshots(self) -> None:
        for pair in self.snapshots:
            for block, reader, before in pair:
                assert step(contents(reader)) == before
                step(block.__aexit__(None, None, None))
        self.snapshots.clear()

    @rule()
    def reopen(self) -> None:
        self.end_snapshots()
        self.places[1].reopen()

    @invariant()
    def hold_the_same(self) -> None:
        self.both(lambda place: place.read(contents))


async def contents(reader: Reader) -> list[Any]:
    """All that the tests put into a store."""
    partitions = [b"", b"\1p", b"\1q"]
    return [
        await reader.heads(partitions),
        [await reader.log(partition, 0, 1_000) for partition in partitions],
        await reader.answered([(partition, "Claim", key) for partition in partitions for key in "klm"]),
        await reader.capability_list(),
        await reader.scan(everything(TABLE)),
    ]


TestStoresAgree = StoresAgree.TestCase
TestStoresAgree.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
