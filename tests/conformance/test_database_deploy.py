"""Contracts come and go over every store: what may follow what, and what becomes of requests on their way."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.records import Batch, DeployedContract
from riffdb.database.admission import admit
from riffdb.database.layouts import table_name, tables
from riffdb.plan.changes import COMPATIBLE, RULES, change_of
from riffdb.plan.identity import plan_hash
from riffdb.plan.plan import to_json
from tests.conformance.databases import (
    KINDS,
    LOCAL,
    ORGANIZATION,
    OTHER,
    QUEUE,
    SECOND,
    Place,
    account,
    changed_ledger,
    claim,
    ledger_plan,
    plan_of,
    queue_plan,
    work,
)
from tests.conformance.streams import Consumer

SECOND_VERSION = ("version 1", "version 2")
GROWN = (SECOND_VERSION, ("{ Open, Closed }", "{ Open, Closed, Frozen }"))
FREEZING = (
    *GROWN,
    (
        "  command Look {",
        """  command Freeze {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    mutate Account(owner, number) as account else Missing {}
    set account.standing = Standing.Frozen
    return FrozenAccount { account: account }
  }
  command Look {""",
    ),
)


def test_a_first_contract_is_created_and_recorded(empty: Place) -> None:
    before = empty.database.has_contract
    assert empty.deploy(ledger_plan()) == "created"
    assert (before, empty.database.has_contract) == (False, True)
    [record] = empty.check_log(None)
    assert (record.command, record.outcome, record.key, record.principal) == ("deploy", "created", None, "local:test")
    assert (record.contract_version, record.plan_hash) == (1, plan_hash(ledger_plan()))
    assert json.loads(record.input) == {"application": "ledger", "contract": "Ledger", "version": 1}
    [deployed] = empty.contracts()
    assert (deployed.application, deployed.version, deployed.time) == ("ledger", 1, record.time)
    assert (deployed.plan, deployed.plan_hash) == (to_json(ledger_plan()), plan_hash(ledger_plan()))


def test_the_same_contract_again_changes_nothing(ledger: Place) -> None:
    before = ledger.check_log(None)
    serving = ledger.database.contract
    assert ledger.deploy(ledger_plan()) == "unchanged"
    ledger.reopen()
    assert ledger.deploy(ledger_plan()) == "unchanged"
    assert ledger.check_log(None) == before
    assert serving.plan == ledger.database.contract.plan


def test_a_changed_contract_is_updated(ledger: Place) -> None:
    commented = changed_ledger(("  command Look {", "  /// Looks.\n  command Look {"))
    assert ledger.deploy(commented) == "updated", "comments reach clients, so they are kept"
    assert plan_hash(commented) == plan_hash(ledger_plan())
    assert ledger.deploy(changed_ledger(SECOND_VERSION)) == "updated"
    assert ledger.deploy(ledger_plan()) == "updated", "back again"
    assert [record.outcome for record in ledger.check_log(None)] == ["created", "updated", "updated", "updated"]
    assert len(ledger.contracts()) == 4
    ledger.reopen()
    assert ledger.database.contract.plan == ledger_plan()


def test_an_enum_may_grow_over_its_rows(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open", balance=5))
    assert ledger.deploy(changed_ledger(*FREEZING)) == "updated"
    assert ledger.command("Freeze", **account("freeze"))["payload"]["account"]["standing"] == "Frozen"
    assert ledger.command("Deposit", **account("deposit", amount=1))["outcome"] == "NotOpen"
    ledger.reopen()
    seen = ledger.command("Look", owner=ORGANIZATION, number=1)["payload"]["account"]
    assert (seen["standing"], seen["balance"], seen["revision"]) == ("Frozen", "5", "2")
    assert [record.contract_version for record in ledger.check_log()] == [1, 2, 2]


def test_an_entity_may_be_added(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open"))
    grown = changed_ledger(
        (
            "  event Moved",
            "  entity Branch { key (owner: uuid, code: string<8>) field name: string<20> }\n  event Moved",
        ),
        (
            "  command Look {",
            """  command OpenBranch {
    input request_key: string<64>
    input owner: uuid
    input code: string<8>
    idempotency_key request_key
    create Branch(owner, code) as branch else Exists {}
    set branch.name = code
    return OpenedBranch { branch: branch }
  }
  command Look {""",
        ),
    )
    assert ledger.deploy(grown) == "updated"
    assert ledger.command("OpenBranch", request_key="b", owner=ORGANIZATION, code="x")["outcome"] == "OpenedBranch"
    ledger.reopen()
    assert ledger.command("OpenBranch", request_key="c", owner=ORGANIZATION, code="x")["outcome"] == "Exists"
    assert ledger.command("Look", owner=ORGANIZATION, number=1)["outcome"] == "Seen"


NOTE = "field note: optional<string<20>>"
REFUSED = {
    "entity-removed": (("Account", "Deposit_"),),
    "key-changed": (
        ("number: u64)", "number: i64)"),
        ("input number: u64", "input number: i64"),
        ("source: u64", "source: i64"),
        ("target: u64", "target: i64"),
    ),
    "field-nullable": (
        ("field balance: u64", "field balance: optional<u64>"),
        ("NotOpen { balance: account.balance }", "NotOpen { balance: coalesce(account.balance, 0) }"),
        ("= account.balance + amount", "= coalesce(account.balance, 0) + amount"),
        ("{ balance: account.balance }", "{ balance: coalesce(account.balance, 0) }"),
        ("from_account.balance >= amount", "coalesce(from_account.balance, 0) >= amount"),
        ("from_account.balance - amount", "coalesce(from_account.balance, 0) - amount"),
        ("to_account.balance + amount", "coalesce(to_account.balance, 0) + amount"),
    ),
    "variant-changed": (("{ Open, Closed }", "{ Closed, Open }"),),
    "index-added": ((NOTE, f"{NOTE}\n    index by_balance (owner, balance)"),),
    "computed-added": ((NOTE, f"{NOTE}\n    computed twice: u64 = balance * 2"),),
    "field-renamed": (
        (NOTE, "field remark: optional<string<20>> was note"),
        ("account.note", "account.remark"),
        ("standing note revision", "standing remark revision"),
    ),
    "field-retyped": (
        (NOTE, "field note: optional<string<19>>"),
        ("input note: optional<string<20>>", "input note: optional<string<19>>"),
    ),
    "input-default": (("input balance: u64 = 0", "input balance: u64"),),
    "contract-other": (("contract Ledger", "contract Books"),),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_contract_that_its_rows_do_not_fit_is_refused_whole(ledger: Place, kind: str) -> None:
    ledger.command("OpenAccount", **account("open", balance=3))
    before = ledger.check_log(None)
    error = ledger.error_of(ledger.database.deploy(LOCAL, changed_ledger(SECOND_VERSION, *REFUSED[kind])))
    assert (error.code, error.facts.status, error.facts.exit) == ("RDB-E-APPROVAL", 409, 4)
    told = error.detail["changes"]
    assert isinstance(told, list)
    changes = [change_of(change) for change in told]
    [refused] = [change for change in changes if change.kind == kind]
    assert refused.verdict == RULES[kind].verdict != COMPATIBLE
    assert all((change.what in error.message) == (change.verdict != COMPATIBLE) for change in changes)
    assert ledger.check_log(None) == before
    assert len(ledger.contracts()) == 1
    assert ledger.command("Deposit", **account("deposit", amount=1))["payload"] == {"balance": "4"}
    ledger.reopen()
    assert ledger.database.contract.plan == ledger_plan()


LIMIT = "    key (owner: uuid, number: u64)\n"
STANDING = "    set account.standing = Standing.Open\n"
LATER = "    field later: Standing = Standing.Closed\n    field mark: optional<bytes<4>>"
GROWN_ENTITY = (
    SECOND_VERSION,
    (LIMIT, f"{LIMIT}    field limit: u64 = 7\n"),
    ("    field standing: Standing\n", ""),
    (NOTE, f"{NOTE}\n    field standing: Standing\n{LATER}"),
    (STANDING, f"{STANDING}    set account.limit = 9\n"),
)


def test_older_rows_read_the_default_of_a_new_field_or_null(ledger: Place) -> None:
    opened = ledger.raw("OpenAccount", **account("open", balance=5))
    ledger.command("OpenAccount", **account("second", 2, balance=6))
    assert ledger.deploy(changed_ledger(*GROWN_ENTITY)) == "updated"

    def seen(number: int) -> dict[str, str]:
        account_seen = ledger.command("Look", owner=ORGANIZATION, number=number)["payload"]["account"]
        return {name: account_seen[name] for name in ("balance", "limit", "standing", "later", "mark", "revision")}

    older = {"balance": "5", "limit": "7", "standing": "Open", "later": "Closed", "mark": None, "revision": "1"}
    assert seen(1) == older
    ledger.reopen()
    assert seen(1) == older
    assert ledger.command("Deposit", **account("deposit", amount=1))["payload"] == {"balance": "6"}
    assert seen(1) == {**older, "balance": "6", "revision": "2"}
    ledger.command("OpenAccount", **account("third", 3))
    assert seen(3) == {**older, "balance": "0", "limit": "9"}
    assert ledger.deploy(changed_ledger(*GROWN_ENTITY, ("limit: u64 = 7", "limit: u64 = 8"))) == "updated"
    assert [seen(number)["limit"] for number in (1, 2, 3)] == ["7", "7", "9"], "a default is for creates"
    assert ledger.raw("OpenAccount", **account("open", balance=5)) == replayed(opened)
    assert ledger.check_log()


WIDER = (
    *GROWN,
    ("    input note: optional<string<20>>", '    input why: string<9> = ""\n    input note: optional<string<30>>'),
    (NOTE, "field note: optional<string<30>>\n    field mark: u64 = 3"),
    ("    return Opened { account: account }", "    return Opened { account: account, number: number }"),
)


@pytest.mark.parametrize("changes", [GROWN, FREEZING, GROWN_ENTITY, WIDER])
def test_a_stored_answer_survives_an_upgrade(ledger: Place, changes: tuple[tuple[str, str], ...]) -> None:
    requests = {"open": account("open", balance=5), "again": account("again"), "note": account("note", 4, note="x")}
    answers = {key: ledger.raw("OpenAccount", **request) for key, request in requests.items()}
    assert [json.loads(answer)["outcome"] for answer in answers.values()] == ["Opened", "Exists", "Opened"]
    assert ledger.deploy(changed_ledger(*changes)) == "updated"
    for _ in range(2):
        for key, request in requests.items():
            assert ledger.raw("OpenAccount", **request) == replayed(answers[key])
        ledger.reopen()
    assert len(ledger.check_log()) == 3


def test_an_input_more_keeps_old_keys_and_tells_new_inputs_apart(ledger: Place) -> None:
    answer = ledger.raw("OpenAccount", **account("open"))
    ledger.deploy(changed_ledger(*WIDER))
    assert ledger.raw("OpenAccount", **account("open", why="", note=None)) == replayed(answer)
    assert ledger.refused("OpenAccount", **account("open", why="x")).code == "RDB-E-IDEMPOTENCY-REUSED"


def replayed(answer: bytes) -> bytes:
    """The answer as it is given again."""
    return answer.replace(b'"replayed":false', b'"replayed":true')


EMPTY_ENTITY = (
    (
        NOTE,
        f"{NOTE}\n    field weight: decimal<9,2>\n"
        "    computed twice: u64 = balance * 2\n    index by_twice (owner, twice)",
    ),
    ("    set account.note = note\n", "    set account.note = note\n    set account.weight = 1.25\n"),
)


def test_what_needs_rows_to_be_written_is_free_where_there_are_none(ledger: Place) -> None:
    deployed = ledger.run(ledger.database.deploy(LOCAL, changed_ledger(SECOND_VERSION, *EMPTY_ENTITY)))
    kinds = {change.kind: (change.verdict, change.what) for change in deployed.changes}
    assert set(kinds) == {"field-required", "computed-added", "index-added", "command-does"}
    assert all(verdict == COMPATIBLE for verdict, _ in kinds.values())
    assert kinds["index-added"][1] == "index `by_twice` of entity `Account` is new; `Account` has no rows"
    opened = ledger.command("OpenAccount", **account("open", balance=5))["payload"]["account"]
    assert (opened["twice"], opened["weight"]) == ("10", "1.25")
    ledger.reopen()
    error = ledger.error_of(
        ledger.database.deploy(LOCAL, changed_ledger(SECOND_VERSION, *EMPTY_ENTITY, ("* 2", "* 3")))
    )
    assert error.code == "RDB-E-APPROVAL"


def test_rows_that_were_deleted_are_no_rows(ledger: Place) -> None:
    ledger.command("OpenAccount", **account("open"))
    indexed = changed_ledger((NOTE, f"{NOTE}\n    index by_balance (owner, balance)"))
    assert ledger.error_of(ledger.database.deploy(LOCAL, indexed)).code == "RDB-E-APPROVAL"
    ledger.command("CloseAccount", **account("close"))
    assert ledger.deploy(indexed) == "updated"
    assert ledger.deploy(ledger_plan()) == "updated", "an index may go at any time"


def test_the_source_of_a_schedule_stays_while_a_lease_is_held(queue: Place) -> None:
    changed = plan_of((QUEUE / "work.riff").read_text("utf-8").replace("limit<100> = 32", "limit<100> = 33"), "queue")
    for number in range(1, 4):
        queue.command("CreateWork", **work(f"w{number}", number))
    queue.command("CreateWork", **work("other", organization_id=OTHER))
    queue.command("ClaimWork", **claim("c", organization_id=OTHER))
    error = queue.error_of(queue.database.deploy(LOCAL, changed))
    assert (error.code, "schedule `DueWorkItems` selects" in error.message) == ("RDB-E-APPROVAL", True)
    queue.now += 60 * SECOND  # it was claimed a microsecond after it had been created
    assert queue.error_of(queue.database.deploy(LOCAL, changed)).code == "RDB-E-APPROVAL"
    queue.now += 1
    assert queue.deploy(changed) == "updated", "nothing is held any more"


def test_the_source_of_a_schedule_stays_while_a_delivery_is_unsettled(empty: Place) -> None:
    text = (QUEUE.parent / "pipeline" / "pipeline.riff").read_text("utf-8")
    fields = "{ repository_id pipeline_id queued_at revision }"
    assert fields in text
    changed = plan_of(text.replace(fields, "{ pipeline_id repository_id queued_at revision }"), "pipeline")
    empty.deploy(plan_of(text, "pipeline"))
    for number in range(2):
        pipeline = {"repository_id": ORGANIZATION, "pipeline_id": UUID(int=number), "revision_hash": "cafe"}
        assert empty.command("QueuePipeline", request_key=f"q{number}", **pipeline)["outcome"] == "Queued"
    bystander, consumer = (Consumer(empty, name, "QueuedPipelines") for name in ("bystander", "RunPipelines"))
    bystander.params = consumer.params = {"repository_id": ORGANIZATION}
    bystander.next()
    (delivery,) = consumer.next()
    for verdict in ("leased", "put off"):
        error = empty.error_of(empty.database.deploy(LOCAL, changed))
        assert (error.code, "schedule `RunPipelines` selects" in error.message) == ("RDB-E-APPROVAL", True), verdict
        consumer.nack(delivery, 600)
    empty.now += 601 * SECOND
    (again,) = consumer.next()
    assert consumer.ack(again) == "Applied"
    assert empty.deploy(changed) == "updated", "the event that was never delivered is due to whoever comes"


LEASED = """
contract Leased version 1 {
  enum Stage { Open }
  entity Job {
    key (organization_id: uuid)
    field stage: Stage
    field owner: optional<uuid>
    field until: optional<timestamp>
    field fence: u64
  }
  workflow Life {
    entity Job
    state stage
    initial Open
    lease work { owner owner expires_at until fencing_token fence duration_seconds (5, 900) }
  }
  command Begin {
    input request_key: string<64>
    input organization_id: uuid
    idempotency_key request_key
    create Job(organization_id) as job else Exists {}
    set job.fence = 0
    return Begun {}
  }
  command End {
    input request_key: string<64>
    input organization_id: uuid
    input expected_revision: u64
    idempotency_key request_key
    delete Job(organization_id) as job else Missing {}
    lease unheld work on job revision expected_revision stale Stale {} unavailable Held {}
    return Ended {}
  }
}
"""
UNLEASED = re.sub(r"    lease (work|unheld) .*\n", "", LEASED).replace(
    "return Ended", "require q: expected_revision > 0 else Stale {}\n return Ended"
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_is_not_laid_again_over_rows_that_were_deleted_without_it(kind: str, tmp_path: Path) -> None:
    place = Place(kind, tmp_path)
    leased, unleased = plan_of(LEASED), plan_of(UNLEASED)
    for plan in (unleased, leased, unleased):
        assert place.deploy(plan) in ("created", "updated"), "there never was a row"
    place.command("Begin", request_key="b", organization_id=ORGANIZATION)
    place.command("End", request_key="e", organization_id=ORGANIZATION, expected_revision=1)
    error = place.error_of(place.database.deploy(LOCAL, leased))
    assert error.code == "RDB-E-APPROVAL"
    assert "lease `work`" in error.message
    place.close()


def test_another_application_is_refused(ledger: Place) -> None:
    error = ledger.error_of(ledger.database.deploy(LOCAL, queue_plan()))
    assert error.code == "RDB-E-APPROVAL"
    assert "`ledger` (Ledger)" in error.message


@pytest.mark.parametrize(
    ("entity", "table"),
    [
        ("WorkItem", "work_item"),
        ("HTTPRequest", "http_request"),
        ("A", "a"),
        ("Order2Line", "order2_line"),
        ("select", "select"),
        ("RiffdbCommit", "riffdb_commit_"),
        ("SqliteMaster", "sqlite_master_"),
    ],
)
def test_a_table_is_named_after_its_entity(entity: str, table: str) -> None:
    assert table_name(entity) == table


def test_columns_do_not_collide_with_what_every_row_has() -> None:
    plan = plan_of(
        "contract Tables version 1 { entity E { key (owner: uuid) field commit_sequence: u64 field Key: bool } }"
    )
    names = [column.name for column in tables(plan)["E"].columns]
    assert names == ["owner", "commit_sequence", "Key", "revision", "commit_sequence_"]


# --- requests on their way -------------------------------------------------------------------------------------------


def test_a_request_that_an_older_contract_admitted_is_admitted_again(ledger: Place) -> None:
    database = ledger.database
    deployed, answer = ledger.all_of(
        [
            database.deploy(LOCAL, changed_ledger(*GROWN, ("balance + amount", "balance + amount + amount"))),
            database.command(LOCAL, "OpenAccount", account("open", balance=1)),
        ]
    )
    assert ledger.batches[-2:] == [2, 1], "the command met the new contract in its first batch"
    assert (deployed.outcome, answer["outcome"]) == ("updated", "Opened")
    [record] = ledger.check_log()
    assert (record.contract_version, record.plan_hash) == (2, database.contract.hash)
    assert ledger.command("Deposit", **account("deposit", amount=1))["payload"] == {"balance": "3"}


def test_a_stale_request_does_nothing_by_itself(ledger: Place) -> None:
    request = admit(ledger.database.contract, LOCAL, "OpenAccount", account("open"))
    ledger.deploy(changed_ledger(SECOND_VERSION))
    ledger.run(ledger.database._door.submit(request))
    assert request.stale_contract
    assert (request.error, request.answer, ledger.log()) == (None, "", [])


def test_a_request_whose_command_went_or_changed_is_told_so(ledger: Place) -> None:
    database = ledger.database
    teller = ledger.caller("Teller")
    changed = changed_ledger(
        SECOND_VERSION,
        ("role Teller { query Accounts command OpenAccount, Deposit, Look }", "role Teller { query Accounts }"),
        ("    input number: u64\n    read", "    input number: u64\n    input why: u64\n    read"),
        ("command Audit {", "command Check {"),
        ("command Audit, Look", "command Check, Look"),
    )
    deployed, ungranted, missing, gone = ledger.all_of(
        [
            database.deploy(LOCAL, changed),
            database.command(teller, "OpenAccount", account("a")),
            database.command(LOCAL, "Look", {"owner": ORGANIZATION, "number": 1}),
            database.command(LOCAL, "Audit", account("c")),
        ]
    )
    assert deployed.outcome == "updated"
    errors = [(error.code, error.path) for error in (ungranted, missing, gone) if isinstance(error, RiffError)]
    assert errors == [("RDB-E-FORBIDDEN", None), ("RDB-E-INPUT", "why"), ("RDB-E-NOT-FOUND", None)]
    assert ledger.log() == []


def test_roles_take_effect_at_once(ledger: Place) -> None:
    auditor = ledger.caller("Auditor")
    ledger.command("OpenAccount", **account("open"))
    assert ledger.refused("Deposit", auditor, **account("d", amount=1)).code == "RDB-E-FORBIDDEN"
    ledger.deploy(changed_ledger(SECOND_VERSION, ("command Audit, Look }", "command Deposit }")))
    assert ledger.command("Deposit", auditor, **account("d", amount=1))["outcome"] == "Deposited"
    assert ledger.refused("Audit", auditor, **account("a")).code == "RDB-E-FORBIDDEN"


def test_a_refused_contract_harms_no_request_beside_it(ledger: Place) -> None:
    database = ledger.database
    move = {"request_key": UUID(int=1), "owner": ORGANIZATION, "source": 1, "target": 2, "amount": 0}
    opened, refused, moved = ledger.all_of(
        [
            database.command(LOCAL, "OpenAccount", account("a", 1)),
            database.deploy(LOCAL, queue_plan()),
            database.command(LOCAL, "Move", move),
        ]
    )
    assert ledger.batches[-1:] == [3]
    assert (opened["outcome"], refused.code, moved["outcome"]) == ("Opened", "RDB-E-APPROVAL", "Missing")


@pytest.mark.parametrize("text", ["", "{}", '{"application":"ledger","contract":"Ledger","version":"1"}', "[" * 9_000])
def test_a_contract_that_cannot_be_read_is_told(ledger: Place, text: str) -> None:
    ledger.is_tampered = True

    async def spoil() -> None:
        async with ledger.store.transaction() as transaction:
            entry = DeployedContract("ledger", 7, bytes(32), text, ledger.now)
            await transaction.write(Batch(contracts=[entry]))

    ledger.run(spoil())
    for attempt in (lambda: ledger.deploy(ledger_plan()), ledger.reopen):
        with pytest.raises(RiffError, match="version 7 of `ledger`, cannot be read") as caught:
            attempt()
        assert caught.value.code == "RDB-E-STORAGE"
