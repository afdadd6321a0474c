"""The write-ahead log's bounds: what is in it moves to the file in steps, and only the writing connection does that.

A step is taken before a transaction begins, so that nobody who waits for an acknowledgement waits for it. Where a
reader holds the log back it grows; past a bound it is truncated as soon as no reader is in the way.
"""

import logging

import apsw

from riffdb.storage.sqlite.connections import BUSY_MS

logger = logging.getLogger(__name__)

PAGES_PER_STEP = 1_000
"""SQLite's own step: the sooner the log begins anew, the sooner a flush only overwrites what the file has already."""
PAGES_MAX = (64 << 20) // 4_096


class LogBounds:
    """Watches the log of the writing connection."""

    def __init__(self, writer: apsw.Connection) -> None:
        self._writer = writer
        self._pages = 0
        self._pages_at_step = 0
        writer.set_wal_hook(self._committed)  # takes the place of SQLite's own, which would act inside the commit

    def _committed(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def keep(self) -> None:
        """Move what the log holds to the file if it has grown by a step."""
        if self._pages < self._pages_at_step:
            self._pages_at_step = 0  # the log began anew
        if self._pages - self._pages_at_step >= PAGES_PER_STEP:
            self._pages_at_step = self._pages
            self._step()

    def _step(self) -> None:
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if self._pages > PAGES_MAX else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._writer.set_busy_timeout(0)
        try:
            self._writer.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            pass  # a reader is in the way; the next step tries again
        except apsw.FullError as error:
            logger.warning("the disk is full; the log was not moved to the file: %s", error)
        finally:
            self._writer.set_busy_timeout(BUSY_MS)
