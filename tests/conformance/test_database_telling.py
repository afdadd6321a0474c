"""What operators are told of the log, over every store: commits with filters, their reasons, rows as they stood."""

import json
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.values import timestamp_text
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, SECOND, Place, account, changed_ledger, claim, work

OWNER = str(UUID(int=0xC))
HERE = str(ORGANIZATION)


@pytest.fixture
def worked(queue: Place) -> Place:
    """A queue with two items in one partition, one in another, and five commits about the first item."""
    queue.command("CreateWork", **work("c-1"))
    queue.now += SECOND
    queue.command("CreateWork", **work("c-2", 2))
    queue.command("CreateWork", **work("c-1", organization_id=OTHER))
    queue.now += SECOND
    queue.command("ClaimWork", **claim("l-1"))
    queue.command("ClaimWork", **claim("l-2", expected_revision=2, owner_id=UUID(int=0xD)))
    queue.command("ClaimWork", **claim("l-3"))
    queue.command("ClaimWork", **claim("l-4", 9))
    return queue


def log(place: Place, **filters: Any) -> Any:
    return place.run(place.database.operations.log(LOCAL, **filters))


def keys(place: Place, **filters: object) -> list[str | None]:
    return [entry["key"] for entry in log(place, **filters)]


def test_the_log_is_told_newest_last(worked: Place) -> None:
    assert [(entry["partition"], entry["sequence"], entry["command"]) for entry in log(worked)] == [
        ("system", "1", "deploy"),
        (HERE, "1", "CreateWork"),
        (HERE, "2", "CreateWork"),
        (str(OTHER), "1", "CreateWork"),
        *((HERE, str(number), "ClaimWork") for number in (3, 4, 5, 6)),
    ]
    assert keys(worked, partition=HERE) == ["c-1", "c-2", "l-1", "l-2", "l-3", "l-4"]
    assert [entry["command"] for entry in log(worked, partition="system")] == ["deploy"]


def test_filters_are_exact(worked: Place) -> None:
    assert keys(worked, command="CreateWork") == ["c-1", "c-2", "c-1"]
    assert keys(worked, outcome="AlreadyClaimed") == ["l-2"]
    assert keys(worked, key="c-1") == ["c-1", "c-1"]
    assert keys(worked, principal="nobody") == keys(worked, command="Create") == []
    first = log(worked, partition=HERE)[0]["time"]
    assert keys(worked, partition=HERE, until=first) == ["c-1"]
    assert keys(worked, since=timestamp_text(worked.now)) == ["l-1", "l-2", "l-3", "l-4"]
    assert keys(worked, partition=HERE, since=first, until=first, command="CreateWork") == ["c-1"]


