"""Verify: whether everything that is kept agrees, from the pages of the store to the rows of entities.

The log is the measure. Each partition's records follow each other without a gap, in a chain of hashes that ends in its
head and begins with the base of those that were trimmed; what they tell of rows is done over again in a scratch store
and compared with the rows that are there, in both directions; what operators did is compared with contracts and
capabilities, consumers with what was committed. The first difference is named and ends it; no value is shown.
Everything is read in one snapshot, so it may run beside commands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.keys import SYSTEM_PARTITION, partition_text
from riffdb.core.layout import Row, Table
from riffdb.core.records import Capability, CommitRecord, DeployedContract, Head, SecretPart
from riffdb.core.values import timestamp_text
from riffdb.database.bases import Base, base_of
from riffdb.database.capabilities import capability_facts
from riffdb.database.consumer_rows import (
    CONSUMER_TABLES,
    CONSUMERS,
    DEAD_LETTERS,
    DELIVERIES,
    ConsumerRow,
)
from riffdb.database.contracts import stored_plan
from riffdb.database.rebuilding import RECORDS_AT_ONCE, History, Rebuilding
from riffdb.database.records import EMPTY_CHAIN, chained
from riffdb.database.secrets import secret_hash
from riffdb.database.settings import KEYS, SETTINGS
from riffdb.database.walks import Heads, Walk
from riffdb.plan.identity import plan_hash
from riffdb.storage.protocol import Reader, Scan, Store


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of it: how many commits and rows were read, and the first difference, None if all agrees.

    `erased`: values of secret fields that are gone and so could not be compared. `trimmed`: commits that are gone, for
    which there are the rows that they had left.
    """

    commits: int
    rows: int
    first_difference: str | None
    erased: int = 0
    trimmed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The answer of `riffdb verify`."""
        return {
            "ok": self.first_difference is None,
            "commits": self.commits,
            "rows": self.rows,
            "first_difference": self.first_difference,
            "erased": self.erased,
            "trimmed": self.trimmed,
        }


async def verify(reader: Reader, scratch: Store) -> Verification:
    """Compare everything in the reader's snapshot; `scratch` is an empty store, which is left full."""
    verifier = _Verifier(reader, scratch)
    try:
        await verifier.run()
    except RiffError as error:
        if error.code not in ("RDB-E-VERIFY", "RDB-E-STORAGE"):
            raise
        return verifier.verification(error.message)
    return verifier.verification(None)


