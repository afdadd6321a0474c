"""Doors: who runs the batch, that nobody is forgotten, and what failures, interrupts and cancellations do.

Units, since interleavings and interrupts are not brought about from outside. The runs here are stand-ins for the
pipeline, which has its own suite; what passes between threads and tasks is real.
"""

import asyncio
import ctypes
import signal
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from threading import Barrier, Event, Thread, get_ident
from time import monotonic
from typing import Any

import pytest

import riffdb
from riffdb.core.errors import RiffError
from riffdb.core.limits import BATCH_COMMANDS_MAX
from riffdb.core.stepping import step
from riffdb.database import doors
from riffdb.database.doors import LoopDoor, ThreadDoor
from tests.conformance.databases import ORGANIZATION, QUEUE, work

HANG_SECONDS = 60
"""After this a test has failed; nothing waits that long otherwise."""


@pytest.fixture(autouse=True)
def _unaided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by themselves whether somebody leads, so a wake-up that is lost hangs the test."""
    monkeypatch.setattr(doors, "LOOK_SECONDS", 2 * HANG_SECONDS)


class Runs:
    """What the batches held and who ran them. `during` runs inside each; it may wait, or raise."""

    def __init__(self, during: Callable[[list[Any]], None] = lambda batch: None) -> None:
        self.batches: list[list[Any]] = []
        self.threads: list[int] = []
        self.seen: set[Any] = set()
        self.at_once = 0
        self._during = during

    async def __call__(self, works: list[Any]) -> None:
        self.at_once += 1
        try:
            assert self.at_once == 1, "two batches at a time"
            self.batches.append(works)
            self.threads.append(get_ident())
            self._during(works)
            self.seen.update(works)
        finally:
            self.at_once -= 1

    @property
    def done(self) -> list[Any]:
        """All work, in the order in which it was run."""
        return [work for batch in self.batches for work in batch]


def in_threads(count: int, act: Callable[[int], None]) -> None:
    """Run `act` in threads that begin together; its errors are those of the test."""
    barrier, errors = Barrier(count), list[BaseException]()

    def run(number: int) -> None:
        try:
            barrier.wait(HANG_SECONDS)
            act(number)
        except BaseException as error:  # noqa: BLE001  # raised in the test's own thread
            errors.append(error)

    threads = [Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
        assert not thread.is_alive(), "a caller was forgotten"
    if errors:
        raise errors[0]


class Submitting:
    """A thread that submits one piece of work; `error` is what came of it."""

    def __init__(self, door: ThreadDoor, work: object) -> None:
        self.error: BaseException | None = None
        self.thread = Thread(target=self._run, args=(door, work), daemon=True)
        self.thread.start()

    def _run(self, door: ThreadDoor, work: object) -> None:
        try:
            step(door.submit(work))
        except BaseException as error:  # noqa: BLE001  # looked at in the test's own thread
            self.error = error

    def join(self) -> BaseException | None:
        """The error that the submission ended with, if it did."""
        self.thread.join(HANG_SECONDS)
        assert not self.thread.is_alive(), "a caller was forgotten"
        return self.error


def queued(door: ThreadDoor, count: int) -> None:
    """Wait until so many wait in the queue of the door."""
    while len(door._queue) < count:
        threading.Event().wait(0.001)


class Held:
    """A thread door whose first batch lasts until it is let go; whatever comes meanwhile waits behind it."""

    def __init__(self, during: Callable[[list[Any]], None] = lambda batch: None) -> None:
        self._during = during
        self._began, self._go_on = Event(), Event()
        self.runs = Runs(self._hold)
        self.door = ThreadDoor(self.runs)
        self.first = Submitting(self.door, "first")
        assert self._began.wait(HANG_SECONDS)

    def _hold(self, batch: list[Any]) -> None:
        if batch == ["first"]:
            self._began.set()
            assert self._go_on.wait(HANG_SECONDS)
        self._during(batch)

    def behind(self, count: int) -> list[Submitting]:
        """So many pieces of work, 0, 1, …, that wait in the queue in this order."""
        others = []
        for number in range(count):
            others.append(Submitting(self.door, number))
            queued(self.door, number + 1)
        return others

    def let_go(self) -> None:
        """Let the first batch end."""
        self._go_on.set()


# --- threads --------------------------------------------------------------------------------------------------------


def test_every_caller_is_served_once() -> None:
    runs = Runs()
    door = ThreadDoor(runs)

    def call(number: int) -> None:
        for turn in range(50):
            step(door.submit((number, turn)))
            assert (number, turn) in runs.seen

    in_threads(32, call)
    assert sorted(runs.done) == [(number, turn) for number in range(32) for turn in range(50)]
    for number in range(32):
        assert [turn for caller, turn in runs.done if caller == number] == list(range(50)), "in its own order"
    assert door._leader is None
    assert not door._queue


def test_one_caller_runs_its_work_itself_and_alone() -> None:
    runs = Runs()
    door = ThreadDoor(runs)
    for number in range(3):
        step(door.submit(number))
    assert runs.batches == [[0], [1], [2]]
    assert set(runs.threads) == {get_ident()}


def test_what_waits_is_one_batch_and_the_lead_goes_on() -> None:
    held = Held()
    others = held.behind(10)
    held.let_go()
    assert [submitting.join() for submitting in (held.first, *others)] == [None] * 11
    runs = held.runs
    assert runs.batches[0] == ["first"]
    assert runs.batches[1] == list(range(10)), "who came first goes first"
    assert len(runs.batches) == 2
    assert runs.threads[0] == held.first.thread.ident
    assert runs.threads[1] != held.first.thread.ident, "whoever has been served leads no longer"


def test_a_batch_is_bounded_and_everybody_comes_next() -> None:
    held = Held()
    others = held.behind(BATCH_COMMANDS_MAX + 5)
    held.let_go()
    assert {submitting.join() for submitting in (held.first, *others)} == {None}
    assert [len(batch) for batch in held.runs.batches] == [1, BATCH_COMMANDS_MAX, 5]


def test_an_error_of_the_run_reaches_all_of_the_batch_and_nobody_else() -> None:
    def during(batch: list[Any]) -> None:
        if 3 in batch:
            raise OSError("broken")

    held = Held(during)
    others = held.behind(5)
    held.let_go()
    assert held.first.join() is None
    assert [type(submitting.join()) for submitting in others] == [OSError] * 5
    step(held.door.submit("later"))
    assert held.runs.batches == [["first"], [0, 1, 2, 3, 4], ["later"]]


def test_a_full_queue_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "QUEUE_COMMANDS_MAX", 3)
    held = Held()
    others = held.behind(3)
    with pytest.raises(RiffError) as caught:
        step(held.door.submit("too many"))
    assert (caught.value.code, caught.value.detail) == ("RDB-E-OVERLOADED", {"retry_after": 1})
    held.let_go()
    assert [submitting.join() for submitting in (held.first, *others)] == [None] * 4
    assert "too many" not in held.runs.done
    step(held.door.submit("later"))


def test_an_interrupted_leader_leaves_nobody_behind() -> None:
    def during(batch: list[Any]) -> None:
        if len(batch) > 1:
            raise KeyboardInterrupt

    held = Held(during)
    others = held.behind(5)
    held.let_go()
    assert held.first.join() is None
    errors = [submitting.join() for submitting in others]
    assert [type(error) for error in errors].count(KeyboardInterrupt) == 1, "the one who led"
    codes = [error.code for error in errors if isinstance(error, RiffError)]
    assert codes == ["RDB-E-OUTCOME-UNKNOWN"] * 4
    step(held.door.submit("later"))
    assert held.runs.batches[-1] == ["later"]


def test_an_interrupted_waiter_takes_its_work_back() -> None:
    began, go_on = Event(), Event()

    def during(batch: list[Any]) -> None:
        if batch == ["first"]:
            began.set()
            queued(door, 1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            assert go_on.wait(HANG_SECONDS)

    runs = Runs(during)
    door = ThreadDoor(runs)
    first = Submitting(door, "first")
    assert began.wait(HANG_SECONDS)
    with pytest.raises(KeyboardInterrupt):
        step(door.submit("interrupted"))
    last = Submitting(door, "last")
    queued(door, 1)
    go_on.set()
    assert (first.join(), last.join()) == (None, None)
    assert runs.done == ["first", "last"]


class Losing(deque[Any]):
    """A queue from which the second piece of work is taken by somebody who is interrupted before they keep it."""

    taken = 0

    def popleft(self) -> Any:
        found = super().popleft()
        self.taken += 1
        if self.taken == 2:
            raise KeyboardInterrupt
        return found


def test_work_that_was_taken_and_lost_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "LOOK_SECONDS", 0.01)
    held = Held()
    others = held.behind(3)
    held.door._queue = Losing(held.door._queue)
    held.let_go()
    errors = [submitting.join() for submitting in (held.first, *others)]
    assert [type(error) for error in errors] == [type(None), KeyboardInterrupt, RiffError, type(None)]
    assert isinstance(errors[2], RiffError)
    assert errors[2].code == "RDB-E-OUTCOME-UNKNOWN"
    assert held.runs.done == ["first", 2]


class Interrupted:
    """A thread that submits until it was interrupted 40 times; `acknowledged` is what it was told is done."""

    def __init__(self, door: ThreadDoor, number: int) -> None:
        self.acknowledged: list[tuple[int, int]] = []
        self.unknown: list[RiffError] = []
        self._door, self._number, self._turn = door, number, 0
        self._is_ready, self._sent_at = False, 0
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the thread, wherever it is, if it has dealt with the last one.

        One that hit Python's own clearing away is swallowed there: the thread then went on to further turns.
        """
        if self._is_ready or self._turn > self._sent_at + 3:
            self._is_ready = False
            identity, interrupt = ctypes.c_ulong(self.thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, interrupt)
            self._sent_at = self._turn

    def _run(self) -> None:
        for _ in range(40):
            try:
                self._is_ready = True
                while True:
                    self._submit()
            except KeyboardInterrupt:
                pass

    def _submit(self) -> None:
        self._turn += 1
        work = (self._number, self._turn)
        try:
            step(self._door.submit(work))
        except RiffError as error:
            self.unknown.append(error)
        else:
            self.acknowledged.append(work)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that take turns much more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.00002)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("switching")
