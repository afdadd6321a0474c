"""What a restore makes of a database: a history of its own, as it stood, whatever was trimmed or set before."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from riffdb.core.errors import RiffError
from riffdb.database.callers import Caller
from riffdb.database.restoring import restore
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, SECOND, START, Place, account, ledger_plan
from tests.conformance.streams import Consumer, place_orders, shop_plan
from tests.conformance.test_database_queries import HOME, ask, cursor_of, put, refused
from tests.model.boards import boards_plan, card

MONTH = 30 * 86_400
OPERATOR = Caller("local:somebody", "", "test")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "first").mkdir()
    found = Place("sqlite", tmp_path / "first")
    yield found
    found.close()


def backed_up(place: Place) -> Path:
    folder = place.path.parent.parent / "backup"
    place.run(place.database.operations.backup(LOCAL, folder=str(folder)))
    return folder


@contextmanager
def restored(place: Place, backup: Path, **until: Any) -> Iterator[Place]:
    """The database of the backup, at the time of the place; verified at the end, unless the place was tampered with."""
    folder = place.path.parent.parent / f"restored-{len(list(place.path.parent.parent.iterdir()))}"
    folder.mkdir()
    place.run(restore(str(backup), str(folder / "place.db"), OPERATOR, **until))
    found = Place("sqlite", folder)
    found.now = place.now
    try:
        yield found
        if not place.is_tampered:
            found.verify()
    finally:
        found.close()


def error_of(place: Place, backup: Path, **until: Any) -> tuple[str, str]:
    with pytest.raises(RiffError) as caught, restored(place, backup, **until):
        pass
    return caught.value.code, caught.value.message


def test_cursors_and_delivery_tokens_of_the_old_history_are_refused(place: Place) -> None:
    place.deploy(shop_plan())
    place_orders(place, 1)
    consumer = Consumer(place)
    (delivery,) = consumer.next()
    incarnation = place.database.incarnation
    with restored(place, backed_up(place)) as other:
        assert other.database.incarnation != incarnation
        again = Consumer(other)
        late = again.call("ack", delivery, incarnation=incarnation)
        assert other.error_of(late).code == "RDB-E-INCARNATION"
        assert again.status()["unsettled"] == 1
        other.now += 60 * SECOND
        assert [part["attempt"] for part in again.next()] == [2]


def test_a_cursor_of_the_old_history_is_refused(place: Place) -> None:
    place.deploy(boards_plan())
    put(place, *(card(HOME.bytes, number, due=START) for number in range(3)))
    text = cursor_of(place)
    with restored(place, backed_up(place)) as other:
        assert refused(other, "Soonest", limit=1, **{"from": text})[0] == "RDB-E-INCARNATION"
        assert ask(other, "Soonest", limit=1)["payload"]["next"] != text


def test_a_consumer_reads_on_where_it_stood_as_far_as_there_is_anything(place: Place) -> None:
    place.deploy(shop_plan())
    place_orders(place, 1, 2, 3)
    third = place.log()[2].time
    place_orders(place, 4, 5)
    early, late, held = Consumer(place, "early"), Consumer(place, "late"), Consumer(place, "held")
    early.ack(early.next()[0])
    late.drain()
    held.next(8)
    backup = backed_up(place)
    with restored(place, backup, until=third) as other:
        other.now += 60 * SECOND
        place_orders(other, 40)
        assert Consumer(other, "early").ids() == ["2:1", "3:1", "4:1"]
        assert Consumer(other, "late").ids() == ["4:1"]
        assert Consumer(other, "held").ids() == ["1:1", "2:1", "3:1", "4:1"]


@pytest.fixture
def trimmed(place: Place) -> tuple[Place, Path, list[int]]:
    """A ledger whose log was trimmed up to its third commit, then went on; a backup of it, and the times of commits."""
    place.deploy(ledger_plan())
    place.command("OpenAccount", **account("one", 1, balance=1))
    place.command("OpenAccount", **account("two", 2, balance=2))
    place.command("CloseAccount", **account("close", 2))
    place.command("OpenAccount", **account("other", owner=OTHER))
    times = [record.time for record in place.log()]
    place.now += MONTH * SECOND + SECOND
    place.command("Deposit", **account("four", 1, amount=10))
    place.run(place.database.operations.retention(LOCAL, apply=True))
    place.now += SECOND
    place.command("Deposit", **account("five", 1, amount=100))
    place.now += SECOND
    place.run(place.database.operations.retention(LOCAL, keys_seconds=3_600))
    return place, backed_up(place), times + [record.time for record in place.log()]


def balance(place: Place) -> Any:
    call = place.database.operations.row(LOCAL, entity="Account", key=(str(ORGANIZATION), "1"))
    return place.run(call)["fields"]["balance"]


def settings(place: Place) -> Any:
    return place.run(place.database.operations.retention(LOCAL))["keys_seconds"]


def test_a_trimmed_database_is_restored_whole(trimmed: tuple[Place, Path, list[int]]) -> None:
    place, backup, _ = trimmed
    with restored(place, backup) as other:
        assert (balance(other), settings(other)) == ("111", 3_600)
        assert other.command("OpenAccount", **account("two again", 2))["outcome"] == "Opened"


def test_a_trimmed_database_is_restored_from_its_base_on(trimmed: tuple[Place, Path, list[int]]) -> None:
    place, backup, times = trimmed
    with restored(place, backup, until=times[4]) as other:
        assert (balance(other), settings(other)) == ("111", MONTH)
    with restored(place, backup, commit=(str(ORGANIZATION), 4)) as other:
        assert balance(other) == "11"
        acts = [record.command for record in other.log(None)]
        assert acts == ["deploy", "retention.trim", "restore"], "the base was put in force after that moment"
        other.now += 2 * MONTH * SECOND
        assert other.run(other.database.operations.retention(LOCAL, apply=True))["commits"] == 1
    with restored(place, backup, until=times[3] - 1) as other:
        assert (balance(other), other.log()) == ("1", [])


def test_what_was_trimmed_cannot_be_restored(trimmed: tuple[Place, Path, list[int]]) -> None:
    place, backup, times = trimmed
    code, message = error_of(place, backup, until=times[2] - 1)
    assert (code, "is trimmed up to " in message) == ("RDB-E-INPUT", True)
    assert error_of(place, backup, commit=(str(ORGANIZATION), 3))[0] == "RDB-E-NOT-FOUND"


def test_a_setting_is_restored_as_it_was_set(place: Place) -> None:
    place.deploy(ledger_plan())
    for seconds in (3_600, 7_200, 9_000):
        place.now += SECOND
        place.run(place.database.operations.retention(LOCAL, keys_seconds=seconds))
    backup = backed_up(place)
    with restored(place, backup, commit=("system", 3)) as other:
        assert settings(other) == 7_200
    with restored(place, backup, commit=("system", 1)) as other:
        assert settings(other) == MONTH
