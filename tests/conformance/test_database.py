"""The path of a command over every store: what is answered and recorded, repeated and refused, and when it was."""

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from riffdb.core.limits import U64_MAX
from riffdb.core.values import timestamp_text
from riffdb.database.callers import OPERATOR, Caller
from riffdb.plan.identity import plan_hash
from tests.conformance.databases import (
    ORGANIZATION,
    OTHER,
    SECOND,
    START,
    Place,
    account,
    changed_ledger,
    claim,
    ledger_plan,
    queue_plan,
    without_replayed,
    work,
)

# --- what is answered and recorded ----------------------------------------------------------------------------------


def test_a_success_is_answered_in_full(queue: Place) -> None:
    answer = queue.command("CreateWork", **work("k"))
    row = {
        "organization_id": str(ORGANIZATION),
        "work_id": str(UUID(int=1)),
        "state": "Queued",
        "due_at": "2027-01-01T00:00:00.000000Z",
        "lease_owner": None,
        "lease_expires_at": None,
        "lease_fence": "0",
        "lease_attempts": "0",
        "available_at": "2027-01-01T00:00:00.000000Z",
        "revision": "1",
    }
    assert answer == {
        "outcome": "Created",
        "payload": {"work": row},
        "workflow_revisions": [{"binding": "work", "revision": "1"}],
        "commit": {"partition": str(ORGANIZATION), "sequence": "1", "time": timestamp_text(START)},
        "replayed": False,
    }


def test_a_success_is_recorded_in_full(queue: Place) -> None:
    caller = queue.caller("WorkScheduler", principal="worker 7")
    queue.command("CreateWork", **work("k"))
    queue.now += SECOND
    raw = queue.raw("ClaimWork", caller, **claim("c"))
    record = queue.check_log()[-1]
    assert record.answer.encode() == without_replayed(raw)
    assert json.loads(record.changes) == [
        {
            "entity": "WorkItem",
            "key": {"organization_id": str(ORGANIZATION), "work_id": str(UUID(int=1))},
            "before": "1",
            "after": "2",
            "previous": "1",
            "fields": {
                "lease_owner": str(UUID(int=0xC)),
                "lease_expires_at": timestamp_text(START + 61 * SECOND),
                "lease_fence": "1",
                "lease_attempts": "1",
                "available_at": timestamp_text(START + 61 * SECOND),
            },
        }
    ]
    assert json.loads(record.input) == {
        "request_key": "c",
        "organization_id": str(ORGANIZATION),
        "work_id": str(UUID(int=1)),
        "owner_id": str(UUID(int=0xC)),
        "duration": "60",
        "expected_revision": "1",
    }
    assert (record.command, record.key, record.outcome, record.sequence) == ("ClaimWork", "c", "Claimed", 2)
    assert (record.principal, record.role, record.ingress) == ("worker 7", "WorkScheduler", "test")
    assert record.capability == caller.capability
    assert (record.contract_version, record.plan_hash) == (1, plan_hash(queue_plan()))
    assert record.time == START + SECOND


def test_a_creation_and_an_event_are_recorded(ledger: Place) -> None:
    for number in (1, 2):
        ledger.command("OpenAccount", **account(f"open {number}", number, balance=10))
    key = UUID(int=7)
    ledger.command("Move", request_key=key, owner=ORGANIZATION, source=1, target=2, amount=4)
    opened, _, moved = ledger.check_log()
    [change] = json.loads(opened.changes)
    assert (change["before"], change["after"], change["previous"]) == (None, "1", None)
    assert change["fields"] == {
        "owner": str(ORGANIZATION),
        "number": "1",
        "balance": "10",
        "standing": "Open",
        "note": None,
    }
    assert [(part["key"]["number"], part["fields"]) for part in json.loads(moved.changes)] == [
        ("1", {"balance": "6"}),
        ("2", {"balance": "14"}),
    ]
    assert json.loads(moved.events) == [{"event": "Moved", "fields": {"owner": str(ORGANIZATION), "amount": "4"}}]
    assert moved.key == str(key)


