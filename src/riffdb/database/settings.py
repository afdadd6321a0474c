"""What operators set for a database: how long request keys are remembered.

A setting is a row of an ordinary table, written in the transaction of the act that sets it. The process that holds the
file holds the settings too, and changes them with the commit. Absent: settings of a server, which stand in its flags
and its `riffdb.toml`.
"""

from dataclasses import dataclass

from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.layout import Column, Row, Table
from riffdb.core.limits import KEYS_SECONDS
from riffdb.core.records import CommitRecord
from riffdb.core.values import SECOND
from riffdb.storage.protocol import Reader

SETTINGS = Table(
    "riffdb__settings",
    (
        Column("partition", "blob"),
        Column("name", "text"),
        Column("value", "u64"),
        Column("revision", "u64"),
        Column("commit_sequence", "u64"),
    ),
    (0, 1),
)
KEYS = "keys_seconds"


@dataclass(slots=True)
class Settings:
    """The settings as they are now. `keys_seconds`: a request key is new again when its record is older."""

    keys_seconds: int = KEYS_SECONDS

    def is_forgotten(self, record: CommitRecord, time: int) -> bool:
        """Whether the record's key is new again at this time (µs), whether or not the record is still there."""
        return time - record.time > self.keys_seconds * SECOND


def keys_row(seconds: int, revision: int, sequence: int) -> Row:
    """The row of how long keys are remembered, as the commit of this sequence sets it."""
    return (SYSTEM_PARTITION, KEYS, seconds, revision, sequence)


async def read_settings(reader: Reader) -> Settings:
    """The settings of a database on which a contract is deployed."""
    key = (SYSTEM_PARTITION, KEYS)
    row = (await reader.rows(SETTINGS, [key])).get(key)
    return Settings() if row is None else Settings(row[2])
