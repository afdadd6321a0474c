"""Capabilities out of capabilities, over every store: they do less, never more, and end with what they came from."""

import json
from typing import Any

import pytest

from riffdb.core.limits import CAPABILITY_GENERATIONS_MAX
from riffdb.core.values import timestamp_text
from riffdb.database import capabilities
from riffdb.database.callers import Caller, visible_plan
from riffdb.database.tokens import token_hash
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, SECOND, Place, changed_ledger, claim, work

DUE = {"organization_id": ORGANIZATION}


def derive(place: Place, holder: Caller, **wanted: object) -> Any:
    return place.run(place.database.operations.derive(holder, **wanted))


def derived(place: Place, holder: Caller, **wanted: object) -> Caller:
    """The holder of a capability that was derived."""
    return place.run(place.database.authenticate(derive(place, holder, **wanted)["token"], "test"))


def refused(place: Place, holder: Caller, **wanted: object) -> tuple[str, str | None]:
    error = place.error_of(place.database.operations.derive(holder, **wanted))
    return error.code, error.path


def shown(place: Place, caller: Caller) -> Any:
    return place.run(place.database.operations.capability(LOCAL, identity=caller.capability))


def test_a_child_may_do_what_it_was_given_and_nothing_else(queue: Place) -> None:
    queue.command("CreateWork", **work("k"))
    worker = queue.caller("WorkScheduler", principal="w")
    child = derived(queue, worker, queries=["DueWork"], commands=["ClaimWork"], principal="screen")
    assert (child.principal, child.role) == ("screen", "WorkScheduler")
    assert queue.run(queue.database.query(child, "DueWork", DUE))
    assert queue.command("ClaimWork", child, **claim("c"))["outcome"] == "Claimed"
    forbidden = queue.refused("CompleteWork", child)
    assert (
        forbidden.to_json() == queue.refused("NoSuch", child).to_json() == queue.refused("CreateWork", child).to_json()
    )
    assert forbidden.code == "RDB-E-FORBIDDEN"
    plan = visible_plan(queue.database.contract.plan, child)
    assert ([part.name for part in plan.commands], [part.name for part in plan.queries]) == (["ClaimWork"], ["DueWork"])
    assert shown(queue, child)["grants"] == {"commands": ["ClaimWork"], "queries": ["DueWork"], "streams": []}


def test_a_child_without_names_may_do_what_its_parent_may(queue: Place) -> None:
    worker = queue.caller("WorkScheduler", principal="w")
    child = derived(queue, worker)
    assert (child.principal, child.role, child.grants) == ("w", "WorkScheduler", "")
    grandchild = derived(queue, derived(queue, worker, queries=["DueWork"]))
    assert grandchild.grants == '{"commands":[],"queries":["DueWork"],"streams":[]}'


def test_nobody_derives_more_than_he_has(queue: Place) -> None:
    worker = queue.caller("WorkScheduler", partition=ORGANIZATION)
    child = derived(queue, worker, queries=["DueWork"])
    for holder, wanted in (
        (worker, {"commands": ["CreateWork"]}),
        (worker, {"commands": ["ClaimWork", "NoSuch"]}),
        (worker, {"role": "WorkProducer"}),
        (worker, {"role": ""}),
        (worker, {"role": "NoSuch"}),
        (worker, {"partition": str(OTHER)}),
        (child, {"commands": ["ClaimWork"]}),
        (child, {"streams": ["WorkActivity"]}),
    ):
        before = queue.log(None)
        assert refused(queue, holder, **wanted) == ("RDB-E-FORBIDDEN", None)
        assert queue.log(None) == before
    assert derived(queue, child, partition=str(ORGANIZATION)).partition == b"\x01" + ORGANIZATION.bytes


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"commands": "ClaimWork"}, "commands"),
        ({"queries": [1]}, "queries"),
        ({"partition": 7}, "partition"),
        ({"expires_seconds": 0}, "expires_seconds"),
        ({"principal": "a\nb"}, "principal"),
    ],
)
def test_a_child_that_cannot_be_is_refused(queue: Place, wanted: dict[str, object], path: str) -> None:
    assert refused(queue, queue.caller("WorkScheduler"), **wanted) == ("RDB-E-INPUT", path)


