"""How long request keys are remembered: to the microsecond, by the time of the database, as operators set it."""

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from riffdb.core.errors import RiffError
from riffdb.storage.sqlite.connections import checksum_vfs
from tests.conformance.databases import KINDS, LOCAL, ORGANIZATION, SECOND, Place, account, ledger_plan

DAY = 86_400
FORGETTING = 30 * DAY * SECOND


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A ledger with one account."""
    found = Place(request.param, tmp_path)
    found.deploy(ledger_plan())
    found.command("OpenAccount", **account("open", balance=5))
    yield found
    found.verify()
    found.close()


def deposit(place: Place, amount: int = 1) -> object:
    return place.command("Deposit", **account("pay", amount=amount))


def resolved(place: Place) -> object:
    try:
        return json.loads(
            place.run(place.database.resolve(LOCAL, "Deposit", {"owner": ORGANIZATION, "request_key": "pay"}))
        )
    except RiffError as error:
        return error.code


def keys_seconds(place: Place, **wanted: int) -> object:
    return place.run(place.database.operations.retention(LOCAL, **wanted))["keys_seconds"]


def test_a_key_is_new_again_exactly_when_its_record_is_older_than_keys_are_remembered(place: Place) -> None:
    first = place.command("Deposit", **account("pay", amount=1))
    recorded = place.log()[-1].time
    place.now = recorded + FORGETTING
    assert deposit(place) == first | {"replayed": True} == resolved(place)
    assert place.refused("Deposit", **account("pay", amount=2)).code == "RDB-E-IDEMPOTENCY-REUSED"
    place.now += 1
    assert resolved(place) == "RDB-E-ABSENT"
    second = place.command("Deposit", **account("pay", amount=2))
    assert (second["payload"], second["replayed"]) == ({"balance": "8"}, False)
    assert deposit(place, 2) == second | {"replayed": True} == resolved(place)
    place.reopen()
    assert deposit(place, 2) == second | {"replayed": True} == resolved(place)
    assert place.refused("Deposit", **account("pay", amount=1)).code == "RDB-E-IDEMPOTENCY-REUSED"


def test_the_time_that_counts_is_the_one_that_the_command_would_have(place: Place) -> None:
    deposit(place)
    recorded = place.log()[-1].time
    place.now = recorded + FORGETTING
    for number in range(2):  # in one batch each command is a microsecond later than the one before
        place.command("Look", owner=ORGANIZATION, number=1)
        assert place.command("Audit", **account(f"audit {number}"))["outcome"] == "Audited"
    assert place.command("Deposit", **account("pay", amount=7))["payload"] == {"balance": "13"}


def test_two_uses_of_a_forgotten_key_in_one_batch_are_one(place: Place) -> None:
    deposit(place)
    place.now += FORGETTING + SECOND
    values = account("pay", amount=7)
    first, second = place.together(("Deposit", values), ("Deposit", values))
    assert (first["replayed"], second["replayed"]) == (False, True)
    assert first["payload"] == second["payload"] == {"balance": "13"}


def test_operators_set_how_long(place: Place) -> None:
    deposit(place)
    recorded = place.log()[-1].time
    assert keys_seconds(place) == 30 * DAY
    assert keys_seconds(place, keys_seconds=3_600) == 3_600
    assert keys_seconds(place, keys_seconds=7_200) == 7_200
    act = place.log(None)[-1]
    assert (act.command, act.input, act.principal) == ("retention.keys", '{"keys_seconds":7200}', "local:test")
    place.reopen()
    assert keys_seconds(place) == 7_200
    place.now = recorded + 7_200 * SECOND
    assert resolved(place) != "RDB-E-ABSENT"
    place.now += 1
    assert resolved(place) == "RDB-E-ABSENT"
    place.run(place.database.operations.retention(LOCAL, keys_seconds=30 * DAY))
    assert resolved(place) != "RDB-E-ABSENT"


@pytest.mark.parametrize("value", [0, 3_599, 3_650 * DAY + 1, "3600", 3600.0, True])
def test_what_is_no_such_time_is_refused(place: Place, value: object) -> None:
    refused = place.error_of(place.database.operations.retention(LOCAL, keys_seconds=value))
    assert (refused.code, refused.path) == ("RDB-E-INPUT", "keys_seconds")


def test_only_unrestricted_operators_may(place: Place) -> None:
    callers = [place.caller("Teller"), place.caller(partition=str(ORGANIZATION))]
    for caller in callers:
        for seconds in (None, 7_200):
            refused = place.error_of(place.database.operations.retention(caller, keys_seconds=seconds))
            assert refused.code == "RDB-E-FORBIDDEN"


def test_a_setting_that_somebody_else_changed_is_found(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    place.deploy(ledger_plan())
    place.run(place.database.operations.retention(LOCAL, keys_seconds=7_200))
    place.verify()
    place.run(place.store.close())
    connection = apsw.Connection(str(place.path), vfs=checksum_vfs())
    connection.execute("UPDATE riffdb__settings SET value = x'0000000000000E10'")
    connection.close()
    place.reopen()
    found = place.run(place.database.operations.verify(LOCAL))
    assert found["first_difference"] == "the settings are not those that operators set"
    place.close()
