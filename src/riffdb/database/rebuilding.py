"""State out of the log: what the commit records of a partition tell of rows, put into another store.

Each record is read with the contract that it names, and its rows are laid out as the newest contract has them; a column
that came later has its `initial` in older rows. Reading is in pieces, so memory stays bounded. What a record tells must
fit the row that it was written over, or the log contradicts itself: `RDB-E-VERIFY`. Where the oldest commits were
trimmed, it begins with their base. Absent: which stores, and why.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.keys import SYSTEM_PARTITION, partition_text
from riffdb.core.layout import TOMBSTONE_REVISION, TOMBSTONE_SEQUENCE, Key, Row, Table
from riffdb.core.records import Batch, CommitRecord, DeployedContract, SecretPart
from riffdb.core.values import decoder
from riffdb.database.bases import Base, BaseHash, BaseRow, rows_of
from riffdb.database.contracts import Contract, stored_plan
from riffdb.database.overlay import Overlay
from riffdb.storage.protocol import Reader, Store, Transaction

RECORDS_AT_ONCE = 1_000


class RowChange(NamedTuple):
    """What a record tells of one row. `before`, `after`: its revisions, None where there is no row; `previous`: the
    commit that wrote it before. `fields` are those that differ, in inside values; `erased` those whose values are gone.
    `fence`: that of a deleted row, which its tombstone keeps."""

    entity: str
    key: Key
    before: int | None
    after: int | None
    previous: int | None
    fields: Mapping[str, Any]
    erased: frozenset[str]
    fence: int | None


class History:
    """All contracts of a database, and how to read what was written under each. `newest` lays out the rows."""

    def __init__(self, deployed: Sequence[DeployedContract]) -> None:
        self._deployed = deployed
        self._contracts: dict[bytes, Contract] = {}
        self._decoders: dict[tuple[bytes, str], dict[str, Callable[[Any, str], Any]]] = {}

    @cached_property
    def newest(self) -> Contract:
        """The contract that was deployed last; `RDB-E-NOT-FOUND` where there is none."""
        if not self._deployed:
            raise RiffError("RDB-E-NOT-FOUND", "no contract is deployed here yet; run `riffdb deploy` first")
        return self.contract(self._deployed[-1].plan_hash)

    def contract(self, plan_hash: bytes) -> Contract:
        """The contract with this hash; `RDB-E-VERIFY` if it never was deployed."""
        found = self._contracts.get(plan_hash)
        if found is None:
            entry = next((entry for entry in self._deployed if entry.plan_hash == plan_hash), None)
            if entry is None:
                raise RiffError("RDB-E-VERIFY", f"no contract with the hash {plan_hash.hex()} was deployed")
            found = self._contracts[plan_hash] = Contract(stored_plan(entry))
        return found

    @cached_property
    def initials(self) -> dict[str, dict[str, Any]]:
        """By entity and column, what rows have that are older than the column: said when the column came."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self._deployed:
            for entity, table in self.contract(entry.plan_hash).tables.items():
                known = found.setdefault(entity, {})
                for column in table.columns:
                    known.setdefault(column.name, column.initial)
        return found

    def changes(self, record: CommitRecord, secret: SecretPart | None) -> list[RowChange]:
        """What the record tells of rows, in order; `secret` is what was kept apart, None if it is gone."""
        told = msgspec.json.decode(record.changes)
        kept = [{}] * len(told) if secret is None else msgspec.json.decode(secret.changes)
        return [self._change(record.plan_hash, *pair) for pair in zip(told, kept, strict=True)]

    def based(self, base: Base, row: BaseRow) -> RowChange:
        """What a row of a base tells; `RDB-E-VERIFY` if its secret is not what the base has the hash of."""
        row.check()
        secret = msgspec.json.decode(row.secret) if row.secret else {}
        return self._change(base.plan_hash, msgspec.json.decode(row.told), secret)

    def _change(self, plan_hash: bytes, told: dict[str, Any], secret: dict[str, Any]) -> RowChange:
        entity = told["entity"]
        decode = self._decoders.get((plan_hash, entity))
        if decode is None:
            decode = self._decoders[plan_hash, entity] = self._decoders_of(plan_hash, entity)
        fields = told["fields"] | secret
        plan = self.contract(plan_hash).plan.entity(entity)
        return RowChange(
            entity,
            tuple(decode[name](told["key"][name], name) for name in plan.storage_key),
            _number(told["before"]),
            _number(told["after"]),
            _number(told["previous"]),
            {name: decode[name](value, name) for name, value in fields.items()},
            frozenset(told.get("secret", ())) - secret.keys(),
            _number(told.get("fence")),
        )

    def _decoders_of(self, plan_hash: bytes, entity: str) -> dict[str, Callable[[Any, str], Any]]:
        contract = self.contract(plan_hash)
        types = contract.plan.entity(entity).types
        return {name: decoder(value_type, contract.enums) for name, value_type in types.items()}


