"""What is kept of consumers: three ordinary tables, which every store writes as it writes rows of entities.

A consumer remembers how far it has read. What it read and has not settled is a row of deliveries; a settled event has
none. The checkpoint is not kept: it is right before the lowest delivery that counts for it, or where reading stands.
An event is in one of the tables of deliveries and dead letters at most. Absent: when rows change.
"""

from typing import Any, NamedTuple

from riffdb.core.layout import Column, Index, Table
from riffdb.database.streams import Position


class ConsumerRow(NamedTuple):
    """A consumer. `unsettled` and `dead_letters` count its rows; a retired one keeps what its attempts rest on.

    `attempt_max`: the highest attempt given so far. Events up to `base` may have been delivered before a seek: their
    next first attempt is `attempt_base` + 1.
    """

    partition: bytes
    id: bytes
    stream: str
    params: str
    name: str
    read_sequence: int
    read_ordinal: int
    attempt_max: int
    attempt_base: int
    base_sequence: int
    base_ordinal: int
    unsettled: int
    dead_letters: int
    is_retired: bool
    created_at: int
    revision: int
    commit_sequence: int

    @property
    def read(self) -> Position:
        """All events up to here have been delivered or dropped."""
        return Position(self.read_sequence, self.read_ordinal)

    @property
    def base(self) -> Position:
        """Events up to here may have been delivered before a seek."""
        return Position(self.base_sequence, self.base_ordinal)

    def changed(self, **values: Any) -> "ConsumerRow":
        """The row with other values and the next revision."""
        return self._replace(revision=self.revision + 1, **values)

    def at(self, read: Position) -> "ConsumerRow":
        """The row with another place of reading."""
        return self.changed(read_sequence=read.sequence, read_ordinal=read.ordinal)


class DeliveryRow(NamedTuple):
    """An event that was read and is not settled.

    `attempt`: the newest one. `tries`: attempts towards the dead letter. `available_at`: when the lease of the delivery
    ends, or the delay of a nack. `is_redriven`: it was a dead letter, and the checkpoint has passed it.
    """

    partition: bytes
    consumer: bytes
    sequence: int
    ordinal: int
    attempt: int
    tries: int
    available_at: int
    is_leased: bool
    token_hash: bytes | None
    is_redriven: bool
    revision: int
    commit_sequence: int

    @property
    def position(self) -> Position:
        """The event's place."""
        return Position(self.sequence, self.ordinal)


class DeadLetterRow(NamedTuple):
    """An event whose attempts all ended without an acknowledgement: the last of them, and when it ended (µs)."""

    partition: bytes
    consumer: bytes
    sequence: int
    ordinal: int
    attempt: int
    ended_at: int
    revision: int
    commit_sequence: int

    @property
    def position(self) -> Position:
        """The event's place."""
        return Position(self.sequence, self.ordinal)


_PARTITION = Column("partition", "blob")
_PLACE = (_PARTITION, Column("consumer", "blob"), Column("sequence", "u64"), Column("ordinal", "u64"))
_SYSTEM = (Column("revision", "u64"), Column("commit_sequence", "u64"))

CONSUMERS = Table(
    "riffdb__consumers",
    (
        _PARTITION,
        Column("id", "blob"),
        Column("stream", "text"),
        Column("params", "text"),
        Column("name", "text"),
        Column("read_sequence", "u64"),
        Column("read_ordinal", "u64"),
        Column("attempt_max", "u64"),
        Column("attempt_base", "u64"),
        Column("base_sequence", "u64"),
        Column("base_ordinal", "u64"),
        Column("unsettled", "u64"),
        Column("dead_letters", "u64"),
        Column("is_retired", "bool"),
        Column("created_at", "int"),
        *_SYSTEM,
    ),
    (0, 1),
    (Index("by_retired", (0, 13, 1), (False, False, False)),),
)
DELIVERIES = Table(
    "riffdb__deliveries",
    (
        *_PLACE,
        Column("attempt", "u64"),
        Column("tries", "u64"),
        Column("available_at", "int"),
        Column("is_leased", "bool"),
        Column("token_hash", "blob", True),
        Column("is_redriven", "bool"),
        *_SYSTEM,
    ),
    (0, 1, 2, 3),
    (
        Index("by_available", (0, 1, 6, 2, 3), (False,) * 5),
        Index("by_redriven", (0, 1, 9, 2, 3), (False,) * 5),
    ),
)
DEAD_LETTERS = Table(
    "riffdb__dead_letters",
    (*_PLACE, Column("attempt", "u64"), Column("ended_at", "int"), *_SYSTEM),
    (0, 1, 2, 3),
)
CONSUMER_TABLES = (CONSUMERS, DELIVERIES, DEAD_LETTERS)
BY_RETIRED = CONSUMERS.indexes[0]
BY_AVAILABLE, BY_REDRIVEN = DELIVERIES.indexes