def test_no_interrupt_at_any_place_hangs_a_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    # An interrupt between the making of a coroutine and its start leaves one that was never awaited.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    monkeypatch.setattr(doors, "LOOK_SECONDS", 0.005)
    runs = Runs()
    door = ThreadDoor(runs)
    callers = [Interrupted(door, number) for number in range(6)]
    pause, end = Event(), monotonic() + HANG_SECONDS
    while any(caller.thread.is_alive() for caller in callers):
        assert monotonic() < end, "a caller was forgotten"
        for caller in callers:
            caller.interrupt()
        pause.wait(0.0005)
    acknowledged = [work for caller in callers for work in caller.acknowledged]
    assert set(acknowledged) <= runs.seen, "what is acknowledged was run"
    assert len(set(runs.done)) == len(runs.done), "nothing is run twice"
    assert {error.code for caller in callers for error in caller.unknown} <= {"RDB-E-OUTCOME-UNKNOWN"}
    assert acknowledged, "some got through"


def test_threads_racing_one_key_are_one_execution(tmp_path: Path) -> None:
    with riffdb.open(f"sqlite:{tmp_path / 'race.db'}", QUEUE) as client:
        answers: list[bytes] = []
        in_threads(32, lambda number: answers.append(client.command("CreateWork", **work("k")).raw))
        assert sorted(answer.replace(b"true", b"false") for answer in answers) == [min(answers)] * 32
        assert sum(b'"replayed":false' in answer for answer in answers) == 1
        assert client.query("DueWork", organization_id=ORGANIZATION).sequence == 1


