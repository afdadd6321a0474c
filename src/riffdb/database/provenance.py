"""Who did what to a row: the chain of commits that wrote it, newest last.

A row, or its tombstone, names the commit that last wrote it, and each change in a commit names the one before, so a
history is a walk through all lives of a key and needs no index. Lease owners, fencing tokens and secrets are shown as
redacted.
"""

import json
from collections.abc import Sequence
from typing import Any

from riffdb.core.errors import RiffError, input_error
from riffdb.core.records import CommitRecord
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.callers import Caller, check_partition
from riffdb.database.contracts import Contract
from riffdb.plan.declarations import EntityPlan
from riffdb.storage.protocol import Reader

REDACTED = "[redacted]"


async def history(
    reader: Reader, contract: Contract, caller: Caller, entity_name: str, key: Sequence[object]
) -> list[dict[str, Any]]:
    """The commits that wrote the row with this key (values in declared order), oldest first."""
    entity = contract.entity_named(entity_name)
    if len(key) != len(entity.key):
        names = ", ".join(part.name for part in entity.key)
        raise input_error("key", f"must give {len(entity.key)} values: {names}")
    values = {
        part.name: decoder(part.type, contract.enums)(value, part.name)
        for part, value in zip(entity.key, key, strict=True)
    }
    partition = contract.partition_of(entity)(values[entity.partition])
    check_partition(caller, partition)
    table = contract.tables[entity.name]
    storage_key = tuple(values[name] for name in entity.storage_key)
    row = (await reader.rows(table, [storage_key])).get(storage_key)
    if row is None:
        row = (await reader.rows(contract.tombstones[entity.name], [storage_key])).get(storage_key)
    if row is None:
        raise RiffError("RDB-E-NOT-FOUND", f"there is no row of `{entity.name}` with that key, and never was")
    wire_key = json.loads(contract.rows[entity.name].key(storage_key))
    entries = []
    sequence: int | None = row[-1]  # of a row and of a tombstone alike
    while sequence is not None:
        record = (await reader.records(partition, [sequence])).get(sequence)
        if record is None:
            break
        change = _change_of(record, entity, wire_key)
        entries.append(_entry(contract, entity, record, change))
        sequence = None if change["previous"] is None else int(change["previous"])
    return entries[::-1]


def _change_of(record: CommitRecord, entity: EntityPlan, key: dict[str, Any]) -> dict[str, Any]:
    for change in json.loads(record.changes):
        if change["entity"] == entity.name and change["key"] == key:
            found: dict[str, Any] = change
            return found
    raise RiffError(
        "RDB-E-VERIFY", f"commit {record.sequence} does not tell of the row that names it as its last writer"
    )


def _entry(contract: Contract, entity: EntityPlan, record: CommitRecord, change: dict[str, Any]) -> dict[str, Any]:
    hidden = hidden_fields(contract, entity)
    return {
        "sequence": str(record.sequence),
        "time": timestamp_text(record.time),
        "command": record.command,
        "outcome": record.outcome,
        "principal": record.principal,
        "revision": change["after"],
        "changes": {
            name: REDACTED if name in hidden else value
            for name, value in (change["fields"] | dict.fromkeys(change.get("secret", ()))).items()
        },
    }


def hidden_fields(contract: Contract, entity: EntityPlan) -> frozenset[str]:
    """Fields whose values no view shows: secrets, and the owner and fencing token of a lease."""
    hidden = {part.name for part in entity.fields if part.secret}
    workflow = contract.plan.workflow_of(entity.name)
    if workflow is not None and workflow.lease is not None:
        hidden |= {workflow.lease.owner, workflow.lease.fencing_token}
    return frozenset(hidden)
