"""Copies of a database file: one out of a snapshot while others write, and one put in place of a new database.

A copy is whole, checked and durable before it has its name. One that is put in place gets an incarnation of its own, so
nothing that was handed out before is taken for its own. Absent: what is in the file, and what tells of it.
"""

import os
import shutil
from collections.abc import Callable
from uuid import uuid4

import apsw

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import hit
from riffdb.storage.durable import make_durable
from riffdb.storage.sqlite import statements as sql
from riffdb.storage.sqlite.connections import checksum_vfs
from riffdb.storage.sqlite.failures import reason_of

PAGES_AT_ONCE = 1_000
_OF_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_DATA)
Progress = Callable[[int, int], None]
"""Told how many pages are left, and of how many."""


def copy_snapshot(source: apsw.Connection, path: str, progress: Progress | None) -> None:
    """Write what the open transaction of `source` sees to a new file; `RDB-E-STORAGE` if the copy is not sound,
    `RDB-E-UNAVAILABLE` if it cannot be written. An error at reading the source is raised as it is."""
    try:
        os.close(_private(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        _copy(source, path, progress)
        make_durable(path)
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{path} cannot be written: {error.strerror}") from error
    except apsw.Error as error:
        if isinstance(error, apsw.CorruptError) or getattr(error, "extendedresult", 0) in _OF_READING:
            raise
        raise RiffError("RDB-E-UNAVAILABLE", f"{path} cannot be written: {reason_of(error)}") from error


def _copy(source: apsw.Connection, path: str, progress: Progress | None) -> None:
    target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checksum_vfs())
    try:
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(PAGES_AT_ONCE)
                hit("backup.mid")
                if progress is not None:
                    progress(copying.remaining, copying.page_count)
        target.pragma("journal_mode", "delete")  # one file, which is all of it
        found = [text for (text,) in target.execute(sql.INTEGRITY) if text != "ok"]
        if found:
            raise RiffError("RDB-E-STORAGE", f"the copy is damaged, and so is what it was made of: {found[0]}")
    finally:
        target.close(True)


def new_history(source: str, path: str) -> None:
    """Copy a backed up file to `path`, as a database with a history of its own."""
    try:
        with open(source, "rb") as found, open(path, "xb", opener=_private) as copy:
            shutil.copyfileobj(found, copy, 1 << 20)
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checksum_vfs())
        try:
            connection.execute(sql.PUT_META, (str(uuid4()), "incarnation"))
        finally:
            connection.close(True)
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{path} cannot be made: {error.strerror}") from error
    except apsw.Error as error:
        raise RiffError("RDB-E-STORAGE", f"{source} is damaged: {reason_of(error)}") from error


def put_in_place(built: str, place: str) -> None:
    """Give a closed database file its place, where nothing is yet."""
    try:
        make_durable(built)
        os.link(built, place)  # never over another file
        make_durable(place)
    except FileExistsError:
        raise RiffError("RDB-E-USAGE", f"{place} is there already; restore to a path where nothing is") from None
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{place} cannot be made: {error.strerror}") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
