"""The SQL of the store's own tables: their layout, and every statement on them.

One append-only table holds record, answer and idempotency identity of a commit, and a second index on it carries the
identity with the key first, because clients make keys that grow with time. The layout has a number, `FORMAT`; whatever
changes here changes it. The statements are constants, so that each is prepared once a connection.
"""

from riffdb.core.records import Capability, CommitRecord, DeployedContract, Head, SecretPart

FORMAT = 4
APPLICATION_ID = 0x52694646
"""Bytes 68 to 71 of the file, by which it is known as ours."""

LAYOUT = (
    """CREATE TABLE riffdb_meta (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE riffdb_table (
  name TEXT NOT NULL PRIMARY KEY,
  layout TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE riffdb_head (
  "partition" BLOB NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL,
  time INTEGER NOT NULL,
  chain BLOB NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE riffdb_commit (
  position INTEGER PRIMARY KEY,
  "partition" BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  time INTEGER NOT NULL,
  command TEXT NOT NULL,
  "key" TEXT,
  input_hash BLOB NOT NULL,
  input TEXT NOT NULL,
  sealed TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  outcome TEXT NOT NULL,
  answer TEXT NOT NULL,
  principal TEXT NOT NULL,
  capability TEXT NOT NULL,
  role TEXT NOT NULL,
  ingress TEXT NOT NULL,
  contract_version INTEGER NOT NULL,
  plan_hash BLOB NOT NULL,
  changes TEXT NOT NULL,
  events TEXT NOT NULL,
  chain BLOB NOT NULL
) STRICT""",
    """CREATE UNIQUE INDEX riffdb_commit_sequence ON riffdb_commit ("partition", sequence)""",
    """CREATE INDEX riffdb_commit_identity ON riffdb_commit ("key", "partition", command)
  WHERE "key" IS NOT NULL""",
    """CREATE TABLE riffdb_secret (
  "partition" BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  salt BLOB NOT NULL,
  input TEXT NOT NULL,
  changes TEXT NOT NULL,
  PRIMARY KEY ("partition", sequence)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE riffdb_capability (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  token_hash BLOB NOT NULL UNIQUE,
  principal TEXT NOT NULL,
  role TEXT NOT NULL,
  "partition" BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  parent TEXT,
  creator TEXT NOT NULL,
  grants TEXT NOT NULL
) STRICT""",
    """CREATE INDEX riffdb_capability_parent ON riffdb_capability (parent) WHERE parent IS NOT NULL""",
    """CREATE TABLE riffdb_contract (
  position INTEGER PRIMARY KEY,
  application TEXT NOT NULL,
  version INTEGER NOT NULL,
  plan_hash BLOB NOT NULL,
  plan TEXT NOT NULL,
  time INTEGER NOT NULL
) STRICT""",
)


Kept = type[Head] | type[CommitRecord] | type[SecretPart] | type[Capability] | type[DeployedContract]
"""What a system table keeps: a tuple whose fields are the table's columns."""


def _listed(record: Kept) -> str:
    return ", ".join(f'"{name}"' for name in record._fields)


def _insert(table: str, record: Kept) -> str:
    return f"INSERT INTO {table} ({_listed(record)}) VALUES ({', '.join('?' * len(record._fields))})"


def _replacing(record: Kept, key: str) -> str:
    return ", ".join(f'"{name}" = excluded."{name}"' for name in record._fields if name != key)


BEGIN = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
BEGIN_SNAPSHOT = "BEGIN"
END_SNAPSHOT = "END"
EXPLAIN = "EXPLAIN QUERY PLAN"
FIX_SNAPSHOT = "SELECT 1 FROM riffdb_meta LIMIT 1"

INTEGRITY = "PRAGMA integrity_check(20)"

META = "SELECT name, value FROM riffdb_meta"
ADD_META = "INSERT INTO riffdb_meta (name, value) VALUES (?, ?)"
PUT_META = "UPDATE riffdb_meta SET value = ? WHERE name = ?"
TABLES = "SELECT layout FROM riffdb_table"
PUT_TABLE = (
    "INSERT INTO riffdb_table (name, layout) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET layout = excluded.layout"
)

HEAD = f'SELECT {_listed(Head)} FROM riffdb_head WHERE "partition" = ?'
_HEADS = f"SELECT {_listed(Head)} FROM riffdb_head"
HEADS = f'{_HEADS} ORDER BY "partition" LIMIT ?'
HEADS_AFTER = f'{_HEADS} WHERE "partition" > ? ORDER BY "partition" LIMIT ?'
PUT_HEAD = f'{_insert("riffdb_head", Head)} ON CONFLICT ("partition") DO UPDATE SET {_replacing(Head, "partition")}'

_RECORD = f"SELECT {_listed(CommitRecord)} FROM riffdb_commit"
RECORD_OF_IDENTITY = f'{_RECORD} WHERE "partition" = ? AND command = ? AND "key" = ? ORDER BY position DESC LIMIT 1'
NEWEST_KEY = 'SELECT max("key") FROM riffdb_commit WHERE "key" IS NOT NULL'
RECORD_OF_SEQUENCE = f'{_RECORD} WHERE "partition" = ? AND sequence = ?'
RECORDS_AFTER = f'{_RECORD} WHERE "partition" = ? AND sequence > ? ORDER BY sequence LIMIT ?'
RECORDS_BEFORE = (
    f"SELECT position, {_listed(CommitRecord)} FROM riffdb_commit WHERE position < ? ORDER BY position DESC LIMIT ?"
)
EVENTS_BETWEEN = (
    'SELECT sequence, time, events FROM riffdb_commit WHERE "partition" = ? AND sequence > ? AND sequence <= ?'
    " AND events <> '[]' ORDER BY sequence"
)
COUNT_RECORDS = "SELECT count(*) FROM riffdb_commit"
ADD_RECORD = _insert("riffdb_commit", CommitRecord)
TRIM_RECORDS = 'DELETE FROM riffdb_commit WHERE "partition" = ? AND sequence <= ?'

SECRET_OF_SEQUENCE = f'SELECT {_listed(SecretPart)} FROM riffdb_secret WHERE "partition" = ? AND sequence = ?'
ADD_SECRET = _insert("riffdb_secret", SecretPart)
TRIM_SECRETS = 'DELETE FROM riffdb_secret WHERE "partition" = ? AND sequence <= ?'

CAPABILITY_OF_TOKEN = f"SELECT {_listed(Capability)} FROM riffdb_capability WHERE token_hash = ?"
CAPABILITIES = f"SELECT {_listed(Capability)} FROM riffdb_capability ORDER BY position"
CAPABILITY_FAMILY = f"""WITH RECURSIVE family (member) AS (
  SELECT ? UNION SELECT id FROM family JOIN riffdb_capability ON parent = member
)
SELECT {_listed(Capability)} FROM riffdb_capability WHERE id IN (SELECT member FROM family) ORDER BY position"""
PUT_CAPABILITY = (
    f"{_insert('riffdb_capability', Capability)} ON CONFLICT (id) DO UPDATE SET {_replacing(Capability, 'id')}"
)

CONTRACTS = f"SELECT {_listed(DeployedContract)} FROM riffdb_contract ORDER BY position"
ADD_CONTRACT = _insert("riffdb_contract", DeployedContract)
