"""Whether the open files are still those that stand at their paths.

A file that was moved, deleted or replaced goes on taking writes that nobody will find again; of a log that somebody
removed, SQLite does not even notice it. So this is asked after each commit and before its answer. What happens to the
files behind an answer that was given is beyond anybody's care.
"""

import os
from collections.abc import Iterable


class Standing:
    """The identities of files at the time of opening."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._identities = {path: _identity(path) for path in paths}

    def lost(self) -> str | None:
        """A path at which the open file does not stand any more; None while all are in their places."""
        for path, identity in self._identities.items():
            if _identity(path) != identity:
                return path
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
