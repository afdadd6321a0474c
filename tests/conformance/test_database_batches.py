"""Many commands in one batch, over every store: in order over what the ones before changed, and none harms another."""

import json
import logging
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import arm
from riffdb.core.limits import BATCH_COMMANDS_MAX, U64_MAX
from riffdb.core.values import timestamp_text
from riffdb.storage.protocol import Transaction
from tests.conformance.databases import LOCAL, ORGANIZATION, OTHER, START, Place, account, claim, work

MANY = 32


@pytest.fixture
def no_failpoint() -> Iterator[None]:
    yield
    arm(None)


def test_commands_of_one_batch_commit_in_order(queue: Place) -> None:
    answers = queue.together(*(("CreateWork", work(f"k{number}", number)) for number in range(MANY)))
    assert queue.batches[-1:] == [MANY]
    commits = [answer["commit"] for answer in answers]
    assert [commit["sequence"] for commit in commits] == [str(number + 1) for number in range(MANY)]
    assert [commit["time"] for commit in commits] == [timestamp_text(START + number) for number in range(MANY)]
    queue.reopen()
    assert len(queue.check_log()) == MANY


def test_a_long_queue_is_several_batches(queue: Place) -> None:
    answers = queue.together(*(("CreateWork", work(f"k{number}", number)) for number in range(BATCH_COMMANDS_MAX + 3)))
    assert {answer["outcome"] for answer in answers} == {"Created"}
    assert queue.batches[-2:] == [BATCH_COMMANDS_MAX, 3]
    assert len(queue.check_log()) == BATCH_COMMANDS_MAX + 3


@pytest.mark.parametrize(("bytes_max", "flushes"), [(1, 4), (500, 2), (4 << 20, 1)])
def test_a_flush_is_bounded_in_bytes(
    queue: Place, monkeypatch: pytest.MonkeyPatch, bytes_max: int, flushes: int
) -> None:
    begun, begin = count(), queue.store.transaction

    def counted() -> AbstractAsyncContextManager[Transaction]:
        next(begun)
        return begin()

    monkeypatch.setattr(queue.store, "transaction", counted)
    monkeypatch.setattr("riffdb.database.database.BATCH_BYTES_MAX", bytes_max)
    answers = queue.together(*(("CreateWork", work(f"k{number}", number)) for number in range(4)))
    assert [answer["commit"]["sequence"] for answer in answers] == ["1", "2", "3", "4"]
    assert (queue.batches[-1], next(begun)) == (4, flushes)


def test_the_second_of_two_who_saw_the_same_row_is_stale(queue: Place) -> None:
    queue.command("CreateWork", **work("k"))
    answers = queue.together(*(("ClaimWork", claim(f"c{number}")) for number in range(MANY)))
    assert queue.batches[-1:] == [MANY]
    assert [answer["outcome"] for answer in answers] == ["Claimed"] + ["StaleRevision"] * (MANY - 1)
    assert len(queue.check_log()) == MANY + 1
    assert queue.command("ClaimWork", **claim("z", expected_revision=2))["outcome"] == "AlreadyClaimed"


def test_a_row_may_be_made_and_changed_and_removed_in_one_batch(ledger: Place) -> None:
    deposits = [("Deposit", account(f"deposit {number}", amount=number)) for number in range(1, 5)]
    answers = ledger.together(("OpenAccount", account("open")), *deposits)
    assert ledger.batches[-1:] == [5]
    assert [answer["payload"].get("balance") for answer in answers[1:]] == ["1", "3", "6", "10"]
    ledger.reopen()
    seen = ledger.command("Look", owner=ORGANIZATION, number=1)
    assert (seen["payload"]["account"]["balance"], seen["payload"]["account"]["revision"]) == ("10", "5")
    answers = ledger.together(
        ("CloseAccount", account("close")),
        ("Deposit", account("late", amount=1)),
        ("OpenAccount", account("again", balance=7)),
        ("OpenAccount", account("brief", 2)),
        ("CloseAccount", account("close brief", 2)),
    )
    outcomes = [answer["outcome"] for answer in answers]
    assert outcomes == ["ClosedAccount", "Missing", "Opened", "Opened", "ClosedAccount"]
    ledger.reopen()
    assert ledger.command("Look", owner=ORGANIZATION, number=1)["payload"]["account"]["balance"] == "7"
    assert ledger.command("Look", owner=ORGANIZATION, number=2)["outcome"] == "Missing"
    previous = [json.loads(record.changes)[0]["previous"] for record in ledger.check_log()[:5]]
    assert previous == [None, "1", "2", "3", "4"]


def test_a_key_twice_in_one_batch_is_one_execution(queue: Place) -> None:
    answers = queue.together(*[("CreateWork", work("k"))] * MANY, ("CreateWork", work("k", 2)))
    assert queue.batches[-1:] == [MANY + 1]
    *same, reused = answers
    assert [answer.pop("replayed") for answer in same] == [False] + [True] * (MANY - 1)
    assert all(answer == same[0] for answer in same)
    assert (reused.code, reused.key) == ("RDB-E-IDEMPOTENCY-REUSED", "k")
    assert len(queue.check_log()) == 1


def test_partitions_of_one_batch_count_by_themselves(ledger: Place) -> None:
    answers = ledger.together(
        *(
            ("OpenAccount", account(f"k{number}", number, owner=owner))
            for number in range(3)
            for owner in (ORGANIZATION, OTHER)
        )
    )
    assert [answer["commit"]["sequence"] for answer in answers] == ["1", "1", "2", "2", "3", "3"]
    assert answers[0]["commit"]["time"] == answers[1]["commit"]["time"] == timestamp_text(START)
    ledger.check_log()
    ledger.check_log(OTHER)


