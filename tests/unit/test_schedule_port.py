"""The adapter from a client to the scheduler's port, over a real database in memory.

Here because a worker's process shows neither what its port was asked nor the kinds of evidence that it told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

import riffdb.aio
from riffdb.client.calls import AsyncClient
from riffdb.client.schedule_port import SchedulePort
from riffdb.scheduler import Evidence, Item, Permanent, Selection, Success
from tests.surface.http_server import QUEUE, new_work

OWNER = UUID(int=7)


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """The queue, in a folder where its contract may be changed."""
    for name in ("riffdb.toml", "work.riff"):
        (tmp_path / name).write_text((QUEUE / name).read_text("utf-8"), "utf-8")
    return tmp_path


def on_port(
    application: Path, use: Callable[[SchedulePort, asyncio.Event, AsyncClient], Awaitable[None]], items: int = 1
) -> None:
    """Use the port of the queue's schedule, with so many items due."""

    async def run() -> None:
        async with await riffdb.aio.open("memory:", application) as client:
            organization = str(uuid4())
            for _ in range(items):
                values: dict[str, Any] = new_work(organization_id=organization)
                await client.command("CreateWork", **values)
            stopping = asyncio.Event()
            params = {"organization_id": organization}
            await use(SchedulePort(client, await client.plan(), "DueWorkItems", params, stopping), stopping, client)

    asyncio.run(run())


async def first(port: SchedulePort) -> Item:
    """The item that is selected."""
    (item,) = await port.next(Selection(wait_seconds=0))
    return item


def test_a_port_that_is_to_stop_selects_nothing_more(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        assert await port.next(Selection(wait_seconds=30))
        stopping.set()
        assert await port.next(Selection(wait_seconds=30)) == ()

    on_port(application, use)


def test_what_was_found_while_the_port_was_told_to_stop_is_left(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        def stop(target: object) -> bool:
            stopping.set()
            return False

        assert await port.next(Selection(wait_seconds=30, passes_over=stop)) == ()

    on_port(application, use)


def test_a_wait_for_work_ends_when_the_port_is_to_stop(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        asyncio.get_running_loop().call_soon(stopping.set)
        assert await port.next(Selection(wait_seconds=3_600)) == ()

    on_port(application, use, items=0)


def test_items_that_are_passed_over_and_more_than_are_wanted_are_left(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        some = await port.next(Selection(wait_seconds=0, items_max=3))
        assert len(some) == 3
        taken = {item.target for item in some}
        rest = await port.next(Selection(wait_seconds=0, items_max=8, passes_over=taken.__contains__))
        assert len(rest) == 2
        assert taken.isdisjoint(item.target for item in rest)
        assert [item.due for item in some] == sorted(item.due for item in some)

    on_port(application, use, items=5)


def test_a_claim_tells_fence_and_successor_and_then_why_not(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        item = await first(port)
        won = await port.claim(item, "k-1", OWNER, 60, item.expected_revision)
        assert isinstance(won, Success)
        assert (won.revision, won.fencing_token) == (item.expected_revision + 1, 1)
        assert await port.claim(item, "k-2", OWNER, 60, item.expected_revision) == Evidence("StaleRevision", "stale")
        assert await port.claim(item, "k-3", OWNER, 60, 2) == Evidence("AlreadyClaimed", "unavailable")
        assert await port.claim(item, "k-4", OWNER, 1, 2) == Evidence("InvalidDuration", "invalid")

    on_port(application, use)


def test_a_claim_that_shows_the_fence_alone_tells_it_too(application: Path) -> None:
    contract = application / "work.riff"
    text = contract.read_text("utf-8")
    assert "return Claimed { work: work }" in text
    contract.write_text(
        text.replace("return Claimed { work: work }", "return Claimed { token: work.lease_fence }"), "utf-8"
    )

    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        item = await first(port)
        won = await port.claim(item, "k-1", OWNER, 60, item.expected_revision)
        assert isinstance(won, Success) and won.fencing_token == 1

    on_port(application, use)


def test_one_outcome_of_two_clauses_is_no_certain_evidence(application: Path) -> None:
    contract = application / "work.riff"
    text = contract.read_text("utf-8").replace("unavailable AlreadyClaimed", "unavailable StaleRevision")
    contract.write_text(text, "utf-8")

    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        item = await first(port)
        assert await port.claim(item, "k-1", OWNER, 60, 9) == Evidence("StaleRevision", "other")

    on_port(application, use)


def test_a_parameter_that_is_none_is_refused_for_good(application: Path) -> None:
    async def use(port: SchedulePort, stopping: asyncio.Event, client: AsyncClient) -> None:
        other = SchedulePort(client, await client.plan(), "DueWorkItems", {"organization_id": "acme"}, stopping)
        with pytest.raises(Permanent) as caught:
            await other.next(Selection(wait_seconds=30))
        assert getattr(caught.value.cause, "path", "") == "organization_id"

    on_port(application, use)
