"""Walks over all rows of a table, or over all heads, in one snapshot and in order, a piece at a time.

Memory holds one piece, however many there are. Absent: which of them matter.
"""

from dataclasses import replace
from typing import Any

from riffdb.core.layout import Row, Table
from riffdb.core.records import Head
from riffdb.storage.protocol import Reader, Scan

AT_ONCE = 1_000


class Walk:
    """The rows of a table whose keys begin with these values, in the order of their keys; taken one by one, or a piece
    at a time, not both."""

    def __init__(self, reader: Reader, table: Table, prefix: tuple[Any, ...] = (), *, at_once: int = AT_ONCE) -> None:
        self._reader = reader
        self._scan = Scan(table, None, prefix, limit=at_once)
        self._rows: list[Row] = []

    async def piece(self) -> list[Row]:
        """The next rows, none behind the last."""
        rows = await self._reader.scan(self._scan)
        if rows:
            behind = self._scan.table.key_of(rows[-1])[len(self._scan.prefix) :]
            self._scan = replace(self._scan, start=(behind, False))
        return rows

    async def next(self) -> Row | None:
        """The next row, None behind the last."""
        if not self._rows:
            self._rows = (await self.piece())[::-1]
        return self._rows.pop() if self._rows else None


class Heads:
    """The heads of all partitions behind one (None: of all), in the order of their bytes."""

    def __init__(self, reader: Reader, after: bytes | None = None) -> None:
        self._reader = reader
        self._after = after
        self._heads: list[Head] = []

    async def next(self) -> Head | None:
        """The next head, None behind the last."""
        if not self._heads:
            self._heads = (await self._reader.heads_after(self._after, AT_ONCE))[::-1]
            if not self._heads:
                return None
            self._after = self._heads[0].partition
        return self._heads.pop()
