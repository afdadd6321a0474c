"""Holding the lease while a handler runs, on a clock that is moved by hand.

Here and not in a wider suite because the order of a renewal's answer and a handler's end is decided by the test alone.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from riffdb.core.limits import U64_MAX
from riffdb.scheduler import (
    Answer,
    Completed,
    Evidence,
    Failed,
    HandlerError,
    Item,
    Lease,
    LeaseLost,
    Permanent,
    Policy,
    Refusal,
    Retryable,
    Success,
    TurnResult,
    Work,
    run_once,
)
from riffdb.scheduler.handler import is_async
from riffdb.scheduler.worker import successor
from tests.unit.scheduler_world import FIRST, SCHEDULE, Moment, World, WorldPort, a_worker, a_world, ended, until

POLICY = Policy(lease_seconds=60)


class Stage:
    """One turn of a worker whose async handler runs until it is let go."""

    def __init__(self, port: WorldPort, error: Exception | None = None) -> None:
        self.port, self.world, self.error = port, port.world, error
        self.started, self.let_go = asyncio.Event(), asyncio.Event()
        self.is_cancelled = False
        self.turn = asyncio.ensure_future(run_once(a_worker(port, handler=self.handle, policy=POLICY), asyncio.Event()))

    async def handle(self, work: Work) -> None:
        self.started.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        if self.error is not None:
            raise self.error

    async def move(self, seconds: float) -> None:
        """Move the clock when the worker sleeps, and let it run until it sleeps again or has ended."""
        await self.world.quiet(self.turn)
        self.world.advance(seconds)
        await self.world.quiet(self.turn)

    async def end(self) -> TurnResult:
        """Let the handler go and the turn end."""
        self.let_go.set()
        return await ended(self.turn)


def play(scene: Callable[[], Any]) -> Any:
    return asyncio.run(scene())


def test_a_lease_is_renewed_at_each_third_and_its_newest_revision_presented() -> None:
    async def scene() -> tuple[TurnResult, WorldPort]:
        port = WorldPort(a_world())
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(19)
        assert "renew" not in port.names
        for renewals in range(1, 10):
            await stage.move(1 if renewals == 1 else 20)
            assert port.names.count("renew") == renewals
        return await stage.end(), port

    result, port = play(scene)
    assert isinstance(result, Completed)
    assert port.names == ["next", "resolve", "claim", *["renew"] * 9, "execute", "release", "acknowledge"]
    row = port.world.rows[FIRST]
    assert (row.state, row.revision, row.fence) == ("Complete", 13, 1)


def test_after_a_renewal_fail_presents_the_renewals_revision() -> None:
    async def scene() -> tuple[TurnResult, WorldPort]:
        port = WorldPort(a_world(), replace(SCHEDULE, fails=True))
        stage = Stage(port, RuntimeError())
        await stage.started.wait()
        await stage.move(20)
        return await stage.end(), port

    result, port = play(scene)
    assert isinstance(result, Failed) and isinstance(result.failure, HandlerError)
    assert port.names[3:] == ["renew", "fail", "negative_acknowledge"]
    assert port.world.failed == [1]


class Renewing(WorldPort):
    """A port whose renewals answer, or raise, as they are told; when told nothing they are sent."""

    def tell(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.keys: list[str] = []

    async def renew(self, item: Item, key: str, lease: Lease, lease_seconds: int) -> Answer:
        self.keys.append(key)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Retryable):
            self.names.append("renew")
            raise answer
        if isinstance(answer, Exception):
            raise answer
        return answer or await super().renew(item, key, lease, lease_seconds)


def renewing(*answers: Answer | Exception) -> Renewing:
    port = Renewing(a_world())
    port.tell(*answers)
    return port


def assert_lost(answer: Answer) -> None:
    async def scene() -> None:
        port = renewing(answer)
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(20)
        assert isinstance(await ended(stage.turn), LeaseLost)
        assert stage.is_cancelled
        assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]

    play(scene)


def test_a_refused_renewal_ends_the_handler_and_loses_the_lease() -> None:
    assert_lost(Evidence("LeaseExpired", "expired"))
    assert_lost(Evidence("Stale", "stale"))
    assert_lost(Refusal("Paused"))


def test_an_outstanding_renewal_is_settled_by_its_key_before_business() -> None:
    """The first answer is lost although the renewal was committed; business then presents the revision it made."""

    async def scene() -> tuple[TurnResult, Renewing]:
        port = Renewing(a_world())
        port.tell()
        sent: list[str] = []

        async def look(moment: Moment) -> None:
            if (moment.name, moment.side) == ("renew", "after"):
                sent.append(moment.name)
                stage.let_go.set()
                if len(sent) == 1:
                    raise Retryable

        port.at = look
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(20)
        await stage.move(1)
        return await ended(stage.turn), port

    result, port = play(scene)
    assert isinstance(result, Completed)
    assert port.names[3:] == ["renew", "renew", "execute", "release", "acknowledge"]
    assert port.keys[0] == port.keys[1]
    assert port.world.rows[FIRST].revision == 5


def test_a_renewal_that_is_never_settled_loses_the_lease_when_it_is_over() -> None:
    async def scene() -> None:
        port = renewing(*[Retryable() for _ in range(100)])
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(20)
        stage.let_go.set()
        for _ in range(38):
            await stage.move(1)
        assert not stage.turn.done()
        await stage.move(2)
        assert isinstance(await ended(stage.turn), LeaseLost)
        assert "execute" not in port.names
        assert len(set(port.keys)) == 1

    play(scene)


def test_a_permanent_failure_of_a_renewal_ends_the_turn_and_the_handler() -> None:
    async def scene() -> None:
        stage = Stage(renewing(Permanent(OSError())))
        await stage.started.wait()
        await stage.move(20)
        result = await ended(stage.turn)
        assert isinstance(result, Failed) and isinstance(result.failure, Permanent)
        assert stage.is_cancelled
        assert stage.port.names == ["next", "resolve", "claim"]

    play(scene)


def test_without_a_renewal_the_handler_ends_with_the_lease() -> None:
    async def scene() -> None:
        port = WorldPort(a_world(), replace(SCHEDULE, renews=False))
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(59)
        assert not stage.turn.done()
        await stage.move(1)
        assert isinstance(await ended(stage.turn), LeaseLost)
        assert stage.is_cancelled
        assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]

    play(scene)


def test_a_worker_that_was_stopped_past_its_lease_neither_renews_nor_executes() -> None:
    async def scene() -> None:
        port = WorldPort(a_world())
        stage = Stage(port)
        await stage.started.wait()
        await stage.move(60)
        assert isinstance(await ended(stage.turn), LeaseLost)
        assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]

    play(scene)


def lease_over(port: WorldPort, world: World) -> TurnResult:
    async def slow(moment: Moment) -> None:
        if (moment.name, moment.side) == ("claim", "before"):
            world.advance(60)

    port.at = slow
    return asyncio.run(run_once(a_worker(port, policy=POLICY), asyncio.Event()))


def test_the_lease_counts_from_before_the_claim_was_sent() -> None:
    port = WorldPort(a_world())
    assert isinstance(lease_over(port, port.world), LeaseLost)
    assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]


def test_a_renewed_lease_counts_from_before_the_renewal_was_sent() -> None:
    async def scene() -> None:
        port = WorldPort(a_world())

        async def slow(moment: Moment) -> None:
            if (moment.name, moment.side) == ("renew", "before"):
                stage.let_go.set()
                port.world.advance(60)

        port.at = slow
        stage = Stage(port)
        await stage.started.wait()
        port.world.rows[FIRST] = replace(port.world.rows[FIRST], expires=1 << 62)
        await stage.move(20)
        assert isinstance(await ended(stage.turn), LeaseLost)
        assert "execute" not in port.names

    play(scene)


def test_a_sync_handler_runs_in_a_thread_while_its_lease_is_renewed() -> None:
    let_go = threading.Event()
    threads: list[threading.Thread] = []

    def handler(work: Work) -> None:
        threads.append(threading.current_thread())
        let_go.wait()

    async def scene() -> tuple[TurnResult, WorldPort]:
        port = WorldPort(a_world())

        async def look(moment: Moment) -> None:
            if (moment.name, moment.side) == ("renew", "after"):
                let_go.set()

        port.at = look
        turn = asyncio.ensure_future(run_once(a_worker(port, handler=handler, policy=POLICY), asyncio.Event()))
        await port.world.quiet(turn)
        port.world.advance(20)
        return await turn, port

    result, port = play(scene)
    assert isinstance(result, Completed)
    assert "renew" in port.names
    assert threads[0] is not threading.main_thread()


def test_a_sync_handler_of_a_lost_lease_is_waited_for_and_its_result_dropped() -> None:
    let_go = threading.Event()

    async def scene() -> None:
        port = renewing(Evidence("Stale", "stale"))

        def handler(work: Work) -> None:
            let_go.wait()

        turn = asyncio.ensure_future(run_once(a_worker(port, handler=handler, policy=POLICY), asyncio.Event()))
        await port.world.quiet(turn)
        port.world.advance(20)
        await until(lambda: bool(port.keys))
        for _ in range(100):
            await asyncio.sleep(0)
        is_waited_for = not turn.done()
        let_go.set()
        assert is_waited_for
        assert isinstance(await turn, LeaseLost)

    play(scene)


class AsyncCallable:
    async def __call__(self, work: Work) -> None:
        return None


def test_what_can_be_cancelled_is_told_from_what_cannot() -> None:
    async def handler(work: Work) -> None:
        return None

    assert is_async(handler)
    assert is_async(AsyncCallable())
    assert not is_async(lambda work: None)


def test_a_revision_at_its_end_has_no_successor() -> None:
    assert successor(U64_MAX - 1, Success("Claimed", U64_MAX)) == U64_MAX
    with pytest.raises(Permanent):
        successor(U64_MAX, Success("Claimed", U64_MAX + 1))


def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def handler(work: Work) -> None:
        raise asyncio.CancelledError

    port = WorldPort(a_world())
    result = asyncio.run(run_once(a_worker(port, handler=handler), asyncio.Event()))
    assert isinstance(result, Failed) and isinstance(result.failure, HandlerError)
    assert port.names[3:] == ["release", "negative_acknowledge"]
