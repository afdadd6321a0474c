"""The series of `make bench` on consumers: events a second through one, in this process and over HTTP, and idle polls.

A round fills a file with completed items of the queue, lets one consumer take and acknowledge all of their events in
batches of eight, and does the same against `riffdb serve`. The idle long polls are of a server of their own, whose
processor time and files are looked at before and after a while in which nothing happens.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

import riffdb
import riffdb.aio

EVENTS = 800
BATCH = 8
IDLE_POLLS = 200
IDLE_SECONDS = 5
IN_PROCESS = "consumer, batch 8, in process"
OVER_HTTP = "consumer, batch 8, over HTTP"


async def fill(path: Path, application: Path, organization: UUID) -> None:
    """Make the database with as many completed items as there are to be events."""
    async with await riffdb.aio.open(f"sqlite:{path}", application) as client:
        items = [uuid7() for _ in range(EVENTS)]
        for start in range(0, EVENTS, 256):
            await asyncio.gather(*(_complete(client, organization, item) for item in items[start : start + 256]))


async def _complete(client: riffdb.AsyncClient, organization: UUID, item: UUID) -> None:
    row = {"organization_id": organization, "work_id": item}
    held = row | {"owner_id": organization}
    await client.command("CreateWork", **row, due_at="2026-01-01T00:00:00Z")
    await client.command("ClaimWork", **held, duration=900, expected_revision=1)
    answer = await client.command("CompleteWork", **held, token=1, expected_revision=2)
    assert answer.outcome == "Completed", answer.outcome


def consumed(client: riffdb.Client, organization: UUID, name: str) -> float:
    """Seconds that one consumer takes for all events."""
    consumer = client.consumer("WorkActivity", name=name, organization_id=organization, max_items=BATCH)
    count = 0
    began = time.perf_counter()
    while deliveries := consumer.next():
        for delivery in deliveries:
            assert delivery.ack()
        count += len(deliveries)
    seconds = time.perf_counter() - began
    assert count == EVENTS, count
    return seconds


@contextmanager
def served(path: Path) -> Iterator[tuple[str, str, int]]:
    """A server of the file as a process of its own: its address, an operator's token, its pid."""
    with riffdb.open(f"sqlite:{path}") as client:
        token = client.create_capability()["token"]
    line = [sys.executable, "-m", "riffdb", "serve", "--db", f"sqlite:{path}", "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["listening"], token, process.pid
        finally:
            process.terminate()


def measure_consumers(add: Callable[[str, float], None], folder: Path, application: Path) -> None:
    """One round of one consumer, in this process and over HTTP."""
    organization = uuid7()
    path = folder / "events.db"
    asyncio.run(fill(path, application, organization))
    with riffdb.open(f"sqlite:{path}") as client:
        add(IN_PROCESS, EVENTS / consumed(client, organization, "here"))
    with served(path) as (url, token, _), riffdb.connect(url, token) as client:
        add(OVER_HTTP, EVENTS / consumed(client, organization, "there"))
    for file in folder.iterdir():
        file.unlink()


def measure_idle_polls(folder: Path, application: Path) -> dict[str, float]:
    """What so many idle long polls cost: milliseconds of the processor a second, and bytes written."""
    path = folder / "idle.db"
    with riffdb.open(f"sqlite:{path}", application):
        pass
    with served(path) as (url, token, pid):
        costs = asyncio.run(_idle(url, token, pid, [path, Path(f"{path}-wal")]))
    for file in folder.iterdir():
        file.unlink()
    return costs


async def _idle(url: str, token: str, pid: int, files: Sequence[Path]) -> dict[str, float]:
    async with riffdb.aio.connect(url, token) as client:
        consumers = [
            client.consumer("WorkActivity", name=str(number), organization_id=uuid7()) for number in range(IDLE_POLLS)
        ]
        polls = [asyncio.ensure_future(consumer.next(wait_seconds=IDLE_SECONDS + 20)) for consumer in consumers]
        await asyncio.sleep(3)  # all of them have arrived by then
        written, used = _written(files), _processor_seconds(pid)
        await asyncio.sleep(IDLE_SECONDS)
        costs = {
            "processor_ms_a_second": 1_000 * (_processor_seconds(pid) - used) / IDLE_SECONDS,
            "bytes_written": float(_written(files) - written),
        }
        for poll in polls:
            assert not poll.done()
            poll.cancel()
        await asyncio.wait(polls)
    return costs


def _written(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files if file.exists())


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
