"""Where the items of a schedule come from when it follows a stream: the deliveries of the consumer of its name.

The ordinal of an item is the durable attempt of its delivery. A delivery is held for `DELIVERY_LEASE_SECONDS` until the
row is claimed, then for as long as the row. Deliveries of the stream's other events are settled at once, without a
turn. Absent: counting attempts, and dead letters, which are the database's.
"""

import asyncio
from collections.abc import Mapping
from math import ceil

from riffdb.client.calls import AsyncClient
from riffdb.client.consuming import AsyncDelivery
from riffdb.client.schedule_items import due_microseconds, failing_as_port, target_of
from riffdb.plan import Plan
from riffdb.plan.queries import SchedulePlan
from riffdb.scheduler import Item, Schedule, Selection

DELIVERY_LEASE_SECONDS = 30


class StreamSource:
    """The items of one stream; `params` are its parameters. A selection ends with nothing when `stopping` is set."""

    def __init__(
        self,
        client: AsyncClient,
        plan: Plan,
        planned: SchedulePlan,
        schedule: Schedule,
        params: Mapping[str, object],
        stopping: asyncio.Event,
    ) -> None:
        self._plan, self._planned, self._schedule, self._stopping = plan, planned, schedule, stopping
        self._consumer = client.consumer(
            planned.source_name,
            name=planned.name,
            delivery_lease_seconds=DELIVERY_LEASE_SECONDS,
            params=params,
        )

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        """Take deliveries of the schedule's event, waiting for the first until the wait is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + selection.wait_seconds
        while not self._stopping.is_set():
            deliveries = await self._deliveries(selection.items_max, max(0, ceil(end - loop.time())))
            items = [self._item(delivery) for delivery in deliveries if delivery.event == self._planned.event]
            for delivery in deliveries:
                if delivery.event != self._planned.event:
                    await failing_as_port(delivery.ack())
            if items or loop.time() >= end:
                return tuple(items)
        return ()

    async def claimed(self, item: Item, is_won: bool, lease_seconds: int) -> bool:
        """After a won claim hold the delivery for as long as the row; whether it still is this worker's."""
        return not is_won or await failing_as_port(_delivery(item).extend(lease_seconds))

    async def renewed(self, item: Item, lease_seconds: int) -> None:
        """Hold the delivery for as long as the row. One that is another's by now is found out when it is settled."""
        await failing_as_port(_delivery(item).extend(lease_seconds))

    async def acknowledge(self, item: Item) -> None:
        """Settle the delivery; one that is another's by now is settled for this worker."""
        await failing_as_port(_delivery(item).ack())

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        """Put the delivery back; one that is another's by now is put back for this worker."""
        await failing_as_port(_delivery(item).nack(delay_seconds=delay_seconds))

    async def _deliveries(self, items_max: int, wait_seconds: int) -> list[AsyncDelivery]:
        """What there is within the wait; nothing as soon as the port is to stop."""
        polling = asyncio.ensure_future(self._consumer.next(max_items=items_max, wait_seconds=wait_seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((polling, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await failing_as_port(polling) if polling.done() else []
        finally:
            polling.cancel()
            stopping.cancel()

    def _item(self, delivery: AsyncDelivery) -> Item:
        planned, fields = self._planned, dict(delivery.fields)
        return Item(
            self._schedule,
            due_microseconds(fields[planned.due]),
            target_of(self._plan, planned, fields),
            delivery.attempt,
            fields[planned.revision],
            fields=fields,
            delivery=delivery,
        )


def _delivery(item: Item) -> AsyncDelivery:
    assert isinstance(item.delivery, AsyncDelivery), "an item of a stream has its delivery"
    return item.delivery
