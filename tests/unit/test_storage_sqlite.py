"""What only the SQLite store has: its layout, its paths through indexes, failing disks, threads, the bounds of the log.

No test from outside reaches these, since nothing of the outer surface shows a page, a plan or a sync.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import apsw
import pytest

from riffdb.core.errors import RiffError
from riffdb.core.layout import Column, Index, Table
from riffdb.core.records import Batch
from riffdb.core.stepping import step
from riffdb.storage import open_store
from riffdb.storage.layouts import additions
from riffdb.storage.protocol import Scan, Transaction
from riffdb.storage.sqlite import connections, log, statements
from riffdb.storage.sqlite.tables import TableStatements, index_sql, table_sql
from riffdb.storage.walks import walk_columns
from tests.conformance.stores import Place, capability, everything, head, inserts, place_of, record, updates
from tests.faulty_disk import FaultyDisk

P = b"\x01" + b"p" * 16
TABLE = Table(
    "order",
    (
        Column("id", "blob"),
        Column("group", "text"),
        Column("open", "bool", True),
        Column("size", "u64", True),
        Column("price", "decimal"),
        Column("due", "int"),
        Column("revision", "u64"),
        Column("commit_sequence", "u64"),
    ),
    (1, 0),
    (
        Index("order__due", (1, 5, 0), (False, True, False)),
        Index("order__size", (1, 3, 0), (False, False, False)),
        Index("order__open", (1, 2, 5, 0), (False, False, False, False)),
    ),
)


def row(number: int, *, due: int = 0, size: int | None = None, revision: int = 1) -> tuple[Any, ...]:
    return (number.to_bytes(4, "big"), "a", True, size, number, due, revision, revision)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = place_of("sqlite", tmp_path)
    yield found
    step(found.store.close())


# Layout


ENTITY_SQL = """CREATE TABLE "order" (
  "id" BLOB NOT NULL,
  "group" TEXT NOT NULL,
  "open" INTEGER,
  "size" ANY,
  "price" BLOB NOT NULL,
  "due" INTEGER NOT NULL,
  "revision" ANY NOT NULL,
  "commit_sequence" ANY NOT NULL,
  PRIMARY KEY ("group", "id")
) STRICT, WITHOUT ROWID
CREATE INDEX "order.order__due" ON "order" ("group", "due" DESC, "id")
CREATE INDEX "order.order__size" ON "order" ("group", "size", "id")
CREATE INDEX "order.order__open" ON "order" ("group", "open", "due", "id")"""


def test_the_layout_of_a_file_is_the_one_of_its_format(place: Place, tmp_path: Path) -> None:
    """Whoever changes this changes `FORMAT` and says how older files are brought along."""
    place.write(Batch(), TABLE)
    other = apsw.Connection(str(tmp_path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY)
    made = [text for (text,) in other.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")]
    assert made == [*statements.LAYOUT, *ENTITY_SQL.replace("\nCREATE", "\0CREATE").split("\0")]
    assert [other.pragma(name) for name in ("user_version", "application_id", "page_size", "journal_mode")] == [
        4,
        0x52694646,
        4096,
        "wal",
    ]
    stored = other.execute("SELECT layout FROM riffdb_table WHERE name = 'order'").fetchall()
    assert stored == [
        (
            '{"name":"order","columns":[{"name":"id","kind":"blob","optional":false},'
            '{"name":"group","kind":"text","optional":false},{"name":"open","kind":"bool","optional":true},'
            '{"name":"size","kind":"u64","optional":true},{"name":"price","kind":"decimal","optional":false},'
            '{"name":"due","kind":"int","optional":false},{"name":"revision","kind":"u64","optional":false},'
            '{"name":"commit_sequence","kind":"u64","optional":false}],"key":[1,0],"indexes":['
            '{"name":"order__due","columns":[1,5,0],"descending":[false,true,false],"unique":false},'
            '{"name":"order__size","columns":[1,3,0],"descending":[false,false,false],"unique":false},'
            '{"name":"order__open","columns":[1,2,5,0],"descending":[false,false,false,false],"unique":false}]}',
        )
    ]
    other.close()


def test_people_read_values_with_their_own_tools(place: Place, tmp_path: Path) -> None:
    rows = [row(1, size=7), row(2, size=(1 << 63) + 1), (b"id", "a", None, None, -5, -9, 1, 1)]
    place.write(Batch(mutations=inserts(TABLE, *rows)), TABLE)
    other = apsw.Connection(str(tmp_path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert other.execute('SELECT "open", "size", due FROM "order" ORDER BY "size"').fetchall() == [
        (None, None, -9),
        (1, 7, 0),
        (1, b"\x80\0\0\0\0\0\0\1", 0),
    ]
    other.close()


def test_a_value_of_another_type_is_refused(place: Place) -> None:
    place.write(Batch(), TABLE)
    for position, value in ((1, b"blob"), (1, None), (5, "text"), (0, "text")):
        wrong = (*row(1)[:position], value, *row(1)[position + 1 :])
        with pytest.raises(RiffError) as caught:
            place.write(Batch(mutations=inserts(TABLE, wrong)))
        assert caught.value.code == "RDB-E-INTERNAL"
    assert place.all_rows(TABLE) == set()


# Paths


@pytest.fixture
def explained() -> Iterator[apsw.Connection]:
    """A connection with the layout in memory, to ask for query plans."""
    connection = apsw.Connection(":memory:")
    for statement in (*statements.LAYOUT, table_sql(TABLE), *(index_sql(TABLE, index) for index in TABLE.indexes)):
        connection.execute(statement)
    yield connection
    connection.close()


def plan_of(connection: apsw.Connection, statement: str) -> str:
    values = (None,) * statement.count("?")
    return "; ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))


def test_every_walk_uses_its_index_and_sorts_nothing(explained: apsw.Connection) -> None:
    walked = TableStatements(TABLE)
    for index in (None, *TABLE.indexes):
        positions = TABLE.key if index is None else index.columns
        name = "PRIMARY KEY" if index is None else f"INDEX order.{index.name}"
        for length in range(len(positions)):
            prefix = tuple("x" if TABLE.columns[p].kind == "text" else None for p in positions[:length])
            value = b"" if TABLE.columns[positions[length]].kind == "blob" else 1
            for lower, upper in ((None, None), ((value, True), None), (None, (value, False)), ((value, False),) * 2):
                for reverse in (False, True):
                    statement, _ = walked.scan(Scan(TABLE, index, prefix, lower, upper, reverse))
                    plan = plan_of(explained, statement)
                    is_bounded = bool(length or lower or upper)
                    assert plan.startswith("SEARCH order USING" if is_bounded else "SCAN order"), (statement, plan)
                    assert name in plan or (index is None and not is_bounded), (statement, plan)
                    assert "TEMP B-TREE" not in plan, (statement, plan)
                    assert plan.count("=?") == length, (statement, plan)


def explained_walk(place: Place, walk: Scan) -> list[str]:
    return place.read(lambda reader: reader.explain(walk)).splitlines()


def test_every_walk_from_a_position_is_searches_of_its_index_alone(place: Place) -> None:
    unique = Index("order__price", (1, 3), (False, True), unique=True)
    table = replace(TABLE, indexes=(*TABLE.indexes, unique))
    place.write(Batch(), table)
    values = {"blob": b"", "text": "x", "bool": True}
    for index in (None, *table.indexes):
        name = "PRIMARY KEY" if index is None else f"INDEX order.{index.name} "
        for reverse in (False, True):
            columns = walk_columns(Scan(table, index, (), reverse=reverse))
            given = tuple(values.get(table.columns[position].kind, 1) for position, _ in columns)
            for length in range(len(columns)):
                for value in {None, given[length]} if table.columns[columns[length][0]].optional else {given[length]}:
                    start = ((value, *given[length + 1 :]), length % 2 == 0)
                    walk = Scan(table, index, given[:length], reverse=reverse, start=start)
                    told = explained_walk(place, walk)
                    assert told and all(line.startswith("SEARCH order USING") and name in line for line in told), told


def test_every_point_read_uses_an_index(explained: apsw.Connection) -> None:
    for statement in (
        statements.HEAD,
        statements.RECORD_OF_IDENTITY,
        statements.RECORD_OF_SEQUENCE,
        statements.RECORDS_AFTER,
        statements.CAPABILITY_OF_TOKEN,
        TableStatements(TABLE).select,
    ):
        plan = plan_of(explained, statement)
        assert plan.startswith("SEARCH"), plan
        assert "TEMP B-TREE" not in plan
    assert "riffdb_commit_identity (key=? AND partition=? AND command=?)" in plan_of(
        explained, statements.RECORD_OF_IDENTITY
    )


def test_an_update_names_no_column_of_an_index_that_stays() -> None:
    written = TableStatements(TABLE)
    before = row(1, due=5, size=7)
    assert written.changed_indexes(before, row(1, due=5, size=7, revision=2)) == 0b000
    assert written.changed_indexes(before, row(1, due=5, size=8)) == 0b010
    assert written.changed_indexes(before, row(1, due=6, size=7)) == 0b101
    assert written.update(0b000)[0] == (
        'UPDATE "order" SET "price" = ?, "revision" = ?, "commit_sequence" = ? WHERE "group" = ? AND "id" = ?'
    )
    assert written.update(0b010)[0].startswith('UPDATE "order" SET "size" = ?, "price" = ?,')
    assert '"due" = ?' in written.update(0b101)[0]
    assert '"size"' not in written.update(0b101)[0]


@pytest.mark.parametrize(
    ("was", "wanted"),
    [
        (Index("i", (0, 1), (False, False)), Index("i", (0, 1), (False, True))),
        (Index("i", (0, 1), (False, False)), Index("i", (0, 1), (False, False), unique=True)),
        (Index("i", (0, 1), (False, False)), Index("i", (1, 0), (False, False))),
    ],
)
def test_an_index_that_does_something_else_is_made_anew(was: Index, wanted: Index) -> None:
    columns = (Column("a", "int"), Column("b", "int"))
    [addition] = additions({"t": Table("t", columns, (0,), (was,))}, [Table("t", columns, (0,), (wanted,))])
    assert (addition.dropped, addition.indexes, addition.columns) == ((was,), (wanted,), ())


# Failing disks


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    found = FaultyDisk()
    _put_checksums_above()
    yield found
    found.unregister()
    _put_checksums_above()


def _put_checksums_above() -> None:
    """Let checksums be written to what is the default VFS now."""
    apsw.unregister_vfs(connections.checksum_vfs())
    connections.checksum_vfs.cache_clear()
    connections.checksum_vfs()


@pytest.fixture
def faulty(disk: FaultyDisk, tmp_path: Path) -> Iterator[Place]:
    """A store on the faulty disk with one commit in it."""
    found = place_of("sqlite", tmp_path)
    found.write(batch(1), TABLE)
    yield found
    disk.fault = None
    step(found.store.close())


def batch(number: int) -> Batch:
    return Batch([head(P, number)], [record(P, number)], inserts(TABLE, row(number)))


def head_sequence(place: Place) -> int:
    return place.read(lambda reader: reader.heads([P]))[P].sequence


@pytest.mark.parametrize(("call", "error"), [("sync", apsw.IOError), ("write", apsw.IOError)])
def test_the_first_failed_sync_or_write_ends_the_store(
    faulty: Place, disk: FaultyDisk, call: str, error: type[apsw.Error]
) -> None:
    disk.fault = (call, "-wal", error)
    with pytest.raises(RiffError) as caught:
        faulty.write(batch(2))
    assert disk.hits == 1
    assert caught.value.code == "RDB-E-OUTCOME-UNKNOWN"  # it may be found in the log when the file is opened again
    assert caught.value.message.startswith("the store failed and serves nothing more: ")
    disk.fault = None
    for attempt in (
        lambda: faulty.write(batch(2)),
        lambda: head_sequence(faulty),
        lambda: faulty.transact(lambda transaction: transaction.contracts()),
    ):
        with pytest.raises(RiffError, match="serves nothing more") as later:
            attempt()
        assert later.value.code == "RDB-E-STORAGE"
    assert faulty.store.failure is not None
    log_path = Path(faulty.url.removeprefix("sqlite:") + "-wal")
    log_before = log_path.read_bytes()
    step(faulty.store.close())
    assert log_path.read_bytes() == log_before  # a dead store writes nothing more to the file
    faulty.store = step(open_store(faulty.url))
    assert faulty.store.failure is None
    assert head_sequence(faulty) in (1, 2)


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    moved(path)
    shutil.copy(path.with_name("elsewhere"), path)


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "store.db-shm", "store.db-riffdb.lock"])
@pytest.mark.parametrize("lose", [Path.unlink, moved, replaced])
def test_what_went_to_lost_files_is_not_acknowledged(
    place: Place, tmp_path: Path, name: str, lose: Callable[[Path], None]
) -> None:
    place.write(batch(1), TABLE)
    lose(tmp_path / name)
    with pytest.raises(RiffError, match=f"{name} was moved, deleted or replaced") as caught:
        place.write(batch(2))
    assert caught.value.code == "RDB-E-OUTCOME-UNKNOWN"
    for attempt in (lambda: place.write(batch(2)), lambda: head_sequence(place)):
        with pytest.raises(RiffError, match="serves nothing more") as later:
            attempt()
        assert later.value.code == "RDB-E-STORAGE"


def test_a_full_disk_refuses_and_recovers(faulty: Place, disk: FaultyDisk) -> None:
    disk.fault = ("write", "-wal", apsw.FullError)
    for _ in range(3):
        with pytest.raises(RiffError, match="the disk is full and nothing was written") as caught:
            faulty.write(batch(2))
        assert caught.value.code == "RDB-E-STORAGE"
        assert head_sequence(faulty) == 1
    assert faulty.store.failure is None
    disk.fault = None
    faulty.write(batch(2))
    faulty.reopen()
    assert head_sequence(faulty) == 2
    assert faulty.all_rows(TABLE) == {row(1), row(2)}


def test_a_database_that_cannot_be_made_leaves_nothing(disk: FaultyDisk, tmp_path: Path) -> None:
    for error in (apsw.FullError, apsw.IOError):
        disk.fault = ("write", ".new", error)
        with pytest.raises(RiffError) as caught:
            place_of("sqlite", tmp_path)
        assert caught.value.code == "RDB-E-STORAGE"
        assert [path.name for path in tmp_path.iterdir()] == ["store.db-riffdb.lock"]
    disk.fault = None
    step(place_of("sqlite", tmp_path).store.close())


def test_a_failed_read_ends_the_store(faulty: Place, disk: FaultyDisk) -> None:
    faulty.reopen()
    disk.fault = ("read", "store.db", apsw.IOError)
    with pytest.raises(RiffError) as caught:
        faulty.all_rows(TABLE)
    assert caught.value.code == "RDB-E-STORAGE"
    disk.fault = None
    with pytest.raises(RiffError, match="serves nothing more"):
        faulty.all_rows(TABLE)


def test_a_failed_sync_of_the_file_ends_the_store_before_the_next_commit(
    faulty: Place, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PAGES_PER_STEP", 1)
    disk.fault = ("sync", "store.db", apsw.IOError)
    with pytest.raises(RiffError, match="serves nothing more") as caught:
        faulty.write(batch(2))
    assert caught.value.code == "RDB-E-STORAGE"
    disk.fault = None
    with pytest.raises(RiffError, match="serves nothing more"):
        head_sequence(faulty)
    step(faulty.store.close())
    faulty.store = step(open_store(faulty.url))
    assert head_sequence(faulty) == 1


def test_a_disk_too_full_to_shorten_the_log_still_commits(
    faulty: Place, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log, "PAGES_PER_STEP", 1)
    disk.fault = ("write", "store.db", apsw.FullError)
    faulty.write(batch(2))
    assert head_sequence(faulty) == 2
    assert "the log was not moved to the file" in caplog.text


def copy(place: Place, path: Path) -> None:
    place.read(lambda reader: reader.copy(str(path), None))


def test_a_copy_that_cannot_be_written_is_refused_and_the_store_goes_on(
    faulty: Place, disk: FaultyDisk, tmp_path: Path
) -> None:
    for number, error in enumerate((apsw.FullError, apsw.IOError)):
        disk.fault = ("write", f"copy-{number}", error)
        with pytest.raises(RiffError, match="cannot be written") as caught:
            copy(faulty, tmp_path / f"copy-{number}")
        assert (caught.value.code, faulty.store.failure) == ("RDB-E-UNAVAILABLE", None)
    disk.fault = None
    assert head_sequence(faulty) == 1


def test_a_page_that_cannot_be_read_for_a_copy_ends_the_store(faulty: Place, disk: FaultyDisk, tmp_path: Path) -> None:
    faulty.reopen()
    path = tmp_path / "store.db"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1  # the last page, which a copy alone reads
    path.write_bytes(content)
    with pytest.raises(RiffError) as caught:
        copy(faulty, tmp_path / "copy")
    assert caught.value.code == "RDB-E-STORAGE"
    assert faulty.store.failure is not None


# The log


def log_size(place: Place) -> int:
    return Path(place.url.removeprefix("sqlite:") + "-wal").stat().st_size


def test_the_log_is_bounded_and_begins_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAGES_PER_STEP", 20)
    for number in range(1, 200):
        place.write(Batch([head(P, number)], [record(P, number)]))
    assert log_size(place) < 40 * 4_200


def test_a_reader_holds_the_log_back_until_it_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAGES_PER_STEP", 20)
    monkeypatch.setattr(log, "PAGES_MAX", 100)
    place.write(Batch([head(P, 1)]))

    async def hold() -> None:
        async with place.store.snapshot() as reader:
            for number in range(2, 100):
                async with place.store.transaction() as transaction:
                    await transaction.write(Batch([head(P, number)], [record(P, number)]))
            assert (await reader.heads([P]))[P].sequence == 1

    step(hold())
    assert log_size(place) > 200 * 4_096
    for number in range(100, 120):
        place.write(Batch([head(P, number)], [record(P, number)]))
    assert log_size(place) < 60 * 4_200


# Threads and other programs


def test_a_busy_file_is_told(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 1)
    place.reopen()
    other = apsw.Connection(str(tmp_path / "store.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RiffError, match="another program keeps the file busy") as caught:
        place.write(Batch([head(P, 1)]))
    assert caught.value.code == "RDB-E-UNAVAILABLE"
    assert place.read(lambda reader: reader.heads([P])) == {}
    other.execute("ROLLBACK")
    other.close()
    place.write(Batch([head(P, 1)]))
    assert head_sequence(place) == 1


async def count_up(transaction: Transaction) -> None:
    """Raise head and row together by one."""
    number = (await transaction.heads([P]))[P].sequence + 1
    changed = row(1, due=number, size=number, revision=number)
    await transaction.rows(TABLE, [TABLE.key_of(changed)])
    await transaction.write(Batch([head(P, number)], [record(P, number)], updates(TABLE, changed)))


def test_threads_write_in_turn_and_read_consistent_states(place: Place) -> None:
    place.write(batch(1), TABLE)
    barrier = Barrier(8)
    faults: list[Any] = []

    async def look() -> None:
        async with place.store.snapshot() as reader:
            number = (await reader.heads([P]))[P].sequence
            rows = await reader.scan(everything(TABLE))
            records = await reader.log(P, 0, 1_000)
        if rows[0][6] != number or [entry.sequence for entry in records] != list(range(1, number + 1)):
            faults.append((number, rows, len(records)))

    def run(is_writer: bool) -> None:
        barrier.wait()
        try:
            for _ in range(40):
                if is_writer:
                    place.transact(count_up)
                else:
                    step(look())
        except BaseException as error:  # noqa: BLE001  # told to the test's thread
            faults.append(error)

    threads = [Thread(target=run, args=(number % 2 == 0,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert head_sequence(place) == 161


def test_closing_waits_for_the_transaction_of_another_thread(place: Place) -> None:
    place.write(batch(1), TABLE)
    begun, told = Barrier(2), []

    async def work(transaction: Transaction) -> None:
        begun.wait()
        await count_up(transaction)
        told.append("written")

    def close() -> None:
        begun.wait()
        step(place.store.close())
        told.append("closed")

    closing = Thread(target=close)
    closing.start()
    place.transact(work)
    closing.join()
    assert told == ["written", "closed"]
    place.store = step(open_store(place.url))
    assert head_sequence(place) == 2


def test_a_snapshot_that_outlives_its_store_ends_in_peace(place: Place) -> None:
    place.write(Batch(capabilities=[capability("one")]))

    async def run() -> None:
        async with place.store.snapshot():
            await place.store.close()

    step(run())
    place.store = step(open_store(place.url))
    assert place.read(lambda reader: reader.capability_list()) == [capability("one")]
