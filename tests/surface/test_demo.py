"""`make demo` tells its story to the end, and a story that is not true ends it.

The demo runs once, as a newcomer runs it. Then its own check reads doctored copies of the database that it left: for
each claim one copy in which the claim is a lie.
"""

import os
import re
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from tests.surface.processes import ROOT
from tools import demo

STORY = (
    r"WorkQueue version 1 is proven sound and deployed on work\.db",
    r"three tokens made: .*",
    r"riffdb serve listens on http://127\.0\.0\.1:\d+",
    r"200 items enqueued over HTTP",
    r"3 worker processes started",
    r"worker 1 held item …[0-9a-f]{6} with fence 1 and was killed \(SIGKILL\) at work on it",
    r"the others go on; .*",
    r"all work is done; now what the database says:",
    r"  ✓ 200 of 200 items are complete",
    r"  ✓ 200 commits of CompleteWork for 200 items: each exactly once",
    r"  ✓ the dead worker's item was taken over with fence 2, higher than its 1",
    r"  ✓ the item whose handler failed twice went through FailWork 2 times and succeeded at attempt 3",
    r"  ✓ its late CompleteWork with the old revision is refused: WorkStale",
    r"  ✓ and with the newest revision but its old token: WrongHolder",
    r"who did what to the item that was taken over .*",
    r"  ✓ told to stop, the workers and the server ended cleanly",
    r"done\. Look around: sqlite3 \.demo/work\.db; read on: docs/tutorial/first-application\.md",
)
HISTORY = [
    "CreateWork -> Created",
    *["ClaimWork -> Claimed"] * 2,
    "CompleteWork -> Completed",
    "ReleaseWork -> Released",
]


@dataclass(frozen=True)
class Told:
    """What the demo printed, and a copy of the database that it left."""

    lines: list[str]
    database: Path

    def ids(self, sql: str) -> list[UUID]:
        """The ids that SQL finds in the database."""
        with closing(sqlite3.connect(self.database)) as connection:
            return [UUID(found) for (found,) in connection.execute(sql)]

    @property
    def items(self) -> list[UUID]:
        """All items."""
        return self.ids("SELECT lower(hex(work_id)) FROM work_item")

    @property
    def flaky(self) -> UUID:
        """The item whose handler failed."""
        (flaky,) = self.ids(
            "SELECT DISTINCT json_extract(input, '$.work_id') FROM riffdb_commit WHERE command = 'FailWork'"
        )
        return flaky

    @property
    def victim(self) -> UUID:
        """The item that the dead worker held, which the story names by the end of its id."""
        told = re.search(r"held item …(\S+) ", "\n".join(self.lines))
        assert told
        (victim,) = [item for item in self.items if str(item).endswith(told[1])]
        return victim


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "demo"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = tmp_path_factory.mktemp("demo") / "work.db"
    copy(ROOT / ".demo" / "work.db", kept)
    return Told(done.stdout.splitlines(), kept)


def copy(database: Path, to: Path) -> None:
    """Copy what a database holds, wherever SQLite keeps it."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def test_the_demo_tells_its_story(told: Told) -> None:
    story = [line for line in told.lines if line.startswith("[")]
    assert len(story) == len(STORY), story
    for line, expected in zip(story, STORY, strict=True):
        assert re.fullmatch(rf"\[ *\d+\.\d s\] {expected}", line), line
    history = [line.strip() for line in told.lines if not line.startswith("[")]
    assert [re.sub(r"^\S+  revision \d+  ", "", line) for line in history] == HISTORY


LIES = {
    "199 of 200 items are complete": "UPDATE work_item SET state = 1 WHERE work_id = :other",
    "201 commits of CompleteWork for 200 items": """
        INSERT INTO riffdb_commit SELECT NULL, partition, sequence + 100000, time, command, 'another', input_hash,
          input, sealed, secret_hash, outcome, answer, principal, capability, role, ingress, contract_version,
          plan_hash, changes, events, chain
        FROM riffdb_commit WHERE command = 'CompleteWork' AND outcome = 'Completed' LIMIT 1""",
    "199 commits of CompleteWork for 199 items": """
        UPDATE riffdb_commit SET outcome = 'WorkStale' WHERE command = 'CompleteWork' AND outcome = 'Completed'
          AND json_extract(input, '$.work_id') = :other_text""",
    "taken over with fence 1": "UPDATE work_item SET lease_fence = 1 WHERE work_id = :victim",
    "went through FailWork 0 times": "UPDATE riffdb_commit SET outcome = 'Buried' WHERE command = 'FailWork'",
    "succeeded at attempt 1": "UPDATE work_item SET lease_attempts = 1 WHERE work_id = :flaky",
}


def checked(told: Told, database: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the demo when all that it plays is the check of its figures, against that database."""
    monkeypatch.setattr(demo, "FILE", database)
    monkeypatch.setattr(demo, "play", lambda story: demo.check_figures(story, told.items, told.victim, told.flaky))
    return demo.main()


def test_the_check_of_the_figures_finds_the_database_of_the_demo_true(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checked(told, told.database, monkeypatch) == 0


@pytest.mark.parametrize("untrue", LIES)
def test_a_lie_in_the_figures_ends_the_demo(
    told: Told, untrue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctored = tmp_path / "work.db"
    copy(told.database, doctored)
    victim, flaky = told.victim, told.flaky
    other = next(item for item in told.items if item not in (victim, flaky))
    values = {"other": other.bytes, "other_text": str(other), "victim": victim.bytes, "flaky": flaky.bytes}
    with closing(sqlite3.connect(doctored)) as connection, connection:
        assert connection.execute(LIES[untrue], values).rowcount > 0
    assert checked(told, doctored, monkeypatch) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "✗ not true: " in last
    assert untrue in last
