"""The SQLite store as its users hold it.

Everything it does is done by the open file and its views. Absent: how the file was opened.
One writes at a time; any number read beside it.
"""

from riffdb.core.errors import RiffError
from riffdb.storage.sqlite.open_file import OpenFile
from riffdb.storage.sqlite.views import SqliteSnapshot
from riffdb.storage.sqlite.writing import SqliteTransaction


class SqliteStore:
    """A database in a file. Its methods may be called by several threads; `open_sqlite` makes one."""

    def __init__(self, incarnation: str, secret: bytes, file: OpenFile) -> None:
        self.incarnation = incarnation
        self.secret = secret
        self._file = file

    @property
    def failure(self) -> RiffError | None:
        """Why the store serves nothing more; None while it serves."""
        return self._file.failure

    def snapshot(self) -> SqliteSnapshot:
        """A consistent read; it blocks no writer."""
        return SqliteSnapshot(self._file)

    def transaction(self) -> SqliteTransaction:
        """The write transaction; it waits for the one of another thread."""
        return SqliteTransaction(self._file)

    async def close(self) -> None:
        """Release the file and its lock."""
        self._file.close()