def test_the_newest_come_first_and_then_those_before(worked: Place) -> None:
    assert keys(worked, partition=HERE, limit=2) == ["l-3", "l-4"]
    assert keys(worked, partition=HERE, limit="2", before="5") == ["l-1", "l-2"]
    assert keys(worked, partition=HERE, before=1) == []
    assert keys(worked, limit=1) == ["l-4"]
    for number in range(250):
        worked.command("CreateWork", **work(f"n-{number}", 100 + number))
    assert keys(worked, partition=HERE, limit=300) == [record.key for record in worked.log()]
    assert keys(worked, key="c-2") == ["c-2"], "far behind the newest"


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"limit": True}, "limit"),
        ({"since": "yesterday"}, "since"),
        ({"until": 7}, "until"),
        ({"before": 3}, "before"),
        ({"partition": HERE, "before": "x"}, "before"),
        ({"partition": "nowhere"}, "partition"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(worked: Place, filters: dict[str, Any], path: str) -> None:
    error = worked.error_of(worked.database.operations.log(LOCAL, **filters))
    assert (error.code, error.path) == ("RDB-E-INPUT", path)


def why(place: Place, sequence: object) -> Any:
    return place.run(place.database.operations.why(LOCAL, partition=HERE, sequence=sequence))


def test_a_commit_tells_which_check_ended_it(worked: Place) -> None:
    refused = why(worked, "4")
    assert [(check["outcome"], check["result"]) for check in refused["checks"]] == [
        ("Missing", "passed"),
        ("StaleRevision", "passed"),
        ("InvalidDuration", "passed"),
        ("AlreadyClaimed", "refused"),
        ("LeaseCounterExhausted", "not reached"),
    ]
    assert {check["result"] for check in why(worked, 3)["checks"]} == {"passed"}
    assert [check["result"] for check in why(worked, 6)["checks"]][:2] == ["refused", "not reached"]
    assert why(worked, 3)["changes"][0]["fields"]["lease_owner"] == "[redacted]"
    assert why(worked, 3)["input"]["expected_revision"] == "1"
    error = worked.error_of(worked.database.operations.why(LOCAL, partition=HERE, sequence="7"))
    assert error.code == "RDB-E-NOT-FOUND"


def test_lease_operands_are_in_nothing_that_is_told(worked: Place) -> None:
    told = [log(worked), *(why(worked, number) for number in range(1, 7)), row(worked), row(worked, at="3")]
    texts = json.dumps(told)
    assert OWNER not in texts and str(UUID(int=0xD)) not in texts
    assert "[redacted]" in texts


def row(place: Place, **at: object) -> Any:
    return place.run(place.database.operations.row(LOCAL, entity="WorkItem", key=(HERE, str(UUID(int=1))), **at))


def test_a_row_is_told_as_it_stood(worked: Place) -> None:
    now = row(worked)
    assert (now["revision"], now["commit"]["sequence"]) == ("2", "3")
    assert now["key"] == {"organization_id": HERE, "work_id": str(UUID(int=1))}
    assert now["fields"]["lease_owner"] == now["fields"]["lease_fence"] == "[redacted]"
    then = row(worked, at=2)
    assert (then["revision"], then["commit"]["sequence"]) == ("1", "1")
    assert then["fields"].keys() == now["fields"].keys()
    assert then["fields"]["lease_expires_at"] is None
    assert now["fields"]["lease_expires_at"] is not None
    assert row(worked, at=then["commit"]["time"]) == then
    assert row(worked, at=now["commit"]["time"]) == row(worked, at="6") == now
    for early in (0, "0", "2020-01-01T00:00:00Z"):
        assert (
            worked.error_of(
                worked.database.operations.row(LOCAL, entity="WorkItem", key=(HERE, str(UUID(int=1))), at=early)
            ).code
            == "RDB-E-NOT-FOUND"
        )
    for wrong in ("soon", -1, 1.5):
        error = worked.error_of(
            worked.database.operations.row(LOCAL, entity="WorkItem", key=(HERE, str(UUID(int=1))), at=wrong)
        )
        assert (error.code, error.path) == ("RDB-E-INPUT", "at")


def test_an_operator_of_one_partition_is_told_of_it_alone(worked: Place) -> None:
    operator, operations = worked.caller(partition=ORGANIZATION), worked.database.operations
    assert len(worked.run(operations.log(operator, partition=HERE))) == 6
    for attempt in (
        operations.log(operator),
        operations.log(operator, partition=str(OTHER)),
        operations.log(operator, partition="system"),
        operations.why(operator, partition=str(OTHER), sequence="1"),
        operations.row(operator, entity="WorkItem", key=(str(OTHER), str(UUID(int=1)))),
        operations.verify(operator),
        operations.capabilities(operator),
    ):
        assert worked.error_of(attempt).code == "RDB-E-FORBIDDEN"


def test_a_field_that_came_later_is_told_as_older_rows_have_it(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("o"))
    for default in ("5", "7"):
        ledger.deploy(changed_ledger(("    field balance: ", f"    field rank: u64 = {default}\n    field balance: ")))
    now = ledger.run(ledger.database.operations.row(LOCAL, entity="Account", key=(HERE, "1")))
    assert now["fields"]["rank"] == "5"
    ledger.command("Deposit", **account("d", amount=3))
    then = ledger.run(ledger.database.operations.row(LOCAL, entity="Account", key=(HERE, "1")))
    assert (then["revision"], then["fields"]["rank"]) == ("2", "5")
