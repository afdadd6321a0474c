"""What `prepare` has to make, and the text in which a store keeps the layout of a table.

Columns are known by their names, so their order is no part of what is compared. A table that is there keeps its columns
and its key; columns that say what older rows have in them may be added, and indexes may come, go and change. Whatever
else changes needs a migration and is refused whole. Absent: SQL.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from riffdb.core.layout import Column, Index, Row, Table
from riffdb.storage.refusals import index_gone, layout_refused

RESERVED = ("riffdb_", "sqlite_")
OF_DATABASE = "riffdb__"
"""Tables that the database keeps beside those of entities; no table of a store begins so."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A table to make (`is_new`), or one that gets further `columns`, loses the indexes `dropped` and gets others."""

    table: Table
    columns: tuple[Column, ...]
    dropped: tuple[Index, ...]
    indexes: tuple[Index, ...]
    is_new: bool


def additions(known: Mapping[str, Table], wanted: Sequence[Table]) -> list[Addition]:
    """What is missing of the wanted tables; `RDB-E-APPROVAL` where a known one would have to be laid out anew."""
    found = []
    for table in wanted:
        if table.name.lower().startswith(RESERVED) and not table.name.startswith(OF_DATABASE):
            raise AssertionError(f"the table name {table.name} belongs to the store")
        old = known.get(table.name)
        if old is None:
            found.append(Addition(table, (), (), table.indexes, True))
        elif old != table:
            found.append(_addition(old, table))
    return found


def _addition(old: Table, new: Table) -> Addition:
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    added = tuple(column for column in new.columns if column.name not in before)
    if _named(old, old.key) != _named(new, new.key) or any(after.get(name) != was for name, was in before.items()):
        raise layout_refused(old.name, "its columns or its key are other ones")
    for column in added:
        if column.initial is None and not column.optional:
            raise layout_refused(old.name, f"nothing says what its rows have in the new column {column.name}")
    had, gets = _indexes(old), _indexes(new)
    dropped = tuple(index for index in old.indexes if gets.get(index.name) != had[index.name])
    made = tuple(index for index in new.indexes if had.get(index.name) != gets[index.name])
    return Addition(new, added, dropped, made, False)


def _named(table: Table, positions: Sequence[int]) -> tuple[str, ...]:
    return tuple(table.columns[position].name for position in positions)


def _indexes(table: Table) -> dict[str, tuple[object, ...]]:
    """Every index by its name, by what it does."""
    return {index.name: (_named(table, index.columns), index.descending, index.unique) for index in table.indexes}


def check_index(known: Mapping[str, Table], table: Table, index: Index | None) -> None:
    """Refuse a walk over an index that the table has no more, by a caller that knows an older layout."""
    kept = known.get(table.name)
    if index is None or kept is None or kept is table or any(index.name == other.name for other in kept.indexes):
        return
    raise index_gone()


def moved_row(old: Table, new: Table, row: Row) -> Row:
    """A row of one layout in another of the same table; what the first has not is as it is in older rows."""
    values = dict(zip((column.name for column in old.columns), row, strict=True))
    return tuple(values.get(column.name, column.initial) for column in new.columns)


def layout_text(table: Table) -> str:
    """The layout as JSON; what older rows have in a column is told once, when it is made."""
    layout = asdict(table)
    for column in layout["columns"]:
        del column["initial"]
    return json.dumps(layout, ensure_ascii=False, separators=(",", ":"))


def layout_of(text: str) -> Table:
    """The layout that `layout_text` wrote."""
    stored = json.loads(text)
    return Table(
        stored["name"],
        tuple(Column(**column) for column in stored["columns"]),
        tuple(stored["key"]),
        tuple(
            Index(index["name"], tuple(index["columns"]), tuple(index["descending"]), index["unique"])
            for index in stored["indexes"]
        ),
    )