class _Verifier:
    def __init__(self, reader: Reader, scratch: Store) -> None:
        self._reader = reader
        self._scratch = scratch
        self.commits = self.rows = self.erased = self.trimmed = 0

    def verification(self, first_difference: str | None) -> Verification:
        """What came of it."""
        return Verification(self.commits, self.rows, first_difference, self.erased, self.trimmed)

    async def run(self) -> None:
        for damage in await self._reader.damages():
            raise _differs(f"the store itself is damaged: {damage}")
        deployed = await self._reader.contracts()
        for entry in deployed:
            _check_contract(entry)
        history = History(deployed)
        rebuilding = Rebuilding(self._reader, history) if deployed else None
        if rebuilding is not None:
            await rebuilding.tables(self._scratch)
        operators = _Operators(deployed)
        heads = Heads(self._reader)
        while (head := await heads.next()) is not None:
            await self._partition(head, rebuilding, operators)
        if await self._reader.commits() != self.commits:
            raise _differs("there are commit records of partitions that have no head, or behind a head")
        operators.compare(await self._reader.capability_list())
        if rebuilding is not None:
            operators.compare_settings(await self._reader.scan(Scan(SETTINGS, None, ())))
            await self._compare(history, rebuilding)
            await self._consumers()

    async def _partition(self, head: Head, rebuilding: Rebuilding | None, operators: "_Operators") -> None:
        name = partition_text(head.partition)
        sequence, time, chain = 0, None, EMPTY_CHAIN
        base = await base_of(self._reader, head.partition) if rebuilding is not None else None
        if rebuilding is not None and base is not None:
            operators.check_base(base)
            await rebuilding.begin(self._scratch, base)
            await self._left_over(base)
            sequence, time, chain = base.through, base.time, base.chain
            self.trimmed += base.through
        while records := await self._reader.log(head.partition, sequence, RECORDS_AT_ONCE):
            secrets = await self._secrets(head.partition, records)
            for record in records:
                _check_record(record, sequence + 1, time, chain)
                sequence, time, chain = record.sequence, record.time, record.chain
                if head.partition == SYSTEM_PARTITION:
                    operators.add(record)
            if rebuilding is not None:
                await rebuilding.apply(self._scratch, records, secrets)
            self.commits += len(records)
        if (head.sequence, head.time, head.chain) != (sequence, time, chain):
            raise _differs(f"the head of partition {name} is not its newest commit, {sequence}")

    async def _left_over(self, base: Base) -> None:
        """Look at commits that a base stands for, and that are still there: the newest of them, up to its own."""
        newest: CommitRecord | None = None
        sequence = 0
        while sequence < base.through:
            found = await self._reader.log(base.partition, sequence, RECORDS_AT_ONCE)
            records = [record for record in found if record.sequence <= base.through]
            if not records:
                break
            for record in records:
                if newest is not None:
                    _check_record(record, newest.sequence + 1, newest.time, newest.chain)
                newest = record
            sequence = records[-1].sequence
            self.commits += len(records)
        if newest is not None and (newest.sequence, newest.time, newest.chain) != (base.through, base.time, base.chain):
            raise _differs(f"commit {newest.sequence} of partition {partition_text(base.partition)} is not its base's")

    async def _secrets(self, partition: bytes, records: Sequence[CommitRecord]) -> dict[int, SecretPart]:
        """The secret parts that are there, each of which is what its record has the hash of."""
        hashed = {record.sequence: record.secret_hash for record in records if record.secret_hash}
        parts = await self._reader.secrets(partition, list(hashed)) if hashed else {}
        for sequence, part in parts.items():
            if secret_hash(part) != hashed[sequence]:
                place = f"commit {sequence} of partition {partition_text(partition)}"
                raise _differs(f"the secret part of {place} is not what its record has the hash of")
        return parts

    async def _compare(self, history: History, rebuilding: Rebuilding) -> None:
        """Compare all rows and tombstones with those that the log makes."""
        newest = history.newest
        async with self._scratch.snapshot() as made:
            for entity, table in newest.tables.items():
                names = [column.name for column in table.columns]
                pairs = _Pairs(table, self._reader, made)
                while (pair := await pairs.next()) is not None:
                    found, expected = pair
                    key = table.key_of(found or expected or ())
                    erased = rebuilding.erased.get((entity, key), frozenset())
                    self.erased += len(erased)
                    _check_row(f"row of `{entity}`", names, found, expected, erased)
                    self.rows += 1
                grave = newest.tombstones[entity]
                names = [column.name for column in grave.columns]
                pairs = _Pairs(grave, self._reader, made)
                while (pair := await pairs.next()) is not None:
                    _check_row(f"tombstone of `{entity}`", names, *pair, frozenset())

    async def _consumers(self) -> None:
        for table in CONSUMER_TABLES:
            rows = Walk(self._reader, table)
            while (row := await rows.next()) is not None:
                if table is CONSUMERS:
                    await self._consumer(ConsumerRow._make(row))
                elif not await self._reader.rows(CONSUMERS, [row[:2]]):
                    raise _differs(f"a row of {table.name} belongs to no consumer")

    async def _consumer(self, row: ConsumerRow) -> None:
        name = f"consumer `{row.name}` of stream `{row.stream}` in partition {partition_text(row.partition)}"
        head = (await self._reader.heads({row.partition})).get(row.partition)
        if row.read_sequence > (1 if head is None else head.sequence + 1):
            raise _differs(f"the {name} has read further than was committed")
        prefix = (row.partition, row.id)
        for table, expected in ((DELIVERIES, row.unsettled), (DEAD_LETTERS, row.dead_letters)):
            found = len(await self._reader.scan(Scan(table, None, prefix, limit=expected + 1)))
            if found != expected:
                raise _differs(f"the {name} counts {expected} rows in {table.name}, and there are other")


