"""How long `DueWork` takes among a million rows, beside the same among a thousand; a part of `make bench`.

Most rows are finished or dead; some are leased and stand at the head of the order by their due time, or were leased and
have run out. Rows are put into the store as they are, without commands. Each case is asked in turn with the small
database, so that a machine whose speed drifts shifts both.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import riffdb
from riffdb.core.layout import Row
from riffdb.core.records import Batch, Mutation
from riffdb.database.contracts import Contract, stored_plan
from riffdb.storage import open_store
from riffdb.storage.protocol import Store

ROWS, SMALL = 1_000_000, 1_000
OPEN = 100_000
"""Rows of the large database that are neither finished nor dead."""
CASES = (
    ("none leased", 0, 0),
    ("10,000 leased", 10_000, 3_600),
    ("90,000 leased", 90_000, 3_600),
    ("10,000 expired", 10_000, -60),
    ("90,000 expired", 90_000, -60),
)
"""How many of them are leased, and for how many seconds still."""
ASKED, TURNS = 200, 9
_PIECE = 20_000
_HOME = UUID(int=0xD15C)
_SECOND = 1_000_000


def row_of(contract: Contract, number: int, state: int, now: int, lease_seconds: int) -> Row:
    """An item that is due, the lower its number the longer; `lease_seconds` until its lease ends, 0 for none."""
    due = now - 7_200 * _SECOND + number
    expires = None if lease_seconds == 0 else now + lease_seconds * _SECOND + number
    values = {
        "organization_id": _HOME.bytes,
        "work_id": number.to_bytes(16, "big"),
        "state": state,
        "due_at": due,
        "lease_owner": None if expires is None else _HOME.bytes,
        "lease_expires_at": expires,
        "lease_fence": 1,
        "lease_attempts": 1,
        "available_at": due if expires is None else max(due, expires),
    }
    return (*(values[column] for column in contract.plan.entity("WorkItem").columns), 1, 1)


async def put(store: Store, contract: Contract, rows: Iterator[Row], existed: bool) -> None:
    """Write the rows in pieces."""
    table = contract.tables["WorkItem"]
    piece: list[Mutation] = []
    for row in rows:
        piece.append(Mutation(table.name, table.key_of(row), row, existed))
        if len(piece) == _PIECE:
            await _write(store, piece)
            piece = []
    await _write(store, piece)


async def _write(store: Store, mutations: list[Mutation]) -> None:
    async with store.transaction() as transaction:
        await transaction.write(Batch(mutations=mutations))


def with_store(path: Path, work: Callable[[Store, Contract], Iterator[Row]], *, existed: bool) -> None:
    """Write rows into the file while no client has it open."""

    async def run() -> None:
        store = await open_store(f"sqlite:{path}", create=False)
        try:
            async with store.snapshot() as reader:
                contract = Contract(stored_plan((await reader.contracts())[-1]))
            await put(store, contract, work(store, contract), existed)
        finally:
            await store.close()

    asyncio.run(run())


def fill(path: Path, application: Path, rows: int, open_rows: int) -> None:
    """A database whose first rows are open; of the others nine in ten are finished and one is dead."""
    riffdb.open(f"sqlite:{path}", application).close()
    now = time.time_ns() // 1_000

    def made(_store: Store, contract: Contract) -> Iterator[Row]:
        states = contract.enums["WorkState"]
        queued, complete, failed = (states.index(name) for name in ("Queued", "Complete", "Failed"))
        for number in range(rows):
            state = queued if number < open_rows else failed if number % 10 == 0 else complete
            yield row_of(contract, number, state, now, 0)

    with_store(path, made, existed=False)


def lease(path: Path, count: int, seconds: int) -> None:
    """Let the first rows be leased, and the other open ones not."""
    now = time.time_ns() // 1_000

    def changed(_store: Store, contract: Contract) -> Iterator[Row]:
        queued = contract.enums["WorkState"].index("Queued")
        for number in range(OPEN):
            yield row_of(contract, number, queued, now, seconds if number < count else 0)

    with_store(path, changed, existed=True)


def ask(client: riffdb.Client) -> float:
    """Seconds for one `DueWork`, the mean of some."""
    assert len(client.query("DueWork", organization_id=_HOME).payload["items"]) == 32
    began = time.perf_counter()
    for _ in range(ASKED):
        client.query("DueWork", organization_id=_HOME)
    return (time.perf_counter() - began) / ASKED


def measure_discovery(add: Callable[[str, float], None], folder: Path, application: Path) -> dict[str, float]:
    """Seconds of `DueWork` by case, added as series; how much longer each takes than among a thousand rows."""
    small, large = folder / "small.db", folder / "large.db"
    fill(small, application, SMALL, SMALL)
    fill(large, application, ROWS, OPEN)
    ratios = {}
    for name, count, seconds in CASES:
        lease(large, count, seconds)
        pairs = []
        with riffdb.open(f"sqlite:{small}") as few, riffdb.open(f"sqlite:{large}") as many:
            for _ in range(1 + TURNS):
                pairs.append((ask(few), ask(many)))
            del pairs[0]  # the first finds its pages cold
        for of_few, of_many in pairs:
            add(f"DueWork, {SMALL:,} rows", of_few)
            add(f"DueWork, {ROWS:,} rows, {name}", of_many)
        ratios[f"DueWork, {ROWS:,} / {SMALL:,} rows, {name}"] = statistics.median(many / few for few, many in pairs)
    for path in (small, large):
        path.unlink()
    return ratios
