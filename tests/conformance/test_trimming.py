"""Trimming the log, over every store: what goes, what is kept for whom, and that everything else is as it was.

Each place is verified when its test ends, so a base that does not fit the rows, or a log that does not go on from it,
fails every test here.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.values import timestamp_text
from riffdb.database.bases import BASE_ROWS, BASES
from riffdb.database.doors import LoopDoor
from riffdb.database.trimmable import trimmable
from riffdb.database.trimming import Trimming
from riffdb.storage.protocol import Reader, Scan, Transaction
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, SECOND, Place, account, changed_ledger, plan_of
from tests.conformance.streams import Consumer, place_orders, shop_plan
from tests.conformance.test_database_lives import JOBS, live
from tests.conformance.test_database_secrets import FIRST, given, safe_plan
from tests.conformance.test_database_secrets import SECOND as CHANGED

DAY = 86_400
MONTH = 30 * DAY


def retention(place: Place, **wanted: Any) -> dict[str, Any]:
    found = place.run(place.database.operations.retention(LOCAL, **wanted))
    counts = {name: found.pop(name) for name in ("partitions", "commits", "held", "rows")}
    return counts if found.pop("applied") is wanted.get("apply", False) else {}


def trimmed(place: Place, **wanted: Any) -> dict[str, Any]:
    return retention(place, apply=True, **wanted)


def later(place: Place) -> None:
    """Let everything so far be old enough."""
    place.now += MONTH * SECOND + SECOND


def sequences(place: Place, partition: UUID = ORGANIZATION) -> list[int]:
    return [record.sequence for record in place.log(partition)]


def bases(place: Place) -> tuple[int, int]:
    """How many bases there are, and how many rows of any generation."""

    async def count(reader: Reader) -> tuple[int, int]:
        found = [await reader.scan(Scan(table, None, (), limit=9_999)) for table in (BASES, BASE_ROWS)]
        return len(found[0]), len(found[1])

    return place.read(count)


def row(place: Place, number: int = 1, at: object = None) -> Any:
    call = place.database.operations.row(LOCAL, entity="Account", key=(str(ORGANIZATION), str(number)), at=at)
    try:
        return place.run(call)
    except RiffError as error:
        return (error.code, "is trimmed" in error.message)


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is told when the commit that wrote it was trimmed, of which no time is known."""
    return row | {"commit": row["commit"] | {"time": None}}


@pytest.fixture
def old(ledger: Place) -> Place:
    """A ledger with five old commits, the last of which deleted an account, and two new ones."""
    for number in (1, 2, 3):
        ledger.command("OpenAccount", **account(f"open {number}", number, balance=10 * number))
    ledger.command("Deposit", **account("pay", 1, amount=1))
    ledger.command("CloseAccount", **account("close", 3))
    ledger.command("OpenAccount", **account("open", owner=OTHER))
    later(ledger)
    ledger.command("Deposit", **account("pay more", 2, amount=5))
    ledger.command("OpenAccount", **account("open 3 again", 3, balance=1))
    return ledger


def test_what_could_go_is_counted_and_nothing_is_changed(old: Place) -> None:
    assert retention(old) == {"partitions": 2, "commits": 6, "held": 0, "rows": 0}
    assert retention(old, older_than_seconds=MONTH + 2) == {"partitions": 0, "commits": 0, "held": 0, "rows": 0}
    assert (sequences(old), bases(old)) == ([1, 2, 3, 4, 5, 6, 7], (0, 0))


def test_old_commits_go_and_the_rows_that_they_left_stand_for_them(old: Place) -> None:
    before = {number: row(old, number) for number in (1, 2, 3)}
    assert trimmed(old) == {"partitions": 2, "commits": 6, "held": 0, "rows": 4}
    assert (sequences(old), sequences(old, OTHER), bases(old)) == ([6, 7], [], (2, 4))
    assert {number: row(old, number) for number in (2, 3)} == {number: before[number] for number in (2, 3)}
    assert row(old) == before[1] | {"commit": before[1]["commit"] | {"time": None}}, (
        "of a trimmed commit no time is known"
    )
    act = old.log(None)[-1]
    told = json.loads(act.input)["partitions"]
    assert act.command == "retention.trim"
    assert [(part["through"], part["rows"]) for part in told] == [("5", "3"), ("1", "1")]
    assert trimmed(old) == {"partitions": 0, "commits": 0, "held": 0, "rows": 0}
    assert len(old.log(None)) == act.sequence, "a run that trims nothing is no act"


def test_the_log_goes_on_behind_its_base_and_is_trimmed_again(old: Place) -> None:
    trimmed(old)
    old.verify()
    old.reopen()
    assert old.command("Deposit", **account("third", 1, amount=1))["commit"]["sequence"] == "8"
    assert old.command("OpenAccount", **account("other", owner=OTHER, number=2))["commit"]["sequence"] == "2"
    later(old)
    old.command("Deposit", **account("fourth", 1, amount=1))
    assert trimmed(old) == {"partitions": 2, "commits": 4, "held": 0, "rows": 5}
    assert (sequences(old), bases(old)) == ([9], (2, 5))
    assert row(old)["fields"]["balance"] == "13"


