"""What a log begins with whose oldest commits were trimmed: the rows of the partition as those commits had left them.

A base says how far the log was trimmed, and has the hash of its rows, which the system partition tells too. Its rows
are told as commits tell new rows and deletions, secrets apart from the rest and only their salted hash in that of the
base. Rows of another generation than the base's are being made, or are left over. Absent: trimming.
"""

from hashlib import sha256
from typing import NamedTuple

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.keys import partition_text
from riffdb.core.layout import Column, Key, Row, Table
from riffdb.core.records import SecretPart
from riffdb.database.codecs import RowCodec, json_text
from riffdb.database.secrets import secret_hash
from riffdb.database.streams import START, Position, before
from riffdb.database.walks import Walk
from riffdb.storage.protocol import Reader

ROWS_AT_ONCE = 500


class Base(NamedTuple):
    """The base of a partition: the last trimmed commit with its time (µs) and chain hash, then how many rows there are
    and their hash. `plan_hash`: the contract under which they are told."""

    partition: bytes
    through: int
    time: int
    chain: bytes
    generation: int
    rows: int
    hash: bytes
    plan_hash: bytes
    revision: int
    commit_sequence: int

    def facts(self) -> dict[str, str]:
        """What the act that put it in force tells of it."""
        return {
            "partition": partition_text(self.partition),
            "through": str(self.through),
            "rows": str(self.rows),
            "hash": self.hash.hex(),
        }


class BaseRow(NamedTuple):
    """A row of a base, or a tombstone. `told` and `secret` are JSON as in a commit record and its secret part, the key
    is that of the entity. The commit is the one that had written the row."""

    partition: bytes
    generation: int
    entity: str
    key: str
    told: str
    secret_hash: str
    salt: bytes
    secret: str
    revision: int
    commit_sequence: int

    def salted(self, salt: bytes) -> "BaseRow":
        """The row with the salt of its secret, and the hash of the two."""
        return self._replace(salt=salt, secret_hash=_hashed(salt, self.secret))

    def check(self) -> None:
        """`RDB-E-VERIFY` unless its secret is what its hash was made of, or gone."""
        if self.salt and _hashed(self.salt, self.secret) != self.secret_hash:
            place = f"{self.commit_sequence} of partition {partition_text(self.partition)}"
            message = f"a secret of a row that commit {place} had left is not what its hash was made of"
            raise RiffError("RDB-E-VERIFY", message)


def _hashed(salt: bytes, secret: str) -> str:
    return secret_hash(SecretPart(b"", 0, salt, "", secret))


_SYSTEM = (Column("revision", "u64"), Column("commit_sequence", "u64"))
BASES = Table(
    "riffdb__bases",
    (
        Column("partition", "blob"),
        Column("through", "u64"),
        Column("time", "int"),
        Column("chain", "blob"),
        Column("generation", "u64"),
        Column("rows", "u64"),
        Column("hash", "blob"),
        Column("plan_hash", "blob"),
        *_SYSTEM,
    ),
    (0,),
)
BASE_ROWS = Table(
    "riffdb__base_rows",
    (
        Column("partition", "blob"),
        Column("generation", "u64"),
        Column("entity", "text"),
        Column("key", "text"),
        Column("told", "text"),
        Column("secret_hash", "text"),
        Column("salt", "blob"),
        Column("secret", "text"),
        *_SYSTEM,
    ),
    (0, 1, 2, 3),
)
BASE_TABLES = (BASES, BASE_ROWS)


class BaseHash:
    """The hash of a base over its rows, which are added in the order of their keys."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = sha256()

    def add(self, row: BaseRow) -> None:
        """Go on with the next row."""
        self.rows += 1
        parts = (row.entity, row.key, row.told, row.secret_hash, str(row.commit_sequence))
        self._hash.update("\0".join(parts).encode() + b"\n")

    def digest(self) -> bytes:
        """The hash so far."""
        return self._hash.digest()


async def base_of(reader: Reader, partition: bytes) -> Base | None:
    """The base of a partition; None where nothing was trimmed."""
    row = (await reader.rows(BASES, [(partition,)])).get((partition,))
    return None if row is None else Base._make(row)


def first_kept(base: Base | None) -> Position:
    """The position before everything of a partition that is kept, by its base."""
    return START if base is None else before(base.through + 1)


def rows_of(reader: Reader, partition: bytes, generation: int) -> Walk:
    """The rows of one generation, in the order of their keys."""
    return Walk(reader, BASE_ROWS, (partition, generation), at_once=ROWS_AT_ONCE)


async def base_row(reader: Reader, base: Base, entity: str, key: str) -> BaseRow | None:
    """One row of a base, by the JSON text of its key."""
    place = (base.partition, base.generation, entity, key)
    row = (await reader.rows(BASE_ROWS, [place])).get(place)
    return None if row is None else BaseRow._make(row)


def told_row(codec: RowCodec, key: Key, row: Row, erased: frozenset[str]) -> tuple[str, str]:
    """What a base tells of a row, and what of it is secret, empty if nothing is; erased fields have no value there."""
    told = codec.change(key, None, row, None)
    if not codec.has_secrets:
        return told, ""
    secret = codec.secret_change(None, row)
    if erased:
        kept = {name: value for name, value in msgspec.json.decode(secret).items() if name not in erased}
        secret = json_text(kept)
    return told, secret


def told_tombstone(entity: str, key: str, fence: int | None, revision: int) -> str:
    """What a base tells of a row that is gone, whose deletion took this revision."""
    told = f'"entity":"{entity}","key":{key},"before":"{revision - 1}","after":null,"previous":null,"fields":{{}}'
    return f"{{{told}}}" if fence is None else f'{{{told},"fence":"{fence}"}}'
