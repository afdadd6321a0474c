"""Whose turn it is to write: one transaction at a time, whichever thread it runs in.

A second thread waits; a second transaction in the same thread could only wait for itself, so it is reported as the
fault of ours that it is.
"""

from threading import Lock, get_ident


class WriterTurn:
    """The right to write, taken at the beginning of a transaction and given back at its end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: int | None = None

    def take(self) -> None:
        """Wait for the turn; `AssertionError` if this thread has it already."""
        if self._owner == get_ident():
            raise AssertionError("a transaction inside a transaction of the same thread")
        self._lock.acquire()
        self._owner = get_ident()

    def give_back(self) -> None:
        """Let the next one write."""
        self._owner = None
        self._lock.release()
