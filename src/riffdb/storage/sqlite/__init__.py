"""The SQLite store: one file, one process, one writing connection, snapshot readers beside it.

`opening` makes or opens the file, `holding` keeps other processes off it, `store` and `views` serve it, `log` bounds
the write-ahead log, `tables`, `columns` and `statements` hold the SQL, `failures` says what an error means.
"""

from riffdb.storage.sqlite.opening import open_sqlite
from riffdb.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "open_sqlite"]
