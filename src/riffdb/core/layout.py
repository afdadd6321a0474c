"""How rows lie in a store: tables, typed columns, keys and indexes, as plain values.

`database` builds these from a plan and hands them to a store, which never sees a plan. A row is a tuple of inside
values in the order of `Table.columns`, whatever the order in which a store keeps them; the last two columns are always
the row's revision and the sequence of the commit that last wrote it. A key is the tuple of the key columns' values in
the order of `Table.key`, partition first.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Row = tuple[Any, ...]
Key = tuple[Any, ...]
ColumnKind = Literal["bool", "int", "u64", "text", "blob", "decimal"]


TOMBSTONE_FENCE, TOMBSTONE_REVISION, TOMBSTONE_SEQUENCE = -3, -2, -1
"""A tombstone is a row too: the key, then the fence of the row that was deleted (None without a lease), the revision
that its deletion took, and the sequence of that commit."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, how its values are stored, and whether null may stand in it.

    `initial` is what rows have in it that are older than the column; it is no part of what the column is.

    `int` covers i64, timestamp, date and enum ordinals (all fit 64 bits signed); `u64` is the whole unsigned range and
    sorts as such; `decimal` is a scaled integer beyond 64 bits.
    """

    name: str
    kind: ColumnKind
    optional: bool = False
    initial: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Index:
    """An index: positions of its columns (the rest of the key is already appended) and which of them descend."""

    name: str
    columns: tuple[int, ...]
    descending: tuple[bool, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one entity: `columns` in row order, positions of the `key` columns (partition first), indexes."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    indexes: tuple[Index, ...] = ()

    def key_of(self, row: Row) -> Key:
        """The key of a row."""
        return tuple(row[position] for position in self.key)
