"""What is refused to a consumer, each with its own error and bound; authority at every call; limits."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.database import consumer_granting
from riffdb.database.callers import Caller
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, Place
from tests.conformance.streams import Consumer, changed_shop, order, place_orders, shop_plan


@pytest.fixture
def shop(empty: Place) -> Place:
    empty.deploy(shop_plan())
    return empty


NEXT_REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({"max_items": 0}, "max_items", "1 to 8"),
    ({"max_items": 9}, "max_items", "1 to 8"),
    ({"max_items": True}, "max_items", "1 to 8"),
    ({"max_items": "2"}, "max_items", "1 to 8"),
    ({"delivery_lease_seconds": 4}, "delivery_lease_seconds", "5 to 900"),
    ({"delivery_lease_seconds": 901}, "delivery_lease_seconds", "5 to 900"),
    ({"wait_seconds": 31}, "wait_seconds", "0 to 30"),
    ({"wait_seconds": -1}, "wait_seconds", "0 to 30"),
    ({"start": "end"}, "from", '"start" or "now"'),
    ({"consumer": ""}, "consumer", "1 to 128"),
    ({"consumer": "a" * 129}, "consumer", "128"),
    ({"consumer": "a\nb"}, "consumer", "printable"),
    ({"consumer": 7}, "consumer", "string"),
]


@pytest.mark.parametrize(("change", "path", "bound"), NEXT_REFUSALS)
def test_next_names_the_value_and_its_bound(shop: Place, change: dict[str, Any], path: str, bound: str) -> None:
    call = shop.database.stream_next(LOCAL, "Orders", {"shop": ORGANIZATION}, **({"consumer": "c"} | change))
    error = shop.error_of(call)
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert bound in error.message


@pytest.mark.parametrize("event_id", ["", "1", "1:0", "0:1", "01:1", "1:1:1", "x:1", "1: 1", f"{1 << 64}:1", 7, None])
def test_a_malformed_event_id_is_told(shop: Place, event_id: object) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    (delivery,) = consumer.next()
    error = consumer.refused(consumer.call("ack", delivery, event_id=event_id))
    assert (error.code, error.path) == ("RDB-E-INPUT", "event_id")


@pytest.mark.parametrize("token", ["", "short", "x" * 31, "x" * 33, "x" * 31 + "=", 7, None])
def test_a_malformed_token_is_told(shop: Place, token: object) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    (delivery,) = consumer.next()
    error = consumer.refused(consumer.call("ack", delivery, token=token))
    assert (error.code, error.path) == ("RDB-E-INPUT", "token")


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
def test_what_does_not_hold_changes_no_state(shop: Place, verb: str) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    first, second = consumer.next(2)
    more = {"seconds": 60} if verb == "extend" else {}
    assert consumer.settle(verb, first, token=second["token"], **more) == "StateChanged"
    assert consumer.settle(verb, first, event_id="9:9", **more) == "StateChanged"
    assert consumer.settle(verb, first, event_id="1:2", **more) == "StateChanged"
    assert consumer.status()["leased"] == 2
    wrong = consumer.refused(consumer.call(verb, first, incarnation=str(UUID(int=1)), **more))
    assert (wrong.code, wrong.path, wrong.facts.exit) == ("RDB-E-INCARNATION", "incarnation", 6)
    assert consumer.refused(consumer.call(verb, first, incarnation=None, **more)).path == "incarnation"
    unknown = Consumer(shop, "unknown")
    assert unknown.refused(unknown.call(verb, first, **more)).code == "RDB-E-NOT-FOUND"


@pytest.mark.parametrize(
    ("verb", "change", "bound"),
    [
        ("nack", {"delay_seconds": -1}, "0 to 3600"),
        ("nack", {"delay_seconds": 3601}, "0 to 3600"),
        ("nack", {"delay_seconds": 1.5}, "0 to 3600"),
        ("extend", {"seconds": 4}, "5 to 900"),
        ("extend", {"seconds": 901}, "5 to 900"),
    ],
)
def test_a_delay_or_extension_out_of_bounds_is_told(shop: Place, verb: str, change: Any, bound: str) -> None:
    place_orders(shop, 1)
    consumer = Consumer(shop)
    (delivery,) = consumer.next()
    error = consumer.refused(consumer.call(verb, delivery, **change))
    assert (error.code, error.path) == ("RDB-E-INPUT", next(iter(change)))
    assert bound in error.message


@pytest.mark.parametrize("to", ["", "yesterday", "1:0", "2027-01-15", 5, None])
def test_a_place_that_is_none_is_told(shop: Place, to: object) -> None:
    consumer = Consumer(shop)
    consumer.next()
    error = consumer.refused(consumer.operate_call("seek", to=to))
    assert (error.code, error.path) == ("RDB-E-INPUT", "to")
    assert consumer.refused(consumer.operate_call("seek", to="1:1")).path == "to"


def calls_of(consumer: Consumer) -> list[Callable[[], Coroutine[Any, Any, bytes]]]:
    """Every call that the grant of a stream covers."""
    some = {"event_id": "1:1", "token": "x" * 32}
    return [
        consumer.next_call,
        consumer.status_call,
        lambda: consumer.call("ack", some),
        lambda: consumer.call("nack", some),
        lambda: consumer.call("extend", some, seconds=60),
    ]


def answers(place: Place, caller: Caller, stream: str, **params: object) -> set[str]:
    """The codes of all calls of a stream."""
    consumer = Consumer(place, "c", stream, caller, **params)
    found = place.all_of([call() for call in calls_of(consumer)])
    return {answer.code if isinstance(answer, RiffError) else "done" for answer in found}


def test_the_grant_of_the_stream_covers_its_calls_and_nothing_else(shop: Place) -> None:
    clerk, other, operator = shop.caller("Clerk"), shop.caller("Other"), shop.caller()
    Consumer(shop).next()
    assert answers(shop, clerk, "Orders") == {"done"}
    assert answers(shop, other, "Orders") == answers(shop, other, "Nothing") == {"RDB-E-FORBIDDEN"}
    assert answers(shop, clerk, "Large") == answers(shop, clerk, "Nothing") == {"RDB-E-FORBIDDEN"}
    assert answers(shop, operator, "Nothing") == {"RDB-E-NOT-FOUND"}
    unknown = [shop.error_of(call()) for call in calls_of(Consumer(shop, stream="Nothing", caller=clerk))]
    ungranted = [shop.error_of(call()) for call in calls_of(Consumer(shop, stream="Large", caller=clerk))]
    assert [error.to_json() for error in unknown] == [error.to_json() for error in ungranted]


def test_a_capability_of_one_partition_has_no_consumer_in_another(shop: Place) -> None:
    clerk = shop.caller("Clerk", partition=str(ORGANIZATION))
    Consumer(shop).next()
    assert answers(shop, clerk, "Orders") == {"done"}
    assert answers(shop, clerk, "Orders", shop=OTHER) == {"RDB-E-FORBIDDEN"}


def test_only_operators_seek_redrive_and_retire(shop: Place) -> None:
    Consumer(shop).next()
    operations: list[tuple[str, dict[str, Any]]] = [("seek", {"to": "now"}), ("redrive", {}), ("retire", {})]
    clerk = Consumer(shop, caller=shop.caller("Clerk"))
    restricted = Consumer(shop, caller=shop.caller(partition=str(OTHER)))
    for verb, options in operations:
        for consumer in (clerk, restricted):
            assert consumer.refused(consumer.operate_call(verb, **options)).code == "RDB-E-FORBIDDEN"
    at_home = Consumer(shop, caller=shop.caller(partition=str(ORGANIZATION)))
    for verb, options in operations:
        at_home.operate(verb, **options)
    acts = [record for record in shop.check_log(None) if record.command.startswith("stream.")]
    assert [record.command for record in acts] == ["stream.seek", "stream.redrive", "stream.retire"]
    assert {record.principal for record in acts} == {at_home.caller.principal}
    asked = json.loads(acts[0].input)
    assert (asked["stream"], asked["consumer"], asked["to"]) == ("Orders", "c", "now")
    assert json.loads(asked["params"]) == {"shop": str(ORGANIZATION)}


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_capability_that_ended_gets_nothing_more(shop: Place, is_expired: bool) -> None:
    place_orders(shop, 1)
    clerk = shop.caller("Clerk", expires_seconds=60)
    Consumer(shop).next()
    if is_expired:
        shop.now += 61_000_000
    else:
        shop.run(shop.database.operations.revoke(LOCAL, identity=clerk.capability))
    assert answers(shop, clerk, "Orders") == {"RDB-E-UNAUTHENTICATED"}


def test_a_capability_that_is_revoked_while_it_waits_is_given_nothing(shop: Place) -> None:
    clerk = Consumer(shop, caller=shop.caller("Clerk"))
    clerk.next()

    async def waiting() -> object:
        task = asyncio.create_task(clerk.next_call(wait_seconds=30))
        await asyncio.sleep(0)
        await shop.database.operations.revoke(LOCAL, identity=clerk.caller.capability)
        await shop.database.command(LOCAL, "Place", order(1))
        return (await asyncio.gather(task, return_exceptions=True))[0]

    found = shop.run(waiting())
    assert isinstance(found, RiffError)
    assert found.code == "RDB-E-UNAUTHENTICATED"


def test_a_grant_is_refused_when_the_revocation_stands_before_it_in_the_same_batch(shop: Place) -> None:
    place_orders(shop, 1)
    clerk = Consumer(shop, caller=shop.caller("Clerk"))

    async def both() -> list[Any]:
        # The look of `next` runs up to the door before the revocation is asked for; the door takes both in one batch.
        revoked = shop.database.operations.revoke(LOCAL, identity=clerk.caller.capability)
        found: list[Any] = await asyncio.gather(clerk.next_call(), revoked, return_exceptions=True)
        return found

    given, _ = shop.run(both())
    assert isinstance(given, RiffError)
    assert given.code == "RDB-E-UNAUTHENTICATED"


def test_a_partition_has_so_many_consumers(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_granting, "CONSUMERS_MAX", 3)
    made = [Consumer(shop, name) for name in "abcd"]
    found = shop.all_of([consumer.next_call() for consumer in made])
    assert [isinstance(answer, RiffError) for answer in found] == [False, False, False, True]
    assert (found[3].code, "3 consumers" in found[3].message) == ("RDB-E-CONSUMERS", True)
    assert made[3].refused(made[3].next_call()).code == "RDB-E-CONSUMERS"
    assert Consumer(shop, "d", shop=OTHER).next() == []
    made[0].operate("retire")
    assert made[3].next() == []


def test_a_consumer_has_so_many_unsettled_deliveries(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_granting, "UNSETTLED_MAX", 3)
    place_orders(shop, *range(1, 6))
    consumer = Consumer(shop)
    given = consumer.next(8)
    assert [part["event_id"] for part in given] == ["1:1", "2:1", "3:1"]
    error = consumer.refused(consumer.next_call())
    assert (error.code, error.detail["retry_after"]) == ("RDB-E-UNSETTLED", 1)
    consumer.nack(given[0])
    assert consumer.ids() == ["1:1"]
    consumer.ack(given[1])
    assert consumer.ids() == ["4:1"]


def test_a_wait_sees_a_contract_that_is_deployed_meanwhile(shop: Place) -> None:
    consumer = Consumer(shop)
    consumer.next()

    async def waiting() -> bytes:
        task = asyncio.create_task(consumer.next_call(wait_seconds=30))
        await asyncio.sleep(0)
        new = changed_shop(("event Placed { number size amount note }", "event Placed { size }"))
        await shop.database.deploy(LOCAL, new)
        await shop.database.command(LOCAL, "Place", order(1))
        answer: bytes = await task
        return answer

    assert json.loads(shop.run(waiting()))["deliveries"][0]["fields"] == {"size": "Small"}


def test_events_of_an_older_contract_are_read_by_name(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    (first,) = consumer.next()
    consumer.nack(first)
    shop.deploy(
        changed_shop(
            ("size: Size amount: u64 note", "size: Size amount: u64 weight: optional<u64> note"),
            ("amount: amount, note", "amount: amount, weight: amount, note"),
            (
                "event Placed { number size amount note }",
                "event Placed { weight number } where weight is null || weight < 9",
            ),
        )
    )
    place_orders(shop, 3)
    place_orders(shop, 4, amount=9)
    given = consumer.next(8)
    assert [(part["event_id"], part["fields"]) for part in given] == [
        ("1:1", {"weight": None, "number": "1"}),
        ("2:1", {"weight": None, "number": "2"}),
        ("3:1", {"weight": "1", "number": "3"}),
    ]


def test_what_the_stream_selects_no_more_is_settled(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    for delivery in consumer.next(8):
        consumer.nack(delivery)
    shop.deploy(changed_shop(("event Placed { number size amount note }", "")))
    assert consumer.next() == []
    status = consumer.status()
    assert (status["unsettled"], status["checkpoint"], status["lag_events"]) == (0, "3:0", 0)


def test_consumers_of_a_stream_that_is_gone_are_refused_by_name_and_go_on_when_it_is_back(shop: Place) -> None:
    place_orders(shop, 1, 2)
    consumer = Consumer(shop)
    consumer.next()
    text = "event Placed { number size amount note }\n  event Changed { amount number }\n}"
    shop.deploy(
        changed_shop(
            (f"stream Orders($shop: uuid) {{\n  partition shop == $shop\n  {text}", ""), ("stream Orders ", "")
        )
    )
    assert consumer.refused(consumer.next_call()).code == "RDB-E-NOT-FOUND"
    shop.deploy(shop_plan())
    assert consumer.ids() == ["2:1"]
