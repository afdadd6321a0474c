"""The one transaction: what it writes, and its end.

It remembers the rows that it read, so that an update leaves alone the indexes whose columns did not change. Every
statement that writes rows must change as many as it was given, or the batch contradicts the store. `commit.before`
stands after all writes and before the commit, `commit.after` behind the commit that returned and can be found again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import apsw

from riffdb.core.failpoints import hit
from riffdb.core.layout import Key, Row, Table
from riffdb.core.records import Batch, Mutation
from riffdb.storage.layouts import additions, layout_text
from riffdb.storage.refusals import contradiction, write_failed
from riffdb.storage.sqlite import statements as sql
from riffdb.storage.sqlite.open_file import OpenFile
from riffdb.storage.sqlite.tables import TableStatements, column_sql, drop_index_sql, index_sql, table_sql
from riffdb.storage.sqlite.views import SqliteReader
from riffdb.storage.views import served


@dataclass(slots=True)
class Changes:
    """What a batch does to one table; updates by the indexes that they change. `seen`: rows as they were read."""

    statements: TableStatements
    seen: dict[Key, Row]
    deletes: list[Key] = field(default_factory=list)
    updates: dict[int, list[Row]] = field(default_factory=dict)
    inserts: list[Row] = field(default_factory=list)

    def add(self, mutation: Mutation) -> None:
        """Sort the mutation in."""
        row = mutation.row
        if row is None:
            if mutation.existed:
                self.deletes.append(mutation.key)
        elif not mutation.existed:
            self.inserts.append(row)
        else:
            before = self.seen.get(mutation.key)
            changed = self.statements.all_indexes if before is None else self.statements.changed_indexes(before, row)
            if self.statements.moves_unique(changed):
                self.deletes.append(mutation.key)  # so that two rows may exchange their values
                self.inserts.append(row)
            else:
                self.updates.setdefault(changed, []).append(row)


class SqliteTransaction(SqliteReader):
    """The write transaction: durable when its block ends in peace, gone when it raises."""

    def __init__(self, file: OpenFile) -> None:
        super().__init__(file)
        self._seen: dict[str, dict[Key, Row]] = {}
        self._has_written = False
        self._has_failed = False

    async def __aenter__(self) -> Self:
        self._file.check_process()
        self._file.turn.take()
        try:
            self._file.check()  # it may have ended while this one waited
            self._file.log.keep()
            self._cursor.execute(sql.BEGIN)
        except BaseException as error:
            self._file.turn.give_back()
            if isinstance(error, apsw.Error):
                raise self._file.failed(error) from error
            raise
        self._tables = self._file.tables
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        try:
            if kind is None:
                self._commit()
        finally:
            self._roll_back()
            self._file.turn.give_back()

    def _commit(self) -> None:
        if self._has_failed:
            raise write_failed()
        self._file.check()
        if self._has_written:
            hit("commit.before")
        try:
            self._cursor.execute(sql.COMMIT)
        except apsw.Error as error:
            raise self._file.commit_failed(error) from error
        self._file.tables = self._tables
        if self._has_written:
            self._file.check_standing()
            hit("commit.after")

    def _roll_back(self) -> None:
        """Undo what is left of the transaction; after a commit, and after errors that ended it, nothing is."""
        try:
            if self._file.writer.in_transaction:
                self._cursor.execute(sql.ROLLBACK)
        except apsw.Error as error:
            self._file.die(error)

    @served
    async def rows(self, table: Table, keys: Collection[Key]) -> dict[Key, Row]:
        found = self._rows(table, keys)
        self._seen.setdefault(table.name, {}).update(found)
        return found

    @served
    async def entropy(self, size: int) -> bytes:
        return self._file.chance(size)

    @served
    async def prepare(self, tables: Sequence[Table]) -> None:
        missing = additions(self._tables, tables)
        has_failed, self._has_failed = self._has_failed, True
        for addition in missing:
            table = addition.table
            statements = [table_sql(table)] if addition.is_new else []
            statements += [drop_index_sql(table, index) for index in addition.dropped]
            statements += [column_sql(table, column) for column in addition.columns]
            statements += [index_sql(table, index) for index in addition.indexes]
            for statement in statements:
                self._cursor.execute(statement)
            self._seen.pop(table.name, None)  # rows in another layout
            self._cursor.execute(sql.PUT_TABLE, (table.name, layout_text(table)))
        self._tables = self._tables | {addition.table.name: addition.table for addition in missing}
        self._has_failed = has_failed

    @served
    async def write(self, batch: Batch) -> None:
        if self._has_written:
            raise AssertionError("a transaction writes at most once")
        self._has_written = self._has_failed = True
        changes: dict[str, Changes] = {}
        for mutation in batch.mutations:
            of_table = changes.get(mutation.table)
            if of_table is None:
                statements = self._file.writing(self._tables, mutation.table)
                of_table = changes[mutation.table] = Changes(statements, self._seen.get(mutation.table, {}))
            of_table.add(mutation)
        for of_table in changes.values():
            self._write_rows(of_table)
        # Ahead of the commit: a key that is not recorded after all is only looked up in vain.
        self._file.newest_key = max([self._file.newest_key, *(record.key or "" for record in batch.records)])
        many = self._cursor.executemany
        many(sql.ADD_RECORD, batch.records)
        many(sql.PUT_HEAD, batch.heads)
        if batch.secrets:
            many(sql.ADD_SECRET, batch.secrets)
        if batch.capabilities:
            many(sql.PUT_CAPABILITY, batch.capabilities)
        if batch.contracts:
            many(sql.ADD_CONTRACT, batch.contracts)
        if batch.trims:
            many(sql.TRIM_RECORDS, batch.trims)
            many(sql.TRIM_SECRETS, batch.trims)
        self._has_failed = False

    def _write_rows(self, changes: Changes) -> None:
        statements = changes.statements
        if changes.deletes:
            self._each_row(statements.delete, map(statements.key_values, changes.deletes), len(changes.deletes))
        for changed, rows in changes.updates.items():
            statement, to_values = statements.update(changed)
            self._each_row(statement, map(to_values, rows), len(rows))
        if changes.inserts:
            self._each_row(statements.insert, map(statements.whole_row, changes.inserts), len(changes.inserts))

    def _each_row(self, statement: str, values: Iterable[tuple[Any, ...]], count: int) -> None:
        before = self._file.writer.total_changes()
        self._cursor.executemany(statement, values)
        if self._file.writer.total_changes() - before != count:
            raise contradiction("a row that was to be changed is not there")
