"""Who did what to a row: the chain of commits that wrote it.

A row, or its tombstone, names the commit that last wrote it, and each change in a commit names the one before, so a
history is a walk through all lives of a key and needs no index. What is hidden is hidden by `redaction`.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import partition_text
from riffdb.core.layout import Key
from riffdb.core.records import CommitRecord
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.callers import Caller, check_partition
from riffdb.database.contracts import Contract
from riffdb.database.redaction import redacted_change
from riffdb.plan.declarations import EntityPlan
from riffdb.storage.protocol import Reader


@dataclass(frozen=True, slots=True)
class RowName:
    """Which row: its entity, its key in storage order, and its partition."""

    entity: EntityPlan
    key: Key
    partition: bytes


def row_named(contract: Contract, entity_name: str, key: Sequence[object]) -> RowName:
    """The row of the entity with this key, values in declared order; `RDB-E-NOT-FOUND` and `RDB-E-INPUT` otherwise."""
    entity = contract.entity_named(entity_name)
    if len(key) != len(entity.key):
        names = ", ".join(part.name for part in entity.key)
        raise input_error("key", f"must give {len(entity.key)} values: {names}")
    values = {
        part.name: decoder(part.type, contract.enums)(value, part.name)
        for part, value in zip(entity.key, key, strict=True)
    }
    partition = contract.partition_of(entity)(values[entity.partition])
    return RowName(entity, tuple(values[name] for name in entity.storage_key), partition)


async def history(
    reader: Reader, contract: Contract, caller: Caller, entity: str, key: Sequence[object]
) -> list[dict[str, Any]]:
    """The commits that wrote the row with this key (values in declared order), oldest first."""
    name = row_named(contract, entity, key)
    check_partition(caller, name.partition)
    async with aclosing(commits_of(reader, contract, name)) as commits:
        return [_entry(contract, *told) async for told in commits][::-1]


async def commits_of(
    reader: Reader, contract: Contract, name: RowName
) -> AsyncGenerator[tuple[CommitRecord, dict[str, Any]]]:
    """The commits that wrote a row, newest first, each with what it tells of the row, until the log ends.

    `RDB-E-NOT-FOUND` for a key that never had a row.
    """
    row = None
    for table in (contract.tables[name.entity.name], contract.tombstones[name.entity.name]):
        row = row or (await reader.rows(table, [name.key])).get(name.key)
    if row is None:
        raise RiffError("RDB-E-NOT-FOUND", f"there is no row of `{name.entity.name}` with that key, and never was")
    wire_key = json.loads(contract.rows[name.entity.name].key(name.key))
    sequence: int | None = row[-1]  # of a row and of a tombstone alike
    while sequence is not None:
        record = (await reader.records(name.partition, [sequence])).get(sequence)
        if record is None:
            return
        change = _change_of(record, name.entity, wire_key)
        yield record, change
        sequence = None if change["previous"] is None else int(change["previous"])


def _change_of(record: CommitRecord, entity: EntityPlan, key: dict[str, Any]) -> dict[str, Any]:
    for change in json.loads(record.changes):
        if change["entity"] == entity.name and change["key"] == key:
            found: dict[str, Any] = change
            return found
    raise RiffError(
        "RDB-E-VERIFY",
        f"commit {record.sequence} of partition {partition_text(record.partition)} does not tell of the row that names "
        "it as its last writer",
    )


def _entry(contract: Contract, record: CommitRecord, change: dict[str, Any]) -> dict[str, Any]:
    return {
        "sequence": str(record.sequence),
        "time": timestamp_text(record.time),
        "command": record.command,
        "outcome": record.outcome,
        "principal": record.principal,
        "revision": change["after"],
        "changes": redacted_change(contract, change)["fields"],
    }
