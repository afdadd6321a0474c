"""`make bench`: durable commands a second through `db.command`, beside the bare statements that write the same rows.

How long contracts take to compile is measured beside it, and what `bench_consumers`, `bench_watching` and
`bench_discovery` have.

One run measures everything in turn, round by round, so that a machine whose speed drifts shifts all figures alike;
quote medians and ratios. A round claims items with `ClaimWork` from 1, 8 and 32 threads, then replays the very rows
that were written, at the batch size that the round had, with apsw alone on a file with the same tables and settings.
Figures go to `bench/results.json` too.
"""

import asyncio
import json
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread
from uuid import UUID

import apsw
from uuid_utils.compat import uuid7

import riffdb
import riffdb.aio
from riffdb.compiler import compile as compile_sources
from riffdb.core.spans import Source
from riffdb.storage.sqlite.connections import checksum_vfs
from tools.bench_consumers import IDLE_POLLS, measure_consumers, measure_idle_polls
from tools.bench_discovery import measure_discovery
from tools.bench_watching import measure_watching
from tools.large_contracts import large_contract

ROOT = Path(__file__).resolve().parents[1]
APPLICATION = ROOT / "examples" / "queue"
RESULTS = ROOT / "bench" / "results.json"
CALLERS = (1, 8, 32)
ROUNDS = 5
CONTRACT_LINES = (500, 10_000)
COMMANDS = {1: 400, 8: 1_600, 32: 3_200}


@dataclass
class Figures:
    """Rates by series, in operations a second, or times in seconds; one a round."""

    rates: dict[str, list[float]] = field(default_factory=dict)

    def add(self, series: str, rate: float) -> None:
        """One round's figure of a series."""
        self.rates.setdefault(series, []).append(rate)

    def median(self, series: str) -> float:
        """The median of a series."""
        return statistics.median(self.rates[series])


async def fill(path: Path, organization: UUID, items: Sequence[UUID]) -> None:
    """Make the database with its items, all due."""
    async with await riffdb.aio.open(f"sqlite:{path}", APPLICATION) as client:
        now = datetime.now(UTC)
        for start in range(0, len(items), 256):
            await asyncio.gather(
                *(
                    client.command("CreateWork", organization_id=organization, work_id=item, due_at=now)
                    for item in items[start : start + 256]
                )
            )


def claimed(organization: UUID, item: UUID) -> dict[str, object]:
    """The inputs of a claim of a new item."""
    return {
        "organization_id": organization,
        "work_id": item,
        "owner_id": organization,
        "duration": 60,
        "expected_revision": 1,
    }


def claim(client: riffdb.Client, organization: UUID, item: UUID) -> None:
    """One durable command."""
    answer = client.command("ClaimWork", **claimed(organization, item))
    assert answer.outcome == "Claimed", answer.outcome


