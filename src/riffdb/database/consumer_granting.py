"""Granting deliveries: what can be delivered is looked up on a snapshot, and given in a transaction.

The look writes nothing, so that a consumer with nothing to do costs nothing. What it read of the log holds in the
transaction too, since commits never change; rows are read there again. Attempts of an event only grow. Absent: waiting.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256

from riffdb.core.errors import RiffError
from riffdb.core.limits import CONSUMERS_MAX, DELIVERY_ATTEMPTS_MAX, EVENT_RECORDS_MAX, UNSETTLED_MAX
from riffdb.core.values import SECOND, timestamp_text
from riffdb.database.bases import base_of, first_kept
from riffdb.database.callers import check_token
from riffdb.database.codecs import json_text
from riffdb.database.consumer_batch import ConsumerBatch
from riffdb.database.consumer_requests import TOKEN_BYTES, Subject, too_many_unsettled
from riffdb.database.consumer_rows import BY_AVAILABLE, BY_RETIRED, CONSUMERS, DELIVERIES, ConsumerRow, DeliveryRow
from riffdb.database.streams import START, Passed, Position, StreamEvent, before, event_at, events_after
from riffdb.storage.protocol import Reader, Scan

RECORDS_GRANTED = 256
"""Commit records that are read inside the transaction when another call was faster than the look."""


@dataclass(slots=True)
class Look:
    """What a snapshot showed of a consumer: whether anything is to do, else when the next delay or lease ends (µs from
    then), and the events behind `read`."""

    is_due: bool
    next_in: int | None = None
    read: Position | None = None
    passed: Passed | None = None


@dataclass(slots=True)
class Delivery:
    """One granted delivery with its token, which is shown this once."""

    event: StreamEvent
    attempt: int
    token: str = field(repr=False)

    def text(self) -> str:
        """Its JSON text."""
        told = {
            "event_id": str(self.event.position),
            "event": self.event.event,
            "attempt": self.attempt,
            "token": self.token,
            "time": timestamp_text(self.event.time),
            "fields": self.event.fields,
        }
        return json_text(told)


@dataclass(slots=True)
class NextRequest:
    """A call for deliveries on its way through the door, settled with `granted` or an `error`."""

    subject: Subject
    items: int
    seconds: int
    start: str
    look: Look
    granted: list[Delivery] = field(default_factory=list)
    error: Exception | None = None
    stale_contract: bool = False


async def look(reader: Reader, subject: Subject, items: int) -> Look:
    """What there is for the consumer now; `RDB-E-UNSETTLED` if it must settle something first."""
    await check_token(reader, subject.caller)
    found = (await reader.rows(CONSUMERS, [subject.key])).get(subject.key)
    if found is None:
        return Look(True)
    row = ConsumerRow._make(found)
    if row.is_retired:
        return Look(True)
    head = (await reader.heads({subject.partition})).get(subject.partition)
    time = max(await reader.time(), 0 if head is None else head.time)
    next_in = None
    if row.unsettled:
        first = await reader.scan(Scan(DELIVERIES, BY_AVAILABLE, subject.key, limit=1))
        next_in = DeliveryRow._make(first[0]).available_at - time if first else None
    is_due = next_in is not None and next_in <= 0
    if row.unsettled >= UNSETTLED_MAX:
        if is_due:
            return Look(True)
        raise too_many_unsettled(UNSETTLED_MAX)
    passed = await events_after(
        reader,
        subject.stream,
        subject.params,
        subject.partition,
        row.read,
        wanted=items,
        records=EVENT_RECORDS_MAX,
    )
    return Look(is_due or bool(passed.events) or not passed.is_whole, next_in, row.read, passed)


async def grant(batch: ConsumerBatch, request: NextRequest) -> None:
    """Give what is available, in the order of events: deliveries that came back, then new events."""
    subject = request.subject
    row = await batch.consumer(subject)
    before_it = row
    if row is None or row.is_retired:
        row = await _created(batch, subject, row, request.start)
    returned, ended, dropped = await _returned(batch, request)
    wanted = min(request.items - len(returned), UNSETTLED_MAX - row.unsettled)
    passed = await _new_events(batch, request, row, wanted) if wanted > 0 else None
    # All is read by now: a fault above leaves nothing half done in the transaction that others share.
    for delivery in ended:
        row = batch.bury(row, delivery)
    for delivery in dropped:
        row = batch.settle(row, delivery)
    given = returned
    if passed is not None:
        for event in passed.events:
            row, fresh = await _first_delivery(batch, subject, row, event)
            if fresh is not None:
                given.append((event, fresh))
        if passed.until != row.read:
            row = row.at(passed.until)
    if given:
        row = await _lease(batch, request, row, given)
    if row is not before_it:
        batch.put(row)


async def _returned(
    batch: ConsumerBatch, request: NextRequest
) -> tuple[list[tuple[StreamEvent, DeliveryRow]], list[DeliveryRow], list[DeliveryRow]]:
    """What is available again: to be given, its last attempt ended, and no more selected by the stream."""
    subject = request.subject
    given: list[tuple[StreamEvent, DeliveryRow]] = []
    ended: list[DeliveryRow] = []
    dropped: list[DeliveryRow] = []
    for delivery in await batch.available(subject):
        if delivery.is_leased and delivery.tries >= DELIVERY_ATTEMPTS_MAX:
            ended.append(delivery)
        elif len(given) < request.items:
            position = delivery.position
            event = await event_at(batch.transaction, subject.stream, subject.params, subject.partition, position)
            if event is None:
                dropped.append(delivery)
            else:
                given.append((event, delivery))
    return given, ended, dropped


async def _created(batch: ConsumerBatch, subject: Subject, retired: ConsumerRow | None, start: str) -> ConsumerRow:
    """A new consumer, or a retired one that begins anew."""
    known = await batch.transaction.scan(
        Scan(CONSUMERS, BY_RETIRED, (subject.partition, False), limit=CONSUMERS_MAX + 1)
    )
    others = {row[:2] for row in known} | {
        key for key, row in batch.overlay.of(CONSUMERS).items() if key[0] == subject.partition and row is not None
    }
    if len(others - {subject.key}) >= CONSUMERS_MAX:
        message = f"the partition has {CONSUMERS_MAX} consumers, which is the most; retire one first"
        raise RiffError("RDB-E-CONSUMERS", message, detail={"retry_after": 60})
    read = before(batch.newest(subject.partition) + 1)
    if start == "start":
        read = first_kept(await base_of(batch.transaction, subject.partition))
    time = batch.time(subject.partition)
    if retired is not None:
        return retired.changed(is_retired=False, created_at=time).at(read)
    names = (subject.stream.plan.name, subject.canonical, subject.name)
    return ConsumerRow(*subject.key, *names, *read, 0, 0, *START, 0, 0, False, time, 1, 0)


async def _new_events(batch: ConsumerBatch, request: NextRequest, row: ConsumerRow, wanted: int) -> Passed:
    passed = request.look.passed
    if passed is None or request.look.read != row.read:
        subject = request.subject
        return await events_after(
            batch.transaction,
            subject.stream,
            subject.params,
            subject.partition,
            row.read,
            wanted=wanted,
            records=RECORDS_GRANTED,
        )
    if len(passed.events) > wanted:
        return Passed(passed.events[:wanted], passed.events[wanted - 1].position, False)
    return passed


async def _first_delivery(
    batch: ConsumerBatch, subject: Subject, row: ConsumerRow, event: StreamEvent
) -> tuple[ConsumerRow, DeliveryRow | None]:
    """The consumer and the row of an event that is read, not given yet; no row if a redriven one is there."""
    attempt = 0
    if event.position <= row.base:
        attempt = row.attempt_base
        redriven = await batch.delivery(subject, event.position)
        if redriven is not None:
            batch.put_delivery(redriven._replace(is_redriven=False, revision=redriven.revision + 1))
            return row, None
        dead = await batch.dead_letter(subject, event.position) if row.dead_letters else None
        if dead is not None:
            batch.drop(dead)
            row = row.changed(dead_letters=row.dead_letters - 1)
            attempt = max(attempt, dead.attempt)
    await batch.delivery(subject, event.position)
    fresh = DeliveryRow(*subject.key, *event.position, attempt, 0, 0, False, None, False, 0, 0)
    return row.changed(unsettled=row.unsettled + 1), fresh


async def _lease(
    batch: ConsumerBatch, request: NextRequest, row: ConsumerRow, given: list[tuple[StreamEvent, DeliveryRow]]
) -> ConsumerRow:
    """Write the leases and give the deliveries their attempts and tokens."""
    until = batch.time(request.subject.partition) + request.seconds * SECOND
    chance = await batch.transaction.entropy(TOKEN_BYTES * len(given))
    given.sort(key=lambda pair: pair[0].position)
    for number, (event, delivery) in enumerate(given):
        token = urlsafe_b64encode(chance[number * TOKEN_BYTES : (number + 1) * TOKEN_BYTES]).decode()
        leased = delivery._replace(
            attempt=delivery.attempt + 1,
            tries=delivery.tries + 1,
            available_at=until,
            is_leased=True,
            token_hash=sha256(token.encode()).digest(),
            revision=delivery.revision + 1,
        )
        batch.put_delivery(leased)
        request.granted.append(Delivery(event, leased.attempt, token))
    return row.changed(attempt_max=max(row.attempt_max, *(delivery.attempt for delivery in request.granted)))
