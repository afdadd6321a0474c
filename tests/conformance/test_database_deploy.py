"""Contracts come and go over every store: what may follow what, and what becomes of requests on their way."""

import json
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.records import Batch, DeployedContract
from riffdb.database.admission import admit
from riffdb.database.layouts import table_name, tables
from riffdb.plan.identity import plan_hash
from riffdb.plan.plan import to_json
from tests.conformance.databases import (
    LOCAL,
    ORGANIZATION,
    Place,
    account,
    changed_ledger,
    ledger_plan,
    plan_of,
    queue_plan,
)

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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ((("Account", "Deposit_"),), "entity `Account` is gone"),
        ((("number: u64)", "number: i64)"), ("input number: u64", "input number: i64"),
          ("source: u64", "source: i64"), ("target: u64", "target: i64")), "the key of entity `Account` changed"),
        ((("optional<string<20>>", "optional<string<21>>"),), "field `note` of entity `Account` changed"),
        ((("field note: optional<string<20>>", "field note: optional<string<20>>\n    field more: u64 = 0"),),
         "field `more` of entity `Account` is new"),
        ((("{ Open, Closed }", "{ Closed, Open }"),), "variants of enum `Standing`"),
        ((("field note: optional<string<20>>",
           "field note: optional<string<20>>\n    index by_balance (owner, balance)"),),
         "index `by_balance` of entity `Account` is new"),
        ((("field note: optional<string<20>>",
           "field note: optional<string<20>>\n    computed twice: u64 = balance * 2"),),
         "computed field `twice` of entity `Account` is new"),
        ((("contract Ledger", "contract Books"),), "the database holds `ledger` (Ledger)"),
    ],
)  # fmt: skip
def test_a_contract_that_its_rows_do_not_fit_is_refused_whole(
    ledger: Place, changes: tuple[tuple[str, str], ...], reason: str
) -> None:
    ledger.command("OpenAccount", **account("open", balance=3))
    before = ledger.check_log(None)
    error = ledger.error_of(ledger.database.deploy(LOCAL, changed_ledger(SECOND_VERSION, *changes)))
    assert (error.code, error.facts.status, error.facts.exit) == ("RDB-E-APPROVAL", 409, 4)
    reasons = error.detail["changes"]
    assert isinstance(reasons, list)
    assert any(told.startswith(reason) for told in reasons)
    assert all(told in error.message for told in reasons)
    assert ledger.check_log(None) == before
    assert len(ledger.contracts()) == 1
    assert ledger.command("Deposit", **account("deposit", amount=1))["payload"] == {"balance": "4"}
    ledger.reopen()
    assert ledger.database.contract.plan == ledger_plan()


def test_another_application_is_refused(ledger: Place) -> None:
    error = ledger.error_of(ledger.database.deploy(LOCAL, queue_plan()))
    assert error.code == "RDB-E-APPROVAL"
    assert "`ledger` (Ledger)" in error.message


def test_no_entity_takes_the_table_of_another(empty: Place) -> None:
    def contract(*entities: str) -> str:
        declared = "".join(f"  entity {name} {{ key (owner: uuid) field n: u64 }}\n" for name in entities)
        return f"contract Tables version 1 {{\n{declared}}}\n"

    assert empty.deploy(plan_of(contract("Work_Item"), "tables")) == "created"
    error = empty.error_of(empty.database.deploy(LOCAL, plan_of(contract("Work_Item", "WorkItem"), "tables")))
    assert error.code == "RDB-E-APPROVAL"
    assert "the table `work_item` of entity `Work_Item` would go to another" in error.message
    assert empty.deploy(plan_of(contract("Work_Item", "Work_Item_"), "tables")) == "updated"


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
    assert (deployed, answer["outcome"]) == ("updated", "Opened")
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
        ("input balance: u64 = 0", "input balance: u64"),
        ("command Audit {", "command Check {"),
        ("command Audit, Look", "command Check, Look"),
    )
    deployed, ungranted, missing, gone = ledger.all_of(
        [
            database.deploy(LOCAL, changed),
            database.command(teller, "OpenAccount", account("a")),
            database.command(LOCAL, "OpenAccount", account("b")),
            database.command(LOCAL, "Audit", account("c")),
        ]
    )
    assert deployed == "updated"
    errors = [(error.code, error.path) for error in (ungranted, missing, gone) if isinstance(error, RiffError)]
    assert errors == [("RDB-E-FORBIDDEN", None), ("RDB-E-INPUT", "balance"), ("RDB-E-NOT-FOUND", None)]
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
    async def spoil() -> None:
        async with ledger.store.transaction() as transaction:
            entry = DeployedContract("ledger", 7, bytes(32), text, ledger.now)
            await transaction.write(Batch(contracts=[entry]))

    ledger.run(spoil())
    for attempt in (lambda: ledger.deploy(ledger_plan()), ledger.reopen):
        with pytest.raises(RiffError, match="version 7 of `ledger`, cannot be read") as caught:
            attempt()
        assert caught.value.code == "RDB-E-STORAGE"
