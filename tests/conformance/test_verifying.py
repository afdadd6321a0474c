"""Verify over SQLite files that somebody changed behind the database: each difference is found and named.

That nothing differs after what the other tests of this folder do is looked at when each of them ends.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
import pytest

from riffdb.storage.sqlite.connections import checksum_vfs
from tests.conformance.databases import LOCAL, ORGANIZATION, Place, plan_of
from tests.conformance.test_database_lives import JOBS, live
from tests.conformance.test_database_secrets import FIRST, SECOND, given, safe_plan


@pytest.fixture
def safe(tmp_path: Path) -> Iterator[Place]:
    """A file with accounts that have secrets, a tombstone and a capability."""
    place = Place("sqlite", tmp_path)
    place.deploy(safe_plan())
    place.command("OpenAccount", **given("open", password=FIRST, pin=1))
    place.command("ChangePassword", **given("change", old=FIRST, new=SECOND))
    place.command("OpenAccount", **given("other", password=FIRST) | {"login": "bob"})
    place.caller()
    yield place
    place.close()


def found(place: Place) -> Any:
    return place.run(place.database.operations.verify(LOCAL))


def tampered(place: Place, statement: str) -> Any:
    """What is found once the statement has changed the file, each page with its checksum."""
    place.run(place.store.close())
    connection = apsw.Connection(str(place.path), vfs=checksum_vfs())
    before = connection.total_changes()
    connection.execute(statement)
    assert connection.total_changes() > before
    connection.close()
    place.reopen()
    result = found(place)
    names = [path.name for path in place.path.parent.iterdir()]
    assert not any("scratch" in name for name in names), names
    return result


def test_what_agrees_is_counted(safe: Place) -> None:
    assert found(safe) == {"ok": True, "commits": 5, "rows": 2, "first_difference": None, "erased": 0, "trimmed": 0}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE account SET changes = 7 WHERE login = 'ada'", "`changes` in a row of `Account`, written by commit 2,"),
        ("UPDATE account SET password = 'guess me'", "`password` in a row of `Account`"),
        ("UPDATE account SET revision = 9", "`revision` in a row of `Account`"),
        ("UPDATE account SET commit_sequence = 1 WHERE login = 'ada'", "`commit_sequence` in a row of `Account`"),
        ("DELETE FROM account WHERE login = 'ada'", "a row of `Account`, written by commit 2, is missing"),
        (
            "INSERT INTO account SELECT organization_id, 'eve', password, pin, changes, revision, commit_sequence"
            " FROM account WHERE login = 'ada'",
            "a row of `Account`, written by commit 2, is there, and the log tells of none",
        ),
        (
            "UPDATE riffdb_commit SET outcome = 'WrongPassword' WHERE command = 'ChangePassword'",
            "commit 2 of partition",
        ),
        ("UPDATE riffdb_commit SET answer = answer || ' ' WHERE command = 'ChangePassword'", "commit 2 of partition"),
        ("UPDATE riffdb_commit SET principal = 'nobody' WHERE command = 'deploy'", "commit 1 of partition system"),
        ("UPDATE riffdb_commit SET \"key\" = 'k' WHERE command = 'ChangePassword'", "commit 2 of partition"),
        ("UPDATE riffdb_commit SET chain = zeroblob(32) WHERE sequence = 3", "commit 3 of partition"),
        ("DELETE FROM riffdb_commit WHERE command = 'ChangePassword'", "commit 3 of partition"),
        ("DELETE FROM riffdb_commit WHERE sequence = 3", "is not its newest commit, 2"),
        ("UPDATE riffdb_head SET time = time + 1", "is not its newest commit"),
        ("DELETE FROM riffdb_head WHERE \"partition\" <> x''", "of partitions that have no head"),
        ('UPDATE riffdb_secret SET input = \'{"password":"guess me"}\'', "the secret part of commit 1 of partition"),
        ("UPDATE riffdb_secret SET salt = zeroblob(32) WHERE sequence = 2", "the secret part of commit 2"),
        ("UPDATE riffdb_capability SET principal = 'mallory'", "is not as operators made and ended it"),
        ("UPDATE riffdb_capability SET token_hash = zeroblob(32)", "is not as operators made and ended it"),
        ("UPDATE riffdb_capability SET expires_at = 1", "is not as operators made and ended it"),
        ("DELETE FROM riffdb_capability", "is gone"),
        ("UPDATE riffdb_contract SET time = time + 1", "the deployed contracts are not those that operators deployed"),
        ("UPDATE riffdb_contract SET plan_hash = zeroblob(32)", "is not what its hash says"),
    ],
)
def test_what_was_changed_is_named(safe: Place, statement: str, words: str) -> None:
    result = tampered(safe, statement)
    assert (result["ok"], words in str(result["first_difference"])) == (False, True), result["first_difference"]
    assert "guess me" not in result["first_difference"] and SECOND not in result["first_difference"]


def test_a_secret_that_is_gone_is_passed_over_and_counted(safe: Place) -> None:
    result = tampered(safe, "DELETE FROM riffdb_secret WHERE sequence = 2")
    assert (result["ok"], result["erased"]) == (True, 1)
    result = tampered(safe, "DELETE FROM riffdb_secret")
    assert (result["ok"], result["erased"]) == (True, 4)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Place]:
    """A file with the tombstone of a job."""
    place = Place("sqlite", tmp_path)
    place.deploy(plan_of(JOBS, "jobs"))
    live(place, "1")
    yield place
    place.close()


@pytest.mark.parametrize("column", ["fence", "revision", "commit_sequence"])
def test_a_tombstone_is_compared(jobs: Place, column: str) -> None:
    assert found(jobs)["ok"]
    result = tampered(jobs, f"UPDATE job__deleted SET {column} = {column} + 1")
    assert f"`{column}` in a tombstone of `Job`, written by commit " in result["first_difference"]


@pytest.fixture
def trimmed(safe: Place) -> Place:
    """The accounts, when the commits that made them were trimmed, and one that came later."""
    safe.now += 31 * 86_400 * 1_000_000
    safe.command("OpenAccount", **given("third", password=FIRST) | {"login": "eve"})
    safe.run(safe.database.operations.retention(LOCAL, apply=True))
    return safe


def test_trimmed_commits_are_counted(trimmed: Place) -> None:
    assert found(trimmed) == {
        "ok": True,
        "commits": 4,
        "rows": 3,
        "first_difference": None,
        "erased": 0,
        "trimmed": 3,
    }


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE riffdb__base_rows SET told = replace(told, '\"1\"', '\"7\"')",
            "the rows that stand for the commits up to 3",
        ),
        ("UPDATE riffdb__base_rows SET commit_sequence = 3", "the rows that stand for the commits up to 3"),
        ("DELETE FROM riffdb__base_rows WHERE key LIKE '%bob%'", "the rows that stand for the commits up to 3"),
        ('UPDATE riffdb__base_rows SET secret = \'{"password":"guess me"}\'', "a secret of a row that commit "),
        ("UPDATE riffdb__base_rows SET secret_hash = 'x', salt = x''", "the rows that stand for the commits up to 3"),
        ("UPDATE riffdb__bases SET hash = zeroblob(32)", "the base of partition "),
        ("UPDATE riffdb__bases SET through = 2", "the base of partition "),
        ("UPDATE riffdb__bases SET chain = zeroblob(32)", "commit 4 of partition "),
        ("DELETE FROM riffdb__bases", "commit 4 of partition "),
        (
            "DELETE FROM riffdb__bases; DELETE FROM riffdb_head WHERE \"partition\" <> x'';"
            " DELETE FROM riffdb_commit WHERE \"partition\" <> x''; DELETE FROM account",
            f"the base of partition {ORGANIZATION} is gone",
        ),
        ("UPDATE account SET changes = 7 WHERE login = 'ada'", "`changes` in a row of `Account`, written by commit 2"),
        ("DELETE FROM account WHERE login = 'ada'", "a row of `Account`, written by commit 2, is missing"),
        ("UPDATE riffdb_commit SET principal = 'nobody' WHERE sequence = 4", "commit 4 of partition "),
        ("UPDATE riffdb_commit SET principal = 'x' WHERE command = 'retention.trim'", "of partition system"),
    ],
)
def test_a_base_is_compared_with_the_act_that_made_it(trimmed: Place, statement: str, words: str) -> None:
    result = tampered(trimmed, statement)
    assert (result["ok"], words in str(result["first_difference"])) == (False, True), result["first_difference"]
    assert "guess me" not in result["first_difference"]


def test_a_secret_of_a_base_that_is_gone_is_passed_over_and_counted(trimmed: Place) -> None:
    result = tampered(trimmed, "UPDATE riffdb__base_rows SET secret = '', salt = x'' WHERE key LIKE '%ada%'")
    assert (result["ok"], result["erased"]) == (True, 2)


def test_an_index_that_disagrees_with_its_table_is_named(safe: Place) -> None:
    """The entry of the index is changed on its page, and the page given its checksum."""
    safe.run(safe.store.close())
    connection = apsw.Connection(str(safe.path), vfs=checksum_vfs())
    connection.execute("PRAGMA writable_schema = ON")
    where = "type = 'index' AND name = 'riffdb_commit_sequence'"
    connection.execute(f"UPDATE sqlite_schema SET sql = replace(sql, 'sequence)', 'time)') WHERE {where}")
    connection.close()
    safe.reopen()
    assert "riffdb_commit_sequence" in found(safe)["first_difference"]


def test_every_partition_is_looked_at(safe: Place) -> None:
    for number in range(2, 6):
        safe.command("OpenAccount", **given("open", password=FIRST) | {"organization_id": UUID(int=number)})
    assert found(safe)["commits"] == 9
    place = '(SELECT max("partition") FROM riffdb_head)'
    result = tampered(safe, f"UPDATE riffdb_commit SET principal = 'nobody' WHERE \"partition\" = {place}")
    assert str(max(UUID(int=5), ORGANIZATION)) in result["first_difference"]
