"""The rows of several ranges of one index as one list in order, read in pieces and no further than they are needed.

Each range is a walk that goes on behind its last row, so a few rows of sixteen ranges cost little more than a few rows
of one. Where a row has to pass a test, the entries that are read are bounded, and the answer tells how far it came.
Absent: what the ranges are, and what becomes of the rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from typing import Any

from riffdb.core.layout import Row
from riffdb.storage.protocol import Reader, Scan
from riffdb.storage.walks import walk_columns

Order = Sequence[tuple[int, bool]]
"""Places in a row by which rows follow each other, and whether they go down there."""

PIECE_MAX = 1_000
"""Rows that are read at once."""


@dataclass(slots=True)
class Found:
    """Rows in order. `cut` is the last entry that was looked at where the bound of entries ended the reading."""

    rows: list[Row]
    cut: Row | None


@dataclass(frozen=True, slots=True)
class Falling:
    """A value that sorts the other way round."""

    value: Any

    def __lt__(self, other: "Falling") -> bool:
        return bool(other.value < self.value)


def order_key(order: Order) -> Callable[[Row], Any]:
    """The key by which rows of that order compare, null first."""

    def key(row: Row) -> tuple[Any, ...]:
        values = [((row[place] is not None, row[place]), descends) for place, descends in order]
        return tuple(Falling(value) if descends else value for value, descends in values)

    return key


def range_behind(scan: Scan, order: Order, position: Sequence[Any]) -> Scan | None:
    """What of a range comes behind a position of the whole order; None if nothing does."""
    columns = [place for place, _ in walk_columns(scan)]
    held = dict(zip(columns, scan.prefix, strict=False))
    values: list[Any] = []
    for (place, descends), value in zip(order, position, strict=True):
        if place not in held:
            values.append(value)
        elif held[place] != value:
            is_above = value is None or (held[place] is not None and bool(held[place] > value))
            is_behind = is_above != descends
            if not values:
                return scan if is_behind else None
            return replace(scan, start=(tuple(values), is_behind))
    return replace(scan, start=(tuple(values), False)) if values else None


async def first_rows(
    reader: Reader,
    scans: Sequence[Scan],
    order: Order,
    wanted: int,
    meets: Callable[[Row], bool] | None,
    entries_max: int,
) -> Found:
    """The first rows of the ranges that pass the test, as many as are wanted; at most `entries_max` are looked at."""
    if len(scans) == 1 and meets is None:
        return Found(await reader.scan(replace(scans[0], limit=wanted)), None)
    return await _Merge(reader, scans, order, wanted, entries_max).first(wanted, meets)


async def add_values(
    reader: Reader, scans: Sequence[Scan], column: int | None, most: int, add: Callable[[list[Row]], None]
) -> None:
    """Hand on one column of the rows of one range after another, piece by piece, at most so many in all.

    What is handed on are tuples that begin with the column; nothing else is read than it and the place to go on from.
    """
    for scan in scans:
        rest = tuple(place for place, _ in walk_columns(scan)[len(scan.prefix) :])
        only = rest if column is None else (column, *rest)
        source = _Source(replace(scan, only=only), PIECE_MAX, range(len(only) - len(rest), len(only)))
        while most > 0 and not source.is_over:
            most -= await source.read_on(reader, most)
            add(source.rows)


class _Merge:
    """Ranges that are read side by side."""

    def __init__(self, reader: Reader, scans: Sequence[Scan], order: Order, wanted: int, entries_max: int) -> None:
        self._reader = reader
        size = wanted // len(scans) + 1
        self._sources = [
            _Source(scan, size, [place for place, _ in walk_columns(scan)[len(scan.prefix) :]]) for scan in scans
        ]
        self._key = order_key(order)
        self._left = entries_max

    async def first(self, wanted: int, meets: Callable[[Row], bool] | None) -> Found:
        """The first rows that pass the test."""
        rows: list[Row] = []
        heap = []
        for number, source in enumerate(self._sources):
            row = await self._next(source)
            if row is not None:
                heap.append((self._key(row), number, row))
        heapify(heap)
        while heap:
            _, number, entry = heap[0]
            if meets is None or meets(entry):
                rows.append(entry)
            if len(rows) == wanted:
                break
            row = await self._next(self._sources[number])
            if row is not None:
                heapreplace(heap, (self._key(row), number, row))
            elif self._sources[number].is_over:
                heappop(heap)
            else:
                return Found(rows, entry)  # what would follow is not known
        return Found(rows, None)

    async def _next(self, source: "_Source") -> Row | None:
        """The next row of a range; None at its end, and where nothing more may be read."""
        if source.place == len(source.rows) and not source.is_over and self._left > 0:
            self._left -= await source.read_on(self._reader, self._left)
        if source.place == len(source.rows):
            return None
        source.place += 1
        return source.rows[source.place - 1]


class _Source:
    """One range and what was read of it; `rest` are the places in what is read of the columns behind the prefix."""

    def __init__(self, scan: Scan, size: int, rest: Sequence[int]) -> None:
        self._scan = scan
        self._rest = rest
        self._size = size
        self.rows: list[Row] = []
        self.place = 0
        self.is_over = False

    async def read_on(self, reader: Reader, most: int) -> int:
        """Read the next piece; how many entries it had."""
        limit = min(self._size, PIECE_MAX, most)
        self._size *= 2
        self.rows = await reader.scan(replace(self._scan, limit=limit))
        self.place = 0
        self.is_over = len(self.rows) < limit
        if self.rows:
            last = self.rows[-1]
            self._scan = replace(self._scan, start=(tuple(last[place] for place in self._rest), False))
        return len(self.rows)
