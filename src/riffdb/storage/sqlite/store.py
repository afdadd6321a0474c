"""The SQLite store as its users hold it.

Everything it does is done by the open file and its views. Absent: how the file was opened.
One writes at a time; any number read beside it.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

from riffdb.core.errors import RiffError
from riffdb.storage.sqlite.open_file import OpenFile
from riffdb.storage.sqlite.views import SqliteSnapshot
from riffdb.storage.sqlite.writing import SqliteTransaction


class SqliteStore:
    """A database in a file. Its methods may be called by several threads; `open_sqlite` makes one."""

    def __init__(
        self, incarnation: str, secret: bytes, file: OpenFile, open_scratch: Callable[[str], "SqliteStore"]
    ) -> None:
        self.incarnation = incarnation
        self.secret = secret
        self._file = file
        self._open = open_scratch

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

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator["SqliteStore"]:
        """An empty store in a folder of its own beside this one's file, which is removed with what is in it."""
        folder, name = os.path.split(self._file.path)
        with TemporaryDirectory(prefix=scratch_prefix(name), dir=folder) as own:
            store = self._open(os.path.join(own, "scratch.db"))
            try:
                yield store
            finally:
                await store.close()

    async def close(self) -> None:
        """Release the file and its lock."""
        self._file.close()


def scratch_prefix(name: str) -> str:
    """How the folders of scratch stores begin that belong to the file of this name."""
    return f".{name}-scratch-"
