"""What a transaction knows of consumers: rows as read once and then as changed so far, and the time that judges expiry.

Calls of many consumers share one transaction and one flush; each sees what those before it changed. The time is the
store's clock, never before the partition's newest commit. Absent: what a call does.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from riffdb.core.layout import Key, Row, Table
from riffdb.core.records import Head, Mutation
from riffdb.database.consumer_requests import Subject
from riffdb.database.consumer_rows import (
    BY_AVAILABLE,
    CONSUMERS,
    DEAD_LETTERS,
    DELIVERIES,
    ConsumerRow,
    DeadLetterRow,
    DeliveryRow,
)
from riffdb.database.overlay import Overlay
from riffdb.database.streams import Position
from riffdb.storage.protocol import Scan, Transaction

AVAILABLE_MAX = 256
"""Deliveries that are looked at for the first of them in the order of events."""


@dataclass(slots=True)
class ConsumerBatch:
    """The state of one transaction over consumers."""

    transaction: Transaction
    now: int
    heads: dict[bytes, Head]
    overlay: Overlay = field(default_factory=Overlay)

    @classmethod
    async def of(cls, transaction: Transaction, partitions: Collection[bytes]) -> "ConsumerBatch":
        """The state at the beginning, for these partitions."""
        return cls(transaction, await transaction.time(), await transaction.heads(partitions))

    def newest(self, partition: bytes) -> int:
        """The sequence of the partition's newest commit, 0 before its first."""
        head = self.heads.get(partition)
        return 0 if head is None else head.sequence

    def time(self, partition: bytes) -> int:
        """The time by which expiry is judged."""
        head = self.heads.get(partition)
        return self.now if head is None else max(self.now, head.time)

    async def consumer(self, subject: Subject) -> ConsumerRow | None:
        """The consumer's row, also of a retired one."""
        row = await self._row(CONSUMERS, subject.key)
        return None if row is None else ConsumerRow._make(row)

    async def delivery(self, subject: Subject, position: Position) -> DeliveryRow | None:
        """The unsettled delivery of an event."""
        row = await self._row(DELIVERIES, (*subject.key, *position))
        return None if row is None else DeliveryRow._make(row)

    async def dead_letter(self, subject: Subject, position: Position) -> DeadLetterRow | None:
        """The dead letter of an event."""
        row = await self._row(DEAD_LETTERS, (*subject.key, *position))
        return None if row is None else DeadLetterRow._make(row)

    async def available(self, subject: Subject) -> list[DeliveryRow]:
        """Deliveries whose lease or delay is over, in the order of events; the first `AVAILABLE_MAX` to be so."""
        time = self.time(subject.partition)
        known = self.overlay.of(DELIVERIES)
        changed = {key: row for key, row in known.items() if key[:2] == subject.key}
        limit = AVAILABLE_MAX + len(changed)
        await self.scan(Scan(DELIVERIES, BY_AVAILABLE, subject.key, upper=(time, True), limit=limit))
        rows = [DeliveryRow._make(row) for key, row in known.items() if row is not None and key[:2] == subject.key]
        return sorted((row for row in rows if row.available_at <= time), key=lambda row: row.position)

    async def scan(self, scan: Scan) -> list[Row]:
        """The rows of a walk as the store has them, known from then on."""
        rows = await self.transaction.scan(scan)
        known = self.overlay.of(scan.table)
        for row in rows:
            known.setdefault(scan.table.key_of(row), row)
        return rows

    def put(self, row: ConsumerRow) -> None:
        """Let the consumer be this."""
        self.overlay.change(CONSUMERS, row[:2], self._sealed(row))

    def put_delivery(self, row: DeliveryRow) -> None:
        """Let the delivery be this."""
        self.overlay.change(DELIVERIES, row[:4], self._sealed(row))

    def put_dead_letter(self, row: DeadLetterRow) -> None:
        """Let the dead letter be this."""
        self.overlay.change(DEAD_LETTERS, row[:4], self._sealed(row))

    def drop(self, row: DeliveryRow | DeadLetterRow) -> None:
        """Let the row be gone."""
        self.overlay.change(DELIVERIES if isinstance(row, DeliveryRow) else DEAD_LETTERS, row[:4], None)

    def settle(self, consumer: ConsumerRow, delivery: DeliveryRow) -> ConsumerRow:
        """The consumer after the delivery has ended for good, whose row is dropped.

        A redriven one may lie where a seek lets its event be read again: what comes then must have a higher attempt.
        """
        self.drop(delivery)
        base = consumer.attempt_base
        if delivery.is_redriven and delivery.position > consumer.read:
            base = max(base, delivery.attempt)
        return consumer.changed(unsettled=consumer.unsettled - 1, attempt_base=base)

    def bury(self, consumer: ConsumerRow, delivery: DeliveryRow) -> ConsumerRow:
        """The consumer after the delivery has become a dead letter."""
        ended_at = self.time(delivery.partition)
        self.put_dead_letter(DeadLetterRow(*delivery[:4], delivery.attempt, ended_at, 1, 0))
        return self.settle(consumer, delivery).changed(dead_letters=consumer.dead_letters + 1)

    def mutations(self) -> list[Mutation]:
        """What must be written."""
        return self.overlay.mutations()

    async def _row(self, table: Table, key: Key) -> tuple[object, ...] | None:
        await self.overlay.load(self.transaction, table, [key])
        return self.overlay.of(table)[key]

    def _sealed(self, row: "ConsumerRow | DeliveryRow | DeadLetterRow") -> tuple[object, ...]:
        return (*row[:-1], self.newest(row.partition))
