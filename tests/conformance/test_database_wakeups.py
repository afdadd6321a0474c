"""Wakeups of a database, on every store: what wakes whom, who may ask, and what ends a wait."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.database.callers import Caller
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, START, Place, account

OWNER = b"\x01" + ORGANIZATION.bytes
HANG_SECONDS = 30


def meanwhile(place: Place, waiting: Coroutine[Any, Any, Any], act: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What the call comes to, if `act` is done once it waits; an error is what it came to."""

    async def both() -> Any:
        task = asyncio.ensure_future(waiting)
        while not (task.done() or place.database.wakeups.waiting):
            await asyncio.sleep(0)
        assert not task.done(), "it did not wait"
        await act()
        async with asyncio.timeout(HANG_SECONDS):
            results = await asyncio.gather(task, return_exceptions=True)
        return json.loads(results[0]) if isinstance(results[0], bytes) else results[0]

    return place.run(both())


def generation(
    place: Place, after: object, wait_seconds: object = 0, caller: Caller = LOCAL, owner: object = ORGANIZATION
) -> Any:
    """The answer to one question for the generation."""
    return json.loads(place.run(place.database.wakeup(caller, owner, after, wait_seconds)))


def open_account(place: Place, number: int = 1, owner: UUID = ORGANIZATION) -> Callable[[], Coroutine[Any, Any, Any]]:
    """A command that commits in the partition of `owner`."""
    values = account(f"k{number}", number, balance=5) | {"owner": owner}
    return lambda: place.database.command(LOCAL, "OpenAccount", values)


def test_the_generation_is_the_sequence_of_the_partition(ledger: Place) -> None:
    assert generation(ledger, None) == {"generation": "0"}
    ledger.run(open_account(ledger)())
    assert generation(ledger, None) == {"generation": "1"}
    assert generation(ledger, "0", 30) == {"generation": "1"}, "it has grown, so nothing is waited for"
    assert generation(ledger, 0, 30) == {"generation": "1"}
    assert generation(ledger, 1, 0) == {"generation": "1"}
    assert generation(ledger, 1, 0.01) == {"generation": "1"}
    assert generation(ledger, None, owner=str(OTHER)) == {"generation": "0"}
    ledger.reopen()
    assert generation(ledger, None) == {"generation": "1"}


def test_a_commit_ends_the_wait(ledger: Place) -> None:
    waiting = ledger.database.wakeup(LOCAL, ORGANIZATION, 0, 30)
    assert meanwhile(ledger, waiting, open_account(ledger)) == {"generation": "1"}
    assert (ledger.database.wakeups.woken, ledger.database.wakeups.waiting) == (1, 0)


def test_a_failure_that_is_recorded_ends_the_wait_too(ledger: Place) -> None:
    ledger.run(open_account(ledger)())
    values = account("again", 1, balance=1)
    waiting = ledger.database.wakeup(LOCAL, ORGANIZATION, 1, 30)
    found = meanwhile(ledger, waiting, lambda: ledger.database.command(LOCAL, "OpenAccount", values))
    assert found == {"generation": "2"}


@pytest.mark.parametrize(
    ("partition", "after", "seconds", "path"),
    [
        ("no uuid", None, 0, "partition"),
        (ORGANIZATION, -1, 0, "after"),
        (ORGANIZATION, "x", 0, "after"),
        (ORGANIZATION, None, -1, "wait_seconds"),
        (ORGANIZATION, None, 30.5, "wait_seconds"),
        (ORGANIZATION, None, float("nan"), "wait_seconds"),
        (ORGANIZATION, None, "5", "wait_seconds"),
        (ORGANIZATION, None, True, "wait_seconds"),
        (ORGANIZATION, None, None, "wait_seconds"),
    ],
)
def test_what_is_not_understood_is_refused(
    ledger: Place, partition: object, after: object, seconds: object, path: str
) -> None:
    error = ledger.error_of(ledger.database.wakeup(LOCAL, partition, after, seconds))
    assert (error.code, error.path) == ("RDB-E-INPUT", path)


def test_any_capability_may_ask_but_for_its_own_partition_alone(ledger: Place) -> None:
    auditor = ledger.caller("Auditor", partition=str(ORGANIZATION))
    assert generation(ledger, None, caller=auditor) == {"generation": "0"}
    error = ledger.error_of(ledger.database.wakeup(auditor, OTHER, None, 0))
    assert error.code == "RDB-E-FORBIDDEN"


