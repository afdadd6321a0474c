"""The store's clock under wall clocks that jump, which no test from outside can make."""

import logging
from itertools import pairwise
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffdb.storage.clock import ALLOWANCE, StoreClock, boot_time, wall_time

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_700_000_000 * SECOND


class Machine:
    """A wall clock and a boot clock that the test moves."""

    def __init__(self) -> None:
        self.wall = START
        self.boot = 100 * SECOND

    def clock(self) -> StoreClock:
        return StoreClock(lambda: self.wall, lambda: self.boot)

    def run(self, seconds: float, drift: int = 0) -> None:
        self.boot += int(seconds * SECOND)
        self.wall += int(seconds * SECOND) + drift


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_it_is_the_wall_clock(machine: Machine) -> None:
    clock = machine.clock()
    assert clock() == START
    machine.run(90)
    assert clock() == START + 90 * SECOND
    machine.run(10, drift=3 * SECOND)
    assert clock() == START + 103 * SECOND
    assert clock.jumps == 0


def test_it_never_goes_back(machine: Machine) -> None:
    clock = machine.clock()
    machine.run(10)
    clock()
    machine.run(1, drift=-4 * SECOND)
    assert clock() == START + 10 * SECOND
    machine.run(5)
    assert clock() == START + 12 * SECOND
    assert clock.jumps == 0


@pytest.mark.parametrize("jump", [ALLOWANCE + 1, 3_600 * SECOND, DAY, 50 * 365 * DAY, -ALLOWANCE - 1, -DAY, -START])
def test_a_jump_is_ignored_counted_and_told_once(machine: Machine, caplog: pytest.LogCaptureFixture, jump: int) -> None:
    clock = machine.clock()
    machine.run(10)
    assert clock() == START + 10 * SECOND
    with caplog.at_level(logging.WARNING, "riffdb.storage.clock"):
        machine.run(1, drift=jump)
        for second in range(11, 20):
            assert clock() == START + second * SECOND
            machine.run(1)
        assert clock.jumps == 1
        machine.run(0, drift=-jump)
        assert clock() == START + 20 * SECOND
        machine.run(7)
        assert clock() == START + 27 * SECOND
    assert clock.jumps == 1
    assert len(caplog.records) == 1
    assert f"jumped by {jump / SECOND:+.1f} seconds" in caplog.text


def test_a_suspended_machine_is_no_jump(machine: Machine) -> None:
    clock = machine.clock()
    machine.run(30 * 86_400)
    assert clock() == START + 30 * DAY
    assert clock.jumps == 0


def test_small_jumps_do_not_add_up(machine: Machine) -> None:
    clock = machine.clock()
    for _ in range(20):
        machine.run(1, drift=2 * SECOND)
        clock()
    assert clock() <= START + 20 * SECOND + ALLOWANCE


def test_a_swinging_clock_does_not_fill_the_log(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    clock = machine.clock()
    with caplog.at_level(logging.WARNING, "riffdb.storage.clock"):
        for number in range(200):
            machine.run(0.05, drift=(200 if number % 2 else -200) * SECOND)
            clock()
    assert clock.jumps == 100
    assert len(caplog.records) == 7


MOVES = st.lists(st.tuples(st.integers(0, DAY), st.integers(-2 * DAY, 2 * DAY) | st.integers(-ALLOWANCE, ALLOWANCE)))


@given(MOVES)
def test_it_stays_within_boot_time_and_the_allowance(moves: list[tuple[int, int]]) -> None:
    machine = Machine()
    clock = machine.clock()
    first = machine.boot
    times = [clock()]
    for passed, drift in moves:
        machine.boot += passed
        machine.wall += passed + drift
        times.append(clock())
        assert times[-1] <= START + machine.boot - first + ALLOWANCE
    assert times == sorted(times)


def test_threads_see_one_order() -> None:
    clock = StoreClock()
    times: list[list[int]] = [[] for _ in range(4)]

    def run(seen: list[int]) -> None:
        seen.extend(clock() for _ in range(2_000))

    threads = [Thread(target=run, args=(seen,)) for seen in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(earlier <= later for seen in times for earlier, later in pairwise(seen))


def test_the_sources_are_microseconds_of_the_machine() -> None:
    assert 1_600_000_000 * SECOND < wall_time() < 10_000_000_000 * SECOND
    assert 0 < boot_time() <= boot_time()
    assert abs(StoreClock()() - wall_time()) < DAY
