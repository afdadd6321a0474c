"""Who runs the batch: doors take requests, one at a time runs whatever waits, many share a flush.

No engine thread and no timer. `ThreadDoor` serves callers on many threads: who finds the engine idle runs the batch for
all who wait, then hands the lead on. `LoopDoor` serves tasks of one event loop: the batch runs inline on it. Both are
bounded; a full queue refuses at once. Each makes the signals of those who wait beside it. What a batch is and does is
the pipeline's affair.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeVar

from riffdb.core.errors import RiffError
from riffdb.core.limits import BATCH_COMMANDS_MAX, QUEUE_COMMANDS_MAX
from riffdb.core.stepping import step
from riffdb.database.wakeups import LoopSignal, Signal, ThreadSignal

Result = TypeVar("Result")
Run = Callable[[list[Any]], Coroutine[Any, Any, None]]

LOOK_SECONDS = 1.0
"""How long a waiting thread sleeps before it looks by itself whether somebody leads."""


class Door(Protocol):
    """Takes one piece of work and returns when it has been done; a failure of the whole run is raised here."""

    async def submit(self, work: Any) -> None:
        """Do the work in some batch, and return when it is settled."""
        ...

    def make_signal(self) -> Signal:
        """A signal for those who wait as the door's callers do."""
        ...

    async def beside(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do what reads much, and never suspends, without keeping other callers from going on."""
        ...


def _refuse_full() -> RiffError:
    return RiffError("RDB-E-OVERLOADED", "the queue of commands is full; try again shortly", detail={"retry_after": 1})


def _interrupted() -> RiffError:
    return RiffError(
        "RDB-E-OUTCOME-UNKNOWN", "whoever ran the batch was interrupted; send the same key and input again to settle it"
    )


@dataclass(slots=True, eq=False)
class _Waiting:
    """Work on its way. `signal` is held while there is nothing for its thread to look at."""

    work: Any
    signal: Lock
    is_settled: bool = False
    error: Exception | None = None

    def wake(self) -> None:
        try:
            self.signal.release()
        except RuntimeError:
            pass  # it is awake already


class ThreadDoor:
    """For callers on threads. `run` must never suspend.

    The thread whose waiting is `_leader` takes batches from the queue and settles them, until its own is settled. No
    wake-up is lost: a waiting is in the queue before its thread looks whether somebody leads, and a leader steps back
    before it looks whether somebody waits; so of two who cross, one sees the other. Whoever is woken looks again, and
    need not lead: a newcomer may have been faster.

    An interrupt may hit a thread at any instruction. Stepping back is one assignment at the beginning of a `finally`,
    so it happens. What comes after it may be cut short: a wake-up that is not given costs the others `LOOK_SECONDS`,
    and a batch that was taken and never settled is found by the next leader that belongs to it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._mutex = Lock()
        self._queue: deque[_Waiting] = deque()
        self._leader: _Waiting | None = None
        self._size = 1

    async def submit(self, work: Any) -> None:
        """Do the work on this thread or on another's; never suspends."""
        waiting = _Waiting(work, Lock())
        waiting.signal.acquire()
        try:
            with self._mutex:
                if len(self._queue) >= QUEUE_COMMANDS_MAX:
                    raise _refuse_full()
                self._queue.append(waiting)
            while not waiting.is_settled:
                with self._mutex:
                    if self._leader is None:
                        self._leader = waiting
                if self._leader is waiting:
                    self._lead(waiting)
                else:
                    waiting.signal.acquire(timeout=LOOK_SECONDS)
        finally:
            led = self._leader is waiting
            if led:
                self._leader = None
            if led or not waiting.is_settled:
                self._leave(waiting)
        if waiting.error is not None:
            raise waiting.error

    def make_signal(self) -> Signal:
        """A signal that blocks the thread."""
        return ThreadSignal()

    async def beside(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do it on the caller's own thread."""
        return await work()

    def _lead(self, own: _Waiting) -> None:
        while not own.is_settled:
            self._gather()
            batch: list[_Waiting] = []
            error: Exception | None = _interrupted()
            try:
                with self._mutex:
                    for _ in range(min(len(self._queue), BATCH_COMMANDS_MAX)):
                        batch.append(self._queue.popleft())
                if not batch:  # its own was taken by a leader that was interrupted
                    own.error, own.is_settled = error, True
                    return
                step(self._run([waiting.work for waiting in batch]))
                error = None
            except Exception as raised:  # noqa: BLE001  # each of the batch raises it
                error = raised
            finally:
                for waiting in batch:
                    waiting.error, waiting.is_settled = error, True
                    waiting.wake()
            self._size = len(batch)

    def _gather(self) -> None:
        """Let the threads that the last batch woke come back before the next one begins, while more of them do."""
        while (found := len(self._queue)) < self._size:
            time.sleep(0)
            if len(self._queue) == found:
                return

    def _leave(self, waiting: _Waiting) -> None:
        with self._mutex:
            if not waiting.is_settled and waiting in self._queue:
                self._queue.remove(waiting)
            successor = self._queue[0] if self._queue else None
        if successor is not None:
            successor.wake()


_Pending = tuple[Any, asyncio.Future[None]]


@dataclass(slots=True)
class LoopDoor:
    """For tasks of one event loop; a batch runs as part of the loop and suspends only where the store does."""

    run: Run
    _queue: deque[_Pending] = field(default_factory=deque)
    _runner: asyncio.Task[None] | None = None

    async def submit(self, work: Any) -> None:
        """Do the work in the next batch; a task that is cancelled before that takes its work back."""
        if len(self._queue) >= QUEUE_COMMANDS_MAX:
            raise _refuse_full()
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._queue.append((work, done))
        if self._runner is None:
            self._runner = loop.create_task(self._run_queue())
        await done

    def make_signal(self) -> Signal:
        """A signal that suspends the task."""
        return LoopSignal()

    async def beside(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do it on a thread, stepped; the loop goes on."""
        return await asyncio.to_thread(lambda: step(work()))

    async def _run_queue(self) -> None:
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_COMMANDS_MAX))]
                await self._run_batch([pending for pending in batch if not pending[1].done()])
                await asyncio.sleep(0)
        finally:
            self._runner = None
            _settle(self._queue, _interrupted())
            self._queue.clear()

    async def _run_batch(self, batch: list[_Pending]) -> None:
        error: Exception | None = _interrupted()
        try:
            await self.run([work for work, _ in batch])
            error = None
        except Exception as raised:  # noqa: BLE001  # each of the batch raises it
            error = raised
        finally:
            _settle(batch, error)


def _settle(settled: Iterable[_Pending], error: Exception | None) -> None:
    for _, done in settled:
        if done.done():  # whoever waited was cancelled
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