def test_a_row_as_it_stood_is_told_from_the_base_on(old: Place) -> None:
    time = old.log()[4].time
    at_base = {number: row(old, number, at=5) for number in (1, 2, 3)}
    trimmed(old)
    gone = ("RDB-E-NOT-FOUND", True)
    for at in (4, timestamp_text(time - 1)):
        assert [row(old, number, at) for number in (1, 2, 3)] == [gone] * 3
    for at in (5, timestamp_text(time)):
        for number in (1, 2):
            found = row(old, number, at)
            assert found == timeless(at_base[number])
        assert row(old, 3, at) == ("RDB-E-NOT-FOUND", False)
    assert row(old, 2, at=6)["fields"]["balance"] == "25"
    assert row(old, 3, at=7)["fields"]["balance"] == "1"
    history = old.run(old.database.operations.history(LOCAL, entity="Account", key=(str(ORGANIZATION), "2")))
    assert [entry["sequence"] for entry in history] == ["6"]
    why = old.error_of(old.database.operations.why(LOCAL, partition=str(ORGANIZATION), sequence="5"))
    assert why.code == "RDB-E-NOT-FOUND"
    log = old.run(old.database.operations.log(LOCAL, partition=str(ORGANIZATION)))
    assert [entry["sequence"] for entry in log] == ["6", "7"]


def test_a_trimmed_key_is_new(old: Place) -> None:
    trimmed(old)
    assert old.command("Deposit", **account("pay", 1, amount=3))["payload"] == {"balance": "14"}


def test_a_key_goes_on_from_a_life_that_was_trimmed(empty: Place) -> None:
    empty.deploy(plan_of(JOBS, "jobs"))
    live(empty, "first")
    later(empty)
    assert trimmed(empty)["rows"] == 1
    empty.verify()
    live(empty, "second")
    later(empty)
    trimmed(empty)
    live(empty, "third")


def test_secrets_stand_apart_in_a_base(empty: Place) -> None:
    empty.deploy(safe_plan())
    empty.command("OpenAccount", **given("open", password=FIRST, pin=7))
    empty.command("OpenAccount", **given("other", password=FIRST) | {"login": "bob"})
    later(empty)
    assert trimmed(empty)["rows"] == 2
    rows = empty.read(lambda reader: reader.scan(Scan(BASE_ROWS, None, (), limit=9)))
    for found in rows:
        told = [part for place, part in enumerate(found) if BASE_ROWS.columns[place].name != "secret"]
        assert FIRST not in str(told)
    assert len({found[6] for found in rows}) == 2, "each has a salt of its own"
    assert empty.read(lambda reader: reader.secrets(b"\x01" + ORGANIZATION.bytes, [1, 2])) == {}
    assert empty.command("ChangePassword", **given("change", old=FIRST, new=CHANGED))["outcome"] == "Changed"
    empty.verify()
    later(empty)
    trimmed(empty)
    shown = empty.run(empty.database.operations.row(LOCAL, entity="Account", key=(str(ORGANIZATION), "ada")))
    assert (shown["fields"]["changes"], CHANGED in str(shown)) == ("1", False)


def test_a_contract_may_change_between_a_base_and_what_follows(old: Place) -> None:
    trimmed(old)
    field = "field note: optional<string<20>>"
    wider = changed_ledger((field, f"{field}\n    field limit: u64 = 9"))
    old.deploy(wider)
    old.verify()
    assert row(old)["fields"] == {"balance": "11", "standing": "Open", "note": None, "limit": "9"}
    old.command("Deposit", **account("after", 2, amount=5))
    later(old)
    assert trimmed(old)["commits"] == 3
    assert row(old, 2)["fields"]["limit"] == "9"


@pytest.fixture
def shop(empty: Place) -> Place:
    """A shop with five old events in its five old commits."""
    empty.deploy(shop_plan())
    place_orders(empty, 1, 2, 3, 4, 5)
    return empty


def test_what_a_consumer_has_not_read_is_kept(shop: Place) -> None:
    consumer = Consumer(shop)
    for delivery in consumer.next(2):
        consumer.ack(delivery)
    later(shop)
    assert trimmed(shop) == {"partitions": 1, "commits": 1, "held": 4, "rows": 1}
    assert consumer.drain() == ["3:1", "4:1", "5:1"]
    assert trimmed(shop) == {"partitions": 1, "commits": 4, "held": 0, "rows": 5}


def test_what_a_consumer_has_not_settled_is_kept(shop: Place) -> None:
    consumer = Consumer(shop)
    deliveries = consumer.next(8)
    for delivery in (*deliveries[:2], *deliveries[3:]):
        consumer.ack(delivery)
    later(shop)
    assert trimmed(shop)["commits"] == 2
    (again,) = consumer.next(8)
    assert (again["event_id"], again["attempt"]) == ("3:1", 2)
    consumer.ack(again)
    assert trimmed(shop)["commits"] == 3


