"""From the path of a URL to an open store: what is there is looked at before anything is touched.

A file of another program, or of a newer format, is told by its first bytes and left as it is. A new database is built
whole beside its place and put there by renaming, so there is never half of one. Absent: migrations between formats,
since no release has written an older one.
"""

import os
import shutil
import stat
from contextlib import suppress
from uuid import uuid4

import apsw

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import hit
from riffdb.storage.clock import Chance, Clock, StoreClock
from riffdb.storage.durable import sync
from riffdb.storage.layouts import layout_of
from riffdb.storage.protocol import SECRET_BYTES
from riffdb.storage.sqlite import statements as sql
from riffdb.storage.sqlite.connections import CHECKSUM_BYTES, checksum_vfs, open_writer
from riffdb.storage.sqlite.failures import error_of, is_fatal, reason_of
from riffdb.storage.sqlite.holding import FileHold, lock_path
from riffdb.storage.sqlite.open_file import OpenFile
from riffdb.storage.sqlite.store import SqliteStore, scratch_prefix

_MAGIC = b"SQLite format 3\0"


def open_sqlite(
    path: str,
    *,
    create: bool = True,
    clock: Clock | None = None,
    chance: Chance = os.urandom,
    secret: bytes | None = None,
) -> SqliteStore:
    """The store in the file, which is made when it is missing and `create` stands; errors as `open_store` says.

    `secret`: what a new one signs with, if it goes on from another.
    """
    place = _place(path)
    if not os.path.exists(lock_path(place)) and not _check_file(place) and not create:
        raise _missing(place)  # and no lock of ours is left beside what is not ours
    # Where the lock stands, this process may have the database open: to look into the file, and to close it again,
    # would take from SQLite all the locks that it has on it here.
    hold = FileHold(place)
    try:
        if not _check_file(place):  # again, now that nobody else can make or replace it
            if not create:
                raise _missing(place)
            _create(place, secret or os.urandom(SECRET_BYTES))
            return _open(place, hold, clock or StoreClock(), chance)
        hit("recover.before")
        _remove_scratch(place)
        store = _open(place, hold, clock or StoreClock(), chance)
        hit("recover.after")
        return store
    except BaseException as error:
        hold.release()
        if isinstance(error, apsw.Error):
            raise _opening_error(place, error) from error
        raise


def _missing(place: str) -> RiffError:
    return RiffError("RDB-E-USAGE", f"there is no database at {place}; `riffdb deploy` makes one")


def _place(path: str) -> str:
    if not path or "\0" in path or path == ":memory:" or (path.startswith("//") and not path.startswith("///")):
        raise RiffError(
            "RDB-E-USAGE", "sqlite: takes the path of a file, as in sqlite:work.db or sqlite:/var/lib/work.db"
        )
    try:
        path.encode()
    except UnicodeEncodeError:
        raise RiffError("RDB-E-USAGE", "sqlite: takes a path that is valid UTF-8") from None
    place = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(os.path.dirname(place)):
        raise RiffError("RDB-E-USAGE", f"the folder {os.path.dirname(place)} does not exist; make it first")
    return place