def test_many_threads_commit_gaplessly(tmp_path: Path) -> None:
    with riffdb.open(f"sqlite:{tmp_path / 'many.db'}", QUEUE) as client:
        sequences: list[int] = []

        def call(number: int) -> None:
            for turn in range(20):
                answer = client.command("CreateWork", **work(f"{number} {turn}", number * 1_000 + turn))
                assert answer.commit is not None
                sequences.append(answer.commit.sequence)

        in_threads(16, call)
        assert sorted(sequences) == list(range(1, 321))


# --- tasks of a loop ------------------------------------------------------------------------------------------------


async def settled(*calls: Awaitable[Any]) -> list[Any]:
    """What became of the calls: None, or the error."""
    async with asyncio.timeout(HANG_SECONDS):
        return list(await asyncio.gather(*calls, return_exceptions=True))


def test_tasks_that_come_together_are_one_batch() -> None:
    async def main() -> None:
        runs = Runs()
        door = LoopDoor(runs)
        assert set(await settled(*(door.submit(number) for number in range(BATCH_COMMANDS_MAX + 4)))) == {None}
        assert [len(batch) for batch in runs.batches] == [BATCH_COMMANDS_MAX, 4]
        assert runs.done == list(range(BATCH_COMMANDS_MAX + 4))
        await door.submit("alone")
        assert runs.batches[-1] == ["alone"]

    asyncio.run(main())


