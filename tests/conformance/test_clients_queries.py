"""Answers of queries and their explanations, through every way to a database: native values, the same everywhere."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import pytest

from tests.conformance.ways import KINDS, Way, opened

CONTRACT = """
contract Shop version 1 {
  enum Kind { Book, Tool }
  entity Item {
    key (shop: uuid, name: string<20>)
    field kind: Kind
    field price: decimal<10,2>
    field stock: u64
    field owner: optional<uuid>
    field made_at: timestamp
    index by_kind (shop, kind, made_at)
    index by_made (shop, made_at)
  }
  command Put {
    input request_key: string<40>
    input key of Item
    input kind: Kind
    input price: decimal<10,2>
    input stock: u64
    input made_at: timestamp
    idempotency_key request_key
    create Item(shop, name) as item else Exists {}
    set item.kind = kind
    set item.price = price
    set item.stock = stock
    set item.owner = null
    set item.made_at = made_at
    return Done {}
  }
}
query Page($shop: uuid, $kinds: list<Kind, 1..2>, $limit: limit<50> = 2, $after: optional<cursor>) {
  many items from Item where shop == $shop && kind in $kinds order by made_at desc take $limit after $after
  return Page { items: items { name kind owner }, next: items.next }
}
query Single($shop: uuid, $name: string<20>, $other: string<20> = "none", $kind: optional<Kind>) {
  one item from Item where shop == $shop && name == $name else NoItem { name: $name, at: tx.time }
  maybe other from Item where shop == $shop && name == $other
  count kinds from Item where shop == $shop by kind take 100
  count all from Item where shop == $shop && ($kind is null || kind == $kind) take 100
  sum prices of price from Item where shop == $shop take 100
  sum stocks of stock from Item where shop == $shop take 100
  max newest of made_at from Item where shop == $shop take 100
  min none of price from Item where shop == $shop && kind == Kind.Tool take 100
  return Single {
    item: item { name price revision }, other: other, kinds: kinds, all: all, prices: prices, stocks: stocks,
    newest: newest, none: none, double: item.price * 2, kind: item.kind, owner: item.owner
  }
}
"""
SHOP = UUID(int=3)
MADE = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """A client of one kind."""
    (tmp_path / "shop.riff").write_text(CONTRACT)
    (tmp_path / "riffdb.toml").write_text('[application]\nname = "shop"\n')
    with opened(request.param, f"sqlite:{tmp_path / 'shop.db'}", tmp_path) as found:
        for name in ("atlas", "bible", "codex"):
            found.call(
                "command", "Put", shop=SHOP, name=name, kind="Book", price=Decimal("2.50"), stock=2**62, made_at=MADE
            )
        yield found


def test_pages_come_in_native_values(way: Way) -> None:
    first = way.call("query", "Page", shop=SHOP, kinds=["Tool", "Book"])
    assert (first.outcome, first.is_success) == ("Page", True)
    assert first.payload["items"] == [
        {"name": "codex", "kind": "Book", "owner": None},
        {"name": "bible", "kind": "Book", "owner": None},
    ]
    assert isinstance(first.payload["items"][0]["kind"], StrEnum)
    after = first.payload["next"]
    assert isinstance(after, str)
    last = way.call("query", "Page", shop=SHOP, kinds=["Tool", "Book"], after=after)
    assert ([item["name"] for item in last.payload["items"]], last.payload["next"]) == (["atlas"], None)
    refusal = way.refusal("query", "Page", shop=SHOP, kinds=["Book"], after=after)
    assert (refusal.code, refusal.path) == ("RDB-E-INPUT", "after")
    refusal = way.refusal("query", "Page", shop=SHOP, kinds=["Book"], limit=51)
    assert (refusal.code, refusal.path) == ("RDB-E-INPUT", "limit")
    assert "50" in refusal.message


def test_rows_and_numbers_come_in_native_values(way: Way) -> None:
    payload = way.call("query", "Single", shop=SHOP, name="atlas", kind="Book").payload
    assert payload == {
        "item": {"name": "atlas", "price": Decimal("2.50"), "revision": 1},
        "other": None,
        "kinds": [{"kind": "Book", "n": 3}],
        "all": 3,
        "prices": Decimal("7.50"),
        "stocks": 3 * 2**62,
        "newest": MADE,
        "none": None,
        "double": Decimal("5.00"),
        "kind": "Book",
        "owner": None,
    }
    assert isinstance(payload["kinds"][0]["kind"], StrEnum) and isinstance(payload["kind"], StrEnum)
    other = way.call("query", "Single", shop=SHOP, name="atlas", other="bible").payload["other"]
    assert (other["name"], other["shop"], other["made_at"], other["revision"]) == ("bible", SHOP, MADE, 1)


def test_a_row_that_is_not_there_is_an_outcome(way: Way) -> None:
    answer = way.call("query", "Single", shop=SHOP, name="zen")
    assert (answer.outcome, answer.is_success) == ("NoItem", False)
    assert answer.payload == {"name": "zen", "at": answer.time}


def test_a_sum_beyond_its_type_is_an_error(way: Way) -> None:
    for number in range(2):
        way.call("command", "Put", shop=SHOP, name=f"more {number}", kind="Tool", price=0, stock=2**63, made_at=MADE)
    assert way.refusal("query", "Single", shop=SHOP, name="atlas").code == "RDB-E-ARITHMETIC"


def test_a_query_is_explained(way: Way) -> None:
    told = way.call("explain", "Single")
    assert (told["query"], told["partition"]) == ("Single", "$shop")
    assert [binding["name"] for binding in told["bindings"]][:2] == ["item", "other"]
    cases = told["bindings"][3]["cases"]
    assert [case["given"] for case in cases] == [[], ["kind"]]
    assert cases[1]["path"][1] == "where shop == $shop && kind == $kind"
    values = {"shop": SHOP, "name": "atlas", "kind": "Book"}
    (case,) = way.call("explain", "Single", values)["bindings"][3]["cases"]
    assert case["given"] == ["kind"]
    (case,) = way.call("explain", "Page", {"shop": SHOP, "kinds": ["Book"]})["bindings"][0]["cases"]
    assert case["ranges"] == 1
    assert case["store"] == ["SEARCH item USING INDEX item.item__by_kind (shop=? AND kind=?)"]
    assert way.call("explain", "Page")["bindings"][0]["cases"][0]["ranges"] == 2
    assert way.refusal("explain", "Pages").code == "RDB-E-NOT-FOUND"
    refusal = way.refusal("explain", "Page", {"shop": SHOP})
    assert (refusal.code, refusal.path) == ("RDB-E-INPUT", "kinds")