def _check_file(place: str) -> bool:
    """Whether a database of ours is there; False where one can be made; an error for anything else."""
    try:
        kind = os.stat(place).st_mode
        if not stat.S_ISREG(kind):
            raise RiffError(
                "RDB-E-USAGE", f"{place} is {'a folder' if stat.S_ISDIR(kind) else 'no regular file'}; name a file"
            )
        with open(place, "rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        head = b""
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{place} cannot be opened: {error.strerror}") from error
    if not head:
        _check_no_log(place)
        return False
    _check_head(place, head)
    return True


def _check_no_log(place: str) -> None:
    log = f"{place}-wal"
    if os.path.exists(log) and os.path.getsize(log):
        raise RiffError(
            "RDB-E-USAGE", f"{place} is gone but its log {log} is there; put the file back, or move the log away"
        )


def _check_head(place: str, head: bytes) -> None:
    if head[:16] != _MAGIC or int.from_bytes(head[68:72], "big") != sql.APPLICATION_ID:
        raise RiffError("RDB-E-USAGE", f"{place} is not a RiffDB database; it was left as it is")
    _check_format(place, int.from_bytes(head[60:64], "big"))
    if head[20] != CHECKSUM_BYTES:
        raise RiffError("RDB-E-STORAGE", f"{place} is damaged: its pages have no checksums")


def _check_format(place: str, found: int) -> None:
    if found > sql.FORMAT:
        raise RiffError(
            "RDB-E-USAGE",
            f"{place} was written by a newer version of RiffDB (format {found}, this one knows {sql.FORMAT});"
            " it was left as it is",
        )
    if 1 <= found < sql.FORMAT:
        raise RiffError(
            "RDB-E-USAGE",
            f"{place} was written before the first release of RiffDB (format {found}, this one knows {sql.FORMAT});"
            " it was left as it is, and a database is made anew with `riffdb deploy`",
        )
    if found != sql.FORMAT:
        raise RiffError("RDB-E-STORAGE", f"{place} is damaged: it names a format {found} that never was")


def _create(place: str, secret: bytes) -> None:
    building = f"{place}-riffdb.new"
    try:
        _remove(building)
        os.close(os.open(building, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        try:
            _fill(building, secret)
            os.rename(building, place)
        finally:
            _remove(building)
        sync(os.path.dirname(place))
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{place} cannot be made: {error.strerror}") from error


def _remove_scratch(place: str) -> None:
    """Remove the scratch stores that a process left which was killed."""
    folder, name = os.path.split(place)
    prefix = scratch_prefix(name)
    for entry in os.scandir(folder):
        if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _fill(building: str, secret: bytes) -> None:
    connection = apsw.Connection(building, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checksum_vfs())
    try:
        connection.reserve_bytes(None, CHECKSUM_BYTES)
        # No journal file: it is whole or thrown away.
        connection.execute("PRAGMA page_size = 4096; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL")
        with connection:
            for statement in sql.LAYOUT:
                connection.execute(statement)
            meta = {
                "format": str(sql.FORMAT),
                "incarnation": str(uuid4()),
                "secret": secret.hex(),
            }
            connection.executemany(sql.ADD_META, meta.items())
            connection.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}; PRAGMA user_version = {sql.FORMAT}")
    finally:
        connection.close()


def _open(place: str, hold: FileHold, clock: Clock, chance: Chance) -> SqliteStore:
    writer = open_writer(place)
    try:
        if writer.readonly("main"):
            raise RiffError("RDB-E-UNAVAILABLE", f"{place} is read-only; RiffDB must be able to write it")
        if writer.pragma("journal_mode", "wal") != "wal":
            raise RiffError("RDB-E-UNAVAILABLE", f"{place}: this file system cannot share memory for SQLite's log")
        meta = {str(name): str(value) for name, value in writer.execute(sql.META)}
        _check_format(place, int(meta["format"]))
        layouts = [layout_of(text) for (text,) in writer.execute(sql.TABLES)]
        file = OpenFile(place, {table.name: table for table in layouts}, writer, hold, clock, chance)
        return SqliteStore(meta["incarnation"], bytes.fromhex(meta["secret"]), file, open_sqlite)
    except BaseException as error:
        writer.close(True)
        if isinstance(
            error, apsw.SQLError | KeyError | ValueError | TypeError
        ):  # a table, a name or a layout is not as written
            raise RiffError("RDB-E-STORAGE", f"{place} is damaged: its own tables are not as they were made") from error
        raise


def _opening_error(place: str, error: apsw.Error) -> RiffError:
    if is_fatal(error):
        return RiffError("RDB-E-STORAGE", f"{place} is damaged, or its disk failed: {reason_of(error)}")
    known = error_of(error)
    return RiffError(known.code, f"{place}: {known.message}")
