"""Bulk commands over every store: one loop over a list, all or nothing; records and lists as inputs, service values."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riffdb.plan import Plan
from tests.conformance.databases import KINDS, ORGANIZATION, SECOND, Place, plan_of

SHOP = """
contract Shop version 1 {
  enum State { Open, Packed, Sent }
  enum Size { Small, Large }
  record Line {
    article_id: uuid
    quantity: u64
    delta: optional<i64>
    size: Size
    note: optional<string<20>>
    wanted_on: optional<date>
    price: optional<decimal<6, 2>>
    mark: optional<bytes<4>>
  }
  record Held { parcel_id: uuid, owner_id: uuid, token: u64, revision: u64 }
  entity Article {
    key (organization_id: uuid, article_id: uuid)
    field stock: u64
    field size: Size = Size.Small
    field note: optional<string<20>>
    field price: optional<decimal<6, 2>>
    field maker_id: optional<uuid>
  }
  entity Order {
    key (organization_id: uuid, order_id: uuid)
    field pieces: u64 = 0
    field last_note: optional<string<20>>
  }
  entity Parcel {
    key (organization_id: uuid, parcel_id: uuid)
    field state: State
    field owner: optional<uuid>
    field until: optional<timestamp>
    field fence: u64
    field weight: u64 = 1
    field order_id: optional<uuid>
    computed heavy: bool = weight > 10
    index by_state (organization_id, state)
  }
  event Taken { partition_by (organization_id) organization_id: uuid article_id: uuid left: u64 pieces: u64 }
  event Sent { partition_by (organization_id) organization_id: uuid parcel_id: uuid revision: u64 }
  workflow ParcelLife {
    entity Parcel state state initial Open
    transition Pack from (Open) to Packed
    transition Send from (Open, Packed) to Sent
    lease hold { owner owner expires_at until fencing_token fence duration_seconds (5, 900) }
  }

  bulk command AddArticles {
    input request_key: string<64>
    input organization_id: uuid
    input lines: list<Line, 1..256>
    idempotency_key request_key
    for line in lines {
      create Article(organization_id, line.article_id) as article else Exists { article: article }
      set article.stock = line.quantity
      set article.size = line.size
      set article.note = line.note
      set article.price = line.price
    }
    return Added {}
  }
  bulk command Take {
    input request_key: string<64>
    input organization_id: uuid
    input order_id: uuid
    input lines: list<Line, 0..256>
    idempotency_key request_key
    mutate Order(organization_id, order_id) as order else NoOrder {}
    require small: order.pieces < 1000 else TooLarge { pieces: order.pieces }
    for line in lines {
      mutate Article(organization_id, line.article_id) as article else NoArticle { article_id: line.article_id }
      require enough: article.stock >= line.quantity else TooFew { article_id: line.article_id, stock: article.stock }
      set article.stock = article.stock - line.quantity
      decide article {
        when line.note is not null apply { set order.last_note = line.note  set article.note = line.note }
        when line.size == Size.Large none NotLarge { article: article }
        otherwise apply { set article.size = line.size }
      }
      set order.pieces = order.pieces + line.quantity
      emit Taken {
        organization_id: organization_id, article_id: line.article_id, left: article.stock, pieces: order.pieces
      }
    }
    return Took { order: order }
  }
  command OpenOrder {
    input request_key: string<64>
    input organization_id: uuid
    service order_id: uuid_v7
    service other_id: uuid_v7
    idempotency_key request_key
    create Order(organization_id, order_id) as order else Exists {}
    return Opened { order_id: order_id, other_id: other_id, order: order }
  }
  bulk command AddParcels {
    input request_key: string<64>
    input organization_id: uuid
    input parcel_ids: list<uuid, 0..256>
    service order_id: uuid_v7
    idempotency_key request_key
    for parcel_id in parcel_ids {
      create Parcel(organization_id, parcel_id) as parcel else Exists { parcel_id: parcel_id }
      set parcel.fence = 0
      set parcel.order_id = order_id
    }
    return Added { order_id: order_id }
  }
  command ClaimParcel {
    input request_key: string<64>
    input key of Parcel
    input owner_id: uuid
    input duration: u64
    input revision: u64
    idempotency_key request_key
    mutate Parcel(organization_id, parcel_id) as parcel else Missing {}
    lease claim hold on parcel owner owner_id duration_seconds duration revision revision
      stale Stale {} unavailable Held {} invalid Bad {} exhausted Worn {}
    return Claimed { parcel: parcel }
  }
  bulk command SendAll {
    input request_key: string<64>
    input organization_id: uuid
    input held: list<Held, 1..256>
    idempotency_key request_key
    for one in held {
      mutate Parcel(organization_id, one.parcel_id) as parcel else Missing { parcel_id: one.parcel_id }
      lease release hold on parcel owner one.owner_id fencing_token one.token revision one.revision
        stale Stale { parcel: parcel } invalid Foreign { parcel_id: one.parcel_id }
      transition Send on parcel revision one.revision stale Stale { parcel: parcel } illegal SentAlready {}
      set parcel.weight = parcel.weight + 5
      emit Sent { organization_id: organization_id, parcel_id: one.parcel_id, revision: parcel.revision }
    }
    return SentAll {}
  }
  bulk command Chase {
    input request_key: string<64>
    input organization_id: uuid
    input article_ids: list<uuid, 1..8>
    idempotency_key request_key
    for article_id in article_ids {
      read Article(organization_id, article_id) as article else NoArticle {}
      maybe Parcel(organization_id, article.article_id) as parcel
      require there: parcel is not null else NoParcel { article_id: article_id }
    }
    return Chased {}
  }
  command Look {
    input organization_id: uuid
    input article_id: uuid
    read Article(organization_id, article_id) as article else Missing {}
    return Seen { article: article }
  }
}
"""


@cache
def shop_plan() -> Plan:
    return plan_of(SHOP, "shop")


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(request.param, tmp_path)
    place.deploy(shop_plan())
    yield place
    place.close()


def line(number: int, quantity: object = 10, **changes: object) -> dict[str, object]:
    return {"article_id": UUID(int=number), "quantity": quantity, "size": "Small"} | changes


def given(key: str, **more: object) -> dict[str, object]:
    return {"request_key": key, "organization_id": ORGANIZATION} | more


def stock(shop: Place, number: int) -> tuple[int, int]:
    article = shop.command("Look", organization_id=ORGANIZATION, article_id=UUID(int=number))["payload"]["article"]
    return int(article["stock"]), int(article["revision"])


def opened(shop: Place, key: str = "open") -> str:
    order_id: str = shop.command("OpenOrder", **given(key))["payload"]["order_id"]
    return order_id


# --- one loop, all or nothing ---------------------------------------------------------------------------------------


def test_every_item_is_done_in_one_commit(shop: Place) -> None:
    answer = shop.command("AddArticles", **given("add", lines=[line(1), line(2, note="two"), line(3)]))
    assert (answer["outcome"], answer["payload"], answer["commit"]["sequence"]) == ("Added", {}, "1")
    order_id = opened(shop)
    lines = [line(1, 3, note="first"), line(2, 4), line(3, 5, note="last")]
    took = shop.command("Take", **given("take", order_id=order_id, lines=lines))
    assert took["payload"]["order"]["pieces"] == "12"
    assert took["payload"]["order"]["last_note"] == "last"
    assert took["payload"]["order"]["revision"] == "2"
    assert [stock(shop, number) for number in (1, 2, 3)] == [(7, 2), (6, 2), (5, 2)]
    record = shop.check_log()[-1]
    assert [(event["fields"]["left"], event["fields"]["pieces"]) for event in json.loads(record.events)] == [
        ("7", "12"),
        ("6", "12"),
        ("5", "12"),
    ]
    changed = [change["key"] for change in json.loads(record.changes)]
    assert [key.get("article_id", key.get("order_id")) for key in changed] == [
        order_id,
        *(str(UUID(int=number)) for number in (1, 2, 3)),
    ]


def test_the_first_item_that_fails_gives_the_outcome_and_nothing_is_done(shop: Place) -> None:
    shop.command("AddArticles", **given("add", lines=[line(1), line(2), line(3)]))
    order_id = opened(shop)
    lines = [line(1, 3), line(2, 11), line(9), line(3, 99)]
    answer = shop.command("Take", **given("take", order_id=order_id, lines=lines))
    assert answer["outcome"] == "TooFew"
    assert answer["payload"] == {"article_id": str(UUID(int=2)), "stock": "10"}
    assert answer["workflow_revisions"] == []
    assert [stock(shop, number) for number in (1, 2, 3)] == [(10, 1)] * 3
    record = shop.check_log()[-1]
    assert (record.outcome, record.changes, record.events) == ("TooFew", "[]", "[]")
    large = [line(1), line(2, size="Large")]
    refused = shop.command("Take", **given("large", order_id=order_id, lines=large))
    assert (refused["outcome"], refused["payload"]["article"]["stock"]) == ("NotLarge", "10")
    missing = shop.command("Take", **given("missing", order_id=UUID(int=99), lines=[line(1), line(1)]))
    assert missing["outcome"] == "NoOrder"


def test_an_empty_list_changes_nothing_and_is_a_success(shop: Place) -> None:
    answer = shop.command("Take", **given("take", order_id=opened(shop), lines=[]))
    assert answer["outcome"] == "Took"
    assert answer["payload"]["order"]["revision"] == "1"
    assert json.loads(shop.check_log()[-1].changes) == []


@pytest.mark.parametrize("lines", [(1, 1), (1, 2, 3, 2), (9, 1, 1)])
def test_two_items_with_one_key_refuse_the_whole(shop: Place, lines: tuple[int, ...]) -> None:
    shop.command("AddArticles", **given("add", lines=[line(1), line(2), line(3)]))
    order_id = opened(shop)
    before = len(shop.check_log())
    error = shop.refused("Take", **given("take", order_id=order_id, lines=[line(number) for number in lines]))
    assert error.code == "RDB-E-ALIASED"
    assert "`article[" in error.message
    assert len(shop.check_log()) == before
    assert [stock(shop, number) for number in (1, 2, 3)] == [(10, 1)] * 3


def test_a_replay_is_the_stored_answer(shop: Place) -> None:
    values = given("add", lines=[line(1, note=None), line(2)])
    first = shop.raw("AddArticles", **values)
    written = [line(1) | {"quantity": "10"}, dict(reversed(line(2, note=None, wanted_on=None).items()))]
    again = shop.raw("AddArticles", **given("add", lines=written))
    assert again == first.replace(b'"replayed":false', b'"replayed":true')
    for other in ([line(2), line(1)], [line(1)], [line(1), line(2, note="")]):
        assert shop.refused("AddArticles", **given("add", lines=other)).code == "RDB-E-IDEMPOTENCY-REUSED"
    shop.reopen()
    assert shop.raw("AddArticles", **values) == again


def test_batch_neighbours_see_each_other(shop: Place) -> None:
    shop.command("AddArticles", **given("add", lines=[line(1), line(2)]))
    order_id = opened(shop)
    answers = shop.together(
        ("Take", given("a", order_id=order_id, lines=[line(1, 6), line(2, 6)])),
        ("Take", given("b", order_id=order_id, lines=[line(2, 1), line(1, 6)])),
        ("Take", given("c", order_id=order_id, lines=[line(2, 4)])),
    )
    assert [answer["outcome"] for answer in answers] == ["Took", "TooFew", "Took"]
    assert [stock(shop, number) for number in (1, 2)] == [(4, 2), (0, 3)]


# --- workflows and leases -------------------------------------------------------------------------------------------


def parcels(count: int) -> list[UUID]:
    return [UUID(int=number + 1) for number in range(count)]


def claimed(shop: Place, count: int) -> list[dict[str, Any]]:
    shop.command("AddParcels", **given("parcels", parcel_ids=parcels(count)))
    for number, parcel_id in enumerate(parcels(count)):
        values = given(f"claim {number}", parcel_id=parcel_id, owner_id=UUID(int=7), duration=60, revision=1)
        assert shop.command("ClaimParcel", **values)["outcome"] == "Claimed"
    return [
        {"parcel_id": parcel_id, "owner_id": UUID(int=7), "token": 1, "revision": 2} for parcel_id in parcels(count)
    ]


def test_successor_revisions_are_told_by_item(shop: Place) -> None:
    answer = shop.command("AddParcels", **given("parcels", parcel_ids=parcels(256)))
    assert answer["workflow_revisions"] == [{"binding": f"parcel[{at}]", "revision": "1"} for at in range(256)]
    assert shop.command("AddParcels", **given("none", parcel_ids=[]))["workflow_revisions"] == []


def test_each_item_has_its_own_lease(shop: Place) -> None:
    held = claimed(shop, 3)
    answer = shop.command("SendAll", **given("send", held=held))
    assert answer["outcome"] == "SentAll"
    assert answer["workflow_revisions"] == [{"binding": f"parcel[{at}]", "revision": "3"} for at in range(3)]
    record = shop.check_log()[-1]
    assert [event["fields"]["revision"] for event in json.loads(record.events)] == ["3", "3", "3"]
    assert json.loads(record.changes)[1]["fields"] == {
        "state": "Sent",
        "owner": None,
        "until": None,
        "weight": "6",
    }


@pytest.mark.parametrize(
    ("change", "outcome"),
    [({"revision": 1}, "Stale"), ({"token": 2}, "Foreign"), ({"owner_id": UUID(int=8)}, "Foreign")],
)
def test_wrong_evidence_of_one_item_refuses_all(shop: Place, change: dict[str, object], outcome: str) -> None:
    held = claimed(shop, 3)
    held[1] |= change
    assert shop.command("SendAll", **given("send", held=held))["outcome"] == outcome
    assert shop.command("SendAll", **given("again", held=[held[0], held[2]]))["outcome"] == "SentAll"


def test_a_key_may_rest_on_an_earlier_row_of_the_same_item(shop: Place) -> None:
    shop.command("AddArticles", **given("add", lines=[line(1), line(2)]))
    shop.command("AddParcels", **given("parcels", parcel_ids=[UUID(int=1)]))
    assert shop.command("Chase", **given("one", article_ids=[UUID(int=1)]))["outcome"] == "Chased"
    both = shop.command("Chase", **given("both", article_ids=[UUID(int=1), UUID(int=2)]))
    assert (both["outcome"], both["payload"]) == ("NoParcel", {"article_id": str(UUID(int=2))})


# --- what comes in --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ("none", "lines"),
        ({}, "lines"),
        ([], "lines"),
        ([line(1)] * 257, "lines"),
        ([line(1), 3], "lines[1]"),
        ([line(1), None], "lines[1]"),
        ([line(1), line(2), line(3, quantity=-1)], "lines[2].quantity"),
        ([line(1, quantity=None)], "lines[0].quantity"),
        ([{"article_id": UUID(int=1), "size": "Small"}], "lines[0].quantity"),
        ([line(1, size="Huge")], "lines[0].size"),
        ([line(1, note="x" * 21)], "lines[0].note"),
        ([line(1, wanted_on="2026-02-30")], "lines[0].wanted_on"),
        ([line(1, price="1.234")], "lines[0].price"),
        ([line(1, mark="AAAAAAAA")], "lines[0].mark"),
        ([line(1, delta=1 << 63)], "lines[0].delta"),
        ([line(1, quantiti=1)], "lines[0].quantiti"),
        ([[UUID(int=1), 3, "Small"]], "lines[0]"),
    ],
)
def test_a_wrong_item_is_refused_with_its_path(shop: Place, lines: object, path: str) -> None:
    error = shop.refused("AddArticles", **given("add", lines=lines))
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert shop.log() == []


def test_the_recorded_input_is_canonical(shop: Place) -> None:
    values = line(1, note="n", price="1.5", wanted_on="2026-01-02", mark=b"\xff", delta=-5, quantity="7")
    shop.command("AddArticles", **given("add", lines=[values]))
    [record] = shop.check_log()
    article = str(UUID(int=1))
    assert record.input == (
        f'{{"lines":[{{"article_id":"{article}","delta":"-5","mark":"_w","note":"n","price":"1.50","quantity":"7",'
        f'"size":"Small","wanted_on":"2026-01-02"}}],"organization_id":"{ORGANIZATION}","request_key":"add"}}'
    )


# --- service values -------------------------------------------------------------------------------------------------


def test_service_values_are_made_once_and_kept(shop: Place) -> None:
    first = shop.raw("OpenOrder", **given("open"))
    payload = json.loads(first)["payload"]
    one, two = UUID(payload["order_id"]), UUID(payload["other_id"])
    assert one != two
    assert {value.version for value in (one, two)} == {7}
    assert {value.int >> 80 for value in (one, two)} == {shop.now // 1_000}
    assert payload["order"]["order_id"] == str(one)
    [record] = shop.check_log()
    assert json.loads(record.sealed) == {"order_id": str(one), "other_id": str(two)}
    shop.now += SECOND
    assert shop.raw("OpenOrder", **given("open")) == first.replace(b'"replayed":false', b'"replayed":true')
    assert shop.command("OpenOrder", **given("another"))["payload"]["order_id"] != str(one)
    assert [entry.sealed == "" for entry in shop.check_log()] == [False, False]


def test_every_item_sees_the_one_service_value(shop: Place) -> None:
    answer = shop.command("AddParcels", **given("parcels", parcel_ids=parcels(3)))
    changes = json.loads(shop.check_log()[-1].changes)
    assert [change["fields"]["order_id"] for change in changes] == [answer["payload"]["order_id"]] * 3


def test_nobody_gives_a_service_value(shop: Place) -> None:
    error = shop.refused("OpenOrder", **given("open", order_id=UUID(int=1)))
    assert (error.code, error.path) == ("RDB-E-INPUT", "order_id")
