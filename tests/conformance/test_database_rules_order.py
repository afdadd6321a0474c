"""Rules are looked at after the last effect and before events and answer; what a failure shows is formed only then."""

import pytest

from tests.conformance.databases import ORGANIZATION, Place, plan_of

SLOTS = """
contract Slots version 1 {
  entity Slot {
    key (owner: uuid, number: u64)
    field code: u64
    field weight: u64
    unique by_code (owner, code)
    invariant light: weight <= 10
  }
  command Put {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input code: u64
    input divisor: u64 = 1
    idempotency_key request_key
    create Slot(owner, number) as slot else Exists {}
      conflict by_code Taken { share: code / divisor } violates light Heavy {}
    set slot.code = code
    set slot.weight = 1
    return Done {}
  }
  command Share {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input code: u64
    input divisor: u64
    idempotency_key request_key
    create Slot(owner, number) as slot else Exists {} conflict by_code Taken {} violates light Heavy {}
    set slot.code = code
    set slot.weight = 1
    return Done { share: code / divisor }
  }
  command Exchange {
    input request_key: string<64>
    input owner: uuid
    input weight: u64
    idempotency_key request_key
    mutate Slot(owner, 1) as first else Missing {} conflict by_code Taken {} violates light Heavy {}
    mutate Slot(owner, 2) as second else Missing {} conflict by_code Taken {}
    set first.code = second.code
    set first.weight = weight
    set second.code = first.code - 10
    return Exchanged {}
  }
}
"""


@pytest.fixture
def slots(empty: Place) -> Place:
    """A place with `SLOTS` and the row 1, code 10."""
    empty.deploy(plan_of(SLOTS, "slots"))
    assert empty.command("Put", request_key="p-1", owner=ORGANIZATION, number=1, code=10)["outcome"] == "Done"
    return empty


def test_a_failure_is_formed_only_when_its_rule_is_broken(slots: Place) -> None:
    values = {"owner": ORGANIZATION, "number": 2, "divisor": 0}
    assert slots.command("Put", request_key="p-2", code=20, **values)["outcome"] == "Done"
    values["number"] = 3
    assert slots.refused("Put", request_key="p-3", code=20, **values).code == "RDB-E-ARITHMETIC"


def test_a_broken_rule_comes_before_an_answer_that_cannot_be_formed(slots: Place) -> None:
    values = {"owner": ORGANIZATION, "number": 2, "divisor": 0}
    assert slots.command("Share", request_key="s-1", code=10, **values)["outcome"] == "Taken"
    assert slots.refused("Share", request_key="s-2", code=20, **values).code == "RDB-E-ARITHMETIC"


def test_uniques_are_judged_over_the_exchanged_rows_also_before_a_broken_invariant(slots: Place) -> None:
    slots.command("Put", request_key="p-2", owner=ORGANIZATION, number=2, code=20)
    assert slots.command("Exchange", request_key="e-1", owner=ORGANIZATION, weight=11)["outcome"] == "Heavy"
    assert slots.command("Exchange", request_key="e-2", owner=ORGANIZATION, weight=1)["outcome"] == "Exchanged"