class _Operators:
    """What the records of the system partition say of contracts and capabilities."""

    def __init__(self, deployed: Sequence[DeployedContract]) -> None:
        self._deployed = deployed
        self._times: list[tuple[bytes, int]] = []
        self._capabilities: dict[str, tuple[dict[str, Any], int, int | None]] = {}
        self._settings: dict[str, tuple[int, int]] = {}
        self._trims: dict[int, list[dict[str, str]]] = {}
        self._trimmed: set[str] = set()

    def add(self, record: CommitRecord) -> None:
        """Take the next record into account."""
        facts = msgspec.json.decode(record.input)
        if record.command == "deploy":
            self._times.append((record.plan_hash, record.time))
        elif record.command == "retention.trim":
            self._trims[record.sequence] = facts["partitions"]
            self._trimmed |= {told["partition"] for told in facts["partitions"]}
        elif record.command == "retention.keys":
            self._settings[KEYS] = (facts[KEYS], record.sequence)
        elif record.command in ("capability.create", "capability.derive"):
            self._capabilities[facts["id"]] = (facts, record.time, None)
        elif record.command in ("capability.revoke", "restore"):
            for identity in facts["ended"]:
                told, created_at, revoked_at = self._capabilities[identity]
                self._capabilities[identity] = (told, created_at, revoked_at or record.time)

    def check_base(self, base: Base) -> None:
        """Raise a difference between a base and the act that put it in force."""
        self._trimmed.discard(partition_text(base.partition))
        if base.facts() not in self._trims.get(base.commit_sequence, ()):
            name = partition_text(base.partition)
            raise _differs(f"the base of partition {name} is not the one that an operator's act tells of")

    def compare_settings(self, rows: Sequence[Row]) -> None:
        """Raise the first difference."""
        for partition in self._trimmed:
            raise _differs(f"the base of partition {partition} is gone")
        if {name: (value, sequence) for _, name, value, _, sequence in rows} != self._settings:
            raise _differs("the settings are not those that operators set")

    def compare(self, capabilities: Sequence[Capability]) -> None:
        """Raise the first difference."""
        if [(entry.plan_hash, entry.time) for entry in self._deployed] != self._times:
            raise _differs("the deployed contracts are not those that operators deployed")
        for capability in capabilities:
            told = self._capabilities.pop(capability.id, None)
            if told != (capability_facts(capability), capability.created_at, capability.revoked_at):
                raise _differs(f"the capability {capability.id} is not as operators made and ended it")
        for identity in self._capabilities:
            raise _differs(f"the capability {identity} is gone")


def _check_contract(entry: DeployedContract) -> None:
    if plan_hash(stored_plan(entry)) != entry.plan_hash:
        raise _differs(f"the contract of {timestamp_text(entry.time)} is not what its hash says")


def _check_record(record: CommitRecord, sequence: int, time: int | None, chain: bytes) -> None:
    place = f"commit {record.sequence} of partition {partition_text(record.partition)}"
    if record.sequence != sequence:
        raise _differs(f"{place} stands where commit {sequence} should be")
    if time is not None and record.time <= time:
        raise _differs(f"{place} is not later than the one before")
    if chained((*record[:-1], chain)).chain != record.chain:
        raise _differs(f"{place} is not what its hash in the chain was made of, or one before it is not")


def _check_row(
    what: str, names: Sequence[str], found: Row | None, expected: Row | None, erased: frozenset[str]
) -> None:
    if found is None or expected is None:
        newest = (found or expected or ())[-1]
        told = "is there, and the log tells of none" if expected is None else "is missing"
        raise _differs(f"a {what}, written by commit {newest}, {told}")
    for name, value, other in zip(names, found, expected, strict=True):
        if value != other and name not in erased:
            raise _differs(f"`{name}` in a {what}, written by commit {expected[-1]}, is not what the log tells")


class _Pairs:
    """The rows of a table in two snapshots, those with the same key together; keys sort alike in all stores."""

    def __init__(self, table: Table, left: Reader, right: Reader) -> None:
        self._key_of = table.key_of
        self._left, self._right = Walk(left, table), Walk(right, table)
        self._found: Row | None = None
        self._expected: Row | None = None

    async def next(self) -> tuple[Row | None, Row | None] | None:
        """The next pair, None behind the last; one of it is None where only the other has the key."""
        self._found = self._found or await self._left.next()
        self._expected = self._expected or await self._right.next()
        found, expected = self._found, self._expected
        if found is None and expected is None:
            return None
        if found is not None and expected is not None:
            ours, theirs = self._key_of(found), self._key_of(expected)
            found, expected = (found if ours <= theirs else None), (expected if theirs <= ours else None)
        if found is not None:
            self._found = None
        if expected is not None:
            self._expected = None
        return found, expected


def _differs(message: str) -> RiffError:
    return RiffError("RDB-E-VERIFY", message)
