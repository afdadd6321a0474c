"""What the suites of streams share: a contract with events, and a consumer that a test drives call by call."""

import json
from functools import cache
from typing import Any
from uuid import UUID

from riffdb.core.errors import RiffError
from riffdb.database.callers import Caller
from riffdb.plan import Plan
from tests.conformance.databases import LOCAL, ORGANIZATION, Place, plan_of

SHOP = """
contract Shop version 1 {
  enum Size { Small, Large }
  entity Order {
    key (shop: uuid, number: u64)
    field size: Size
    field amount: u64
  }
  event Placed { partition_by (shop) shop: uuid number: u64 size: Size amount: u64 note: optional<string<20>> }
  event Changed { partition_by (shop) shop: uuid number: u64 amount: u64 }
  event Looked { partition_by (shop) shop: uuid }

  command Place {
    input request_key: string<64>
    input shop: uuid
    input number: u64
    input size: Size = Size.Small
    input amount: u64 = 1
    input note: optional<string<20>>
    idempotency_key request_key
    create Order(shop, number) as found else Exists {}
    set found.size = size
    set found.amount = amount
    emit Placed { shop: shop, number: number, size: size, amount: amount, note: note }
    return Done {}
  }
  command Change {
    input request_key: string<64>
    input shop: uuid
    input number: u64
    input amount: u64
    idempotency_key request_key
    mutate Order(shop, number) as found else Missing {}
    set found.amount = amount
    emit Looked { shop: shop }
    emit Changed { shop: shop, number: number, amount: amount }
    emit Changed { shop: shop, number: number, amount: found.amount + 1 }
    return Done {}
  }
  command Look {
    input request_key: string<64>
    input shop: uuid
    idempotency_key request_key
    emit Looked { shop: shop }
    return Done {}
  }
}
stream Orders($shop: uuid) {
  partition shop == $shop
  event Placed { number size amount note }
  event Changed { amount number }
}
stream Large($shop: uuid, $least: u64 = 10) {
  partition shop == $shop
  event Placed { number } where size == Size.Large && amount >= $least
}
stream Odd($shop: uuid) {
  partition shop == $shop
  event Changed { number } where amount - 1 < 5
}
role Clerk { stream Orders command Place, Change }
role Other { command Place }
"""


@cache
def shop_plan() -> Plan:
    """The plan of `SHOP`."""
    return plan_of(SHOP, "shop")


def changed_shop(*changes: tuple[str, str]) -> Plan:
    """The plan of `SHOP` with each text replaced by another."""
    text = SHOP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return plan_of(text, "shop")


class Consumer:
    """A consumer of a stream, called as a worker would call it."""

    def __init__(
        self, place: Place, name: str = "c", stream: str = "Orders", caller: Caller = LOCAL, **params: object
    ) -> None:
        self.place, self.name, self.stream, self.caller = place, name, stream, caller
        self.params: dict[str, object] = {"shop": ORGANIZATION, **params}

    def next(self, items: int = 1, **options: Any) -> list[dict[str, Any]]:
        """The deliveries that a call gives."""
        answer = json.loads(self.place.run(self.next_call(items, **options)))
        assert answer["incarnation"] == self.place.database.incarnation
        return list(answer["deliveries"])

    def next_call(self, items: object = 1, **options: Any) -> Any:
        """The call itself."""
        return self.place.database.stream_next(
            self.caller, self.stream, self.params, consumer=self.name, max_items=items, **options
        )

    def ids(self, items: int = 8, **options: Any) -> list[str]:
        """The ids of what a call gives."""
        return [delivery["event_id"] for delivery in self.next(items, **options)]

    def call(self, verb: str, delivery: dict[str, Any], **options: Any) -> Any:
        """The call of `ack`, `nack` or `extend` about a delivery."""
        named = {"event_id": delivery["event_id"], "token": delivery["token"]}
        named["incarnation"] = self.place.database.incarnation
        method = getattr(self.place.database, f"stream_{verb}")
        return method(self.caller, self.stream, self.params, consumer=self.name, **(named | options))

    def settle(self, verb: str, delivery: dict[str, Any], **options: Any) -> str:
        """The disposition of such a call."""
        return str(json.loads(self.place.run(self.call(verb, delivery, **options)))["disposition"])

    def ack(self, delivery: dict[str, Any]) -> str:
        """Acknowledge."""
        return self.settle("ack", delivery)

    def nack(self, delivery: dict[str, Any], delay: int = 0) -> str:
        """Give back."""
        return self.settle("nack", delivery, delay_seconds=delay)

    def drain(self) -> list[str]:
        """Take and acknowledge until nothing is there; the ids in order."""
        seen = []
        while deliveries := self.next(8):
            for delivery in deliveries:
                assert self.ack(delivery) == "Applied"
                seen.append(delivery["event_id"])
        return seen

    def kill(self, event_id: str) -> None:
        """Let an event that is available be a dead letter."""
        for _ in range(11):
            for delivery in self.next(8):
                if delivery["event_id"] == event_id:
                    assert self.nack(delivery) == "Applied"

    def status(self) -> dict[str, Any]:
        """How it stands."""
        found: dict[str, Any] = json.loads(self.place.run(self.status_call()))
        return found

    def status_call(self) -> Any:
        """The call itself."""
        return self.place.database.stream_status(self.caller, self.stream, self.params, consumer=self.name)

    def operate(self, verb: str, **options: Any) -> dict[str, Any]:
        """Seek, redrive or retire."""
        found: dict[str, Any] = json.loads(self.place.run(self.operate_call(verb, **options)))
        return found

    def operate_call(self, verb: str, **options: Any) -> Any:
        """The call itself."""
        method = getattr(self.place.database, f"stream_{verb}")
        return method(self.caller, self.stream, self.params, consumer=self.name, **options)

    def refused(self, call: Any) -> RiffError:
        """The error that a call ends with."""
        return self.place.error_of(call)


def order(number: int, shop: UUID = ORGANIZATION, **changes: Any) -> dict[str, object]:
    """The input of `Place`."""
    return {"request_key": f"p{number}", "shop": shop, "number": number} | changes


def place_orders(place: Place, *numbers: int, **changes: Any) -> None:
    """One order each, each a commit of its own with one event."""
    for number in numbers:
        assert place.command("Place", **order(number, **changes))["outcome"] == "Done"
