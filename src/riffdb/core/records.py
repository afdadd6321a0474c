"""What a store keeps beside rows: heads, commit records with their secret parts, capabilities, contracts; and `Batch`,
one atomic write.

A commit record is written once and never changed; the oldest of a partition may go. It holds everything that a replay
of its answer, the provenance of a row and a recomputation of state need. `answer` is the JSON text of the answer up to,
not including, `"replayed"`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from riffdb.core.layout import Key, Row

Identity = tuple[bytes, str, str]
"""(partition, command name, request key)"""


class Head(NamedTuple):
    """The newest commit of a partition: its sequence, transaction time (µs) and chain hash (32 bytes)."""

    partition: bytes
    sequence: int
    time: int
    chain: bytes


class CommitRecord(NamedTuple):
    """One durable entry of a partition's log.

    `key` is None for acts without an idempotency key. `input`, `changes` and `events` are canonical JSON texts, without
    what is secret; `sealed` is that of the service values, empty where there are none. `secret_hash`: of the
    `SecretPart`, in hexadecimal, empty where there is none.
    `role` is empty for an operator, `capability` empty for who opened the file itself.
    """

    partition: bytes
    sequence: int
    time: int
    command: str
    key: str | None
    input_hash: bytes
    input: str
    sealed: str
    secret_hash: str
    outcome: str
    answer: str
    principal: str
    capability: str
    role: str
    ingress: str
    contract_version: int
    plan_hash: bytes
    changes: str
    events: str
    chain: bytes

    @property
    def head(self) -> Head:
        """The head of the partition of which this is the newest commit."""
        return Head(self.partition, self.sequence, self.time, self.chain)

    @property
    def identity(self) -> Identity | None:
        """The idempotency identity, if the record has one."""
        return None if self.key is None else (self.partition, self.command, self.key)


class EventRecord(NamedTuple):
    """The events of a commit record: a JSON list of `{"event", "fields"}`, never empty."""

    sequence: int
    time: int
    events: str


class SecretPart(NamedTuple):
    """What is secret of a commit record, kept apart so that it can be erased while the record stands.

    `input` is the canonical JSON object of the secret inputs, `changes` the JSON list of what each change of the record
    keeps back. The record's `secret_hash` is the SHA-256 of the salt (32 bytes of chance) and the two texts, with a NUL
    between them; without the salt nobody can try what the texts were.
    """

    partition: bytes
    sequence: int
    salt: bytes
    input: str
    changes: str


class Capability(NamedTuple):
    """The facts of a bearer token, whose SHA-256 alone is kept; times in µs, None where there is no end.

    An empty `role` means operator. `partition` restricts to one partition (its byte form). `grants`: canonical JSON of
    the names that alone may be used, `{"commands","queries","streams"}`; empty where all of the role's may.
    """

    id: str
    token_hash: bytes
    principal: str
    role: str
    partition: bytes | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    parent: str | None
    creator: str
    grants: str = ""


class DeployedContract(NamedTuple):
    """A contract as it was put on the database: its application, version, plan hash, plan JSON text, and when (µs)."""

    application: str
    version: int
    plan_hash: bytes
    plan: str
    time: int


class Mutation(NamedTuple):
    """The new content of one row; `row` None deletes it. `existed`: whether the key had a row before the batch."""

    table: str
    key: Key
    row: Row | None
    existed: bool


class Trim(NamedTuple):
    """Commit records of a partition that go, with their secret parts: those up to and with this sequence."""

    partition: bytes
    through: int


@dataclass(slots=True)
class Batch:
    """Everything that one flush writes, all or nothing."""

    heads: list[Head] = field(default_factory=list)
    records: list[CommitRecord] = field(default_factory=list)
    mutations: list[Mutation] = field(default_factory=list)
    capabilities: list[Capability] = field(default_factory=list)
    contracts: list[DeployedContract] = field(default_factory=list)
    secrets: list[SecretPart] = field(default_factory=list)
    trims: list[Trim] = field(default_factory=list)