def test_a_deletion_is_recorded_and_the_row_is_gone(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open", balance=3))
    assert ledger.command("CloseAccount", **account("close"))["payload"] == {"balance": "3"}
    [change] = json.loads(ledger.check_log()[-1].changes)
    assert (change["before"], change["after"], change["previous"], change["fields"]) == ("1", None, "1", {})
    assert ledger.command("Look", owner=ORGANIZATION, number=1)["outcome"] == "Missing"


def test_a_declared_failure_takes_a_sequence_and_changes_nothing(queue: Place) -> None:
    queue.command("CreateWork", **work("k"))
    failed = queue.command("ClaimWork", **claim("c", expected_revision=9))
    assert (failed["outcome"], failed["workflow_revisions"], failed["payload"]) == ("StaleRevision", [], {})
    assert failed["commit"]["sequence"] == "2"
    record = queue.check_log()[-1]
    assert (record.outcome, record.changes, record.events) == ("StaleRevision", "[]", "[]")
    assert queue.command("ClaimWork", **claim("d"))["outcome"] == "Claimed", "the row is as it was"


def test_a_command_that_only_reads_leaves_no_record(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open", note="n"))
    for number, outcome in ((1, "Seen"), (2, "Missing")):
        answer = ledger.command("Look", owner=ORGANIZATION, number=number)
        assert (answer["outcome"], answer["commit"], answer["replayed"]) == (outcome, None, False)
    assert len(ledger.check_log()) == 1
    assert ledger.command("Audit", **account("audit"))["commit"]["sequence"] == "2", "with a key it is recorded"
    assert ledger.command("Audit", **account("audit"))["replayed"] is True


# --- the same key again ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected_revision", [1, 9], ids=["success", "declared failure"])
def test_a_replay_is_the_same_bytes(queue: Place, expected_revision: int) -> None:
    first_worker, second_worker = queue.caller("WorkScheduler"), queue.caller("WorkScheduler")
    queue.command("CreateWork", **work("k"))
    values = claim("c", expected_revision=expected_revision)
    first = queue.raw("ClaimWork", first_worker, **values)
    assert first.endswith(b',"replayed":false}')
    queue.now += 3_600 * SECOND
    queue.command("CreateWork", **work("k2", 2))
    seen = [queue.raw("ClaimWork", caller, **values) for caller in (first_worker, second_worker)]
    queue.reopen()
    seen += [queue.raw("ClaimWork", caller, **values) for caller in (first_worker, second_worker)]
    seen.append(queue.raw("ClaimWork", **values))
    assert set(seen) == {without_replayed(first) + b',"replayed":true}'}
    assert len(queue.check_log()) == 3


def test_a_replay_outlives_an_upgrade_that_keeps_the_command(ledger: Place) -> None:
    values = account("open", balance=5, note="n")
    first = ledger.raw("OpenAccount", **values)
    grown = changed_ledger(
        ("version 1", "version 2"),
        ("{ Open, Closed }", "{ Open, Closed, Frozen }"),
        (
            "input balance: u64 = 0\n    input opened_at",
            "input bonus: u64 = 0\n    input balance: u64 = 0\n    input opened_at",
        ),
        ("set account.balance = balance\n", "set account.balance = balance + bonus\n"),
        ("return Opened { account: account }", "return Opened { account: account, bonus: bonus }"),
    )
    assert ledger.deploy(grown) == "updated"
    assert ledger.raw("OpenAccount", **values) == without_replayed(first) + b',"replayed":true}'
    assert ledger.raw("OpenAccount", **values, bonus=0) == without_replayed(first) + b',"replayed":true}'
    assert ledger.refused("OpenAccount", **values, bonus=1).code == "RDB-E-IDEMPOTENCY-REUSED"
    assert ledger.command("OpenAccount", **account("next", 2, bonus=1))["payload"]["bonus"] == "1"
    assert [record.contract_version for record in ledger.check_log()] == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"balance": 6},
        {"number": 2},
        {"note": ""},
        {"note": None},
        {"opened_at": "2027-01-01T00:00:00.000001Z"},
    ],
)
def test_a_key_with_another_input_is_refused(ledger: Place, changes: dict[str, object]) -> None:
    values = account("open", balance=5, note="n", opened_at="2027-01-01T00:00:00Z")
    ledger.command("OpenAccount", **values)
    before = ledger.log()
    error = ledger.refused("OpenAccount", **(values | changes))
    assert (error.code, error.key, error.facts.retryable) == ("RDB-E-IDEMPOTENCY-REUSED", "open", False)
    assert ledger.log() == before
    assert ledger.command("Look", owner=ORGANIZATION, number=2)["outcome"] == "Missing"