def timed(callers: int, items: Sequence[UUID], act: Callable[[UUID], None]) -> float:
    """Seconds that the callers take together for all items."""
    barrier = Barrier(callers + 1)

    def call(own: Sequence[UUID]) -> None:
        barrier.wait()
        for item in own:
            act(item)

    threads = [Thread(target=call, args=(items[number::callers],)) for number in range(callers)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


async def timed_async(path: Path, organization: UUID, items: Sequence[UUID], callers: int) -> float:
    """Seconds that as many tasks of one event loop take together for all items."""
    async with await riffdb.aio.open(f"sqlite:{path}") as client:

        async def call(own: Sequence[UUID]) -> None:
            for item in own:
                answer = await client.command("ClaimWork", **claimed(organization, item))
                assert answer.outcome == "Claimed", answer.outcome

        began = time.perf_counter()
        await asyncio.gather(*(call(items[number::callers]) for number in range(callers)))
        return time.perf_counter() - began


@dataclass(frozen=True)
class Written:
    """The rows that a round wrote: commit records in order, the rows of the entity, the last head."""

    commits: list[tuple[object, ...]]
    rows: dict[bytes, tuple[object, ...]]
    heads: list[tuple[object, ...]]


def written(path: Path, since: int) -> Written:
    """What the database holds of the commits after a position."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        commits = list(connection.execute("SELECT * FROM riffdb_commit WHERE position > ? ORDER BY position", (since,)))
        names = [row[1] for row in connection.execute("PRAGMA table_info(work_item)")]
        place = names.index("work_id")
        rows = {row[place]: row for row in connection.execute("SELECT * FROM work_item")}
        heads = list(connection.execute("SELECT * FROM riffdb_head WHERE partition != x''"))
    return Written(commits, rows, heads)


def positions(path: Path) -> int:
    """The newest position of the commit table."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        found = connection.execute("SELECT max(position) FROM riffdb_commit").fetchone()
    assert found is not None
    return int(found[0])


def bare(path: Path, rows: Written, items: Sequence[UUID], batch: int) -> float:
    """Seconds for writing the same rows with apsw alone, `batch` commands a flush."""
    with closing(apsw.Connection(str(path), vfs=checksum_vfs())) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        columns = [row[1] for row in connection.execute("PRAGMA table_info(work_item)")]
        marks = ",".join("?" * len(rows.commits[0]))
        insert = f"INSERT INTO riffdb_commit VALUES ({marks})"
        assignments = ",".join(f'"{name}" = ?' for name in columns)
        update = f"UPDATE work_item SET {assignments} WHERE organization_id = ? AND work_id = ?"
        marks = ",".join("?" * len(rows.heads[0]))
        head = f"INSERT OR REPLACE INTO riffdb_head VALUES ({marks})"
        updates = []
        for item in items:
            row = rows.rows[item.bytes]
            updates.append((*row, row[columns.index("organization_id")], item.bytes))
        began = time.perf_counter()
        for start in range(0, len(items), batch):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, rows.commits[start : start + batch])
            connection.executemany(update, updates[start : start + batch])
            connection.executemany(head, rows.heads)
            connection.execute("COMMIT")
        return time.perf_counter() - began


def measure_callers(figures: Figures, folder: Path, callers: int) -> None:
    """One round with so many callers, and the bare statements for the same rows at the same batch size."""
    organization, count = uuid7(), COMMANDS[callers]
    items = [uuid7() for _ in range(count)]
    paths = [folder / f"{name}-{callers}.db" for name in ("start", "threads", "tasks", "bare")]
    asyncio.run(fill(paths[0], organization, items))
    for path in paths[1:]:
        shutil.copy(paths[0], path)
    since = positions(paths[0])
    with riffdb.open(f"sqlite:{paths[1]}") as client:
        seconds = timed(callers, items, lambda item: claim(client, organization, item))
    figures.add(f"db.command, {callers} threads", count / seconds)
    seconds = asyncio.run(timed_async(paths[2], organization, items, callers))
    figures.add(f"aio db.command, {callers} tasks", count / seconds)
    rows = written(paths[1], since)
    assert len(rows.commits) == count
    seconds = bare(paths[3], rows, items, callers)
    figures.add(f"bare statements, {callers} a flush", count / seconds)
    for path in folder.iterdir():
        path.unlink()


def measure_compiling(figures: Figures, folder: Path) -> None:
    """One round of compiling in this process, and of `riffdb check` as a process of its own (its CPU time)."""
    for lines in CONTRACT_LINES:
        text = large_contract(lines)
        began = time.perf_counter()
        compilation = compile_sources("large", [Source("large.riff", text)])
        figures.add(f"compile, {lines} lines", time.perf_counter() - began)
        assert compilation.plan is not None, compilation.diagnostics[:1]
        (folder / "large.riff").write_text(text, encoding="utf-8")
        (folder / "riffdb.toml").write_text('[application]\nname = "large"\n', encoding="utf-8")
        before = children_seconds()
        subprocess.run([sys.executable, "-m", "riffdb", "check", folder], check=True, capture_output=True)
        figures.add(f"riffdb check, {lines} lines", children_seconds() - before)
    for path in folder.iterdir():
        path.unlink()


