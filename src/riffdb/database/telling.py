"""What the log tells operators: the commits of a partition or of all, one of them with its reasons, rows as they stood.

Everything goes through `redaction`. The log of all partitions is in the order in which the store took the commits. A
row as it stood is put together from the newest commit that wrote it before, back to the one that made it, or to the
base of those that were trimmed. Absent: whether what the log tells is so, which `verifying` finds out.
"""

import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import SYSTEM_PARTITION, partition_text
from riffdb.core.records import CommitRecord
from riffdb.core.types import TIMESTAMP, U64
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.bases import base_of, base_row
from riffdb.database.callers import Caller, check_partition
from riffdb.database.contracts import Contract
from riffdb.database.provenance import RowName, commits_of, row_named
from riffdb.database.reasons import reasons
from riffdb.database.rebuilding import History
from riffdb.database.redaction import (
    REDACTED,
    hidden_fields,
    owners_in,
    redacted_change,
    redacted_event,
    redacted_input,
    without_texts,
)
from riffdb.storage.protocol import Reader

RECORDS_AT_ONCE = 200
_TIME = decoder(TIMESTAMP, {})
_SEQUENCE = decoder(U64, {})


@dataclass(frozen=True, slots=True)
class Filter:
    """Which commits are wanted; None for any. Times in µs, both ends included."""

    command: str | None = None
    outcome: str | None = None
    principal: str | None = None
    key: str | None = None
    since: int | None = None
    until: int | None = None

    def passes(self, record: CommitRecord) -> bool:
        """Whether the record is wanted."""
        return (
            self.command in (None, record.command)
            and self.outcome in (None, record.outcome)
            and self.principal in (None, record.principal)
            and self.key in (None, record.key)
            and (self.since is None or record.time >= self.since)
            and (self.until is None or record.time <= self.until)
        )


def decode_time(value: object, name: str) -> int | None:
    """The moment that a time in wire form names (µs), None for None."""
    moment: int | None = None if value is None else _TIME(value, name)
    return moment


def decode_sequence(value: object, name: str) -> int:
    """A commit sequence, given as a number or in its wire form."""
    number: int = _SEQUENCE(value, name)
    return number


def decode_partition(contract: Contract, caller: Caller, value: object) -> bytes:
    """The bytes of a partition in its wire form, or of `system`, which only unrestricted operators may see."""
    partition = SYSTEM_PARTITION if value == "system" else contract.decode_partition(value)
    check_partition(caller, partition)
    return partition


