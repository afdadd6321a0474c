"""The host: turns of one worker, at most `in_flight` at once, until it is told to stop.

One loop selects, each item then has a task of its own; an item in flight here, or whose delay runs, is passed over.
Between two idle selections the host waits: for the policy's wait, the end of a delay, a turn, or the word to stop.
What it is told to stop by: `draining` lets the turns in flight finish, `cancellation` ends them between operations.
"""

import asyncio
from collections.abc import Callable

from riffdb.scheduler.failures import AuthorizationRevoked, Retryable, SchedulerFailure
from riffdb.scheduler.identity import Target
from riffdb.scheduler.port import Item, Selection
from riffdb.scheduler.results import Failed, TurnResult
from riffdb.scheduler.turn import run_item, select
from riffdb.scheduler.worker import Worker

_PAUSE_SECONDS_MIN = 1.0
"""The least pause between two idle selections, where the policy's wait is shorter."""


async def run_host(
    worker: Worker,
    cancellation: asyncio.Event,
    *,
    draining: asyncio.Event | None = None,
    observe: Callable[[TurnResult], None] = lambda result: None,
) -> None:
    """Run turns until `cancellation` or `draining` is set, then until those in flight have ended.

    `observe` is called with the end of each turn and each failed selection. Raises `AuthorizationRevoked` when the
    capability has gone, and `Permanent` when selections are refused for good; a fault of the port or of `observe` is
    raised when the other turns have ended.
    """
    await _Host(worker, cancellation, draining or asyncio.Event(), observe).run()


class _Host:
    def __init__(
        self,
        worker: Worker,
        cancellation: asyncio.Event,
        draining: asyncio.Event,
        observe: Callable[[TurnResult], None],
    ) -> None:
        self._worker = worker
        self._cancellation = cancellation
        self._draining = draining
        self._observe = observe
        self._turns: dict[asyncio.Task[None], Target] = {}
        self._faults: list[BaseException] = []

    async def run(self) -> None:
        try:
            await self._select_and_start()
        except SchedulerFailure as failure:
            self._faults.append(failure)
        except asyncio.CancelledError:
            for turn in self._turns:
                turn.cancel()
            raise
        finally:
            while self._turns:
                await asyncio.wait(self._turns)
                self._reap()
        if len(self._faults) > 1:
            raise BaseExceptionGroup("several turns of one worker ended on a fault", self._faults)
        if self._faults:
            raise self._faults[0]

    async def _select_and_start(self) -> None:
        failures = 0
        while not self._is_stopping():
            free = self._worker.policy.in_flight - len(self._turns)
            if free == 0:
                await self._wait(None)
                continue
            wait_seconds, since = self._wait_seconds(), self._now()
            try:
                items = await select(self._worker.port, Selection(wait_seconds, free, self._passes_over))
            except Retryable as failure:
                failures += 1
                delay = self._worker.policy.retry_delay(failures)
                self._observe(Failed(None, failure, delay))
                await self._wait(delay)
                continue
            failures = 0
            for item in items:
                self._turns[asyncio.ensure_future(self._turn(item))] = item.target
            if not items:
                await self._wait(since + max(wait_seconds, _PAUSE_SECONDS_MIN) - self._now())

    async def _turn(self, item: Item) -> None:
        result = await run_item(self._worker, item, self._cancellation)
        self._observe(result)
        if isinstance(result, Failed) and isinstance(result.failure, AuthorizationRevoked):
            raise result.failure

    def _is_stopping(self) -> bool:
        return self._cancellation.is_set() or self._draining.is_set() or bool(self._faults)

    def _now(self) -> float:
        return self._worker.timer.monotonic()

    def _passes_over(self, target: Target) -> bool:
        return target in self._turns.values() or self._worker.backoff.passes_over(target, self._now())

    def _wait_seconds(self) -> float:
        """The policy's wait, or less when a delay ends before."""
        wait_seconds = self._worker.policy.wait_seconds
        delay = self._worker.backoff.seconds_to_next(self._now())
        return wait_seconds if delay is None else min(wait_seconds, delay)

    async def _wait(self, seconds: float | None) -> None:
        """Wait until a turn ends, the host is to stop, or the seconds are over."""
        signals = {asyncio.ensure_future(event.wait()) for event in (self._cancellation, self._draining)}
        sleeping = set() if seconds is None else {asyncio.ensure_future(self._worker.timer.sleep(max(0.0, seconds)))}
        try:
            await asyncio.wait({*self._turns, *signals, *sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (*signals, *sleeping):
                waiting.cancel()
        self._reap()

    def _reap(self) -> None:
        for turn in [turn for turn in self._turns if turn.done()]:
            del self._turns[turn]
            fault = asyncio.CancelledError() if turn.cancelled() else turn.exception()
            if fault is not None:
                self._faults.append(fault)
