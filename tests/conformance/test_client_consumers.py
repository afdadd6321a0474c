"""One script of a consumer through every way to a database, on both stores: what it is given, settles, and puts back.

What is settled, when, and what comes again is the database's affair and has a suite of its own; here it must be the
same from everywhere, in native values.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import riffdb
from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MIN, U64_MAX
from tests.conformance.ways import KINDS, Way, opened

CONTRACT = """
contract Notes version 1 {
  enum Colour { Red, Green, mro }
  entity Note { key (owner: uuid, number: u64) field colour: Colour }
  event Written {
    partition_by (owner)
    owner: uuid number: u64 flag: bool signed: i64 text: string<40> raw: bytes<8> moment: timestamp day: date
    price: decimal<38,2> colour: Colour maybe: optional<timestamp> inner: string<40>
  }
  event Counted { partition_by (owner) owner: uuid number: u64 }
  event Unheard { partition_by (owner) owner: uuid number: u64 }
  command Write {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input flag: bool
    input signed: i64
    input text: string<40>
    input raw: bytes<8>
    input moment: timestamp
    input day: date
    input price: decimal<38,2>
    input colour: Colour
    input maybe: optional<timestamp>
    idempotency_key request_key
    create Note(owner, number) as note else Exists {}
    set note.colour = colour
    emit Unheard { owner: owner, number: number }
    emit Written {
      owner: owner, number: number, flag: flag, signed: signed, text: text, raw: raw, moment: moment, day: day,
      price: price, colour: colour, maybe: maybe, inner: text
    }
    emit Counted { owner: owner, number: number }
    return Done {}
  }
}
stream Everything($owner: uuid) {
  partition owner == $owner
  event Written { owner number flag signed text raw moment day price colour maybe }
  event Counted { number }
}
stream Reds($owner: uuid) {
  partition owner == $owner
  event Written { number } where colour == Colour.Red
}
role Reader { stream Reds }
"""
OWNER = UUID(int=0xFACE)
OTHER = UUID(int=0xBEEF)
VALUES: dict[str, Any] = {
    "flag": True,
    "signed": I64_MIN,
    "text": 'ä\n"\\\U0001f600\u2028',
    "raw": b"\x00\xff",
    "moment": datetime.max.replace(tzinfo=UTC),
    "day": date.min,
    "price": Decimal("-" + "9" * 36 + ".99"),
    "colour": "Red",
    "maybe": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "riffdb.toml").write_text('[application]\nname = "notes"\n')
    (folder / "notes.riff").write_text(CONTRACT)
    return folder


@pytest.fixture(params=[f"{store} {kind}" for store in ("memory", "sqlite") for kind in KINDS])
def way(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Way]:
    store, kind = request.param.split(" ")
    with opened(kind, "memory:" if store == "memory" else f"sqlite:{tmp_path / 'notes.db'}", folder) as way:
        yield way


def write(way: Way, number: int, **changes: object) -> None:
    """One commit with three events, the first of which no stream selects."""
    values = {"owner": OWNER, "number": number} | VALUES | changes
    assert way.call("command", "Write", **values).outcome == "Done"


def consumer_of(way: Way, stream: str = "Reds", **settings: Any) -> Any:
    """A consumer."""
    given: dict[str, Any] = {"name": "mailer", "owner": OWNER, "wait_seconds": 0} | settings
    return way.client.consumer(stream, **given)


def take(way: Way, consumer: Any, **taking: Any) -> list[Any]:
    """What `next` gives."""
    found: list[Any] = way.wait(consumer.next, **taking)
    return found


def refusal(way: Way, function: Any, /, *args: object, **kwargs: object) -> RiffError:
    """The error that a call ends with."""
    with pytest.raises(RiffError) as caught:
        way.wait(function, *args, **kwargs)
    return caught.value


def test_a_delivery_is_the_event_in_native_values(way: Way) -> None:
    write(way, U64_MAX)
    written, counted = take(way, consumer_of(way, "Everything"), max_items=8)
    assert (written.event, counted.event) == ("Written", "Counted")
    assert [delivery.event_id.split(":")[0] for delivery in (written, counted)] == ["1", "1"]
    assert int(written.event_id.split(":")[1]) < int(counted.event_id.split(":")[1])
    assert (written.attempt, counted.attempt) == (1, 1)
    expected = VALUES | {"owner": OWNER, "number": U64_MAX}
    assert written.fields == expected
    assert {name: type(value) for name, value in written.fields.items()} == {
        name: type(value) for name, value in expected.items()
    } | {"colour": type(written.fields["colour"])}
    assert isinstance(written.fields["colour"], StrEnum)
    assert counted.fields == {"number": U64_MAX}
    assert written.time.tzinfo is UTC
    assert abs((datetime.now(UTC) - written.time).total_seconds()) < 3_600


def test_what_is_settled_does_not_come_again_and_what_is_put_back_does(way: Way) -> None:
    for number in range(1, 4):
        write(way, number)
    consumer = consumer_of(way)
    first, second, third = take(way, consumer, max_items=8)
    assert take(way, consumer, max_items=8) == [], "all are this caller's now"
    assert way.wait(first.ack) is True
    assert way.wait(second.nack) is True
    assert way.wait(third.nack, delay_seconds=3_600) is True
    (again,) = take(way, consumer, max_items=8)
    assert (again.event_id, again.attempt, again.fields) == (second.event_id, 2, second.fields)
    assert way.wait(again.extend, 900) is True
    assert way.wait(again.ack) is True
    stale = [way.wait(delivery.ack) for delivery in (first, second, third, again)]
    stale += [way.wait(second.nack), way.wait(second.extend, 5)]
    assert stale == [False] * 6
    status = way.wait(consumer.status)
    assert (status["unsettled"], status["dead_letters"]) == (1, 0)


def test_a_filter_drops_and_consumers_do_not_know_each_other(way: Way) -> None:
    write(way, 1, colour="Green")
    write(way, 2)
    write(way, 3, owner=OTHER)
    (red,) = take(way, consumer_of(way), max_items=8)
    assert red.fields == {"number": 2}
    assert way.wait(red.ack)
    assert [delivery.fields["number"] for delivery in take(way, consumer_of(way, name="other"), max_items=8)] == [2]
    assert [delivery.fields["number"] for delivery in take(way, consumer_of(way, owner=OTHER), max_items=8)] == [3]
    assert take(way, consumer_of(way, owner=str(OWNER).upper())) == [], "the same parameters in another form"


def test_a_new_consumer_begins_where_it_is_told(way: Way) -> None:
    write(way, 1)
    late = consumer_of(way, name="late", start="now")
    assert take(way, late) == []
    write(way, 2)
    assert [delivery.fields["number"] for delivery in take(way, late, max_items=8)] == [2]
    assert [delivery.fields["number"] for delivery in take(way, consumer_of(way), max_items=8)] == [1, 2]


def test_an_iteration_waits_and_drains(way: Way) -> None:
    for number in range(1, 4):
        write(way, number)
    consumer = consumer_of(way, max_items=3, wait_seconds=20)

    def consume() -> list[int]:
        seen = []
        with consumer:
            for delivery in consumer:
                seen.append(delivery.fields["number"])
                assert delivery.ack()
                if len(seen) == 2:
                    break
        assert list(consumer) == [], "a closed one gives nothing more"
        return seen

    async def consume_async() -> list[int]:
        seen = []
        async with consumer:
            async for delivery in consumer:
                seen.append(delivery.fields["number"])
                assert await delivery.ack()
                if len(seen) == 2:
                    break
        assert [delivery async for delivery in consumer] == []
        return seen

    assert way.wait(consume_async if way.is_async else consume) == [1, 2]
    (third,) = take(way, consumer_of(way))
    assert (third.fields["number"], third.attempt) == (3, 2), "it did not have to wait for the lease"


def test_an_iteration_is_woken_by_the_next_event(way: Way) -> None:
    consumer = consumer_of(way, wait_seconds=30)
    values = {"owner": OWNER, "number": 5} | VALUES

    async def both_tasks() -> Any:
        taking = asyncio.ensure_future(anext(consumer))
        await asyncio.sleep(0)
        await asyncio.ensure_future(command("Write", **values))
        return await taking

    def both_threads() -> Any:
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(next, consumer)
            command("Write", **values)
            return taking.result()

    command: Any = way.client.command
    delivery = way.wait(both_tasks if way.is_async else both_threads)
    assert delivery.fields == {"number": 5}


def test_a_loop_that_raises_acknowledges_nothing(way: Way) -> None:
    write(way, 1)
    consumer = consumer_of(way)

    def loop() -> None:
        for _ in consumer:
            raise ZeroDivisionError

    async def loop_async() -> None:
        async for _ in consumer:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        way.wait(loop_async if way.is_async else loop)
    status = way.wait(consumer.status)
    assert status["oldest_unsettled"]["event_id"].startswith("1:")


def test_run_tries_again_what_failed(way: Way) -> None:
    for number in (1, 2):
        write(way, number)
    consumer = consumer_of(way, wait_seconds=30)
    seen: list[tuple[int, int]] = []

    def handle(delivery: Any) -> bool:
        """Whether the last one is done; the first attempt at each fails."""
        seen.append((delivery.fields["number"], delivery.attempt))
        if delivery.attempt == 1:
            raise ConnectionError
        return len(seen) == 4

    def handle_and_close(delivery: Any) -> None:
        if handle(delivery):
            consumer.close()

    async def handle_and_close_async(delivery: Any) -> None:
        if handle(delivery):
            await consumer.close()

    way.wait(consumer.run, handle_and_close_async if way.is_async else handle_and_close, retry_seconds=0)
    assert sorted(seen) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert take(way, consumer_of(way)) == [], "both are settled"


def test_what_operators_do(way: Way) -> None:
    for number in (1, 2):
        write(way, number)
    consumer = consumer_of(way)
    for delivery in take(way, consumer, max_items=8):
        assert way.wait(delivery.ack)
    way.wait(consumer.seek, "start")
    first = take(way, consumer)[0]
    assert (first.fields["number"], first.attempt) == (1, 2), "an attempt never goes back"
    way.wait(consumer.seek, "now")
    assert take(way, consumer, max_items=8) == []
    way.wait(consumer.redrive)
    error = refusal(way, consumer.redrive, "1:77")
    assert error.code == "RDB-E-NOT-FOUND"
    way.wait(consumer.retire)
    assert refusal(way, consumer.status).code == "RDB-E-NOT-FOUND"
    assert [delivery.attempt for delivery in take(way, consumer, max_items=8)] == [3, 3], "it is made anew"


@pytest.mark.parametrize(
    ("settings", "taking", "path", "bound"),
    [
        ({}, {"max_items": 0}, "max_items", "8"),
        ({}, {"max_items": 9}, "max_items", "8"),
        ({}, {"max_items": "many"}, "max_items", ""),
        ({}, {"max_items": True}, "max_items", ""),
        ({}, {"wait_seconds": -1}, "wait_seconds", "30"),
        ({}, {"wait_seconds": 31}, "wait_seconds", "30"),
        ({"delivery_lease_seconds": 4}, {}, "delivery_lease_seconds", "5"),
        ({"delivery_lease_seconds": 901}, {}, "delivery_lease_seconds", "900"),
        ({"delivery_lease_seconds": 5.5}, {}, "delivery_lease_seconds", ""),
        ({"start": "never"}, {}, "", "start"),
        ({"name": ""}, {}, "consumer", ""),
        ({"name": "n" * 5_000}, {}, "consumer", ""),
        ({"owner": "nobody"}, {}, "owner", ""),
        ({"ownr": OWNER}, {}, "ownr", ""),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_path(
    way: Way, settings: dict[str, Any], taking: dict[str, Any], path: str, bound: str
) -> None:
    error = refusal(way, consumer_of(way, **settings).next, **taking)
    assert error.code == "RDB-E-INPUT"
    assert (error.path or "").endswith(path)
    assert bound in error.message
    assert "nobody" not in error.message, "no value of a user"


def test_what_cannot_be_settled_is_refused_with_its_path(way: Way) -> None:
    write(way, 1)
    consumer = consumer_of(way)
    (delivery,) = take(way, consumer)
    named = {"event_id": delivery.event_id, "token": delivery.token, "incarnation": delivery.incarnation}
    for verb, more, path, bound in (
        ("nack", {"delay_seconds": -1}, "delay_seconds", "3600"),
        ("nack", {"delay_seconds": 3_601}, "delay_seconds", "3600"),
        ("nack", {"delay_seconds": "soon"}, "delay_seconds", ""),
        ("extend", {"seconds": 901}, "seconds", "900"),
        ("extend", {"seconds": 0}, "seconds", "5"),
        ("ack", {"event_id": "one"}, "event_id", ""),
        ("ack", {"event_id": "1:-1"}, "event_id", ""),
        ("ack", {"token": "guessed"}, "token", "32"),
        ("ack", {"token": ""}, "token", "32"),
    ):
        error = refusal(way, consumer.call, verb, **named | more)
        assert (error.code, error.path) == ("RDB-E-INPUT", path), (verb, more)
        assert bound in error.message.replace(",", "")
    other = refusal(way, consumer.call, "ack", **named | {"incarnation": str(UUID(int=5))})
    assert (other.code, other.facts.exit, other.facts.status) == ("RDB-E-INCARNATION", 6, 409)
    for stale in ({"token": "A" * 32}, {"event_id": "1:77"}, {"event_id": "99:1"}):
        assert way.wait(consumer.call, "ack", **named | stale) == {"disposition": "StateChanged"}, stale
    assert way.wait(delivery.ack), "none of it did any harm"


def test_a_stream_that_is_not_granted_is_as_one_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    with riffdb.open(f"sqlite:{tmp_path / 'notes.db'}", folder, role="Reader") as client:
        refused = []
        for stream in ("Everything", "Nothing"):
            with pytest.raises(RiffError) as caught:
                client.consumer(stream, name="n", owner=OWNER).next()
            refused.append((caught.value.code, caught.value.message))
        assert refused[0] == refused[1]
        assert refused[0][0] == "RDB-E-FORBIDDEN"
        consumer = client.consumer("Reds", name="n", owner=OWNER)
        assert consumer.next() == []
        for verb, more in (("seek", {"to": "now"}), ("redrive", {}), ("retire", {})):
            with pytest.raises(RiffError) as caught:
                consumer.call(verb, **more)
            assert caught.value.code == "RDB-E-FORBIDDEN"


def test_an_operator_is_told_that_a_stream_is_not_there(way: Way) -> None:
    error = refusal(way, consumer_of(way, "Redds").next)
    assert error.code == "RDB-E-NOT-FOUND"
    assert "did you mean `Reds`?" in error.message


def test_a_database_that_is_closed_ends_a_consumer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("riffdb.client.consuming.sleep")
    with riffdb.open("memory:", folder) as client:
        consumer = client.consumer("Reds", name="n", owner=OWNER)
    with pytest.raises(RiffError) as caught:
        consumer.run(lambda delivery: None)
    assert caught.value.code == "RDB-E-UNAVAILABLE"
