"""Where the items of a schedule come from when it selects with a query.

Selection follows the query's order while claims are won; after a lost claim the next selections spread over more of the
head of the queue, so that many workers do not run after one item. Nothing is settled here: an item of a query is
settled by its row.
"""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from riffdb.client.calls import AsyncClient
from riffdb.client.schedule_items import EPOCH, due_microseconds, failing_as_port, target_of
from riffdb.plan import Plan
from riffdb.plan.queries import SchedulePlan
from riffdb.scheduler import Item, Schedule, Selection

POLL_SECONDS = 1.0
SPREAD_MAX = 32


class QuerySource:
    """The items of one query; `params` are its parameters other than its limit. A selection ends with nothing when
    `stopping` is set."""

    def __init__(
        self,
        client: AsyncClient,
        plan: Plan,
        planned: SchedulePlan,
        schedule: Schedule,
        params: Mapping[str, object],
        stopping: asyncio.Event,
    ) -> None:
        self._client, self._plan, self._planned, self._schedule = client, plan, planned, schedule
        self._stopping = stopping
        self._params = dict(params)
        self._spread = 1
        query = plan.query(planned.source_name)
        bounds = {param.name: param.type.bound for param in query.params}
        for binding in query.bindings:
            if isinstance(binding.take, str):
                self._params.setdefault(binding.take, bounds[binding.take])

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        """Select items that are due and not passed over, looking again until the wait is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + selection.wait_seconds
        while not self._stopping.is_set():
            items = await self._select(selection)
            remaining = end - loop.time()
            if self._stopping.is_set():
                break  # nobody has begun with what was found, so it is left to others
            if items or remaining <= 0:
                return items
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), min(POLL_SECONDS, remaining))
        return ()

    async def claimed(self, item: Item, is_won: bool, lease_seconds: int) -> bool:
        """Learn how a claim ended; there is no delivery to keep."""
        self._spread = max(1, self._spread - 1) if is_won else min(SPREAD_MAX, self._spread * 2 + 1)
        return True

    async def renewed(self, item: Item, lease_seconds: int) -> None:
        """Nothing: there is no delivery to extend."""

    async def acknowledge(self, item: Item) -> None:
        """Nothing: the row settles the item."""

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        """Nothing: the item goes back by its row; the worker keeps the delay."""

    async def _select(self, selection: Selection) -> tuple[Item, ...]:
        answer = await failing_as_port(self._client.query(self._planned.source_name, **self._params))
        observed = (answer.time - EPOCH) // timedelta(microseconds=1)
        found = (self._item(row, observed) for row in answer.payload[self._planned.items])
        free = [item for item in found if not selection.passes_over(item.target)]
        window = free[: max(self._spread, selection.items_max)]
        chosen = sorted(random.sample(range(len(window)), min(selection.items_max, len(window))))
        return tuple(window[position] for position in chosen)

    def _item(self, row: Mapping[str, Any], observed: int) -> Item:
        planned = self._planned
        target = target_of(self._plan, planned, row)
        due = due_microseconds(row[planned.due])
        return Item(self._schedule, due, target, observed, row[planned.revision], fields=dict(row))