def test_dead_letters_are_kept_until_they_are_settled_or_their_consumer_is_retired(shop: Place) -> None:
    consumer, other = Consumer(shop), Consumer(shop, "other")
    consumer.kill("2:1")
    other.kill("4:1")
    shop.now += 60 * SECOND  # what came along with those
    consumer.drain()
    other.drain()
    later(shop)
    assert trimmed(shop)["commits"] == 1
    other.operate("retire")
    assert trimmed(shop) == {"partitions": 0, "commits": 0, "held": 4, "rows": 0}
    consumer.operate("redrive")
    assert trimmed(shop)["commits"] == 0
    assert consumer.drain() == ["2:1"]
    assert trimmed(shop)["commits"] == 4


def test_a_seek_goes_no_further_back_than_the_log(shop: Place) -> None:
    times = [record.time for record in shop.log()]
    consumer = Consumer(shop)
    consumer.drain()
    shop.now = times[2] + MONTH * SECOND + 1
    assert trimmed(shop)["commits"] == 3
    for to in ("3:1", "1:1", timestamp_text(times[2]), timestamp_text(times[0])):
        refused = shop.error_of(consumer.operate_call("seek", to=to))
        assert (refused.code, refused.path) == ("RDB-E-INPUT", "to")
        assert "is trimmed up to commit 3" in refused.message
    assert consumer.drain() == []
    just_behind = timestamp_text(times[2] + 1)
    for to, expected in (("4:1", "4:0"), (just_behind, "4:0"), (timestamp_text(times[4]), "5:0"), ("start", "4:0")):
        assert consumer.operate("seek", to=to) == {"read": expected}
    assert consumer.ids() == ["4:1", "5:1"]
    assert Consumer(shop, "new").ids() == ["4:1", "5:1"]
    assert Consumer(shop, "late").ids(start="now") == []


def test_a_consumer_that_begins_while_a_base_is_made_keeps_what_it_will_ask_for(shop: Place) -> None:
    later(shop)
    consumer = Consumer(shop)
    operations = shop.database.operations
    begun: list[str] = []

    async def act(caller: Any, perform: Callable[[Transaction], Awaitable[Any]]) -> Any:
        async with shop.store.snapshot() as reader:
            is_made = bool(await reader.scan(Scan(BASE_ROWS, None, (), limit=1)))
        if is_made and not begun:
            answer = json.loads(await consumer.next_call(1))
            begun.extend(delivery["event_id"] for delivery in answer["deliveries"])
        return await operations.act(caller, perform)

    async def run() -> Trimming:
        async with shop.store.snapshot() as reader:
            found = await trimmable(reader, shop.now - MONTH * SECOND - 1)
        door = LoopDoor(lambda works: operations.act(LOCAL, works[0]))
        trimming = Trimming(shop.store, lambda: shop.database.contract, door, LOCAL, act)
        await trimming.run(found)
        return trimming

    trimming = shop.run(run())
    assert (begun, trimming.commits, bases(shop)) == (["1:1"], 0, (0, 0))
    assert sequences(shop) == [1, 2, 3, 4, 5]


def test_many_partitions_are_trimmed_in_several_acts(ledger: Place) -> None:
    for number in range(130):
        ledger.command("OpenAccount", **account("open", owner=UUID(int=number)))
    later(ledger)
    assert trimmed(ledger) == {"partitions": 130, "commits": 130, "held": 0, "rows": 130}
    assert [record.command for record in ledger.log(None)] == ["deploy", *["retention.trim"] * 3]


def test_more_rows_and_commits_than_are_read_at_once(ledger: Place) -> None:
    for start in range(0, 1_200, 200):
        numbers = range(start, start + 200)
        ledger.together(*(("OpenAccount", account(f"o{number}", number)) for number in numbers))
    later(ledger)
    assert trimmed(ledger) == {"partitions": 1, "commits": 1_200, "held": 0, "rows": 1_200}
    assert sequences(ledger) == []
    assert ledger.command("Deposit", **account("pay", 7, amount=1))["commit"]["sequence"] == "1201"


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"older_than_seconds": MONTH - 1}, "older_than_seconds"),
        ({"older_than_seconds": "2592000"}, "older_than_seconds"),
        ({"older_than_seconds": 3_651 * DAY}, "older_than_seconds"),
        ({"apply": "yes"}, "apply"),
        ({"apply": 1}, "apply"),
    ],
)
def test_what_is_no_such_wish_is_refused(old: Place, wanted: dict[str, object], path: str) -> None:
    refused = old.error_of(old.database.operations.retention(LOCAL, **({"apply": True} | wanted)))
    assert (refused.code, refused.path) == ("RDB-E-INPUT", path)
    assert len(sequences(old)) == 7


def test_keys_may_be_remembered_longer_in_the_same_call(old: Place) -> None:
    assert trimmed(old, keys_seconds=2 * MONTH) == {"partitions": 0, "commits": 0, "held": 0, "rows": 0}
    assert trimmed(old, keys_seconds=3_600)["commits"] == 6
