"""The open file: what the store, its snapshots and its transactions share.

A file that failed stays failed: every later call raises what it died of, and closing it writes nothing more to it.
Absent: how it was opened, and what is read and written.
"""

import os

import apsw

from riffdb.core.errors import RiffError
from riffdb.core.layout import Table
from riffdb.storage.clock import Chance, Clock
from riffdb.storage.refusals import files_lost, forked, outcome_unknown, store_closed, unknown_table
from riffdb.storage.sqlite import statements as sql
from riffdb.storage.sqlite.connections import Readers
from riffdb.storage.sqlite.failures import end_of_store, error_of, is_fatal
from riffdb.storage.sqlite.holding import FileHold
from riffdb.storage.sqlite.log import LogBounds
from riffdb.storage.sqlite.standing import Standing
from riffdb.storage.sqlite.tables import TableStatements
from riffdb.storage.turn import WriterTurn

Tables = dict[str, Table]


class OpenFile:
    """A database file that this process holds. `tables` is replaced as a whole when a commit has added some."""

    def __init__(
        self, path: str, tables: Tables, writer: apsw.Connection, hold: FileHold, clock: Clock, chance: Chance
    ) -> None:
        self.path = path
        self.tables = tables
        self.writer = writer
        self.cursor = writer.cursor()
        self.clock = clock
        self.chance = chance
        self.newest_key: str = writer.execute(sql.NEWEST_KEY).get or ""
        """No request key that sorts after this one was ever recorded: most are made to grow with time, and then a new
        one needs no look-up."""
        self.failure: RiffError | None = None
        self.turn = WriterTurn()
        self.readers = Readers(path)
        self.log = LogBounds(writer)
        self._hold = hold
        self._standing = Standing((path, f"{path}-wal", f"{path}-shm", hold.path))
        self._pid = os.getpid()
        self._is_closed = False
        self._reading: dict[str, TableStatements] = {}
        self._writing: dict[str, TableStatements] = {}

    def check(self) -> None:
        """Raise what a file that serves nothing more answers."""
        if self.failure is not None:
            raise RiffError(self.failure.code, self.failure.message)
        if self._is_closed:
            raise store_closed()

    def check_process(self) -> None:
        """Refuse a process that inherited the open file, beside what `check` refuses."""
        self.check()
        if os.getpid() != self._pid:
            raise forked()

    def failed(self, error: apsw.Error) -> RiffError:
        """The error to raise for one of SQLite; the file is dead if that is what it means."""
        if is_fatal(error):
            return self.die(error)
        return error_of(error)

    def commit_failed(self, error: apsw.Error) -> RiffError:
        """The error to raise for one of SQLite at the commit itself, which may stand in the log all the same."""
        if is_fatal(error):
            return outcome_unknown(self.die(error).message)
        return error_of(error)

    def check_standing(self) -> None:
        """Refuse to acknowledge what was committed to files that nobody will find again; the file is dead then."""
        lost = self._standing.lost()
        if lost is not None:
            self.failure = self.failure or files_lost(lost)
            raise outcome_unknown(self.failure.message)

    def die(self, error: apsw.Error) -> RiffError:
        """Serve nothing more; the error to raise."""
        self.failure = self.failure or end_of_store(error)
        return RiffError(self.failure.code, self.failure.message)

    def reading(self, tables: Tables, table: Table) -> TableStatements:
        """The statements by which a caller reads its table, one of `tables`."""
        if table.name not in tables:
            raise unknown_table(table.name)
        found = self._reading.get(table.name)
        if found is not None and found.table is table:
            return found
        if found is not None and found.table == table:
            found.table = table  # the next look-up finds it by identity
            return found
        found = self._reading[table.name] = TableStatements(table)
        return found

    def writing(self, tables: Tables, name: str) -> TableStatements:
        """The statements that write the table of that name in `tables`."""
        table = tables.get(name)
        if table is None:
            raise unknown_table(name)
        found = self._writing.get(name)
        if found is None or found.table is not table:
            found = self._writing[name] = TableStatements(table)
        return found

    def close(self) -> None:
        """Wait for the transaction that runs, then release the file."""
        self.turn.take()
        try:
            if self._is_closed:
                return
            if os.getpid() != self._pid:
                raise forked()
            self._is_closed = True
            self.readers.close()
            if self.failure is not None:
                self.writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self.writer.close(True)
            self._hold.release()
        finally:
            self.turn.give_back()
