"""The columns that a walk goes by, and a walk that begins at a position as plain walks, one after another.

Lexicographic order falls into ranges: what equals a position in all columns but the last and lies beyond it there, then
what equals it in one column less, and so on. Each is an equal prefix with a bound, so an index finds it at once,
whichever way each column goes and wherever null stands. Absent: reading.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from riffdb.core.layout import Column, ColumnKind
from riffdb.storage.protocol import Scan

Bound = tuple[Any, bool]

_LEAST: dict[ColumnKind, Any] = {
    "bool": False,
    "int": -(1 << 63),
    "u64": 0,
    "text": "",
    "blob": b"",
    "decimal": -(10**38),
}
"""A bound that leaves out null and nothing else."""


def walk_columns(scan: Scan) -> tuple[tuple[int, bool], ...]:
    """The positions of the columns in which no two rows of the walk are equal, and whether it goes down in each.

    Rows that a unique does not tell apart, having a null in it, stand in the order of the key.
    """
    index = scan.index
    named = () if index is None else tuple(zip(index.columns, index.descending, strict=True))
    known = {position for position, _ in named}
    rest = tuple((position, False) for position in scan.table.key if position not in known)
    return tuple((position, descends != scan.reverse) for position, descends in (*named, *rest))


def plain_walks(scan: Scan) -> Iterator[Scan]:
    """The walks without a `start` that give, one after another, what the walk gives."""
    if scan.start is None:
        yield scan
        return
    whole = replace(scan, start=None)
    values, is_inclusive = scan.start
    columns = walk_columns(scan)[len(scan.prefix) :]
    is_within = not values or _is_within(whole, values[0])
    if is_inclusive and is_within:
        yield _held(whole, values)
    for depth in range(len(values) - 1, -1, -1):
        position, descends = columns[depth]
        if depth == 0 or is_within:
            held = _held(whole, values[:depth])
            yield from _beyond(held, scan.table.columns[position], values[depth], descends)


def _held(scan: Scan, values: tuple[Any, ...]) -> Scan:
    """The part of a walk that has those values in its next columns."""
    return replace(scan, prefix=(*scan.prefix, *values), lower=None, upper=None) if values else scan


def _beyond(scan: Scan, column: Column, value: Any, descends: bool) -> Iterator[Scan]:
    """The part of a walk that comes behind the value in its next column."""
    if not descends:
        after = (_LEAST[column.kind], True) if value is None else (value, False)
        yield replace(scan, lower=after if scan.lower is None else max(scan.lower, after, key=_as_lower))
    elif value is not None:
        after = (value, False)
        yield replace(scan, upper=after if scan.upper is None else min(scan.upper, after, key=_as_upper))
        if column.optional and scan.lower is None and scan.upper is None:
            yield replace(scan, prefix=(*scan.prefix, None))


def _as_lower(bound: Bound) -> tuple[Any, bool]:
    return bound[0], not bound[1]


def _as_upper(bound: Bound) -> tuple[Any, bool]:
    return bound


def _is_within(scan: Scan, value: Any) -> bool:
    """Whether the bounds of a walk leave this value of the column that they are on."""
    if scan.lower is None and scan.upper is None:
        return True
    if value is None or (scan.lower is not None and _as_lower(scan.lower) > (value, False)):
        return False
    return scan.upper is None or _as_upper(scan.upper) >= (value, True)
