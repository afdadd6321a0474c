"""`riffdb retention` as people run it: over files with old commits, killed at each commit of its own, by a server."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from tests.conformance.databases import ORGANIZATION, Place, account, ledger_plan
from tests.surface.processes import ROOT, Done, Process, run_riffdb

PAST = 1_760_000_000_000_000
"""In 2025, long before any clock that this runs by."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file with old commits in two partitions, three rows and a tombstone."""
    place = Place("sqlite", tmp_path)
    place.now = PAST
    place.deploy(ledger_plan())
    for number in (1, 2, 3):
        place.command("OpenAccount", **account(f"open {number}", number, balance=number))
    place.command("Deposit", **account("pay", 1, amount=1))
    place.command("CloseAccount", **account("close", 3))
    place.command("OpenAccount", **account("open", owner=UUID(int=7)))
    place.close()
    return place.path


def retention(path: Path, *options: str, failpoint: str = "") -> Done:
    variables = {"RIFFDB_FAILPOINT": failpoint} if failpoint else {}
    return run_riffdb("retention", *options, "--db", f"sqlite:{path}", cwd=ROOT, **variables)


def verified(path: Path) -> Done:
    return run_riffdb("verify", "--db", f"sqlite:{path}")


def test_a_run_without_apply_counts_and_one_with_it_trims(old: Path) -> None:
    counted, trimmed, again = retention(old), retention(old, "--apply"), retention(old, "--json")
    assert counted.stdout.splitlines()[1] == "6 commits of 2 partitions are older than 30 days and could be trimmed"
    assert counted.stderr == "nothing was changed; --apply trims them\n"
    assert trimmed.stdout.splitlines()[1] == "6 commits of 2 partitions were trimmed; 4 rows stand for them"
    assert again.json == {
        "keys_seconds": 2_592_000,
        "older_than_seconds": 2_592_000,
        "applied": False,
        "partitions": 0,
        "commits": 0,
        "held": 0,
        "rows": 0,
    }
    assert verified(old).stdout == "2 commits and 3 rows agree\n"


@pytest.mark.parametrize(
    ("options", "code"),
    [(("--older-than", "29d"), 1), (("--keys", "59m"), 1), (("--keys", "soon"), 2), (("--older-than", "-1d"), 2)],
)
def test_what_is_no_such_time_is_refused(old: Path, options: tuple[str, ...], code: int) -> None:
    done = retention(old, *options)
    assert (done.code, done.stdout) == (code, "")
    assert done.stderr.startswith("error[RDB-E-")


def test_a_kill_at_any_of_its_commits_leaves_a_file_that_agrees_and_can_be_trimmed(old: Path, tmp_path: Path) -> None:
    kills = 0
    while True:
        folder = tmp_path / str(kills)
        folder.mkdir()
        path = Path(shutil.copy(old, folder))
        done = retention(path, "--apply", failpoint=f"commit.before:kill:{kills + 1}")
        if done.code == 0:
            break
        kills += 1
        assert done.stderr.endswith(f"failpoint commit.before: kill at hit {kills}\n")
        assert verified(path).stdout.endswith(" and 3 rows agree\n")
        assert retention(path, "--apply").code == 0
        assert verified(path).stdout == "2 commits and 3 rows agree\n", f"after a kill at commit {kills}"
        assert [entry.name for entry in folder.iterdir() if "scratch" in entry.name] == []
    assert kills >= 5, "rows of two partitions, the act, the commits of two partitions"


def test_a_server_trims_and_goes_on(old: Path, tmp_path: Path) -> None:
    token = run_riffdb("capability", "create", "--operator", "--db", f"sqlite:{old}", "--json").json["token"]
    arguments = ("serve", "--db", f"sqlite:{old}", "--listen", "127.0.0.1:0")
    process = Process(tmp_path / "stderr.txt", arguments, tmp_path, {})
    try:
        url = process.line().rpartition(" ")[2]
        server = ("--server", url)
        trimmed = run_riffdb("retention", "--apply", "--json", *server, RIFFDB_TOKEN=token)
        row = run_riffdb("get", "Account", str(ORGANIZATION), "1", "--json", *server, RIFFDB_TOKEN=token)
        found = run_riffdb("verify", "--json", *server, RIFFDB_TOKEN=token)
        assert process.stop() == 0
    finally:
        process.end()
    assert (trimmed.json["applied"], trimmed.json["commits"], trimmed.json["rows"]) == (True, 6, 4)
    assert row.json["fields"]["balance"] == "2"
    assert (found.json["ok"], found.json["commits"]) == (True, 3)
