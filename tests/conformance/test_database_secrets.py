"""Secrets over every store: they reach their row and their place beside the record, and nothing else."""

import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest

from riffdb.core.records import SecretPart
from riffdb.plan import Plan
from tests.conformance.databases import KINDS, LOCAL, ORGANIZATION, Place, plan_of

SAFE = """
contract Safe version 1 {
  entity Account {
    key (organization_id: uuid, login: string<20>)
    field secret password: optional<string<40>>
    field secret pin: optional<u64>
    field changes: u64 = 0
  }
  event Changed { partition_by (organization_id) organization_id: uuid login: string<20> }
  command OpenAccount {
    input request_key: string<64>
    input key of Account
    input secret password: string<40>
    input secret pin: optional<u64>
    idempotency_key request_key
    create Account(organization_id, login) as account else Exists { account: account }
    set account.password = password
    set account.pin = pin
    emit Changed { organization_id: organization_id, login: login }
    return Opened { account: account }
  }
  command ChangePassword {
    input request_key: string<64>
    input key of Account
    input secret old: string<40>
    input secret new: string<40>
    idempotency_key request_key
    mutate Account(organization_id, login) as account else Missing {}
    require known: account.password == old else WrongPassword { account: account }
    set account.password = new
    set account.changes = account.changes + 1
    return Changed { account: account }
  }
  command Touch {
    input request_key: string<64>
    input key of Account
    idempotency_key request_key
    mutate Account(organization_id, login) as account else Missing {}
    set account.changes = account.changes + 1
    return Touched { account: account }
  }
  bulk command OpenAll {
    input request_key: string<64>
    input organization_id: uuid
    input logins: list<string<20>, 1..8>
    input secret password: string<40>
    idempotency_key request_key
    for login in logins {
      create Account(organization_id, login) as account else Exists {}
      set account.password = password
    }
    return OpenedAll {}
  }
  bulk command OpenOne {
    input request_key: string<64>
    input organization_id: uuid
    input secret passwords: list<string<40>, 1..8>
    input login: string<20>
    idempotency_key request_key
    mutate Account(organization_id, login) as account else Missing {}
    for password in passwords { set account.password = password }
    return OpenedAll {}
  }
}
query Accounts($organization_id: uuid) {
  many accounts from Account where organization_id == $organization_id order by login take 10
  return Accounts { accounts: accounts { login changes } }
}
"""
FIRST, SECOND, PIN = "correct horse", "battery staple", 9_081_726_354


@cache
def safe_plan() -> Plan:
    return plan_of(SAFE, "safe")


