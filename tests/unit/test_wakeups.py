"""Signals and wakeups between threads: units, since the interleavings are not brought about from outside.

What every store does with them stands in `tests/conformance/test_database_wakeups.py`.
"""

import asyncio
import signal
import threading
from pathlib import Path
from threading import Event, Thread

import pytest

import riffdb
from riffdb.client.embedded import local_caller, open_database
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step
from riffdb.database.doors import ThreadDoor
from riffdb.database.wakeups import LoopSignal, ThreadSignal, Waiter, Wakeups
from tests.conformance.databases import ORGANIZATION, QUEUE, work

HANG_SECONDS = 60
PARTITION = b"\x01p"


class Waiting:
    """A thread that waits once; `result` is what it was told."""

    def __init__(self, waiter: Waiter) -> None:
        self.result: object = None
        self.thread = Thread(target=self._run, args=(waiter,), daemon=True)
        self.thread.start()

    def _run(self, waiter: Waiter) -> None:
        try:
            self.result = step(waiter.wait(2 * HANG_SECONDS))
        except RiffError as error:
            self.result = error

    def join(self) -> object:
        """What it was told."""
        self.thread.join(HANG_SECONDS)
        assert not self.thread.is_alive(), "a waiter was forgotten"
        return self.result


def test_a_signal_is_raised_once_and_lowered_by_the_wait() -> None:
    def check(raised: ThreadSignal | LoopSignal) -> None:
        assert raised.set()
        assert not raised.set(), "it is raised already"

    blocking = ThreadSignal()
    check(blocking)
    assert step(blocking.wait(HANG_SECONDS))
    assert not step(blocking.wait(0))
    assert not step(blocking.wait(0.01))

    async def main() -> None:
        suspending = LoopSignal()
        check(suspending)
        assert await suspending.wait(HANG_SECONDS)
        assert not await suspending.wait(0)
        assert not await suspending.wait(0.01)

    asyncio.run(main())


def test_threads_are_woken_by_their_topics_alone() -> None:
    wakeups = Wakeups(ThreadSignal)
    with wakeups.waiter(PARTITION, frozenset("a")) as one, wakeups.waiter(PARTITION, frozenset("b")) as other:
        waiting = Waiting(one)
        wakeups.bump(PARTITION, ["a"])
        wakeups.bump(b"another", ["b"])
        assert waiting.join() is True
        assert not step(other.wait(0))
        assert wakeups.woken == 1
    assert wakeups.waiting == 0


def test_a_stop_and_a_close_end_the_waits_of_threads() -> None:
    wakeups = Wakeups(ThreadSignal)
    with wakeups.waiter(PARTITION) as one:
        waiting = Waiting(one)
        wakeups.finish()
        assert waiting.join() is False
    wakeups = Wakeups(ThreadSignal)
    with wakeups.waiter(PARTITION) as one:
        waiting = Waiting(one)
        wakeups.close()
        assert isinstance(waiting.join(), RiffError)


def test_an_interrupted_thread_leaves_no_waiter() -> None:
    wakeups = Wakeups(ThreadSignal)

    def interrupt() -> None:
        while not wakeups.waiting:
            Event().wait(0.001)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), wakeups.waiter(PARTITION) as waiter:
        step(waiter.wait(HANG_SECONDS))
    assert wakeups.waiting == 0


def test_a_thread_waits_for_the_commit_of_another(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'work.db'}"
    with riffdb.open(url, QUEUE):
        pass
    database = step(open_database(url, ThreadDoor, create=False))
    caller = local_caller(None, "test")

    def commit() -> None:
        while not database.wakeups.waiting:
            Event().wait(0.001)
        step(database.command(caller, "CreateWork", work("k")))

    thread = Thread(target=commit, daemon=True)
    thread.start()
    assert step(database.wakeup(caller, ORGANIZATION, 0, 30)) == b'{"generation":"1"}'
    thread.join(HANG_SECONDS)
    assert database.wakeups.woken == 1
    step(database.close())
