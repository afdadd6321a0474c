"""A walk over all rows of a table in one snapshot, in the order of their keys, a piece at a time.

Memory holds one piece, however many rows there are. Absent: which rows matter.
"""

from riffdb.core.layout import Key, Row, Table
from riffdb.storage.protocol import Reader, Scan

ROWS_AT_ONCE = 1_000


class Walk:
    """All rows of a table, in the order of their keys, a piece at a time."""

    def __init__(self, reader: Reader, table: Table) -> None:
        self._reader = reader
        self._table = table
        self._rows: list[Row] = []
        self._start: tuple[Key, bool] | None = None

    async def next(self) -> Row | None:
        """The next row, None behind the last."""
        if not self._rows:
            scan = Scan(self._table, None, (), limit=ROWS_AT_ONCE, start=self._start)
            self._rows = (await self._reader.scan(scan))[::-1]
            if not self._rows:
                return None
            self._start = (self._table.key_of(self._rows[0]), False)
        return self._rows.pop()
