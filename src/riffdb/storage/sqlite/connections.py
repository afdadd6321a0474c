"""Connections to the file: the writer's settings, and the readers that snapshots borrow.

Every page ends in a checksum, which SQLite's own shim writes with the page and compares whenever it is read, so that a
damaged page is an error and never a wrong answer. The writer alone checkpoints; a reader never does, not even when it
is closed last. Readers are made when they are needed and a few are kept, so that any number of threads may read and
none waits for another.
"""

from functools import cache
from threading import Lock

import apsw
import apsw.sqlite_extra

from riffdb.core.errors import RiffError

CHECKSUM_BYTES = 8
"""What a page keeps free at its end for its checksum."""
BUSY_MS = 5_000
_STATEMENTS_KEPT = 128
"""Enough for the tables of a contract, and no more: for each row that it binds, apsw looks through all the places."""
_READERS_KEPT = 4
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 8_192


@cache
def checksum_vfs() -> str:
    """The name of the VFS that keeps the checksums, in this process from now on; whoever opens the file names it.

    `RDB-E-UNAVAILABLE` where apsw was built without it. See https://sqlite.org/cksumvfs.html.
    """
    default = apsw.vfs_names()[0]
    loader = apsw.Connection(":memory:")
    try:
        apsw.sqlite_extra.load(loader, "cksumvfs")
    except (apsw.Error, apsw.sqlite_extra.NotAvailable) as error:
        raise RiffError(
            "RDB-E-UNAVAILABLE",
            "this build of apsw has no checksum extension (cksumvfs); install apsw as a wheel, as PyPI has it",
        ) from error
    finally:
        loader.close()
    apsw.set_default_vfs(default)  # other users of SQLite in this process keep theirs
    return "cksmvfs"


def open_writer(path: str) -> apsw.Connection:
    """The connection that writes; the caller has made sure that it is the only one."""
    writer = _connect(path)
    try:
        writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KB}; PRAGMA synchronous = FULL")
    except BaseException:
        writer.close()
        raise
    return writer


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(
        path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checksum_vfs(), statementcachesize=_STATEMENTS_KEPT
    )
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    return connection


class Readers:
    """Cursors of reading connections, lent to one snapshot each."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        self._idle: list[apsw.Cursor] = []
        self._is_closed = False

    def borrow(self) -> apsw.Cursor:
        """A cursor outside any transaction."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._make()

    def give_back(self, cursor: apsw.Cursor) -> None:
        """Keep the cursor for the next snapshot, or close its connection."""
        with self._lock:
            is_kept = not self._is_closed and len(self._idle) < _READERS_KEPT
            if is_kept:
                self._idle.append(cursor)
        if not is_kept:
            cursor.connection.close(True)

    def close(self) -> None:
        """Close the idle ones now, and every other when it comes back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for cursor in idle:
            cursor.connection.close(True)

    def _make(self) -> apsw.Cursor:
        connection = _connect(self._path)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute(f"PRAGMA query_only = ON; PRAGMA cache_size = -{_READER_CACHE_KB}")
        return connection.cursor()