def test_a_capability_that_ends_during_the_wait_learns_nothing(ledger: Place) -> None:
    revoked = ledger.caller("Teller")
    expiring = ledger.caller("Teller", expires_seconds=10)

    async def revoke_and_commit() -> None:
        await ledger.database.operations.revoke(LOCAL, identity=revoked.capability)
        await open_account(ledger, 1)()

    error = meanwhile(ledger, ledger.database.wakeup(revoked, ORGANIZATION, 0, 30), revoke_and_commit)
    assert (error.code, "revoked" in error.message) == ("RDB-E-UNAUTHENTICATED", True)

    async def expire_and_commit() -> None:
        ledger.now = START + 11_000_000
        await open_account(ledger, 2)()

    error = meanwhile(ledger, ledger.database.wakeup(expiring, ORGANIZATION, 1, 30), expire_and_commit)
    assert (error.code, "expired" in error.message) == ("RDB-E-UNAUTHENTICATED", True)


def test_a_commit_wakes_those_whom_it_concerns(ledger: Place) -> None:
    wakeups = ledger.database.wakeups
    topics = {
        "all": None,
        "account": frozenset(["entity:Account"]),
        "moved": frozenset(["event:Moved"]),
        "either": frozenset(["event:Moved", "entity:Nothing"]),
        "nothing": frozenset(["entity:Nothing"]),
    }

    async def woken(*commands: tuple[str, dict[str, object]], partition: bytes = OWNER) -> set[str]:
        waiters = {name: wakeups.waiter(partition, wanted) for name, wanted in topics.items()}
        for waiter in waiters.values():
            waiter.__enter__()
        before = wakeups.woken
        await asyncio.gather(*(ledger.database.command(LOCAL, name, values) for name, values in commands))
        found = {name for name, waiter in waiters.items() if await waiter.wait(0)}
        assert wakeups.woken - before == len(found), "each is woken once by one flush"
        assert not [name for name, waiter in waiters.items() if await waiter.wait(0)], "a wait lowers the signal"
        for waiter in waiters.values():
            waiter.__exit__()
        return found

    async def main() -> None:
        one, two = account("a", 1, balance=9), account("b", 2, balance=0)
        move = {"request_key": UUID(int=1), "owner": ORGANIZATION, "source": 1, "target": 2, "amount": 3}
        assert await woken(("OpenAccount", one), ("OpenAccount", two)) == {"all", "account"}
        assert await woken(("Move", move)) == {"all", "account", "moved", "either"}
        assert await woken(("Move", move)) == set(), "a replay commits nothing"
        assert await woken(("Move", move | {"request_key": UUID(int=2), "amount": 70})) == {"all"}
        assert await woken(("Look", {"owner": ORGANIZATION, "number": 1})) == set(), "a read commits nothing"
        assert await woken(("OpenAccount", one | {"owner": OTHER})) == set(), "another partition"
        assert await woken(("CloseAccount", account("c", 1))) == {"all", "account"}
        assert wakeups.waiting == 0

    ledger.run(main())


def test_a_commit_between_the_look_and_the_wait_is_not_missed(ledger: Place) -> None:
    async def main() -> None:
        with ledger.database.wakeups.waiter(OWNER) as waiter:
            await open_account(ledger)()
            async with asyncio.timeout(HANG_SECONDS):
                assert await waiter.wait(HANG_SECONDS * 2)

    ledger.run(main())


def test_a_wait_that_is_cancelled_leaves_nothing_behind(ledger: Place) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(ledger.database.wakeup(LOCAL, ORGANIZATION, 0, 30))
        while not ledger.database.wakeups.waiting:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ledger.database.wakeups.waiting == 0
        assert not ledger.database.wakeups.is_awaited(OWNER)

    ledger.run(main())


def test_closing_the_database_ends_waits_with_an_error(ledger: Place) -> None:
    error = meanwhile(ledger, ledger.database.wakeup(LOCAL, ORGANIZATION, 0, 30), ledger.database.close)
    assert isinstance(error, RiffError)
    assert (error.code, error.facts.retryable) == ("RDB-E-UNAVAILABLE", True)


def test_a_stop_ends_waits_as_if_their_time_were_over(ledger: Place) -> None:
    async def finish() -> None:
        ledger.database.wakeups.finish()

    assert meanwhile(ledger, ledger.database.wakeup(LOCAL, ORGANIZATION, 0, 30), finish) == {"generation": "0"}
    assert generation(ledger, 0, 30) == {"generation": "0"}, "nothing waits any more"
