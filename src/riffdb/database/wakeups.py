"""Wakeups: who waits for commits of a partition, and how a commit wakes exactly those whom it concerns.

A waiter is registered before its owner looks at the store, so nothing that is committed after the look is missed:

    with wakeups.waiter(partition, topics) as waiter:
        while not await look() and await waiter.wait(seconds): ...

Topics are `event:Name`, `entity:Name` and what their owners agree on. Waiting blocks the thread (`ThreadSignal`) or
suspends the task (`LoopSignal`), as the door does. Nothing is kept of the past, and no timer runs but a waiter's own.
Absent: generations, which are the sequences of partitions in the store; authority.
"""

import asyncio
from collections.abc import Callable, Collection
from threading import Lock
from typing import Protocol, Self

from riffdb.core.errors import RiffError


class Signal(Protocol):
    """Raised once or often, lowered by the one who waits for it."""

    def set(self) -> bool:
        """Raise it; whether it was down before."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Lower it, as soon as it is raised; False if it is not within the time."""
        ...


class ThreadSignal:
    """For callers on threads; never suspends. The lock is held while the signal is down."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lock.acquire()

    def set(self) -> bool:
        """Raise it; whether it was down before."""
        try:
            self._lock.release()
        except RuntimeError:
            return False
        return True

    async def wait(self, seconds: float) -> bool:
        """Block until it is raised or the time is over."""
        return self._lock.acquire(timeout=max(0.0, seconds))


class LoopSignal:
    """For tasks of one event loop."""

    def __init__(self) -> None:
        self._is_set = False
        self._awaited: asyncio.Future[None] | None = None

    def set(self) -> bool:
        """Raise it; whether it was down before."""
        was_down, self._is_set = not self._is_set, True
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)
        return was_down

    async def wait(self, seconds: float) -> bool:
        """Suspend until it is raised or the time is over."""
        if not self._is_set and seconds > 0:
            loop = asyncio.get_running_loop()
            self._awaited = awaited = loop.create_future()
            timer = loop.call_later(seconds, _resolve, awaited)
            try:
                await awaited
            finally:
                timer.cancel()
                self._awaited = None
        was_set, self._is_set = self._is_set, False
        return was_set


def _resolve(awaited: "asyncio.Future[None]") -> None:
    if not awaited.done():
        awaited.set_result(None)


class Listener(Protocol):
    """One whom commits of a partition may concern; None for all topics."""

    @property
    def partition(self) -> bytes: ...

    @property
    def topics(self) -> frozenset[str] | None: ...

    def set(self) -> bool:
        """A commit concerns it; whether that is news. Must neither block nor call `Wakeups`."""
        ...


class Waiter:
    """One who waits, registered while the block runs."""

    __slots__ = ("_signal", "_wakeups", "partition", "topics")

    def __init__(self, wakeups: "Wakeups", partition: bytes, topics: frozenset[str] | None, signal: Signal) -> None:
        self._wakeups = wakeups
        self.partition = partition
        self.topics = topics
        self._signal = signal

    def set(self) -> bool:
        """A commit concerns it."""
        return self._signal.set()

    async def wait(self, seconds: float) -> bool:
        """Whether it was woken since the last wait, or since it was registered; False once the time is over.

        `RDB-E-UNAVAILABLE` when the database is closed meanwhile.
        """
        is_woken = not self._wakeups.has_ended() and await self._signal.wait(seconds)
        return is_woken and not self._wakeups.has_ended()

    def __enter__(self) -> Self:
        self._wakeups.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._wakeups.remove(self)


class Wakeups:
    """Who listens to the commits of one database. `woken` counts how often a commit woke one."""

    def __init__(self, make_signal: Callable[[], Signal]) -> None:
        self.make_signal = make_signal
        self._mutex = Lock()
        self._waiting: dict[bytes, dict[Listener, None]] = {}
        self._is_closed = False
        self._is_ending = False
        self.woken = 0

    @property
    def waiting(self) -> int:
        """How many listen now."""
        with self._mutex:
            return sum(len(listeners) for listeners in self._waiting.values())

    def waiter(self, partition: bytes, topics: frozenset[str] | None = None) -> Waiter:
        """One who waits for these topics of a partition, None for all; to be used in a `with` block."""
        return Waiter(self, partition, topics, self.make_signal())

    def is_awaited(self, partition: bytes) -> bool:
        """Whether anybody waits for anything of the partition."""
        return partition in self._waiting

    def bump(self, partition: bytes, topics: Collection[str]) -> None:
        """Wake those of the partition who wait for one of the topics."""
        if partition in self._waiting:
            with self._mutex:
                for listener in self._waiting.get(partition, ()):
                    if listener.topics is None or not listener.topics.isdisjoint(topics):
                        self.woken += listener.set()

    def finish(self) -> None:
        """End every wait now as if its time were over, and let none begin: the server stops."""
        self._is_ending = True
        self._rouse()

    def close(self) -> None:
        """End every wait with an error, and let none begin: the database is closed."""
        self._is_closed = True
        self.finish()

    def has_ended(self) -> bool:
        """Whether nothing may wait any more; `RDB-E-UNAVAILABLE` if the database is closed."""
        if self._is_closed:
            raise RiffError("RDB-E-UNAVAILABLE", "the database was closed while this waited; open it again")
        return self._is_ending

    def add(self, listener: Listener) -> None:
        """Register a listener."""
        with self._mutex:
            self._waiting.setdefault(listener.partition, {})[listener] = None

    def remove(self, listener: Listener) -> None:
        """Forget a listener, and the partition with its last one."""
        with self._mutex:
            listeners = self._waiting.get(listener.partition)
            if listeners is not None:
                listeners.pop(listener, None)
                if not listeners:
                    del self._waiting[listener.partition]

    def _rouse(self) -> None:
        with self._mutex:
            for listeners in self._waiting.values():
                for listener in listeners:
                    listener.set()