def test_a_key_belongs_to_its_command_and_partition(ledger: Place) -> None:
    assert ledger.command("OpenAccount", **account("k"))["replayed"] is False
    assert ledger.command("Deposit", **account("k", amount=1))["outcome"] == "Deposited"
    elsewhere = ledger.command("OpenAccount", **account("k", owner=OTHER))
    assert (elsewhere["replayed"], elsewhere["commit"]["sequence"]) == (False, "1")
    assert len(ledger.check_log()) == 2
    assert len(ledger.check_log(OTHER)) == 1


def test_other_writings_of_the_same_input_are_the_same_input(ledger: Place) -> None:
    owner, moment = UUID(int=0xABCDEF), datetime(2027, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    writings: list[dict[str, object]] = [
        {"request_key": "k", "owner": owner, "number": 1, "balance": 7, "opened_at": moment},
        {"opened_at": moment, "balance": 7, "number": 1, "owner": owner, "request_key": "k"},
        {
            "request_key": "k",
            "owner": str(owner),
            "number": "1",
            "balance": "7",
            "opened_at": "2027-01-01T12:00:00.25Z",
        },
        {"request_key": "k", "owner": str(owner).upper(), "number": "1", "balance": 7, "opened_at": moment},
        {"request_key": "k", "owner": owner, "number": 1, "balance": 7, "opened_at": "2027-01-01T13:30:00.250+01:30"},
        {"request_key": "k", "owner": owner, "number": 1, "balance": 7, "opened_at": "2027-01-01t12:00:00.250000z"},
        {
            "request_key": "k",
            "owner": owner,
            "number": 1,
            "balance": 7,
            "opened_at": moment.astimezone(timezone(timedelta(hours=-8))),
            "note": None,
        },
    ]
    answers = {without_replayed(ledger.raw("OpenAccount", **values)) for values in writings}
    assert len(answers) == 1
    [record] = ledger.check_log(owner)
    assert list(json.loads(record.input)) == sorted(["request_key", "owner", "number", "balance", "opened_at"])


def test_a_default_that_is_given_is_a_default_that_is_left_out(ledger: Place) -> None:
    first = ledger.raw("OpenAccount", **account("k"))
    for extra in ({"balance": 0}, {"balance": "0"}, {"note": None}, {"balance": 0, "note": None, "opened_at": None}):
        assert without_replayed(ledger.raw("OpenAccount", **account("k", **extra))) == without_replayed(first)
    assert json.loads(ledger.log()[0].input) == {"number": "1", "owner": str(ORGANIZATION), "request_key": "k"}


# --- errors are no outcomes -----------------------------------------------------------------------------------------


def test_an_error_leaves_no_record_and_its_key_free(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open", balance=U64_MAX))
    ledger.command("OpenAccount", **account("open 2", 2, balance=1))
    key = UUID(int=1)
    move = {"request_key": key, "owner": ORGANIZATION, "source": 2, "amount": 1}
    for name, values, code in (
        ("Deposit", account("free", amount=1), "RDB-E-ARITHMETIC"),
        ("Deposit", account("free", amount=-1), "RDB-E-INPUT"),
        ("Deposit", account("free"), "RDB-E-INPUT"),
        ("Deposit", account("free", amount=1, more=1), "RDB-E-INPUT"),
        ("Move", move | {"target": 2}, "RDB-E-ALIASED"),
        ("Move", move | {"target": 1}, "RDB-E-ARITHMETIC"),
        ("NoSuch", {}, "RDB-E-NOT-FOUND"),
    ):
        assert ledger.refused(name, **values).code == code
    assert len(ledger.check_log()) == 2
    assert ledger.command("Deposit", **account("free", 2, amount=5))["payload"] == {"balance": "6"}
    assert ledger.command("Move", **move, target=3)["outcome"] == "Missing"


@pytest.mark.parametrize("key", ["", None, "x" * 65, 1, "\0", "\ud800"])
def test_a_key_that_is_none_is_refused(ledger: Place, key: object) -> None:
    error = ledger.refused("OpenAccount", **account("", request_key=key))
    assert (error.code, error.path) == ("RDB-E-INPUT", "request_key")


def test_any_text_within_its_bound_is_a_key(ledger: Place) -> None:
    for number, key in enumerate(["x" * 64, " ", "ä" * 32, "a\nb", "../..", "\u2028", '"\\']):
        first = ledger.raw("OpenAccount", **account(key, number))
        assert ledger.raw("OpenAccount", **account(key, number)) == without_replayed(first) + b',"replayed":true}'
    assert len(ledger.check_log()) == 7


def test_a_refused_input_is_told_with_its_path_and_not_its_value(queue: Place) -> None:
    refused: list[tuple[dict[str, object], str]] = [
        ({"work_id": "hush-hush"}, "work_id"),
        ({"due_at": "hush-hush"}, "due_at"),
        ({"wrk_id": "hush-hush"}, "wrk_id"),
    ]
    for changes, path in refused:
        error = queue.refused("CreateWork", **(work("k") | changes))
        assert (error.code, error.path) == ("RDB-E-INPUT", path)
        assert "hush" not in json.dumps(error.to_json())
    assert "did you mean `work_id`?" in queue.refused("CreateWork", **work("k"), wrk_id=1).message


def test_a_misspelt_command_is_shown_to_an_operator(queue: Place) -> None:
    assert "did you mean `CreateWork`?" in queue.refused("CreateWrok", **work("k")).message


# --- sequences and times --------------------------------------------------------------------------------------------


def test_sequences_are_gapless_whatever_happens(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("a", balance=1))  # 1
    ledger.command("OpenAccount", **account("b"))  # 2: Exists
    ledger.command("OpenAccount", **account("a", balance=1))  # replayed
    ledger.refused("Deposit", **account("c", amount=U64_MAX))
    ledger.refused("OpenAccount", **account("a", balance=2))
    ledger.command("Look", owner=ORGANIZATION, number=1)
    ledger.command("Deposit", **account("c", amount=1))  # 3
    ledger.reopen()
    ledger.command("CloseAccount", **account("d"))  # 4
    outcomes = [record.outcome for record in ledger.check_log()]
    assert outcomes == ["Opened", "Exists", "Deposited", "ClosedAccount"]


def test_times_grow_in_a_partition_whatever_the_clock_does(ledger: Place) -> None:
    def commit(number: int, owner: UUID = ORGANIZATION) -> str:
        answer = ledger.command("OpenAccount", **account(f"k{number}", number, owner=owner))
        return str(answer["commit"]["time"])

    assert commit(1) == timestamp_text(START)
    assert commit(2) == timestamp_text(START + 1), "the clock stood still"
    ledger.now -= 3_600 * SECOND
    assert commit(3) == timestamp_text(START + 2), "the clock went back"
    ledger.reopen()
    assert commit(4) == timestamp_text(START + 3)
    assert commit(1, OTHER) == timestamp_text(START - 3_600 * SECOND), "a partition has its own times"
    ledger.now = START + SECOND
    assert commit(5) == timestamp_text(START + SECOND)
    ledger.check_log()


def test_a_lease_is_judged_by_the_sealed_time(queue: Place) -> None:
    queue.command("CreateWork", **work("k"))
    queue.command("ClaimWork", **claim("a", duration=10))
    expires = START + 1 + 10 * SECOND
    queue.now = expires - 2
    assert queue.command("ClaimWork", **claim("b", expected_revision=2))["outcome"] == "AlreadyClaimed"
    queue.now = expires - 3
    taken = queue.command("ClaimWork", **claim("c", expected_revision=2))
    assert taken["outcome"] == "AlreadyClaimed", "the partition's time was past the clock's already"
    taken = queue.command("ClaimWork", **claim("d", expected_revision=2))
    assert (taken["outcome"], taken["payload"]["work"]["lease_fence"]) == ("Claimed", "2")


# --- resolve, query, history ----------------------------------------------------------------------------------------


def test_resolve_gives_the_stored_answer_and_executes_nothing(queue: Place) -> None:
    created = queue.raw("CreateWork", **work("k"))
    named: dict[str, object] = {"organization_id": str(ORGANIZATION).upper(), "request_key": "k"}
    caller = queue.caller("WorkProducer")
    for values in (named, work("k"), work("k", due_at="2000-01-01T00:00:00Z")):
        found = queue.run(queue.database.resolve(caller, "CreateWork", values))
        assert found == without_replayed(created) + b',"replayed":true}'
    for absent in (named | {"request_key": "other"}, named | {"organization_id": OTHER}):
        error = queue.error_of(queue.database.resolve(caller, "CreateWork", absent))
        assert (error.code, error.facts.retryable) == ("RDB-E-ABSENT", True)
    assert queue.error_of(queue.database.resolve(caller, "ClaimWork", named)).code == "RDB-E-FORBIDDEN"
    for missing in ("organization_id", "request_key"):
        values = {name: value for name, value in named.items() if name != missing}
        error = queue.error_of(queue.database.resolve(caller, "CreateWork", values))
        assert (error.code, error.path) == ("RDB-E-INPUT", missing)
    assert len(queue.check_log()) == 1


def test_nothing_is_stored_of_a_command_without_a_key(ledger: Place) -> None:
    resolving = ledger.database.resolve(Caller("x", OPERATOR, "test"), "Look", {"owner": ORGANIZATION, "number": 1})
    error = ledger.error_of(resolving)
    assert error.code == "RDB-E-INPUT"
    assert "no idempotency key" in error.message


def test_a_query_sees_the_newest_commit_and_says_when(queue: Place) -> None:
    def due() -> tuple[int, str, str]:
        values = {"organization_id": ORGANIZATION}
        answer = json.loads(queue.run(queue.database.query(Caller("x", OPERATOR, "test"), "DueWork", values)))
        assert answer["outcome"] == "Due"
        return len(answer["payload"]["items"]), answer["as_of"]["time"], answer["as_of"]["sequence"]

    assert due() == (0, timestamp_text(START), "0")
    queue.together(*(("CreateWork", work(f"k{number}", number)) for number in range(3)))
    assert due() == (3, timestamp_text(START + 2), "3"), "never before the newest commit"
    queue.command("CreateWork", **work("later", 9, due_at="2027-01-15T08:00:10Z"))
    assert due()[0] == 3
    queue.now += 10 * SECOND
    assert due() == (4, timestamp_text(START + 10 * SECOND), "4")


def test_a_history_tells_who_did_what_and_shows_no_lease(queue: Place) -> None:
    worker = queue.caller("WorkScheduler", principal="worker")
    queue.command("CreateWork", **work("k"))
    queue.command("CreateWork", **work("k2", 2))
    queue.command("ClaimWork", worker, **claim("c"))
    queue.command("ClaimWork", worker, **claim("d", expected_revision=1))
    operator = Caller("x", OPERATOR, "test")
    key = (str(ORGANIZATION), UUID(int=1))
    entries = queue.run(queue.database.operations.history(operator, entity="WorkItem", key=key))
    assert queue.run(queue.database.operations.history(operator, entity="work_item", key=key)) == entries
    told = [(entry["sequence"], entry["command"], entry["outcome"], entry["revision"]) for entry in entries]
    assert told == [("1", "CreateWork", "Created", "1"), ("3", "ClaimWork", "Claimed", "2")]
    assert [entry["principal"] for entry in entries] == ["local:test", "worker"]
    changes = entries[1]["changes"]
    assert (changes["lease_owner"], changes["lease_fence"]) == ("[redacted]", "[redacted]")
    assert changes["lease_attempts"] == "1"
    for name, values, code in (
        ("WorkItme", key, "RDB-E-NOT-FOUND"),
        ("WorkItem", key[:1], "RDB-E-INPUT"),
        ("WorkItem", (key[0], "x"), "RDB-E-INPUT"),
        ("WorkItem", (key[0], UUID(int=3)), "RDB-E-NOT-FOUND"),
    ):
        assert queue.error_of(queue.database.operations.history(operator, entity=name, key=values)).code == code


def test_an_empty_database_says_what_to_do(empty: Place) -> None:
    error = empty.refused("CreateWork", **work("k"))
    assert error.code == "RDB-E-NOT-FOUND"
    assert "riffdb deploy" in error.message
    assert (
        empty.error_of(empty.database.operations.create(Caller("x", OPERATOR, "test"), operator=True)).code
        == error.code
    )


def test_what_was_written_is_there_after_reopening(ledger: Place) -> None:
    ledger.together(*(("OpenAccount", account(f"k{number}", number, balance=number)) for number in range(20)))
    before = ledger.check_log()
    ledger.reopen()
    assert ledger.check_log() == before
    assert ledger.database.contract.plan == ledger_plan()
    answer = ledger.run(ledger.database.query(Caller("x", OPERATOR, "test"), "Accounts", {"owner": ORGANIZATION}))
    assert [row["balance"] for row in json.loads(answer)["payload"]["accounts"]] == [str(n) for n in range(20)]
