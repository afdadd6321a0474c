"""A schedule's items from a stream, over a real database in memory whose clock the test moves.

Here because a worker's process shows neither how long a delivery is held nor what its port was told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from riffdb.client.application import compiled_plan
from riffdb.client.calls import AsyncClient
from riffdb.client.embedded import EmbeddedTransport, local_caller
from riffdb.client.schedule_port import SchedulePort
from riffdb.database.database import Database
from riffdb.database.doors import LoopDoor
from riffdb.scheduler import Evidence, Item, Lease, Selection, Success
from riffdb.storage.memory import MemoryStore
from tests.surface.processes import PIPELINES

OWNER, OTHER = UUID(int=7), UUID(int=8)
SECOND = 1_000_000


class World:
    """The pipelines in memory: one repository, a clock, and ports of as many workers as a test wants."""

    def __init__(self, client: AsyncClient, plan: Any, clock: list[int]) -> None:
        self.client, self.plan, self.clock = client, plan, clock
        self.partition = str(uuid4())
        self.stopping = asyncio.Event()

    def port(self) -> SchedulePort:
        return SchedulePort(self.client, self.plan, "RunPipelines", {"repository_id": self.partition}, self.stopping)

    async def queue(self) -> UUID:
        pipeline = uuid4()
        inputs: dict[str, Any] = {"repository_id": self.partition, "pipeline_id": pipeline, "revision_hash": "cafe"}
        assert (await self.client.command("QueuePipeline", **inputs)).outcome == "Queued"
        return pipeline

    def pass_seconds(self, seconds: int) -> None:
        self.clock[0] += seconds * SECOND


def in_world(use: Callable[[World], Awaitable[None]], application: Path = PIPELINES.folder) -> None:
    async def run() -> None:
        clock = [1_800_000_000 * SECOND]
        database = await Database.open(MemoryStore(lambda: clock[0]), LoopDoor)
        plan = compiled_plan(application)
        caller = local_caller(None, "embedded")
        await database.deploy(caller, plan)
        async with AsyncClient(EmbeddedTransport(database, caller)) as client:
            await use(World(client, plan, clock))

    asyncio.run(run())


async def taken(port: SchedulePort) -> tuple[Item, ...]:
    """What there is now, without a wait."""
    return await port.next(Selection(wait_seconds=0, items_max=8))


async def claimed(port: SchedulePort, item: Item, lease_seconds: int) -> Success:
    told = await port.claim(item, f"claim {item.ordinal}", OWNER, lease_seconds, item.expected_revision)
    assert isinstance(told, Success)
    return told


def test_an_item_is_what_the_event_tells_at_its_attempt() -> None:
    async def use(world: World) -> None:
        pipeline = await world.queue()
        (item,) = await taken(world.port())
        assert (item.target, item.ordinal, item.expected_revision) == ((UUID(world.partition), pipeline), 1, 1)
        assert item.due == world.clock[0]
        await world.port().negative_acknowledge(item, 60)
        assert await taken(world.port()) == ()
        world.pass_seconds(60)
        (again,) = await taken(world.port())
        assert (again.target, again.ordinal) == (item.target, 2)
        await world.port().acknowledge(again)
        world.pass_seconds(10_000)
        assert await taken(world.port()) == ()

    in_world(use)


def test_a_delivery_is_held_for_as_long_as_the_row() -> None:
    async def use(world: World) -> None:
        await world.queue()
        port = world.port()
        (item,) = await taken(port)
        won = await claimed(port, item, 100)
        assert won.delivery_kept
        world.pass_seconds(99)
        assert await taken(world.port()) == ()
        assert won.fencing_token is not None and won.revision is not None
        renewed = await port.renew(item, "renewal", Lease(OWNER, won.fencing_token, won.revision), 100)
        assert isinstance(renewed, Success)
        world.pass_seconds(99)
        assert await taken(world.port()) == ()
        world.pass_seconds(1)
        (again,) = await taken(world.port())
        assert again.ordinal == 2

    in_world(use)


def test_a_claim_tells_that_the_delivery_is_another_workers_by_now() -> None:
    async def use(world: World) -> None:
        await world.queue()
        slow = world.port()
        (item,) = await taken(slow)
        world.pass_seconds(30)
        (again,) = await taken(world.port())
        assert (again.target, again.ordinal) == (item.target, 2)
        assert not (await claimed(slow, item, 60)).delivery_kept

    in_world(use)


def test_a_claim_that_fails_shows_the_revision_or_the_time_that_is_left() -> None:
    async def use(world: World) -> None:
        await world.queue()
        port = world.port()
        (item,) = await taken(port)
        won = await claimed(port, item, 100)
        assert won.revision == 2
        world.pass_seconds(40)
        stale = await port.claim(item, "late", OTHER, 60, item.expected_revision)
        assert stale == Evidence("StaleRevision", "stale", revision=2)
        held = await port.claim(item, "early", OTHER, 60, 2)
        assert isinstance(held, Evidence)
        assert held.kind == "unavailable"
        assert held.remaining_microseconds == pytest.approx(60 * SECOND, abs=10)  # a command takes a microsecond

    in_world(use)


def test_the_streams_other_events_are_settled_without_a_turn(tmp_path: Path) -> None:
    contract = (PIPELINES.folder / "pipeline.riff").read_text("utf-8")
    for old, new in (
        (
            "  event PipelineQueued { repository_id pipeline_id queued_at revision }\n",
            "{}  event PipelineFinished {{ state }}\n",
        ),
        ("from stream QueuedPipelines\n", "from stream QueuedPipelines event PipelineQueued\n"),
    ):
        assert old in contract
        contract = contract.replace(old, new.format(old))
    (tmp_path / "pipeline.riff").write_text(contract, "utf-8")
    (tmp_path / "riffdb.toml").write_text('[application]\nname = "two-events"\n', "utf-8")

    async def use(world: World) -> None:
        await world.queue()
        port = world.port()
        (item,) = await taken(port)
        won = await claimed(port, item, 60)
        assert won.fencing_token is not None and won.revision is not None
        lease = Lease(OWNER, won.fencing_token, won.revision)
        done = await port.execute(item, "run", lease, {"passed": True, "seconds_taken": 3})
        assert isinstance(done, Success)
        await port.acknowledge(item)
        assert await taken(port) == ()
        consumer = world.client.consumer("QueuedPipelines", name="RunPipelines", repository_id=world.partition)
        status = await consumer.status()
        assert (status["lag_events"], status["unsettled"]) == (0, 0)

    in_world(use, tmp_path)


def test_a_wait_for_events_ends_when_the_port_is_to_stop() -> None:
    async def use(world: World) -> None:
        asyncio.get_running_loop().call_soon(world.stopping.set)
        assert await world.port().next(Selection(wait_seconds=30)) == ()

    in_world(use)
