"""The SQL of one entity table: made from its layout, cached by shape, every name quoted.

An update names only the columns whose indexes change, since SQLite rewrites the entry of every index that a statement
names. A scan names its index, so that its path never depends on what the planner guesses.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from riffdb.core.layout import Column, Index, Key, Row, Table
from riffdb.storage.protocol import Scan
from riffdb.storage.sqlite.columns import TYPES, RowFunction, reading, value_to_sqlite, writing
from riffdb.storage.walks import walk_columns


def quoted(name: str) -> str:
    """The name as an SQL identifier, whatever word it is."""
    return '"' + name.replace('"', '""') + '"'


def table_sql(table: Table) -> str:
    """The statement that makes the table."""
    columns = [f"  {_column_sql(column)}" for column in table.columns]
    key = ", ".join(quoted(table.columns[position].name) for position in table.key)
    lines = ",\n".join([*columns, f"  PRIMARY KEY ({key})"])
    return f"CREATE TABLE {quoted(table.name)} (\n{lines}\n) STRICT, WITHOUT ROWID"


def column_sql(table: Table, column: Column) -> str:
    """The statement that adds a column; rows that are there have its initial value in it."""
    initial = literal(value_to_sqlite(column, column.initial))
    return f"ALTER TABLE {quoted(table.name)} ADD COLUMN {_column_sql(column)} DEFAULT {initial}"


def _column_sql(column: Column) -> str:
    return f"{quoted(column.name)} {TYPES[column.kind]}{'' if column.optional else ' NOT NULL'}"


def literal(value: bool | int | str | bytes | None) -> str:
    """A value of SQLite as it is written in a statement."""
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
    return str(int(value))


def drop_index_sql(table: Table, index: Index) -> str:
    """The statement that drops the index."""
    return f"DROP INDEX {_index_name(table, index)}"


def index_sql(table: Table, index: Index) -> str:
    """The statement that makes the index."""
    columns = ", ".join(
        quoted(table.columns[position].name) + (" DESC" if descends else "")
        for position, descends in zip(index.columns, index.descending, strict=True)
    )
    unique = "UNIQUE " if index.unique else ""
    return f"CREATE {unique}INDEX {_index_name(table, index)} ON {quoted(table.name)} ({columns})"


def _index_name(table: Table, index: Index) -> str:
    return quoted(f"{table.name}.{index.name}")  # the point stands in no name of a table


class TableStatements:
    """The statements of one table and the functions that turn its rows."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._names = [quoted(column.name) for column in table.columns]
        self._name = quoted(table.name)
        self._listed = ", ".join(self._names)
        self._of_key = " AND ".join(f"{self._names[position]} = ?" for position in table.key)
        self.select = f"SELECT {self._listed} FROM {self._name} WHERE {self._of_key}"
        self.insert = f"INSERT INTO {self._name} ({self._listed}) VALUES ({', '.join('?' * len(self._names))})"
        self.delete = f"DELETE FROM {self._name} WHERE {self._of_key}"
        self.whole_row = writing(table.columns, range(len(table.columns)))
        self.key_values = writing([table.columns[position] for position in table.key], range(len(table.key)))
        self.row = reading(table.columns)
        self.key_of_row: Callable[[Row], Key] = itemgetter(*table.key) if len(table.key) > 1 else table.key_of
        self._indexed = [
            tuple(position for position in index.columns if position not in table.key) for index in table.indexes
        ]
        self._unique = sum(1 << bit for bit, index in enumerate(table.indexes) if index.unique)
        self.all_indexes = (1 << len(table.indexes)) - 1
        self._updates: dict[int, tuple[str, RowFunction]] = {}
        self._scans: dict[tuple[Any, ...], str] = {}
        self._rows: dict[tuple[int, ...], RowFunction] = {}

    def changed_indexes(self, before: Row, after: Row) -> int:
        """A bit for each index of which a column differs between the two rows."""
        changed = 0
        for bit, positions in enumerate(self._indexed):
            for position in positions:
                if before[position] != after[position]:
                    changed |= 1 << bit
                    break
        return changed

    def moves_unique(self, changed: int) -> bool:
        """Whether a unique index is among those of the bits."""
        return bool(changed & self._unique)

    def update(self, changed: int) -> tuple[str, RowFunction]:
        """The statement for rows of which at most the indexes of the bits change, and its values from a row."""
        found = self._updates.get(changed)
        if found is None:
            kept = {
                position
                for bit, positions in enumerate(self._indexed)
                if not changed & 1 << bit
                for position in positions
            }
            key = self.table.key
            free = [position for position in range(len(self._names)) if position not in kept and position not in key]
            free = free or [key[0]]  # a statement must set something
            wanted = ", ".join(f"{self._names[position]} = ?" for position in free)
            sql = f"UPDATE {self._name} SET {wanted} WHERE {self._of_key}"
            found = self._updates[changed] = sql, writing(self.table.columns, (*free, *key))
        return found

    def row_of(self, only: tuple[int, ...] | None) -> RowFunction:
        """The function from what SQLite keeps of some columns to their values; None: of all."""
        if only is None:
            return self.row
        found = self._rows.get(only)
        if found is None:
            found = self._rows[only] = reading([self.table.columns[position] for position in only])
        return found

    def scan(self, scan: Scan) -> tuple[str, list[Any]]:
        """The statement of a walk, which has no `start`, and its values."""
        positions = [position for position, _ in walk_columns(scan)]
        values = [
            value_to_sqlite(self.table.columns[position], value)
            for position, value in zip(positions, scan.prefix, strict=False)
        ]
        bounds = [bound for bound in (scan.lower, scan.upper) if bound is not None]
        if bounds:
            column = self.table.columns[positions[len(scan.prefix)]]
            values += [value_to_sqlite(column, value) for value, _ in bounds]
        values.append(max(scan.limit, 0))
        shape = (
            scan.index and scan.index.name,
            len(scan.prefix),
            None if scan.lower is None else scan.lower[1],
            None if scan.upper is None else scan.upper[1],
            scan.reverse,
            scan.only,
        )
        sql = self._scans.get(shape)
        if sql is None:
            sql = self._scans[shape] = self._scan_sql(scan)
        return sql, values

    def _scan_sql(self, scan: Scan) -> str:
        columns = walk_columns(scan)
        positions = [position for position, _ in columns]
        path = "NOT INDEXED" if scan.index is None else f"INDEXED BY {_index_name(self.table, scan.index)}"
        conditions = [self._equality(position) for position in positions[: len(scan.prefix)]]
        for bound, sign in ((scan.lower, ">"), (scan.upper, "<")):
            if bound is not None:
                conditions.append(f"{self._names[positions[len(scan.prefix)]]} {sign}{'=' if bound[1] else ''} ?")
        order = ", ".join(
            self._names[position] + (" DESC" if descends else "") for position, descends in columns[len(scan.prefix) :]
        )
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed = self._listed if scan.only is None else ", ".join(self._names[position] for position in scan.only)
        return f"SELECT {listed} FROM {self._name} {path}{where}{f' ORDER BY {order}' if order else ''} LIMIT ?"

    def _equality(self, position: int) -> str:
        return f"{self._names[position]} {'IS' if self.table.columns[position].optional else '='} ?"
