"""How the values of a column kind lie in SQLite, and functions that turn whole rows at once.

`u64` up to the largest signed number is an INTEGER, beyond it a BLOB of eight bytes, big-endian: SQLite sorts every
BLOB after every INTEGER, so the column sorts as a whole. `decimal` is a BLOB of 17 bytes, offset so that it sorts. The
rest is what it is. A row function is compiled from positions alone; no name and no value takes part in it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from riffdb.core.layout import Column, ColumnKind

RowFunction = Callable[[Any], tuple[Any, ...]]

TYPES: dict[ColumnKind, str] = {
    "bool": "INTEGER",
    "int": "INTEGER",
    "u64": "ANY",
    "text": "TEXT",
    "blob": "BLOB",
    "decimal": "BLOB",
}

_BEYOND = 1 << 63
_DECIMAL_BYTES = 17
_DECIMAL_OFFSET = 1 << (8 * _DECIMAL_BYTES - 1)


def wide_blob(value: int) -> bytes:
    """The form of a u64 beyond the signed numbers."""
    return value.to_bytes(8, "big")


def decimal_blob(value: int) -> bytes:
    """The form of a scaled integer of at most 135 bits and a sign."""
    return (value + _DECIMAL_OFFSET).to_bytes(_DECIMAL_BYTES, "big")


def decimal_of(blob: bytes) -> int:
    """The scaled integer of its form."""
    return int.from_bytes(blob, "big") - _DECIMAL_OFFSET


_NAMES = {
    "beyond": _BEYOND,
    "wide_blob": wide_blob,
    "wide_of": int.from_bytes,
    "decimal_blob": decimal_blob,
    "decimal_of": decimal_of,
}
_TO_SQLITE: dict[ColumnKind, str] = {
    "u64": "({0} if {0} < beyond else wide_blob({0}))",
    "decimal": "decimal_blob({0})",
}
_FROM_SQLITE: dict[ColumnKind, str] = {
    "bool": "({0} == 1)",
    "u64": "(wide_of({0}) if type({0}) is bytes else {0})",
    "decimal": "decimal_of({0})",
}


def writing(columns: Sequence[Column], positions: Sequence[int]) -> RowFunction:
    """The function from a row to its values at the positions, as SQLite keeps them."""
    return _compiled(_TO_SQLITE, [(columns[position], position) for position in positions])


def reading(columns: Sequence[Column]) -> RowFunction:
    """The function from what SQLite keeps of a row to the row."""
    return _compiled(_FROM_SQLITE, [(column, position) for position, column in enumerate(columns)])


def value_to_sqlite(column: Column, value: Any) -> Any:
    """One value as SQLite keeps it."""
    if value is None:
        return None
    if column.kind == "u64":
        return value if value < _BEYOND else wide_blob(value)
    return decimal_blob(value) if column.kind == "decimal" else value


def _compiled(forms: dict[ColumnKind, str], parts: Sequence[tuple[Column, int]]) -> RowFunction:
    terms = []
    for column, position in parts:
        value = f"row[{position}]"
        form = forms.get(column.kind, "{0}").format(value)
        terms.append(f"None if {value} is None else {form}" if column.optional and form != value else form)
    function: RowFunction = eval(f"lambda row: ({', '.join(terms)},)", dict(_NAMES))
    return function
