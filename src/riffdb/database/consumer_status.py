"""How a consumer stands: where its checkpoint is, how far it lags, what is unresolved. One snapshot, nothing written.

The lag counts the stream's events that are not settled, redriven ones aside. Counting ends after a bounded number of
commits, and the answer says so. Absent: acting on any of it.
"""

from typing import Any

from riffdb.core.limits import EVENT_RECORDS_MAX, UNSETTLED_MAX
from riffdb.core.values import SECOND, timestamp_text
from riffdb.database.callers import check_token
from riffdb.database.consumer_requests import Subject, unknown_consumer
from riffdb.database.consumer_rows import CONSUMERS, DELIVERIES, ConsumerRow, DeliveryRow
from riffdb.database.streams import Passed, Position, events_after
from riffdb.storage.protocol import Reader, Scan


async def status(reader: Reader, subject: Subject) -> dict[str, Any]:
    """The state of a consumer as a JSON object; `RDB-E-NOT-FOUND` if there is no such consumer."""
    await check_token(reader, subject.caller)
    found = (await reader.rows(CONSUMERS, [subject.key])).get(subject.key)
    row = None if found is None else ConsumerRow._make(found)
    if row is None or row.is_retired:
        raise unknown_consumer()
    head = (await reader.heads({subject.partition})).get(subject.partition)
    time = max(await reader.time(), 0 if head is None else head.time)
    scan = Scan(DELIVERIES, None, subject.key, limit=2 * UNSETTLED_MAX)
    deliveries = [DeliveryRow._make(delivery) for delivery in await reader.scan(scan)]
    counted = [delivery for delivery in deliveries if not delivery.is_redriven]
    unread = await events_after(
        reader,
        subject.stream,
        subject.params,
        subject.partition,
        row.read,
        wanted=UNSETTLED_MAX,
        records=EVENT_RECORDS_MAX,
    )
    oldest = await _oldest(reader, subject, counted, unread)
    read = _right_before(unread.events[0].position) if unread.events else unread.until
    waiting = [delivery for delivery in deliveries if delivery.available_at > time]
    leased = sum(delivery.is_leased for delivery in waiting)
    return {
        "consumer": row.name,
        "checkpoint": str(_right_before(counted[0].position) if counted else read),
        "read": str(read),
        "lag_events": len(unread.events) + len(counted),
        "lag_is_exact": unread.is_whole,
        "lag_seconds": 0 if oldest is None else max(0, time - oldest[2]) / SECOND,
        "unsettled": len(deliveries),
        "leased": leased,
        "delayed": len(waiting) - leased,
        "redriven": len(deliveries) - len(counted),
        "oldest_unsettled": None
        if oldest is None
        else {"event_id": str(oldest[0]), "attempt": oldest[1], "time": timestamp_text(oldest[2])},
        "dead_letters": row.dead_letters,
        "attempts_max": row.attempt_max,
    }


def _right_before(position: Position) -> Position:
    return Position(position.sequence, position.ordinal - 1)


async def _oldest(
    reader: Reader, subject: Subject, counted: list[DeliveryRow], unread: Passed
) -> tuple[Position, int, int] | None:
    """The first event that is not settled: its place, its newest attempt (0 if it was never given), its time."""
    if counted:
        first = counted[0]
        for record in await reader.events(subject.partition, first.sequence - 1, 1):
            return first.position, first.attempt, record.time
    if unread.events:
        return unread.events[0].position, 0, unread.events[0].time
    return None