def children_seconds() -> float:
    """CPU seconds of the processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report_discovery(discovery: Figures, ratios: dict[str, float]) -> None:
    """Print how long a query takes that finds work, and how many of them are answered a second."""
    print(f"\n{'series':<44}{'median us':>10}{'min':>9}{'max':>9}{'a second':>10}")
    for series, times in discovery.rates.items():
        micros = [1_000_000 * seconds for seconds in times]
        median = statistics.median(micros)
        print(f"{series:<44}{median:>10.0f}{min(micros):>9.0f}{max(micros):>9.0f}{1_000_000 / median:>10.0f}")
    print()
    for name, ratio in ratios.items():
        print(f"{name:<54}{ratio:>10.2f}")


def report(
    figures: Figures,
    compiling: Figures,
    idle: dict[str, float],
    watching: dict[str, float],
    discovery: Figures,
    depth: dict[str, float],
) -> None:
    """Print the table and keep the figures."""
    print(f"{'series':<36}{'median/s':>10}{'min':>9}{'max':>9}")
    for series, rates in figures.rates.items():
        print(f"{series:<36}{statistics.median(rates):>10.0f}{min(rates):>9.0f}{max(rates):>9.0f}")
    print(f"\n{'series':<36}{'median ms':>10}{'min':>9}{'max':>9}")
    for series, times in compiling.rates.items():
        milliseconds = [1_000 * seconds for seconds in times]
        print(f"{series:<36}{statistics.median(milliseconds):>10.0f}{min(milliseconds):>9.0f}{max(milliseconds):>9.0f}")
    ratios = {
        "32 threads / 1 thread": figures.median("db.command, 32 threads") / figures.median("db.command, 1 threads"),
        **{
            f"db.command / bare, {callers}": figures.median(f"db.command, {callers} threads")
            / figures.median(f"bare statements, {callers} a flush")
            for callers in CALLERS
        },
        **{
            f"aio db.command / bare, {callers}": figures.median(f"aio db.command, {callers} tasks")
            / figures.median(f"bare statements, {callers} a flush")
            for callers in CALLERS
        },
    }
    print()
    for name, ratio in ratios.items():
        print(f"{name:<36}{ratio:>10.2f}")
    processor, written = idle["processor_ms_a_second"], idle["bytes_written"]
    print(f"\n{IDLE_POLLS} idle long polls: {processor:.1f} ms of the processor a second, {written:.0f} bytes written")
    print("\nmilliseconds from sending a command to its change at")
    for name, figure in watching.items():
        print(f"{name:<54}{figure:>10.1f}")
    report_discovery(discovery, depth)
    RESULTS.parent.mkdir(exist_ok=True)
    facts = {
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "rounds": ROUNDS,
        "rates": figures.rates,
        "compiling_seconds": compiling.rates,
        "ratios": ratios,
        "idle_polls": idle,
        "watching_milliseconds": watching,
        "discovery_seconds": discovery.rates,
        "discovery_ratios": depth,
    }
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and report."""
    figures, compiling, discovery = Figures(), Figures(), Figures()
    with tempfile.TemporaryDirectory(prefix="riffdb-bench-", dir=ROOT) as folder:
        for number in range(1, ROUNDS + 1):
            for callers in CALLERS:
                measure_callers(figures, Path(folder), callers)
            measure_consumers(figures.add, Path(folder), APPLICATION)
            measure_compiling(compiling, Path(folder))
            print(f"round {number} of {ROUNDS} done", flush=True)
        idle = measure_idle_polls(Path(folder), APPLICATION)
        watching = measure_watching(Path(folder), APPLICATION)
        depth = measure_discovery(discovery.add, Path(folder), APPLICATION)
    report(figures, compiling, idle, watching, discovery, depth)


if __name__ == "__main__":
    main()