@pytest.fixture(params=KINDS)
def safe(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(request.param, tmp_path)
    place.deploy(safe_plan())
    yield place
    place.close()


def given(key: str, **more: object) -> dict[str, object]:
    return {"request_key": key, "organization_id": ORGANIZATION, "login": "ada"} | more


def secrets(safe: Place) -> list[SecretPart]:
    """The secret parts in order, after a look at whether the records have the hash of each."""
    partition = b"\x01" + ORGANIZATION.bytes
    records = safe.check_log()
    found = safe.read(lambda reader: reader.secrets(partition, [record.sequence for record in records]))
    for record in records:
        part = found.get(record.sequence)
        expected = (
            ""
            if part is None
            else sha256(part.salt + b"\0" + part.input.encode() + b"\0" + part.changes.encode()).hexdigest()
        )
        assert record.secret_hash == expected
    return [found[sequence] for sequence in sorted(found)]


def test_a_secret_is_in_its_row_and_beside_the_record_alone(safe: Place) -> None:
    answers = [
        safe.raw("OpenAccount", **given("open", password=FIRST, pin=PIN)),
        safe.raw("OpenAccount", **given("again", password=FIRST)),
        safe.raw("ChangePassword", **given("wrong", old=SECOND, new=FIRST)),
        safe.raw("ChangePassword", **given("change", old=FIRST, new=SECOND)),
        safe.raw("Touch", **given("touch")),
        safe.run(safe.database.query(LOCAL, "Accounts", {"organization_id": ORGANIZATION})),
    ]
    outcomes = [json.loads(answer)["outcome"] for answer in answers]
    assert outcomes == ["Opened", "Exists", "WrongPassword", "Changed", "Touched", "Accounts"]
    history = safe.run(safe.database.operations.history(LOCAL, entity="Account", key=(ORGANIZATION, "ada")))
    shown = [*answers, *(repr(record).encode() for record in safe.check_log()), repr(history).encode()]
    for text in shown:
        for secret in (FIRST, SECOND, str(PIN)):
            assert secret.encode() not in text
    first, again, wrong, change, touch = secrets(safe)
    assert first.input == f'{{"password":"{FIRST}","pin":"{PIN}"}}'
    assert first.changes == f'[{{"password":"{FIRST}","pin":"{PIN}"}}]'
    assert (again.input, again.changes) == (f'{{"password":"{FIRST}"}}', "[]")
    assert (wrong.input, wrong.changes) == (f'{{"new":"{FIRST}","old":"{SECOND}"}}', "[]")
    assert change.changes == f'[{{"password":"{SECOND}"}}]'
    assert (touch.input, touch.changes) == ("{}", "[{}]")
    assert len({part.salt for part in secrets(safe)}) == 5


def test_a_record_names_the_secret_fields_that_changed(safe: Place) -> None:
    safe.command("OpenAccount", **given("open", password=FIRST))
    safe.command("ChangePassword", **given("change", old=FIRST, new=SECOND))
    safe.command("Touch", **given("touch"))
    opened, changed, touched = [json.loads(record.changes)[0] for record in safe.check_log()]
    assert opened["secret"] == ["password", "pin"]
    assert opened["fields"] == {"organization_id": str(ORGANIZATION), "login": "ada", "changes": "0"}
    assert (changed["secret"], changed["fields"]) == (["password"], {"changes": "1"})
    assert (touched["secret"], touched["fields"]) == ([], {"changes": "2"})
    history = safe.run(safe.database.operations.history(LOCAL, entity="Account", key=(ORGANIZATION, "ada")))
    assert [entry["changes"].get("password") for entry in history] == ["[redacted]", "[redacted]", None]


def test_the_recorded_input_has_no_secret_and_no_hash_of_one(safe: Place) -> None:
    safe.command("OpenAccount", **given("open", password=FIRST))
    [record] = safe.check_log()
    assert "password" not in record.input
    assert record.input_hash == sha256(record.input.encode()).digest()


def test_another_secret_is_another_input(safe: Place) -> None:
    values = given("open", password=FIRST, pin=PIN)
    first = safe.raw("OpenAccount", **values)
    assert safe.raw("OpenAccount", **values) == first.replace(b'"replayed":false', b'"replayed":true')
    for change in ({"password": SECOND}, {"pin": 1}, {"pin": None}):
        error = safe.refused("OpenAccount", **values | change)
        assert error.code == "RDB-E-IDEMPOTENCY-REUSED"
        assert FIRST not in repr(error.to_json())
    safe.reopen()
    assert safe.refused("OpenAccount", **values | {"pin": 2}).code == "RDB-E-IDEMPOTENCY-REUSED"
    assert json.loads(safe.raw("OpenAccount", **values))["replayed"]


def test_another_secret_is_another_input_within_one_batch(safe: Place) -> None:
    same, other, again = safe.together(
        ("OpenAccount", given("open", password=FIRST)),
        ("OpenAccount", given("open", password=SECOND)),
        ("OpenAccount", given("open", password=FIRST)),
    )
    assert (same["replayed"], other.code, again["replayed"]) == (False, "RDB-E-IDEMPOTENCY-REUSED", True)


def test_secrets_of_a_bulk_command_are_kept_apart_item_by_item(safe: Place) -> None:
    safe.command("OpenAll", request_key="all", organization_id=ORGANIZATION, logins=["ada", "bob"], password=FIRST)
    assert safe.command("OpenOne", **given("one", passwords=["one", "two"]))["outcome"] == "OpenedAll"
    every, one = secrets(safe)
    assert json.loads(every.changes) == [{"password": FIRST, "pin": None}] * 2
    assert json.loads(one.input) == {"passwords": ["one", "two"]}
    assert json.loads(one.changes) == [{"password": "two"}]


def test_a_refused_secret_is_not_repeated(safe: Place) -> None:
    error = safe.refused("OpenAccount", **given("open", password=FIRST * 9))
    assert (error.code, error.path) == ("RDB-E-INPUT", "password")
    assert FIRST not in repr(error.to_json())
    assert safe.refused("OpenAccount", **given("open", password=UUID(int=1))).path == "password"


def changed_safe(*changes: tuple[str, str]) -> Plan:
    """The plan of `SAFE` with each text replaced by another, wherever it stands."""
    text = SAFE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return plan_of(text, "safe")


PUBLIC_PIN = (
    ("input secret pin: optional<u64>", "input pin: optional<u64>"),
    ("field secret pin: optional<u64>", "field pin: optional<u64>"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_sent_before_an_input_became_secret_is_settled_by_sending_it_again(kind: str, tmp_path: Path) -> None:
    place = Place(kind, tmp_path)
    place.deploy(changed_safe(*PUBLIC_PIN))
    values = given("open", password=FIRST, pin=PIN)
    first = place.raw("OpenAccount", **values)
    place.deploy(safe_plan())
    assert place.raw("OpenAccount", **values) == first.replace(b'"replayed":false', b'"replayed":true')
    for change in ({"password": SECOND}, {"pin": 1}, {"pin": None}):
        assert place.refused("OpenAccount", **values | change).code == "RDB-E-IDEMPOTENCY-REUSED"
    place.close()


def test_what_was_sent_before_an_input_became_public_is_settled_by_sending_it_again(safe: Place) -> None:
    old, new = "input secret password: string<40>\n    idempotency", "input password: string<40>\n    idempotency"
    values = {"request_key": "all", "organization_id": ORGANIZATION, "logins": ["ada"]}
    first = safe.raw("OpenAll", **values, password=FIRST)
    kept = ("set account.password = password\n    }\n    return", "set account.changes = 1\n    }\n    return")
    safe.deploy(changed_safe((old, new), kept))
    assert safe.raw("OpenAll", **values, password=FIRST) == first.replace(b'"replayed":false', b'"replayed":true')
    assert safe.refused("OpenAll", **values, password=SECOND).code == "RDB-E-IDEMPOTENCY-REUSED"


def test_a_secret_input_that_is_new_is_another_input(safe: Place) -> None:
    safe.command("Touch", **given("touch"))
    old = "command Touch {\n    input request_key: string<64>\n"
    safe.deploy(changed_safe((old, f"{old}    input secret hint: optional<string<40>>\n")))
    assert safe.refused("Touch", **given("touch", hint=FIRST)).code == "RDB-E-IDEMPOTENCY-REUSED"
    assert safe.command("Touch", **given("touch"))["replayed"]