def test_no_failure_harms_a_neighbour(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open", balance=U64_MAX - 2))
    move = {"request_key": UUID(int=1), "owner": ORGANIZATION, "source": 1, "target": 1, "amount": 1}
    answers = ledger.together(
        ("Deposit", account("a", amount=1)),
        ("Deposit", account("b", amount=5)),
        ("Move", move),
        ("Deposit", account("c", 9, amount=1)),
        ("Look", {"owner": ORGANIZATION, "number": 1}),
        ("Deposit", account("d", amount=1)),
    )
    assert ledger.batches[-1:] == [6]
    told = [answer.code if isinstance(answer, RiffError) else answer["outcome"] for answer in answers]
    assert told == ["Deposited", "RDB-E-ARITHMETIC", "RDB-E-ALIASED", "Missing", "Seen", "Deposited"]
    assert answers[4]["payload"]["account"]["balance"] == str(U64_MAX - 1), "it sees what the ones before changed"
    assert answers[5]["payload"]["balance"] == str(U64_MAX)
    assert [record.key for record in ledger.check_log()] == ["open", "a", "c", "d"]


def explode(*arguments: object) -> Any:
    """A fault of ours that tells a value in its text."""
    raise KeyError("-".join(["hush"] * 2))


@pytest.mark.parametrize("part", ["evaluate", "stages", "payload"])
def test_a_fault_of_ours_harms_no_neighbour_and_tells_no_value(
    ledger: Place, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.command("OpenAccount", **account("open"))
    contract = ledger.database.contract
    sound = contract.command("Deposit")
    broken = {
        "evaluate": replace(sound, compiled=replace(sound.compiled, evaluate=explode)),
        "stages": replace(sound, compiled=replace(sound.compiled, stages=(explode,))),
        "payload": replace(sound, encode_payloads={"Deposited": explode}),
    }[part]
    contract._commands["Deposit"] = broken  # no input brings a sound contract to this
    with caplog.at_level(logging.ERROR):
        first, failed, last = ledger.together(
            ("OpenAccount", account("a", 2)), ("Deposit", account("b", amount=1)), ("OpenAccount", account("c", 3))
        )
    assert ledger.batches[-1:] == [3]
    assert (first["outcome"], last["outcome"]) == ("Opened", "Opened")
    assert failed.code == "RDB-E-INTERNAL"
    incident = failed.detail["incident"]
    assert incident in failed.message
    assert incident in caplog.text
    assert "command Deposit: KeyError" in caplog.text
    assert "hush-hush" not in caplog.text + failed.message
    contract._commands["Deposit"] = sound
    assert ledger.command("Deposit", **account("b", amount=1))["outcome"] == "Deposited", "its key is free"
    assert [record.key for record in ledger.check_log()] == ["open", "a", "c", "b"]


@pytest.mark.usefixtures("no_failpoint")
@pytest.mark.parametrize(("place", "committed"), [("commit.before", False), ("commit.after", True)])
def test_a_batch_that_fails_as_a_whole_is_told_to_each_with_its_key(
    ledger: Place, place: str, committed: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    arm(f"{place}:raise")
    calls = [("OpenAccount", account(f"k{number}", number)) for number in range(3)]
    answers = ledger.together(*calls, ("Look", {"owner": ORGANIZATION, "number": 0}))
    assert [error.code for error in answers] == ["RDB-E-OUTCOME-UNKNOWN"] * 4
    assert [error.key for error in answers] == ["k0", "k1", "k2", None]
    assert len({error.detail["incident"] for error in answers}) == 1
    again = ledger.together(*calls)
    assert [answer["replayed"] for answer in again] == [committed] * 3
    assert len(ledger.check_log()) == 3
    assert "failpoint" in capfd.readouterr().err


def test_a_closed_store_is_told_to_each(ledger: Place) -> None:
    ledger.run(ledger.store.close())
    answers = ledger.together(("OpenAccount", account("a")), ("OpenAccount", account("b")))
    assert [(error.code, error.key) for error in answers] == [("RDB-E-UNAVAILABLE", "a"), ("RDB-E-UNAVAILABLE", "b")]


def test_what_nobody_waits_for_any_more_is_not_begun(queue: Place) -> None:
    database = queue.database
    late = queue.error_of(database.command(LOCAL, "CreateWork", work("k"), deadline=0.0))
    assert (late.code, late.facts.retryable) == ("RDB-E-DEADLINE", True)
    assert queue.error_of(database.query(LOCAL, "DueWork", {"organization_id": ORGANIZATION}, deadline=0.0)).code == (
        "RDB-E-DEADLINE"
    )
    answers = json.loads(
        queue.run(database.batch(LOCAL, [{"command": "CreateWork", "input": work("k")}], deadline=0.0))
    )
    assert [answer["code"] for answer in answers] == ["RDB-E-DEADLINE"]
    assert queue.log() == []
    in_time = json.loads(queue.run(database.command(LOCAL, "CreateWork", work("k"), deadline=float("inf"))))
    assert (in_time["outcome"], in_time["replayed"]) == ("Created", False)


def test_the_commands_of_a_batch_share_a_flush(queue: Place) -> None:
    steps = [{"command": "CreateWork", "input": work(f"k{number}", number)} for number in range(5)]
    queue.batches.clear()
    answers = json.loads(queue.run(queue.database.batch(LOCAL, steps)))
    assert [answer["outcome"] for answer in answers] == ["Created"] * 5
    assert queue.batches == [1]
