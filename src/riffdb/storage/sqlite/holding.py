"""One process per file: the lock beside the database, held as long as the process lives or the store is open.

`PATH-riffdb.lock` is locked as a whole and names the holder's pid. The system gives the lock up with the process, so
none is ever stale; the file itself stays, because to delete it would let two processes lock two files of one name.
"""

import fcntl
import os

from riffdb.core.errors import RiffError


class FileHold:
    """The hold on one database file. `RDB-E-LOCKED` with the holder's pid when there is another."""

    def __init__(self, path: str) -> None:
        self.path = lock_path(path)
        self._lock = _open_lock(self.path)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            raise _held(path, self._close_lock()) from None
        except OSError as error:
            self._close_lock()
            raise RiffError("RDB-E-UNAVAILABLE", f"{path} cannot be locked: {error.strerror}") from error

    def release(self) -> None:
        """Let another process open the file."""
        if self._lock >= 0:
            os.ftruncate(self._lock, 0)
            self._close_lock()

    def _close_lock(self) -> bytes:
        written = os.pread(self._lock, 20, 0)
        os.close(self._lock)
        self._lock = -1
        return written


def lock_path(path: str) -> str:
    """The path of the lock beside a database file."""
    return f"{path}-riffdb.lock"


def _open_lock(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{path} cannot be opened: {error.strerror}") from error


def _held(path: str, written: bytes) -> RiffError:
    pid = int(written) if written.strip().isdigit() else None
    if pid == os.getpid():
        return RiffError(
            "RDB-E-LOCKED", f"{path} is open in this process ({pid}) already; use that one", detail={"pid": pid}
        )
    holder = "another process" if pid is None else f"process {pid}"
    return RiffError(
        "RDB-E-LOCKED",
        f"{path} is held by {holder}; use --server to reach it through the process that serves it",
        detail={"pid": pid},
    )
