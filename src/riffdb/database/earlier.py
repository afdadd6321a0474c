"""A database as it had stood at a moment: the log done over again up to it, in another store.

Where the oldest commits were trimmed it begins with their base, so nothing earlier than that can be had. Capabilities
that were revoked by the time of the source stay revoked, whatever the moment; consumers stand where they stand in the
source, as far as what they have read is there. Absent: where the source comes from, and what tells of all this.
"""

from dataclasses import dataclass, field

import msgspec

from riffdb.core.errors import input_error
from riffdb.core.keys import SYSTEM_PARTITION, partition_text
from riffdb.core.layout import Row
from riffdb.core.records import Batch, Capability, Head, Mutation
from riffdb.core.values import timestamp_text
from riffdb.database.acts import DATABASE_TABLES
from riffdb.database.bases import BASE_ROWS, BASES, Base, base_of, rows_of
from riffdb.database.consumer_rows import CONSUMERS, DEAD_LETTERS, DELIVERIES, ConsumerRow
from riffdb.database.rebuilding import RECORDS_AT_ONCE, History, Rebuilding
from riffdb.database.settings import KEYS, SETTINGS, keys_row
from riffdb.database.streams import before
from riffdb.database.walks import Heads, Walk
from riffdb.storage.protocol import Reader, Store


@dataclass(slots=True)
class Earlier:
    """What the log of the target does not tell yet: ids of capabilities that are to end, and bases that were put in
    force after the moment."""

    ended: list[str] = field(default_factory=list)
    bases: list[Base] = field(default_factory=list)


async def restore_until(source: Reader, target: Store, until: int) -> Earlier:
    """Do the log over again in the empty target, up to and with the moment (µs); `RDB-E-INPUT` for one too early."""
    deployed = [entry for entry in await source.contracts() if entry.time <= until]
    if not deployed:
        raise input_error("until", "is before the first contract was deployed; restore a later moment")
    rebuilding = Rebuilding(source, History(deployed))
    await rebuilding.tables(target)
    async with target.transaction() as transaction:
        await transaction.prepare(DATABASE_TABLES)
    ends: dict[bytes, int] = {}
    bases: list[Base] = []
    heads = Heads(source)
    while (head := await heads.next()) is not None:
        base = await base_of(source, head.partition)
        if base is not None:
            await _put_base(source, target, rebuilding, base, until)
            bases.append(base)
        start = 0 if base is None else base.through
        ends[head.partition] = await _restore_partition(source, target, rebuilding, head.partition, start, until)
    capabilities = [known for known in await source.capability_list() if known.created_at <= until]
    async with target.transaction() as transaction:
        mutations = [*await _consumers(source, ends), *await _settings(source, ends[SYSTEM_PARTITION])]
        await transaction.write(Batch(contracts=deployed, capabilities=capabilities, mutations=mutations))
    return Earlier(
        [known.id for known in capabilities if _ended_later(known, until)],
        [base for base in bases if base.commit_sequence > ends[SYSTEM_PARTITION]],
    )


async def _put_base(source: Reader, target: Store, rebuilding: Rebuilding, base: Base, until: int) -> None:
    if until < base.time:
        what = f"the log of partition {partition_text(base.partition)} is trimmed up to {timestamp_text(base.time)}"
        raise input_error("until", f"{what}; restore that moment or a later one")
    await rebuilding.begin(target, base)
    walk = rows_of(source, base.partition, base.generation)
    while rows := await walk.piece():
        async with target.transaction() as transaction:
            mutations = [Mutation(BASE_ROWS.name, BASE_ROWS.key_of(row), row, False) for row in rows]
            await transaction.write(Batch(mutations=mutations))
    head = Head(base.partition, base.through, base.time, base.chain)
    async with target.transaction() as transaction:
        await transaction.write(Batch(heads=[head], mutations=[Mutation(BASES.name, BASES.key_of(base), base, False)]))


async def _restore_partition(
    source: Reader, target: Store, rebuilding: Rebuilding, partition: bytes, start: int, until: int
) -> int:
    """The sequence of the partition's last commit up to the moment."""
    sequence = start
    while records := await source.log(partition, sequence, RECORDS_AT_ONCE):
        kept = [record for record in records if record.time <= until]
        if kept:
            secrets, head = await rebuilding.secrets(kept), kept[-1].head
            beside = Batch(heads=[head], records=kept, secrets=list(secrets.values()))
            await rebuilding.apply(target, kept, secrets, beside)
            sequence = head.sequence
        if len(kept) < len(records):
            break
    return sequence


async def _settings(source: Reader, end: int) -> list[Mutation]:
    """The settings as operators had set them by this commit of the system partition."""
    found: Row | None = None
    sequence = 0
    while records := await source.log(SYSTEM_PARTITION, sequence, RECORDS_AT_ONCE):
        for record in records:
            if record.command == "retention.keys" and record.sequence <= end:
                found = keys_row(msgspec.json.decode(record.input)[KEYS], 1, record.sequence)
        sequence = records[-1].sequence
    return [] if found is None else [Mutation(SETTINGS.name, SETTINGS.key_of(found), found, False)]


async def _consumers(source: Reader, ends: dict[bytes, int]) -> list[Mutation]:
    """The consumers as they stand in the backup, as far as what they have read is still there."""
    kept: list[Mutation] = []
    counts: dict[tuple[bytes, bytes, str], int] = {}
    for table in (DELIVERIES, DEAD_LETTERS):
        rows = Walk(source, table)
        while (row := await rows.next()) is not None:
            if row[2] <= ends.get(row[0], 0):
                counts[row[0], row[1], table.name] = counts.get((row[0], row[1], table.name), 0) + 1
                kept.append(Mutation(table.name, table.key_of(row), row, False))
    consumers = Walk(source, CONSUMERS)
    while (found := await consumers.next()) is not None:
        kept.append(_consumer(ConsumerRow._make(found), ends.get(found[0], 0), counts))
    return kept


def _consumer(row: ConsumerRow, end: int, counts: dict[tuple[bytes, bytes, str], int]) -> Mutation:
    last = before(end + 1)
    if row.read > last:
        row = row._replace(read_sequence=last.sequence, read_ordinal=last.ordinal)
    if row.base > last:
        row = row._replace(base_sequence=last.sequence, base_ordinal=last.ordinal)
    whole: Row = row._replace(
        unsettled=counts.get((row.partition, row.id, DELIVERIES.name), 0),
        dead_letters=counts.get((row.partition, row.id, DEAD_LETTERS.name), 0),
    )
    return Mutation(CONSUMERS.name, CONSUMERS.key_of(whole), tuple(whole), False)


def _ended_later(capability: Capability, until: int) -> bool:
    return capability.revoked_at is not None and capability.revoked_at > until
