"""Paths and files that cannot be opened, each with its error, and what opening leaves behind.

There are too many of them for the surface.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from riffdb.core.errors import RiffError
from riffdb.core.records import Batch
from riffdb.core.stepping import step
from riffdb.storage import open_store
from riffdb.storage.protocol import Store
from riffdb.storage.sqlite.connections import checksum_vfs
from tests.conformance.stores import head, place_of

ROOT = Path(__file__).parent.parent.parent


def opened(path: Path | str, *, create: bool = True) -> Store:
    return step(open_store(f"sqlite:{path}", create=create))


def refusal(path: Path | str, *, create: bool = True) -> tuple[str, str]:
    with pytest.raises(RiffError) as caught:
        opened(path, create=create)
    return caught.value.code, caught.value.message


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a database with one head in it, closed."""
    place = place_of("sqlite", tmp_path)
    place.write(Batch(heads=[head(b"p", 1)]))
    step(place.store.close())
    return tmp_path / "store.db"


@pytest.mark.parametrize(
    "url", ["work.db", "", ":", "postgresql://me:secret@host/db", "memory", "memory:x", "SQLITE:x"]
)
def test_a_url_that_names_no_store_is_told_what_does(url: str) -> None:
    with pytest.raises(RiffError) as caught:
        step(open_store(url))
    assert caught.value.code == "RDB-E-USAGE"
    assert "write sqlite:PATH" in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("path", ["", ":memory:", "//host/x.db", "a\0b", "\udcff.db"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    code, message = refusal(path)
    assert code == "RDB-E-USAGE"
    assert message.startswith("sqlite: takes")


def test_a_missing_folder_and_a_folder_are_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no" / "a.db") == (
        "RDB-E-USAGE",
        f"the folder {tmp_path}/no does not exist; make it first",
    )
    assert refusal(tmp_path) == ("RDB-E-USAGE", f"{tmp_path} is a folder; name a file")
    assert refusal("/dev/null") == ("RDB-E-USAGE", "/dev/null is no regular file; name a file")


def test_a_missing_file_is_made_only_where_that_was_asked_for(tmp_path: Path) -> None:
    code, message = refusal(tmp_path / "a.db", create=False)
    assert (code, message) == ("RDB-E-USAGE", f"there is no database at {tmp_path}/a.db; `riffdb deploy` makes one")
    assert names(tmp_path) == []
    step(opened(tmp_path / "a.db").close())
    step(opened(tmp_path / "a.db", create=False).close())


def test_files_are_for_the_owner_alone_and_nothing_else_stays(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = opened(tmp_path / "a.db")
        assert names(tmp_path) == ["a.db", "a.db-riffdb.lock", "a.db-shm", "a.db-wal"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
        assert (tmp_path / "a.db-riffdb.lock").read_text() == f"{os.getpid()}\n"
        step(store.close())
    finally:
        os.umask(old)
    assert names(tmp_path) == ["a.db", "a.db-riffdb.lock"]
    assert (tmp_path / "a.db-riffdb.lock").read_text() == ""


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    (tmp_path / "a.db-riffdb.new").write_bytes(b"left by a process that died")
    assert refusal(tmp_path / "a.db", create=False)[0] == "RDB-E-USAGE"
    step(opened(tmp_path / "a.db").close())
    assert names(tmp_path) == ["a.db", "a.db-riffdb.lock"]


def test_a_second_opening_in_one_process_is_refused_by_every_name(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to("a.db")
    for name in ("a.db", "link.db", "../" + tmp_path.name + "/a.db"):
        with pytest.raises(RiffError) as caught:
            opened(tmp_path / name)
        assert caught.value.code == "RDB-E-LOCKED"
        assert caught.value.detail == {"pid": os.getpid()}
        assert "is open in this process" in caught.value.message
    step(store.close())
    step(opened(tmp_path / "link.db").close())


def test_a_failed_opening_leaves_no_lock(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096])
    assert refusal(path)[0] == "RDB-E-STORAGE"
    path.write_bytes(content)
    step(opened(path).close())


def foreign_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    connection.close()


@pytest.mark.parametrize("kind", ["text", "short", "another program's database"])
def test_a_foreign_file_is_told_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.db"
    if kind == "another program's database":
        foreign_database(path)
    else:
        path.write_bytes(b"# notes\n" * (100 if kind == "text" else 1))
    before = path.read_bytes(), path.stat().st_mtime_ns
    for create in (True, False):
        assert refusal(path, create=create) == (
            "RDB-E-USAGE",
            f"{path} is not a RiffDB database; it was left as it is",
        )
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert names(tmp_path) == ["a.db"]


def test_a_newer_format_is_told_and_left_as_it_is(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60:64] = (7).to_bytes(4, "big")
    path.write_bytes(content)
    code, message = refusal(path)
    assert code == "RDB-E-USAGE"
    assert "was written by a newer version of RiffDB (format 7, this one knows 4)" in message
    assert path.read_bytes() == content


@pytest.mark.parametrize("number", [1, 2])
def test_a_format_from_before_the_first_release_is_told_and_left_as_it_is(path: Path, number: int) -> None:
    content = bytearray(path.read_bytes())
    content[60:64] = number.to_bytes(4, "big")
    path.write_bytes(content)
    code, message = refusal(path)
    assert code == "RDB-E-USAGE"
    assert f"was written before the first release of RiffDB (format {number}, this one knows 4)" in message
    assert path.read_bytes() == content


def test_a_log_without_its_file_is_not_thrown_away(path: Path) -> None:
    log = path.with_name("store.db-wal")
    log.write_bytes(b"x" * 100)
    path.unlink()
    code, message = refusal(path)
    assert code == "RDB-E-USAGE"
    assert f"{path} is gone but its log {log} is there" in message
    assert log.read_bytes() == b"x" * 100


@pytest.mark.parametrize(("start", "end"), [(16, 60), (100, 4_096), (4_096, 1_000_000)])
def test_a_damaged_file_is_told(path: Path, start: int, end: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:start] + b"\xa5" * len(content[start:end]) + content[end:])
    code, message = refusal(path)
    assert code == "RDB-E-STORAGE"
    assert str(path) in message
    assert "damaged" in message


PAGE = 4_096


def damages(path: Path) -> str:
    """What is found to be wrong with the file, by whoever finds it first."""

    async def look(store: Store) -> str:
        try:
            async with store.snapshot() as reader:
                return "; ".join(await reader.damages())
        finally:
            await store.close()

    try:
        return step(look(opened(path)))
    except RiffError as error:
        return f"{error.code} {error.message}"


def test_a_flipped_bit_of_any_page_is_found(path: Path) -> None:
    assert damages(path) == ""
    content = path.read_bytes()
    for page in range(len(content) // PAGE):
        place = page * PAGE + (997 * (page + 1)) % PAGE
        damaged = bytearray(content)
        damaged[place] ^= 1 << (page % 8)
        path.write_bytes(damaged)
        assert damages(path), place


def test_a_page_that_was_written_without_its_checksum_is_found(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE riffdb_head SET sequence = 2")
    connection.close()
    assert "does not match its checksum" in damages(path)


def test_other_users_of_sqlite_keep_their_vfs(path: Path) -> None:
    step(opened(path).close())
    assert apsw.Connection(":memory:").vfsname("main") != checksum_vfs()
    assert apsw.vfs_names()[0] != checksum_vfs()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM riffdb_meta WHERE name = 'incarnation'",
        "DELETE FROM riffdb_meta WHERE name = 'secret'",
        "UPDATE riffdb_meta SET value = 'x' WHERE name = 'format'",
        "DROP TABLE riffdb_table",
        "INSERT INTO riffdb_table VALUES ('work', '{}')",
        "PRAGMA user_version = 0",
    ],
)
def test_changed_tables_of_the_store_are_told(path: Path, change: str) -> None:
    connection = apsw.Connection(str(path), vfs=checksum_vfs())
    connection.execute(change)
    connection.close()
    code, message = refusal(path)
    assert code == "RDB-E-STORAGE"
    assert f"{path} is damaged" in message


@contextmanager
def someone_else() -> Iterator[Path]:
    """A folder of the user that the block runs as, who is never root."""
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_permissions_that_are_missing_are_told() -> None:
    with someone_else() as folder:
        path = folder / "a.db"
        step(opened(path).close())
        path.chmod(0o400)
        assert refusal(path) == ("RDB-E-UNAVAILABLE", f"{path} is read-only; RiffDB must be able to write it")
        path.chmod(0)
        assert refusal(path) == ("RDB-E-UNAVAILABLE", f"{path} cannot be opened: Permission denied")
        path.chmod(0o600)
        step(opened(path).close())
        folder.chmod(0o500)
        code, message = refusal(folder / "b.db")
        assert code == "RDB-E-UNAVAILABLE"
        assert message == f"{folder}/b.db-riffdb.lock cannot be opened: Permission denied"


def test_sqlite_is_loaded_when_a_file_is_opened() -> None:
    script = (
        "import sys; from riffdb.core.stepping import step; from riffdb.storage import open_store;"
        "step(open_store('memory:')); assert 'apsw' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_another_program_may_look_while_the_store_is_open(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    place.write(Batch(heads=[head(b"p", 1)]))
    other = apsw.Connection(str(tmp_path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert other.execute("SELECT sequence FROM riffdb_head").fetchall() == [(1,)]
    other.close()
    step(place.store.close())


def test_a_refused_opening_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    assert refusal(tmp_path / "store.db")[0] == "RDB-E-LOCKED"
    # The last program that closes a database removes its log; it must see that it is not the last.
    look = "other = sqlite3.connect(sys.argv[1]); other.execute('SELECT * FROM riffdb_head').fetchall(); other.close()"
    subprocess.run([sys.executable, "-c", f"import sqlite3, sys; {look}", str(tmp_path / "store.db")], check=True)
    place.write(Batch(heads=[head(b"p", 1)]))
    assert (tmp_path / "store.db-wal").stat().st_size > 0
    step(place.store.close())


FORKING = """
import os, sys
from pathlib import Path
from riffdb.core.errors import RiffError
from riffdb.core.records import Batch
from riffdb.core.stepping import step
from tests.conformance.stores import place_of

place = place_of("sqlite", Path(sys.argv[1]))
child = os.fork()
if child:
    os.waitpid(child, 0)
attempts = [
    lambda: place.write(Batch()),
    lambda: place.read(lambda reader: reader.contracts()),
    lambda: step(place.store.close()),
]
for attempt in attempts:
    try:
        attempt()
        print("served", flush=True)
    except RiffError as error:
        print(error.code, flush=True)
os._exit(0)
"""


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert printed.split() == ["RDB-E-USAGE"] * 3 + ["served"] * 3
