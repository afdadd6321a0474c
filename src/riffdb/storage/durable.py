"""What outlives a loss of power: the content of a file when the file is synced, its name when its folder is.

Absent: any file of a database that is open, which SQLite syncs.
"""

import os


def sync(path: str) -> None:
    """Sync a file, or the names in a folder; `OSError` if that fails."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durable(path: str) -> None:
    """Let the file and its name outlive a loss of power; `OSError` if that fails."""
    sync(path)
    sync(os.path.dirname(os.path.abspath(path)))
