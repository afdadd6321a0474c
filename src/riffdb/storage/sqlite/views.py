"""What snapshots and transactions read: prepared statements by key or by index, one row function a table.

A snapshot is fixed when its block begins, on a connection of its own. Absent: writing.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import apsw

from riffdb.core.layout import Key, Row, Table
from riffdb.core.limits import I64_MAX
from riffdb.core.records import Capability, CommitRecord, DeployedContract, EventRecord, Head, Identity, SecretPart
from riffdb.storage.layouts import check_index
from riffdb.storage.protocol import Scan
from riffdb.storage.sqlite import statements as sql
from riffdb.storage.sqlite.copying import copy_snapshot
from riffdb.storage.sqlite.open_file import OpenFile, Tables
from riffdb.storage.views import View, served
from riffdb.storage.walks import plain_walks


class SqliteReader(View):
    """The reads of the protocol, through the cursor that the view has while its block lasts."""

    driver_errors = (apsw.Error,)

    def __init__(self, file: OpenFile) -> None:
        super().__init__()
        self._file = file
        self._cursor = file.cursor
        self._tables: Tables = file.tables

    def check_store(self) -> None:
        """Refuse to serve after the file failed or was closed."""
        self._file.check()

    def failed(self, error: Exception) -> Exception:
        """The error to raise for one of SQLite."""
        return self._file.failed(error) if isinstance(error, apsw.Error) else error

    @served
    async def time(self) -> int:
        return self._file.clock()

    @served
    async def heads(self, partitions: Collection[bytes]) -> dict[bytes, Head]:
        return {row[0]: Head(*row) for row in self._each(sql.HEAD, [(partition,) for partition in partitions])}

    @served
    async def heads_after(self, partition: bytes | None, limit: int) -> list[Head]:
        if partition is None:
            return [Head(*row) for row in self._all(sql.HEADS, (limit,))]
        return [Head(*row) for row in self._all(sql.HEADS_AFTER, (partition, limit))]

    @served
    async def commits(self) -> int:
        return int(self._all(sql.COUNT_RECORDS)[0][0])

    @served
    async def rows(self, table: Table, keys: Collection[Key]) -> dict[Key, Row]:
        return self._rows(table, keys)

    @served
    async def scan(self, scan: Scan) -> list[Row]:
        check_index(self._tables, scan.table, scan.index)
        statements = self._file.reading(self._tables, scan.table)
        found: list[Any] = []
        for walk in plain_walks(scan):
            found += self._all(*statements.scan(replace(walk, limit=walk.limit - len(found)) if found else walk))
            if len(found) >= scan.limit:
                break
        return list(map(statements.row_of(scan.only), found))

    @served
    async def explain(self, scan: Scan) -> str:
        check_index(self._tables, scan.table, scan.index)
        statements = self._file.reading(self._tables, scan.table)
        walks = [statements.scan(walk) for walk in plain_walks(scan)]
        steps = [row[3] for statement, values in walks for row in self._all(f"{sql.EXPLAIN} {statement}", values)]
        return "\n".join(steps)

    @served
    async def answered(self, identities: Collection[Identity]) -> dict[Identity, CommitRecord]:
        newest = self._file.newest_key
        asked = [identity for identity in identities if identity[2] <= newest]
        records = [CommitRecord(*row) for row in self._each(sql.RECORD_OF_IDENTITY, asked)]
        return {record.identity: record for record in records if record.identity is not None}

    @served
    async def log(self, partition: bytes, after: int, limit: int) -> list[CommitRecord]:
        return [CommitRecord(*row) for row in self._all(sql.RECORDS_AFTER, (partition, after, max(limit, 0)))]

    @served
    async def events(self, partition: bytes, after: int, limit: int) -> list[EventRecord]:
        rows = self._all(sql.EVENTS_BETWEEN, (partition, after, min(after + limit, I64_MAX)))
        return [EventRecord(*row) for row in rows]

    @served
    async def records(self, partition: bytes, sequences: Collection[int]) -> dict[int, CommitRecord]:
        rows = self._each(sql.RECORD_OF_SEQUENCE, [(partition, sequence) for sequence in sequences])
        return {record.sequence: record for record in (CommitRecord(*row) for row in rows)}

    @served
    async def secrets(self, partition: bytes, sequences: Collection[int]) -> dict[int, SecretPart]:
        rows = self._each(sql.SECRET_OF_SEQUENCE, [(partition, sequence) for sequence in sequences])
        return {part.sequence: part for part in (SecretPart(*row) for row in rows)}

    @served
    async def capabilities(self, token_hashes: Collection[bytes]) -> dict[bytes, Capability]:
        rows = self._each(sql.CAPABILITY_OF_TOKEN, [(token_hash,) for token_hash in token_hashes])
        return {capability.token_hash: capability for capability in (Capability(*row) for row in rows)}

    @served
    async def capability_list(self) -> list[Capability]:
        return [Capability(*row) for row in self._all(sql.CAPABILITIES)]

    @served
    async def capability_family(self, identity: str) -> list[Capability]:
        return [Capability(*row) for row in self._all(sql.CAPABILITY_FAMILY, (identity,))]

    @served
    async def contracts(self) -> list[DeployedContract]:
        return [DeployedContract(*row) for row in self._all(sql.CONTRACTS)]

    @served
    async def recent(self, before: int | None, limit: int) -> list[tuple[int, CommitRecord]]:
        rows = self._all(sql.RECORDS_BEFORE, (I64_MAX if before is None else before, max(limit, 0)))
        return [(place, CommitRecord(*values)) for place, *values in rows]

    @served
    async def copy(self, path: str, progress: Callable[[int, int], None] | None) -> None:
        copy_snapshot(self._cursor.connection, path, progress)

    @served
    async def damages(self) -> list[str]:
        return [text for (text,) in self._all(sql.INTEGRITY) if text != "ok"]

    def _all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._cursor.execute(statement, values).fetchall()

    def _each(self, statement: str, values: Iterable[tuple[Any, ...]]) -> list[Any]:
        """The rows that a statement finds for each of the values, in their order."""
        return self._cursor.executemany(statement, values).fetchall()

    def _rows(self, table: Table, keys: Collection[Key]) -> dict[Key, Row]:
        statements = self._file.reading(self._tables, table)
        found = self._each(statements.select, map(statements.key_values, keys))
        return {statements.key_of_row(row): row for row in map(statements.row, found)}


class SqliteSnapshot(SqliteReader):
    """A consistent read of what was committed when its block began."""

    async def __aenter__(self) -> Self:
        self._file.check_process()
        self._tables = self._file.tables
        try:
            self._cursor = self._file.readers.borrow()
            try:
                self._cursor.execute(sql.BEGIN_SNAPSHOT)
                self._cursor.execute(sql.FIX_SNAPSHOT).fetchone()
            except BaseException:
                self._cursor.connection.close(True)
                raise
        except apsw.Error as error:
            raise self._file.failed(error) from error
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        try:
            self._cursor.execute(sql.END_SNAPSHOT)
        except BaseException as fault:
            self._cursor.connection.close(True)
            if kind is not None and isinstance(fault, apsw.Error):
                return  # what is being raised ended the transaction too
            if isinstance(fault, apsw.Error):
                raise self._file.failed(fault) from fault
            raise
        self._file.readers.give_back(self._cursor)