def test_a_child_lives_no_longer_than_its_parent(queue: Place) -> None:
    worker = queue.caller("WorkScheduler", expires_seconds=60)
    end = shown(queue, worker)["expires_at"]
    assert derive(queue, worker)["expires_at"] == end
    assert derive(queue, worker, expires_seconds=10)["expires_at"] < end
    error = queue.error_of(queue.database.operations.derive(worker, expires_seconds=61))
    assert (error.code, error.path, end in error.message) == ("RDB-E-INPUT", "expires_seconds", True)
    child = derived(queue, worker)
    queue.now += 61 * SECOND
    assert queue.error_of(queue.database.query(child, "DueWork", DUE)).code == "RDB-E-UNAUTHENTICATED"


def test_who_is_revoked_takes_the_whole_family_along(queue: Place) -> None:
    worker, bystander = queue.caller("WorkScheduler"), queue.caller("WorkScheduler")
    child = derived(queue, worker)
    family = [worker, child, derived(queue, child), derived(queue, worker, queries=["DueWork"])]
    queue.run(queue.database.operations.revoke(LOCAL, identity=family[3].capability))
    queue.run(queue.database.operations.revoke(LOCAL, identity=worker.capability))
    for member in family:
        assert queue.error_of(queue.database.query(member, "DueWork", DUE)).code == "RDB-E-UNAUTHENTICATED"
        assert refused(queue, member) == ("RDB-E-UNAUTHENTICATED", None)
    assert queue.run(queue.database.query(bystander, "DueWork", DUE))
    record = queue.log(None)[-1]
    assert json.loads(record.input) == {
        "id": worker.capability,
        "ended": [member.capability for member in family[:3]],
    }
    assert {shown(queue, member)["revoked_at"] for member in family[:3]} == {timestamp_text(record.time)}
    assert shown(queue, family[3])["revoked_at"] < timestamp_text(record.time)


def test_a_created_capability_outlives_the_operator_who_made_it(queue: Place) -> None:
    operator = queue.caller()
    made = queue.run(queue.database.operations.create(operator, role="WorkScheduler"))
    child = derived(queue, operator, role="WorkScheduler", queries=["DueWork"])
    assert (child.role, shown(queue, child)["parent"]) == ("WorkScheduler", operator.capability)
    assert derived(queue, operator, partition=str(ORGANIZATION)).is_operator
    assert refused(queue, operator, queries=["DueWork"]) == ("RDB-E-INPUT", "role")
    queue.run(queue.database.operations.revoke(LOCAL, identity=operator.capability))
    holder = queue.run(queue.database.authenticate(made["token"], "test"))
    assert queue.run(queue.database.query(holder, "DueWork", DUE))
    assert queue.error_of(queue.database.query(child, "DueWork", DUE)).code == "RDB-E-UNAUTHENTICATED"


def test_families_are_bounded(queue: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "CAPABILITIES_DERIVED_MAX", 3)
    worker = queue.caller("WorkScheduler")
    first = derived(queue, worker)
    derived(queue, first)
    derived(queue, first)
    assert refused(queue, first) == refused(queue, worker) == ("RDB-E-CAPABILITIES", None)
    queue.run(queue.database.operations.revoke(LOCAL, identity=first.capability))
    member = worker
    monkeypatch.setattr(capabilities, "CAPABILITIES_DERIVED_MAX", 100)
    for _ in range(CAPABILITY_GENERATIONS_MAX - 1):
        member = derived(queue, member)
    assert refused(queue, member) == ("RDB-E-CAPABILITIES", None)


def test_a_role_that_loses_a_name_takes_it_from_all_children(ledger: Place) -> None:
    child = derived(ledger, ledger.caller("Teller"), commands=["Look"])
    ledger.deploy(changed_ledger(("role Teller", "role Clerk")))
    assert ledger.refused("Look", child, owner=ORGANIZATION, number=1).code == "RDB-E-FORBIDDEN"


def test_no_token_is_in_what_is_listed(queue: Place) -> None:
    made = derive(queue, queue.caller("WorkScheduler"))
    listed = queue.run(queue.database.operations.capabilities(LOCAL))
    assert [entry["id"] for entry in listed][-1] == made["id"]
    texts = json.dumps([listed, queue.run(queue.database.operations.log(LOCAL, partition="system"))])
    hashed = token_hash(made["token"]) or b""
    for secret in (made["token"], made["token"][4:40], hashed.hex()):
        assert secret not in texts