async def newest(
    reader: Reader, history: History, partition: bytes | None, wanted: Filter, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """The newest commits that pass, at most `limit`, oldest first; below the sequence `before` of the partition."""
    found: list[CommitRecord] = []
    place = before
    while len(found) < limit:
        place, records = await _earlier(reader, partition, place)
        found += [record for record in records if wanted.passes(record)]
        if not records or (wanted.since is not None and records[-1].time < wanted.since):
            break
    return [entry(history, record) for record in found[limit - 1 :: -1]]


async def _earlier(reader: Reader, partition: bytes | None, place: int | None) -> tuple[int, list[CommitRecord]]:
    """Some commits before a place, newest first, and the place before them."""
    if partition is None:
        placed = await reader.recent(place, RECORDS_AT_ONCE)
        return placed[-1][0] if placed else 0, [record for _, record in placed]
    if place is None:
        head = (await reader.heads({partition})).get(partition)
        place = 1 if head is None else head.sequence + 1
    start = max(place - RECORDS_AT_ONCE, 1)
    return start, (await reader.log(partition, start - 1, place - start))[::-1]


def entry(history: History, record: CommitRecord) -> dict[str, Any]:
    """A commit as it is shown."""
    told = {
        "partition": partition_text(record.partition),
        "sequence": str(record.sequence),
        "time": timestamp_text(record.time),
        "command": record.command,
        "key": record.key,
        "outcome": record.outcome,
        "principal": record.principal,
        "capability": record.capability or None,
        "role": record.role or None,
        "ingress": record.ingress,
        "contract_version": record.contract_version,
        "contract_hash": record.plan_hash.hex(),
    }
    given = json.loads(record.input)
    if record.partition == SYSTEM_PARTITION:
        given.pop("token", None)  # a hash of a hash, and nobody's business
        return told | {"input": given, "changes": [], "events": []}
    contract = history.contract(record.plan_hash)
    changes = json.loads(record.changes)
    owners = owners_in(contract, record.command, given, changes)
    shown: dict[str, Any] = without_texts(
        {
            "input": redacted_input(contract, record.command, given),
            "changes": [redacted_change(contract, change) for change in changes],
            "events": [redacted_event(contract, record.command, event) for event in json.loads(record.events)],
        },
        owners,
    )
    return told | shown


async def why(reader: Reader, history: History, partition: bytes, sequence: object) -> dict[str, Any]:
    """One commit, with the checks that it passed and the one that ended it; `RDB-E-NOT-FOUND` if there is none."""
    number = decode_sequence(sequence, "sequence")
    record = (await reader.records(partition, [number])).get(number)
    if record is None:
        raise RiffError("RDB-E-NOT-FOUND", "there is no commit with that sequence in that partition, or it was trimmed")
    told = entry(history, record)
    if partition == SYSTEM_PARTITION:
        return told | {"checks": []}
    contract = history.contract(record.plan_hash)
    return told | {"checks": reasons(contract.plan.command(record.command), record.outcome, contract.enums)}


async def row_at(
    reader: Reader, history: History, caller: Caller, entity: str, key: Sequence[object], at: object
) -> dict[str, Any]:
    """A row as it is, or as it stood at a sequence or a time; `RDB-E-NOT-FOUND` where it was not there."""
    contract = history.newest
    name = row_named(contract, entity, key)
    check_partition(caller, name.partition)
    sequence, time = _moment(at)
    fields: dict[str, Any] = {}
    newest: _Written | None = None
    async with aclosing(commits_of(reader, contract, name)) as commits:
        async for record, change in commits:
            if (sequence is not None and record.sequence > sequence) or (time is not None and record.time > time):
                continue
            newest = newest or _Written(change, record.sequence, record.time)
            fields = _fields_of(change) | fields
            if change["after"] is None or change["before"] is None:
                break
        else:  # what is left of the log does not tell all of the row
            based = await _based(reader, contract, name, sequence, time)
            newest = newest or based
            fields = (_fields_of(based.change) if based is not None else {}) | fields
    if newest is None or newest.change["after"] is None:
        raise RiffError("RDB-E-NOT-FOUND", f"there is no row of `{name.entity.name}` with that key, or was none then")
    return _shown_row(history, name, fields, newest)


class _Written(NamedTuple):
    """What tells of a row, and the commit that wrote it; when, unless that was trimmed (µs)."""

    change: dict[str, Any]
    sequence: int
    time: int | None


def _fields_of(change: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = change["fields"] | dict.fromkeys(change.get("secret", ()), REDACTED)
    return fields


async def _based(
    reader: Reader, contract: Contract, name: RowName, sequence: int | None, time: int | None
) -> _Written | None:
    """The row as trimmed commits had left it; None where they had left none."""
    base = await base_of(reader, name.partition)
    if base is None:
        return None
    if (sequence is not None and sequence < base.through) or (time is not None and time < base.time):
        told = f"commit {base.through}, of {timestamp_text(base.time)}"
        raise RiffError("RDB-E-NOT-FOUND", f"the log of that partition is trimmed up to {told}; ask for that or later")
    row = await base_row(reader, base, name.entity.name, contract.rows[name.entity.name].key(name.key))
    return None if row is None else _Written(json.loads(row.told), row.commit_sequence, None)


def _shown_row(history: History, name: RowName, fields: dict[str, Any], written: _Written) -> dict[str, Any]:
    change = written.change
    hidden = hidden_fields(history.newest, name.entity)
    missing = [column for column in name.entity.columns if column not in fields]
    if missing:  # columns that came later: as they are in every older row
        initials = history.initials[name.entity.name]
        whole = tuple(initials[column] for column in name.entity.columns)
        later = json.loads(history.newest.rows[name.entity.name].row((*whole, 0, 0)))
        fields = {column: later.get(column) for column in missing} | fields
    return {
        "entity": name.entity.name,
        "key": change["key"],
        "revision": change["after"],
        "fields": {
            column: REDACTED if column in hidden else fields[column]
            for column in name.entity.columns
            if column not in change["key"]
        },
        "commit": {
            "partition": partition_text(name.partition),
            "sequence": str(written.sequence),
            "time": None if written.time is None else timestamp_text(written.time),
        },
    }


def _moment(at: object) -> tuple[int | None, int | None]:
    """The sequence or the time that `at` names."""
    if at is None:
        return None, None
    if isinstance(at, int) or (isinstance(at, str) and at.isascii() and at.isdecimal()):
        return _SEQUENCE(str(at), "at"), None
    try:
        return None, decode_time(at, "at")
    except RiffError:
        raise input_error("at", "must be a commit sequence, or a time such as 2026-01-31T09:30:00.000000Z") from None
