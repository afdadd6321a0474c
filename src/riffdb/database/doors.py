"""Who runs the batch: doors take requests, one at a time runs whatever waits, many share a flush.

No engine thread and no timer. `ThreadDoor` serves callers on many threads: who finds the engine idle runs the batch for
all who wait, then hands the lead on. `LoopDoor` serves tasks of one event loop: the batch runs inline on it. Both are
bounded; a full queue refuses at once. What a batch is and does is the pipeline's affair.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from riffdb.core.errors import RiffError
from riffdb.core.limits import BATCH_COMMANDS_MAX, QUEUE_COMMANDS_MAX
from riffdb.core.stepping import step

Work = TypeVar("Work")
Run = Callable[[list[Any]], Coroutine[Any, Any, None]]


class Door(Protocol):
    """Takes one piece of work and returns when it has been done; a failure of the whole run is raised here."""

    async def submit(self, work: Any) -> None:
        """Do the work in some batch, and return when it is settled."""
        ...


def _refuse_full() -> RiffError:
    return RiffError("RDB-E-OVERLOADED", "the queue of commands is full; try again shortly", detail={"retry_after": 1})


@dataclass(slots=True)
class _Waiting(Generic[Work]):
    work: Work
    signal: Lock
    settled: bool = False
    error: BaseException | None = None


class ThreadDoor:
    """For callers on threads. `run` must never suspend."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._mutex = Lock()
        self._queue: deque[_Waiting[Any]] = deque()
        self._is_led = False

    async def submit(self, work: Any) -> None:
        """Do the work on this thread or on another's; never suspends."""
        waiting = _Waiting(work, Lock())
        waiting.signal.acquire()
        with self._mutex:
            if len(self._queue) >= QUEUE_COMMANDS_MAX:
                raise _refuse_full()
            self._queue.append(waiting)
            leads, self._is_led = not self._is_led, True
        if not leads:
            waiting.signal.acquire()
        if not waiting.settled:
            self._lead(waiting)
        if waiting.error is not None:
            raise waiting.error

    def _lead(self, own: _Waiting[Any]) -> None:
        try:
            while not own.settled:
                self._run_one_batch()
        finally:
            with self._mutex:
                successor = self._queue[0] if self._queue else None
                self._is_led = successor is not None
            if successor is not None:
                successor.signal.release()

    def _run_one_batch(self) -> None:
        with self._mutex:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_COMMANDS_MAX))]
        error: BaseException | None = None
        try:
            step(self._run([waiting.work for waiting in batch]))
        except BaseException as raised:  # noqa: BLE001  # each of the batch raises it
            error = raised
        for waiting in batch:
            waiting.settled, waiting.error = True, error
            waiting.signal.release()


@dataclass(slots=True)
class _Pending:
    work: Any
    done: asyncio.Future[None]


@dataclass(slots=True)
class LoopDoor:
    """For tasks of one event loop; a batch runs as part of the loop and suspends only where the store does."""

    run: Run
    _queue: deque[_Pending] = field(default_factory=deque)
    _runner: asyncio.Task[None] | None = None

    async def submit(self, work: Any) -> None:
        """Do the work in the next batch."""
        if len(self._queue) >= QUEUE_COMMANDS_MAX:
            raise _refuse_full()
        loop = asyncio.get_running_loop()
        pending = _Pending(work, loop.create_future())
        self._queue.append(pending)
        if self._runner is None:
            self._runner = loop.create_task(self._run_queue())
        await asyncio.shield(pending.done)

    async def _run_queue(self) -> None:
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_COMMANDS_MAX))]
                await self._run_batch(batch)
                await asyncio.sleep(0)
        finally:
            self._runner = None

    async def _run_batch(self, batch: list[_Pending]) -> None:
        error: Exception | None = None
        try:
            await self.run([pending.work for pending in batch])
        except Exception as raised:  # noqa: BLE001  # each of the batch raises it
            error = raised
        for pending in batch:
            if error is None:
                pending.done.set_result(None)
            else:
                pending.done.set_exception(error)
