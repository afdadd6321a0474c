"""A consumer of a stream over every store: order, attempts, leases of deliveries, dead letters, checkpoint."""

import asyncio
import json
from uuid import UUID

import pytest

from tests.conformance.databases import ORGANIZATION, OTHER, SECOND, Place
from tests.conformance.streams import Consumer, order, place_orders, shop_plan


@pytest.fixture
def shop(empty: Place) -> Place:
    empty.deploy(shop_plan())
    return empty


def test_events_come_in_order_with_selected_fields_and_are_settled_one_by_one(shop: Place) -> None:
    shop.command("Place", **order(1, size="Large", amount=7, note="x"))
    shop.command("Change", request_key="c1", shop=ORGANIZATION, number=1, amount=9)
    consumer = Consumer(shop)
    first, second, third = consumer.next(8)
    assert [part["event_id"] for part in (first, second, third)] == ["1:1", "2:2", "2:3"]
    assert [part["event"] for part in (first, second, third)] == ["Placed", "Changed", "Changed"]
    assert first["fields"] == {"number": "1", "size": "Large", "amount": "7", "note": "x"}
    assert list(second["fields"].items()) == [("amount", "9"), ("number", "1")]
    assert third["fields"]["amount"] == "10"
    assert (first["attempt"], first["time"]) == (1, "2027-01-15T08:00:00.000000Z")
    assert len({part["token"] for part in (first, second, third)}) == 3
    assert consumer.next(8) == []
    assert consumer.ack(second) == "Applied"
    assert consumer.status()["checkpoint"] == "1:0"
    assert consumer.ack(first) == "Applied"
    assert consumer.status()["checkpoint"] == "2:2"
    assert consumer.ack(third) == "Applied"
    assert consumer.status()["checkpoint"] == "3:0"
    assert consumer.ack(third) == "StateChanged"


def test_batches_and_places_within_a_commit(shop: Place) -> None:
    place_orders(shop, 1, 2)
    shop.command("Change", request_key="c1", shop=ORGANIZATION, number=1, amount=9)
    consumer = Consumer(shop)
    assert [consumer.ids(1) for _ in range(5)] == [["1:1"], ["2:1"], ["3:2"], ["3:3"], []]


def test_consumers_of_other_names_parameters_and_partitions_know_nothing_of_each_other(shop: Place) -> None:
    place_orders(shop, 1, 2)
    shop.command("Place", **order(3, OTHER))
    assert Consumer(shop, "a").ids() == ["1:1", "2:1"]
    assert Consumer(shop, "b").ids() == ["1:1", "2:1"]
    assert Consumer(shop, "a", shop=OTHER).ids() == ["1:1"]
    assert Consumer(shop, "a", "Large").ids() == []
    assert Consumer(shop, "a", "Large", least="10").status()["consumer"] == "a"


def test_a_filter_drops_and_settles(shop: Place) -> None:
    place_orders(shop, 1)
    shop.command("Place", **order(2, size="Large", amount=9))
    shop.command("Place", **order(3, size="Large", amount=10))
    place_orders(shop, 4)
    consumer = Consumer(shop, stream="Large")
    (delivery,) = consumer.next(8)
    assert delivery["fields"] == {"number": "3"}
    assert consumer.status()["lag_events"] == 1
    assert consumer.ack(delivery) == "Applied"
    status = consumer.status()
    assert (status["checkpoint"], status["lag_events"], status["lag_seconds"]) == ("5:0", 0, 0)
    assert Consumer(shop, "wide", "Large", least="1").ids() == ["2:1", "3:1"]


def test_an_event_whose_condition_cannot_be_computed_is_delivered_and_blocks_nothing(shop: Place) -> None:
    place_orders(shop, 1)
    shop.command("Change", request_key="c1", shop=ORGANIZATION, number=1, amount=0)
    shop.command("Change", request_key="c2", shop=ORGANIZATION, number=1, amount=9)
    assert Consumer(shop, stream="Odd").ids() == ["2:2", "2:3"]


