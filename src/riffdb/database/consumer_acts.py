"""What operators do to a consumer: seek, redrive its dead letters, retire it. Each is a commit record of the system
partition, written in one transaction with what it changes.

A seek lets go of what was read and not settled, and reading goes on at the new place; attempts go on from where they
were, for whatever is delivered again. Absent: deleting events, which nothing does.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import UNSETTLED_MAX
from riffdb.core.records import Batch
from riffdb.core.types import TIMESTAMP
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.acts import system_commit
from riffdb.database.bases import Base, base_of, first_kept
from riffdb.database.consumer_batch import ConsumerBatch
from riffdb.database.consumer_requests import Subject, event_position, too_many_unsettled, unknown_consumer
from riffdb.database.consumer_rows import (
    BY_REDRIVEN,
    DEAD_LETTERS,
    DELIVERIES,
    ConsumerRow,
    DeadLetterRow,
    DeliveryRow,
)
from riffdb.database.streams import Position, before
from riffdb.storage.protocol import Reader, Scan, Transaction

_ALL = (1 << 31) - 1
_TIME = decoder(TIMESTAMP, {})

Target = str | int | Position
"""Where to seek: a word, a time (µs), or the event that shall come next."""


def seek_target(value: object) -> Target:
    """What `to` of a seek names; `RDB-E-INPUT` for anything else."""
    if value in ("start", "now"):
        return str(value)
    try:
        return event_position(value)
    except RiffError:
        pass
    try:
        moment: int = _TIME(value, "to")
    except RiffError:
        what = 'must be "start", "now", an event id such as "12:1", or a time such as 2026-01-31T09:30:00.000000Z'
        raise input_error("to", what) from None
    return moment


async def seek(transaction: Transaction, subject: Subject, target: Target, told: str) -> dict[str, Any]:
    """Let the consumer read on at another place."""

    async def change(batch: ConsumerBatch, row: ConsumerRow) -> tuple[ConsumerRow, dict[str, Any]]:
        position = await _place(transaction, subject.partition, batch.newest(subject.partition), target)
        let_go = await batch.scan(Scan(DELIVERIES, BY_REDRIVEN, (*subject.key, False), limit=_ALL))
        for found in let_go:
            batch.drop(DeliveryRow._make(found))
        row = _rebased(row).changed(unsettled=row.unsettled - len(let_go)).at(position)
        return row, {"read": str(position)}

    return await _changed(transaction, subject, "stream.seek", {"to": told}, change)


async def redrive(transaction: Transaction, subject: Subject, position: Position | None) -> dict[str, Any]:
    """Let dead letters be delivered again: one, or as many as the limit of unsettled deliveries allows."""

    async def change(batch: ConsumerBatch, row: ConsumerRow) -> tuple[ConsumerRow, dict[str, Any]]:
        room = UNSETTLED_MAX - row.unsettled
        if room <= 0:
            raise too_many_unsettled(UNSETTLED_MAX)
        prefix = subject.key if position is None else (*subject.key, *position)
        letters = await batch.scan(Scan(DEAD_LETTERS, None, prefix, limit=room))
        if position is not None and not letters:
            raise RiffError("RDB-E-NOT-FOUND", "the consumer has no dead letter of that event")
        time = batch.time(subject.partition)
        for letter in (DeadLetterRow._make(found) for found in letters):
            batch.drop(letter)
            batch.put_delivery(DeliveryRow(*letter[:4], letter.attempt, 0, time, False, None, True, 1, 0))
        count = len(letters)
        row = row.changed(unsettled=row.unsettled + count, dead_letters=row.dead_letters - count)
        return row, {"redriven": count, "dead_letters": row.dead_letters}

    facts = {"event_id": None if position is None else str(position)}
    return await _changed(transaction, subject, "stream.redrive", facts, change)


async def retire(transaction: Transaction, subject: Subject) -> dict[str, Any]:
    """End the consumer with its deliveries and dead letters; a later `next` of its name makes it anew."""

    async def change(batch: ConsumerBatch, row: ConsumerRow) -> tuple[ConsumerRow, dict[str, Any]]:
        for found in await batch.scan(Scan(DELIVERIES, None, subject.key, limit=_ALL)):
            batch.drop(DeliveryRow._make(found))
        for found in await batch.scan(Scan(DEAD_LETTERS, None, subject.key, limit=_ALL)):
            batch.drop(DeadLetterRow._make(found))
        row = _rebased(row).changed(unsettled=0, dead_letters=0, is_retired=True)
        return row, {"disposition": "Applied"}

    return await _changed(transaction, subject, "stream.retire", {}, change)


def _rebased(row: ConsumerRow) -> ConsumerRow:
    """The consumer for which whatever it has read counts as delivered with its highest attempt."""
    base = max(row.base, row.read)
    return row.changed(attempt_base=row.attempt_max, base_sequence=base.sequence, base_ordinal=base.ordinal)


async def _changed(
    transaction: Transaction,
    subject: Subject,
    act: str,
    facts: dict[str, Any],
    change: Callable[[ConsumerBatch, ConsumerRow], Awaitable[tuple[ConsumerRow, dict[str, Any]]]],
) -> dict[str, Any]:
    batch = await ConsumerBatch.of(transaction, {subject.partition})
    row = await batch.consumer(subject)
    if row is None or row.is_retired:
        raise unknown_consumer()
    row, answer = await change(batch, row)
    batch.put(row)
    told = {"stream": row.stream, "params": row.params, "consumer": row.name, **facts}
    head, record = await system_commit(transaction, subject.contract, subject.caller, act, told, "done")
    await transaction.write(Batch(heads=[head], records=[record], mutations=batch.mutations()))
    return answer


async def _place(reader: Reader, partition: bytes, newest: int, target: Target) -> Position:
    base = await base_of(reader, partition)
    if target == "start":
        return first_kept(base)
    if target == "now":
        return before(newest + 1)
    if isinstance(target, Position):
        if target.sequence > newest:
            raise input_error("to", "lies behind the newest commit of the partition")
        if base is not None and target.sequence <= base.through:
            raise _trimmed(base)
        return Position(target.sequence, target.ordinal - 1)
    assert isinstance(target, int)
    if base is not None and target <= base.time:
        raise _trimmed(base)
    low, high = 1 if base is None else base.through + 1, newest + 1  # the first commit at or after the time
    while low < high:
        middle = (low + high) // 2
        if (await reader.records(partition, [middle]))[middle].time < target:
            low = middle + 1
        else:
            high = middle
    return before(low)


def _trimmed(base: Base) -> RiffError:
    kept = f"the log of the partition is trimmed up to commit {base.through}, of {timestamp_text(base.time)}"
    return input_error("to", f'{kept}; seek to what is later, or to "start" for the oldest event that is kept')