def test_many_tasks_are_each_served_once() -> None:
    async def main() -> None:
        runs = Runs()
        door = LoopDoor(runs)

        async def call(number: int) -> None:
            for turn in range(50):
                await door.submit((number, turn))

        assert set(await settled(*(call(number) for number in range(32)))) == {None}
        assert sorted(runs.done) == [(number, turn) for number in range(32) for turn in range(50)]
        assert len(runs.batches) <= 51, "whoever came back meanwhile is in the next batch"

    asyncio.run(main())


def test_an_error_of_the_run_reaches_all_tasks_of_the_batch() -> None:
    def during(batch: list[Any]) -> None:
        if "broken" in batch:
            raise OSError("broken")

    async def main() -> None:
        door = LoopDoor(Runs(during))
        errors = await settled(door.submit("broken"), door.submit(1), door.submit(2))
        assert [type(error) for error in errors] == [OSError] * 3
        await door.submit("later")

    asyncio.run(main())


def test_a_full_queue_refuses_a_task_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "QUEUE_COMMANDS_MAX", 3)

    async def main() -> None:
        runs = Runs()
        door = LoopDoor(runs)
        *served, refused = await settled(*(door.submit(number) for number in range(4)))
        assert (served, refused.code, refused.detail) == ([None] * 3, "RDB-E-OVERLOADED", {"retry_after": 1})
        assert runs.done == [0, 1, 2]

    asyncio.run(main())


class Suspending:
    """A run that waits inside its batch, as over a store that suspends."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.done: list[Any] = []

    async def __call__(self, works: list[Any]) -> None:
        self.began.set()
        await self.go_on.wait()
        self.done += works


def test_a_cancelled_task_disturbs_no_batch() -> None:
    complaints: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        run = Suspending()
        door = LoopDoor(run)
        kept, inside = (asyncio.create_task(door.submit(name)) for name in ("kept", "inside"))
        await run.began.wait()
        before, after = (asyncio.create_task(door.submit(name)) for name in ("before", "after"))
        await asyncio.sleep(0)
        inside.cancel()
        before.cancel()
        await asyncio.sleep(0)
        assert (inside.cancelled(), before.cancelled()) == (True, True), "at once, not after the batch"
        run.go_on.set()
        assert await settled(kept, after) == [None, None]
        assert run.done == ["kept", "inside", "after"], "what waited still was taken back"

    asyncio.run(main())
    assert complaints == []


def test_a_cancelled_runner_leaves_no_task_behind() -> None:
    async def main() -> None:
        run = Suspending()
        door = LoopDoor(run)
        inside = asyncio.create_task(door.submit("inside"))
        await run.began.wait()
        waiting = asyncio.create_task(door.submit("waiting"))
        await asyncio.sleep(0)
        assert door._runner is not None
        door._runner.cancel()
        errors = await settled(inside, waiting)
        assert [error.code for error in errors] == ["RDB-E-OUTCOME-UNKNOWN"] * 2
        run.go_on.set()
        await door.submit("later")
        assert run.done == ["later"]

    asyncio.run(main())


def test_a_door_serves_one_loop_after_another() -> None:
    runs = Runs()
    door = LoopDoor(runs)
    for number in range(3):
        asyncio.run(door.submit(number))
    assert runs.done == [0, 1, 2]