def test_from_now_begins_behind_what_is_there(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    assert consumer.ids(start="now") == []
    place_orders(shop, 3)
    assert consumer.ids(start="start") == ["3:1"]


def test_a_nack_gives_back_with_the_next_attempt_after_its_delay(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    (first,) = consumer.next()
    assert consumer.nack(first, 60) == "Applied"
    assert consumer.ack(first) == "StateChanged"
    assert consumer.ids(delivery_lease_seconds=900) == ["2:1"]
    shop.now += 60 * SECOND - 10
    assert consumer.next() == []
    shop.now += 20
    (again,) = consumer.next()
    assert (again["event_id"], again["attempt"], again["fields"]) == ("1:1", 2, first["fields"])
    assert again["token"] != first["token"]
    assert consumer.ack(first) == "StateChanged"
    assert consumer.ack(again) == "Applied"


def test_a_lease_that_ends_gives_back_and_its_token_is_stale(shop: Place) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    (first,) = consumer.next(delivery_lease_seconds=5)
    shop.now += 5 * SECOND
    assert [
        consumer.settle(verb, first, **more) for verb, more in [("ack", {}), ("nack", {}), ("extend", {"seconds": 9})]
    ] == ["StateChanged"] * 3
    (second,) = consumer.next(delivery_lease_seconds=5)
    assert second["attempt"] == 2
    assert consumer.ack(first) == "StateChanged"
    shop.now += 5 * SECOND - 10
    assert consumer.settle("extend", second, seconds=900) == "Applied"
    shop.now += 800 * SECOND
    assert consumer.next() == []
    assert consumer.ack(second) == "Applied"


def test_the_tenth_attempt_that_ends_makes_a_dead_letter_and_blocks_nothing(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    attempts = []
    for _ in range(10):
        (delivery,) = consumer.next()
        attempts.append((delivery["event_id"], delivery["attempt"]))
        assert consumer.nack(delivery) == "Applied"
    assert attempts == [("1:1", attempt) for attempt in range(1, 11)]
    assert consumer.ids() == ["2:1"]
    status = consumer.status()
    assert (status["dead_letters"], status["checkpoint"], status["attempts_max"]) == (1, "2:0", 10)


def test_a_tenth_lease_that_ends_makes_a_dead_letter_too(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    for attempt in range(1, 11):
        first, *_ = consumer.next(1, delivery_lease_seconds=5)
        assert (first["event_id"], first["attempt"]) == ("1:1", attempt)
        shop.now += 6 * SECOND
    assert consumer.ids() == ["2:1"]
    assert consumer.status()["dead_letters"] == 1


def test_a_redriven_event_comes_beside_the_checkpoint_and_counts_anew(shop: Place) -> None:
    place_orders(shop, 1, 2, 3)
    consumer = Consumer(shop)
    consumer.kill("1:1")
    shop.now += 31 * SECOND
    assert consumer.drain() == ["2:1", "3:1"]
    assert consumer.operate("redrive") == {"redriven": 1, "dead_letters": 0}
    before = consumer.status()
    assert (before["checkpoint"], before["unsettled"], before["redriven"], before["lag_events"]) == ("4:0", 1, 1, 0)
    for attempt in range(11, 21):
        (delivery,) = consumer.next()
        assert (delivery["event_id"], delivery["attempt"]) == ("1:1", attempt)
        assert consumer.status()["checkpoint"] == "4:0"
        consumer.nack(delivery)
    assert consumer.next() == []
    assert consumer.operate("redrive", event_id="1:1") == {"redriven": 1, "dead_letters": 0}
    (delivery,) = consumer.next()
    assert delivery["attempt"] == 21
    assert consumer.ack(delivery) == "Applied"
    assert consumer.operate("redrive") == {"redriven": 0, "dead_letters": 0}
    assert consumer.refused(consumer.operate_call("redrive", event_id="1:1")).code == "RDB-E-NOT-FOUND"


def test_a_seek_goes_back_and_attempts_do_not(shop: Place) -> None:
    place_orders(shop, 1, 2, 3)
    consumer = Consumer(shop)
    first, second = consumer.next(2)
    consumer.nack(first)
    (first,) = consumer.next(1)
    assert first["attempt"] == 2
    assert consumer.operate("seek", to="start") == {"read": "0:0"}
    assert consumer.ack(second) == "StateChanged"
    again = consumer.next(8)
    assert [(part["event_id"], part["attempt"]) for part in again] == [("1:1", 3), ("2:1", 3), ("3:1", 1)]
    assert consumer.operate("seek", to="2:1") == {"read": "2:0"}
    assert [(part["event_id"], part["attempt"]) for part in consumer.next(8)] == [("2:1", 4), ("3:1", 4)]
    record = shop.log(None)[-1]
    assert (record.command, record.outcome) == ("stream.seek", "done")
    assert json.loads(record.input)["to"] == "2:1"
    shop.check_log(None)


def test_a_seek_goes_to_now_and_to_a_time(shop: Place) -> None:
    times = []
    for number in range(1, 6):
        shop.now += SECOND
        times.append(shop.now)
        place_orders(shop, number)
    consumer = Consumer(shop)
    assert consumer.ids() == ["1:1", "2:1", "3:1", "4:1", "5:1"]
    assert consumer.operate("seek", to="2027-01-15T08:00:03.000000Z") == {"read": "3:0"}
    assert consumer.ids() == ["3:1", "4:1", "5:1"]
    consumer.operate("seek", to="2027-01-15T08:00:03.000001Z")
    assert consumer.ids() == ["4:1", "5:1"]
    assert consumer.operate("seek", to="now") == {"read": "6:0"}
    assert consumer.next() == []
    assert consumer.status()["lag_events"] == 0
    consumer.operate("seek", to="2000-01-01T00:00:00Z")
    assert len(consumer.ids()) == 5


def test_a_dead_letter_that_a_seek_lets_be_read_again_is_one_no_more(shop: Place) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    consumer.kill("1:1")
    consumer.operate("seek", to="start")
    assert consumer.status()["dead_letters"] == 1
    (delivery,) = consumer.next()
    assert (delivery["attempt"], consumer.status()["dead_letters"]) == (11, 0)


def test_a_redriven_event_that_is_read_again_holds_the_checkpoint_and_attempts_still_grow(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    consumer.kill("1:1")
    consumer.operate("seek", to="start")
    consumer.operate("redrive")
    (redriven,) = consumer.next(1)
    assert (redriven["event_id"], redriven["attempt"]) == ("1:1", 11)
    assert consumer.ids(1) == ["2:1"]
    assert consumer.status()["checkpoint"] == "1:0"
    assert consumer.ack(redriven) == "Applied"
    consumer.operate("seek", to="start")
    consumer.kill("1:1")
    consumer.operate("seek", to="start")
    consumer.operate("redrive")
    (redriven,) = consumer.next(1)
    attempt = redriven["attempt"]
    assert consumer.ack(redriven) == "Applied"
    (again,) = consumer.next(1)
    assert (again["event_id"], again["attempt"] > attempt) == ("1:1", True)


def test_a_retired_consumer_is_gone_and_its_successor_keeps_the_attempts(shop: Place) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    (delivery,) = consumer.next()
    assert consumer.operate("retire") == {"disposition": "Applied"}
    for call in (consumer.call("ack", delivery), consumer.status_call(), consumer.operate_call("seek", to="now")):
        assert consumer.refused(call).code == "RDB-E-NOT-FOUND"
    (again,) = consumer.next()
    assert (again["event_id"], again["attempt"]) == ("1:1", 2)
    assert [record.command for record in shop.log(None)] == ["deploy", "stream.retire"]


def test_status_tells_lag_and_the_oldest(shop: Place) -> None:
    place_orders(shop, 1, 2, 3)
    consumer = Consumer(shop)
    first, second = consumer.next(2)
    consumer.nack(first, 100)
    shop.now += 10 * SECOND
    status = consumer.status()
    assert status["incarnation"] == shop.database.incarnation
    assert (status["lag_events"], status["lag_is_exact"], status["lag_seconds"]) == (3, True, 10)
    assert (status["unsettled"], status["leased"], status["delayed"]) == (2, 1, 1)
    assert status["oldest_unsettled"] == {"event_id": "1:1", "attempt": 1, "time": "2027-01-15T08:00:00.000000Z"}
    assert (status["checkpoint"], status["read"]) == ("1:0", "3:0")
    consumer.ack(second)
    shop.now += 100 * SECOND
    assert consumer.drain() == ["1:1", "3:1"]
    assert consumer.status()["oldest_unsettled"] is None


def test_what_was_durable_is_there_after_reopening(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    first, second = consumer.next(2)
    consumer.ack(first)
    shop.reopen()
    assert consumer.next() == []
    assert consumer.ack(second) == "Applied"
    place_orders(shop, 3)
    assert consumer.ids() == ["3:1"]


def test_calls_of_one_batch_share_a_transaction_and_see_each_other(shop: Place) -> None:
    place_orders(shop, *range(1, 9))
    consumer = Consumer(shop)
    consumer.next(1)
    shop.batches.clear()
    answers = shop.all_of([consumer.next_call(2) for _ in range(3)])
    assert shop.batches[0] == 3
    given = [part for answer in answers for part in answer["deliveries"]]
    assert sorted(part["event_id"] for part in given) == [f"{number}:1" for number in range(2, 8)]
    shop.batches.clear()
    answers = shop.all_of([consumer.call("ack", part) for part in given])
    assert shop.batches == [6]
    assert answers == [{"disposition": "Applied"}] * 6
    assert consumer.status()["unsettled"] == 1


def test_one_wrong_call_harms_no_neighbour(shop: Place) -> None:
    place_orders(shop, 1)
    consumer, unknown = Consumer(shop), Consumer(shop, "unknown")
    (delivery,) = consumer.next()
    refused, applied = shop.all_of([unknown.call("ack", delivery), consumer.call("ack", delivery)])
    assert refused.code == "RDB-E-NOT-FOUND"
    assert applied == {"disposition": "Applied"}


def test_a_wait_ends_with_an_event_and_writes_nothing_while_idle(shop: Place) -> None:
    consumer = Consumer(shop)
    consumer.next()

    async def waiting() -> tuple[bytes, int]:
        task = asyncio.create_task(consumer.next_call(wait_seconds=30))
        await asyncio.sleep(0)
        shop.batches.clear()
        await shop.database.command(consumer.caller, "Look", {"request_key": "l", "shop": ORGANIZATION})
        await shop.database.command(consumer.caller, "Place", order(1, OTHER))
        for _ in range(5):
            await asyncio.sleep(0)
        idle = len(shop.batches)
        await shop.database.command(consumer.caller, "Place", order(1))
        return await task, idle

    answer, idle = shop.run(waiting())
    assert [part["event_id"] for part in json.loads(answer)["deliveries"]] == ["2:1"]
    assert idle == 2
    assert shop.database.wakeups.woken == 1
    assert shop.database.wakeups.waiting == 0


def test_a_nack_wakes_who_waits_for_the_same_consumer(shop: Place) -> None:
    place_orders(shop, 1)
    consumer, other = Consumer(shop), Consumer(shop, "other")
    (delivery,) = consumer.next()
    other.next()

    async def waiting() -> bytes:
        tasks = [asyncio.create_task(part.next_call(wait_seconds=30)) for part in (consumer, other)]
        await asyncio.sleep(0)
        await consumer.call("nack", delivery)
        answer: bytes = await tasks[0]
        assert not tasks[1].done()
        tasks[1].cancel()
        return answer

    assert json.loads(shop.run(waiting()))["deliveries"][0]["attempt"] == 2


def test_an_event_of_a_neighbour_partition_does_not_move_a_consumer(shop: Place) -> None:
    for number in range(1, 4):
        shop.command("Place", **order(number, UUID(int=number)))
    assert Consumer(shop).ids() == []
