"""What `prepare` has to make, and the text in which a store keeps the layout of a table.

A table that is there keeps its columns and its key, and every index that it has; indexes may be added. Whatever else
changes needs a migration and is refused whole. Absent: SQL.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from riffdb.core.layout import Column, Index, Table
from riffdb.storage.refusals import layout_refused

RESERVED = ("riffdb_", "sqlite_")


@dataclass(frozen=True, slots=True)
class Addition:
    """A table to make (`is_new`), or one that gets further `indexes`."""

    table: Table
    indexes: tuple[Index, ...]
    is_new: bool


def additions(known: Mapping[str, Table], wanted: Sequence[Table]) -> list[Addition]:
    """What is missing of the wanted tables; `RDB-E-APPROVAL` where a known one would have to be laid out anew."""
    found = []
    for table in wanted:
        if table.name.lower().startswith(RESERVED):
            raise AssertionError(f"the table name {table.name} belongs to the store")
        old = known.get(table.name)
        if old is None:
            found.append(Addition(table, table.indexes, True))
        elif old != table:
            _check_unchanged(old, table)
            found.append(Addition(table, tuple(index for index in table.indexes if index not in old.indexes), False))
    return found


def _check_unchanged(old: Table, new: Table) -> None:
    if (old.columns, old.key) != (new.columns, new.key):
        raise layout_refused(old.name, "its columns or its key are other ones")
    if not set(old.indexes) <= set(new.indexes):
        raise layout_refused(old.name, "an index that it has changed or is gone")


def layout_text(table: Table) -> str:
    """The layout as JSON."""
    return json.dumps(asdict(table), ensure_ascii=False, separators=(",", ":"))


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
