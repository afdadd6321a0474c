"""The series of `make bench` on live queries: how long after a command was sent its change has reached a watch.

Over HTTP, against `riffdb serve` as a process of its own, with one watch and with many on the same query. The commit is
in the figure, so the time that the command itself takes stands beside it.
"""

import asyncio
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

import riffdb
import riffdb.aio
from tools.bench_consumers import served

CHANGES = 300
START = datetime(2026, 1, 1, tzinfo=UTC)
"""Each item is due before those that are there, so that it stands in the answer, which is bounded."""
WATCHES = (1, 100)


def measure_watching(folder: Path, application: Path) -> dict[str, float]:
    """Milliseconds, by what was measured."""
    path = folder / "watching.db"
    with riffdb.open(f"sqlite:{path}", application):
        pass
    figures: dict[str, float] = {}
    with served(path) as (url, token, _):
        for count in WATCHES:
            figures |= asyncio.run(_measured(url, token, count))
    for file in folder.iterdir():
        file.unlink()
    return figures


async def _measured(url: str, token: str, count: int) -> dict[str, float]:
    organization = uuid7()
    answered, told = [], []
    async with riffdb.aio.connect(url, token) as client, riffdb.aio.connect(url, token) as caller:
        watches = [client.watch("DueWork", organization_id=organization) for _ in range(count)]
        await asyncio.gather(*(watch.next() for watch in watches))
        for number in range(CHANGES):
            began = time.perf_counter()
            updates = [asyncio.ensure_future(watch.next()) for watch in watches]
            await _create(caller, organization, START - timedelta(seconds=number))
            answered.append(1_000 * (time.perf_counter() - began))
            await asyncio.gather(*updates)
            told.append(1_000 * (time.perf_counter() - began))
        for watch in watches:
            watch.close()
    watchers = "1 watch" if count == 1 else f"all of {count} watches"
    return {
        f"{watchers}, median": statistics.median(told),
        f"{watchers}, p99": statistics.quantiles(told, n=100)[98],
        f"the command alone beside {watchers}, median": statistics.median(answered),
    }


async def _create(client: riffdb.AsyncClient, organization: UUID, due_at: datetime) -> None:
    answer = await client.command("CreateWork", organization_id=organization, work_id=uuid7(), due_at=due_at)
    assert answer.outcome == "Created", answer.outcome