class Rebuilding:
    """One partition after the other, from a log into a store of its own. `erased` counts values that are gone."""

    def __init__(self, source: Reader, history: History) -> None:
        self._source = source
        self._history = history
        self.erased: dict[tuple[str, Key], frozenset[str]] = {}

    async def tables(self, target: Store) -> None:
        """Make the tables of the newest contract."""
        newest = self._history.newest
        async with target.transaction() as transaction:
            await transaction.prepare([*newest.tables.values(), *newest.tombstones.values()])

    async def begin(self, target: Store, base: Base) -> None:
        """Put the rows of a base into the target; `RDB-E-VERIFY` if they are not those that it has the hash of."""
        found = BaseHash()
        walk = rows_of(self._source, base.partition, base.generation)
        while rows := [BaseRow._make(row) for row in await walk.piece()]:
            overlay = Overlay()
            async with target.transaction() as transaction:
                changes = [self._history.based(base, row) for row in rows]
                await self._load(transaction, overlay, changes)
                for row, change in zip(rows, changes, strict=True):
                    found.add(row)
                    self._put_based(overlay, row, change)
                await transaction.write(Batch(mutations=overlay.mutations()))
        if (found.rows, found.digest()) != (base.rows, base.hash):
            place = f"{base.through} of partition {partition_text(base.partition)}"
            raise RiffError(
                "RDB-E-VERIFY", f"the rows that stand for the commits up to {place} are not as they were made"
            )

    async def secrets(self, records: Sequence[CommitRecord]) -> dict[int, SecretPart]:
        """The secret parts of these records of one partition, by sequence; of some they may be gone."""
        sequences = [record.sequence for record in records if record.secret_hash]
        return await self._source.secrets(records[0].partition, sequences) if sequences else {}

    async def apply(
        self,
        target: Store,
        records: Sequence[CommitRecord],
        secrets: Mapping[int, SecretPart],
        beside: Batch | None = None,
    ) -> None:
        """Put what these records of one partition tell, with their secret parts, into the target, in one transaction
        and `beside` with it."""
        told = [
            (record, change)
            for record in records
            if record.partition != SYSTEM_PARTITION
            for change in self._history.changes(record, secrets.get(record.sequence))
        ]
        batch = Batch() if beside is None else beside
        async with target.transaction() as transaction:
            overlay = Overlay()
            await self._load(transaction, overlay, [change for _, change in told])
            for record, change in told:
                self._put(overlay, record, change)
            batch.mutations = overlay.mutations()
            await transaction.write(batch)

    async def _load(self, transaction: Transaction, overlay: Overlay, changes: Sequence[RowChange]) -> None:
        newest = self._history.newest
        wanted: dict[str, dict[Key, None]] = {}
        for change in changes:
            wanted.setdefault(change.entity, {})[change.key] = None
        for entity, keys in wanted.items():
            if entity in newest.tables:
                for table in (newest.tables[entity], newest.tombstones[entity]):
                    await overlay.load(transaction, table, list(keys))

    def _put(self, overlay: Overlay, record: CommitRecord, change: RowChange) -> None:
        newest = self._history.newest
        if change.entity not in newest.tables:
            return  # an entity that is gone had no rows any more
        table, grave = newest.tables[change.entity], newest.tombstones[change.entity]
        row, tombstone = overlay.of(table)[change.key], overlay.of(grave)[change.key]
        _check_fit(record, change, row, tombstone)
        place = (change.entity, change.key)
        if change.after is None:
            assert change.before is not None, "a record tells of the row that it deleted"
            overlay.change(table, change.key, None)
            overlay.change(grave, change.key, (*change.key, change.fence, change.before + 1, record.sequence))
            self.erased.pop(place, None)
            return
        if tombstone is not None:
            overlay.change(grave, change.key, None)
        overlay.change(table, change.key, self._successor(table, record.sequence, change, row))
        erased = (self.erased.get(place, frozenset()) - change.fields.keys()) | change.erased
        if erased:
            self.erased[place] = erased
        else:
            self.erased.pop(place, None)

    def _put_based(self, overlay: Overlay, row: BaseRow, change: RowChange) -> None:
        newest = self._history.newest
        if change.entity not in newest.tables:
            return
        table, grave = newest.tables[change.entity], newest.tombstones[change.entity]
        if change.after is None:
            assert change.before is not None, "a tombstone has the revision of its deletion"
            overlay.change(grave, change.key, (*change.key, change.fence, change.before + 1, row.commit_sequence))
            return
        overlay.change(table, change.key, self._successor(table, row.commit_sequence, change, None))
        if change.erased:
            self.erased[change.entity, change.key] = change.erased

    def _successor(self, table: Table, sequence: int, change: RowChange, row: Row | None) -> Row:
        names = [column.name for column in table.columns[:-2]]
        if row is None:
            initials = self._history.initials[change.entity]
            before: Sequence[Any] = [initials[name] for name in names]
        else:
            before = row
        fields = change.fields
        values = [fields.get(name, old) for name, old in zip(names, before, strict=False)]
        return (*values, change.after, sequence)


def _check_fit(record: CommitRecord, change: RowChange, row: Row | None, tombstone: Row | None) -> None:
    """Refuse a record that was not written over this row."""
    revision, sequence = (None, None) if row is None else (row[-2], row[-1])
    if row is None and tombstone is not None:
        sequence = tombstone[TOMBSTONE_SEQUENCE]
    is_growing = change.after is None or change.after > (revision or 0)
    if tombstone is not None and change.after is not None:
        is_growing = change.after >= tombstone[TOMBSTONE_REVISION]  # equal where a row is put back as it was
    if (change.before, change.previous) != (revision, sequence) or not is_growing:
        raise RiffError(
            "RDB-E-VERIFY",
            f"what is known of row {change.entity}, written before by commit {sequence} at revision {revision}, is not "
            f"what commit {record.sequence} of partition {partition_text(record.partition)} was written over",
        )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
