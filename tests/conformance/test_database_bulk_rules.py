"""Bulk commands over every store, where they meet the rest: rules of entities, rows found by a unique, keys that had a
row before, rows that may begin."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riffdb.plan import Plan
from tests.conformance.databases import KINDS, ORGANIZATION, Place, plan_of

TEAM = """
contract Team version 1 {
  record Seat { person_id: uuid, badge: u64, chief_id: optional<uuid>, weight: i64 }
  record Swap { from_badge: u64, to_badge: u64 }
  entity Person {
    key (team: uuid, person_id: uuid)
    field badge: u64
    field chief_id: optional<uuid>
    field weight: i64
    unique by_badge (team, badge)
    reference chief (team, chief_id) -> Person (team, person_id)
    index by_chief (team, chief_id)
    invariant positive: weight > 0
  }
  entity Tally {
    key (team: uuid, name: string<20>)
    field count: u64 = 0
    field last: optional<uuid>
    invariant few: count <= 10
  }

  bulk command Hire {
    input request_key: string<64>
    input team: uuid
    input seats: list<Seat, 1..64>
    idempotency_key request_key
    mutate Tally(team, "all") as tally else NoTally {} violates few TooMany { count: tally.count }
    for seat in seats {
      create Person(team, seat.person_id) as person else Hired { person: person }
        conflict by_badge BadgeTaken { badge: seat.badge }
        conflict chief NoChief { person_id: seat.person_id }
        violates positive NotPositive { person_id: seat.person_id }
      set person.badge = seat.badge
      set person.chief_id = seat.chief_id
      set person.weight = seat.weight
      set tally.count = tally.count + 1
    }
    return HiredAll { tally: tally }
  }
  bulk command Renumber {
    input request_key: string<64>
    input team: uuid
    input swaps: list<Swap, 1..64>
    idempotency_key request_key
    for swap in swaps {
      mutate Person.by_badge(team, swap.from_badge) as person else NoBadge { badge: swap.from_badge }
        conflict by_badge BadgeTaken { badge: swap.to_badge }
      set person.badge = swap.to_badge
    }
    return Renumbered {}
  }
  command Exchange {
    input request_key: string<64>
    input team: uuid
    input one_id: uuid
    input two_id: uuid
    input badges: u64
    input weight: i64
    idempotency_key request_key
    mutate Person(team, one_id) as one else Unknown {} conflict by_badge BadgeTaken {}
    mutate Person(team, two_id) as two else Unknown {} conflict by_badge BadgeTaken {} violates positive NotPositive {}
    set one.badge = badges - one.badge
    set two.badge = badges - two.badge
    set two.weight = weight
    return Exchanged {}
  }
  bulk command Dismiss {
    input request_key: string<64>
    input team: uuid
    input person_ids: list<uuid, 1..64>
    idempotency_key request_key
    for person_id in person_ids {
      delete Person(team, person_id) as person else Unknown { person_id: person_id }
        conflict Person.chief IsChief { person_id: person_id }
    }
    return Dismissed {}
  }
  bulk command Count {
    input request_key: string<64>
    input team: uuid
    input names: list<string<20>, 1..64>
    idempotency_key request_key
    for name in names {
      init_or_mutate Tally(team, name) as tally initialize { count: 1 } violates few TooMany { name: name }
      set tally.count = tally.count + 1
    }
    return Counted {}
  }
  command Look {
    input team: uuid
    input person_id: uuid
    read Person(team, person_id) as person else Missing {}
    return Seen { person: person }
  }
}
"""


@cache
def team_plan() -> Plan:
    return plan_of(TEAM, "team")


@pytest.fixture(params=KINDS)
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(request.param, tmp_path)
    place.deploy(team_plan())
    place.command("Count", **given("tally", names=["all"]))
    yield place
    place.close()


def given(key: str, **more: object) -> dict[str, object]:
    return {"request_key": key, "team": ORGANIZATION} | more


def seat(number: int, **changes: object) -> dict[str, object]:
    return {"person_id": UUID(int=number), "badge": number, "weight": 1} | changes


def outcome(answer: Any) -> tuple[str, Any]:
    return answer["outcome"], answer["payload"]


def person(team: Place, number: int) -> Any:
    return team.command("Look", team=ORGANIZATION, person_id=UUID(int=number))["payload"].get("person")


def test_a_rule_that_an_item_breaks_refuses_the_whole(team: Place) -> None:
    assert outcome(team.command("Hire", **given("a", seats=[seat(1), seat(2, chief_id=UUID(int=1))])))[0] == "HiredAll"
    two = [seat(3), seat(4, badge=2)]
    assert outcome(team.command("Hire", **given("b", seats=two))) == ("BadgeTaken", {"badge": "2"})
    alike = [seat(3, badge=9), seat(4, badge=9)]
    assert outcome(team.command("Hire", **given("c", seats=alike))) == ("BadgeTaken", {"badge": "9"})
    lost = [seat(3), seat(4, chief_id=UUID(int=8))]
    assert outcome(team.command("Hire", **given("d", seats=lost))) == ("NoChief", {"person_id": str(UUID(int=4))})
    light = [seat(3), seat(4, weight=0)]
    assert outcome(team.command("Hire", **given("e", seats=light))) == ("NotPositive", {"person_id": str(UUID(int=4))})
    assert person(team, 3) is None


def test_the_first_item_that_breaks_a_rule_gives_the_outcome(team: Place) -> None:
    team.command("Hire", **given("a", seats=[seat(9)]))
    seats = [seat(1), seat(2, weight=-1), seat(3, badge=9)]
    assert outcome(team.command("Hire", **given("b", seats=seats)))[0] == "NotPositive"
    seats = [seat(1), seat(2, badge=9), seat(3, weight=-1)]
    assert outcome(team.command("Hire", **given("c", seats=seats)))[0] == "BadgeTaken"
    seats = [seat(1), seat(2, badge=9, weight=-1)]
    assert outcome(team.command("Hire", **given("d", seats=seats)))[0] == "BadgeTaken"


def test_a_reference_may_lead_to_another_item(team: Place) -> None:
    seats = [seat(1, chief_id=UUID(int=2)), seat(2, chief_id=UUID(int=1))]
    assert outcome(team.command("Hire", **given("a", seats=seats)))[0] == "HiredAll"


def test_a_rule_of_a_row_above_the_loop_is_judged_after_the_last_item(team: Place) -> None:
    answer = team.command("Hire", **given("a", seats=[seat(number) for number in range(1, 9)]))
    assert (answer["outcome"], answer["payload"]["tally"]["count"]) == ("HiredAll", "10")
    assert outcome(team.command("Hire", **given("b", seats=[seat(9)]))) == ("TooMany", {"count": "10"})


def test_items_exchange_values_of_a_unique(team: Place) -> None:
    team.command("Hire", **given("a", seats=[seat(1), seat(2), seat(3)]))
    swaps = [{"from_badge": 1, "to_badge": 2}, {"from_badge": 2, "to_badge": 3}, {"from_badge": 3, "to_badge": 1}]
    assert team.command("Renumber", **given("b", swaps=swaps))["outcome"] == "Renumbered"
    assert [person(team, number)["badge"] for number in (1, 2, 3)] == ["2", "3", "1"]
    missing = [{"from_badge": 1, "to_badge": 4}, {"from_badge": 9, "to_badge": 5}]
    assert outcome(team.command("Renumber", **given("c", swaps=missing))) == ("NoBadge", {"badge": "9"})
    taken = [{"from_badge": 1, "to_badge": 2}]
    assert outcome(team.command("Renumber", **given("d", swaps=taken))) == ("BadgeTaken", {"badge": "2"})
    twice = [{"from_badge": 1, "to_badge": 4}, {"from_badge": 1, "to_badge": 5}]
    assert team.refused("Renumber", **given("e", swaps=twice)).code == "RDB-E-ALIASED"


def test_a_rule_is_judged_over_all_changes_also_where_an_invariant_breaks(team: Place) -> None:
    team.command("Hire", **given("a", seats=[seat(1), seat(2), seat(3)]))
    two = given("b", one_id=UUID(int=1), two_id=UUID(int=2), badges=3, weight=0)
    assert outcome(team.command("Exchange", **two))[0] == "NotPositive"
    three = given("c", one_id=UUID(int=1), two_id=UUID(int=2), badges=4, weight=0)
    assert outcome(team.command("Exchange", **three))[0] == "BadgeTaken"
    assert outcome(team.command("Exchange", **two | {"request_key": "d", "weight": 5}))[0] == "Exchanged"
    assert [person(team, number)["badge"] for number in (1, 2)] == ["2", "1"]


def test_items_are_deleted_together_with_those_that_name_them(team: Place) -> None:
    team.command("Hire", **given("a", seats=[seat(1), seat(2, chief_id=UUID(int=1)), seat(3)]))
    alone = [UUID(int=3), UUID(int=1)]
    assert outcome(team.command("Dismiss", **given("b", person_ids=alone))) == (
        "IsChief",
        {"person_id": str(UUID(int=1))},
    )
    both = [UUID(int=1), UUID(int=2)]
    assert team.command("Dismiss", **given("c", person_ids=both))["outcome"] == "Dismissed"
    assert [person(team, number) is None for number in (1, 2, 3)] == [True, True, False]


def test_a_key_goes_on_from_its_last_life_in_a_loop(team: Place) -> None:
    team.command("Hire", **given("a", seats=[seat(1), seat(2)]))
    team.command("Dismiss", **given("b", person_ids=[UUID(int=2)]))
    team.command("Hire", **given("c", seats=[seat(3), seat(2, badge=7)]))
    assert (person(team, 2)["revision"], person(team, 3)["revision"]) == ("3", "1")
    *_, again = json.loads(team.check_log()[-1].changes)
    assert (again["before"], again["after"], again["previous"]) == (None, "3", "3")


def test_rows_begin_and_go_on_in_one_loop(team: Place) -> None:
    assert team.command("Count", **given("a", names=["all", "new"]))["outcome"] == "Counted"
    changes = json.loads(team.check_log()[-1].changes)
    assert [(change["before"], change["after"], change["fields"]["count"]) for change in changes] == [
        ("1", "2", "3"),
        (None, "1", "2"),
    ]
    for number in range(7):
        assert team.command("Count", **given(f"more {number}", names=["all"]))["outcome"] == "Counted"
    assert outcome(team.command("Count", **given("last", names=["new", "all"]))) == ("TooMany", {"name": "all"})
    assert team.refused("Count", **given("twice", names=["new", "new"])).code == "RDB-E-ALIASED"
