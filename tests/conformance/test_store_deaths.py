"""What was acknowledged survives a SIGKILL at any point, and the dead process holds nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.records import CommitRecord, Head
from riffdb.core.stepping import step
from riffdb.storage import open_store
from tests.conformance.committing import PARTITION
from tests.conformance.stores import head, record

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def committing(path: Path, count: int, failpoint: str | None = None) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | ({"RIFFDB_FAILPOINT": failpoint} if failpoint else {})
    command = [sys.executable, "-m", "tests.conformance.committing", str(path), str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def acknowledged(process: "subprocess.Popen[str]") -> list[int]:
    """The sequences that the process told of until it ended; one that lives ends when its work is done."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    return [int(line) for line in process.stdout.read().split() if line.isdigit()]


def kept(path: Path) -> tuple[list[CommitRecord], Head | None]:
    async def read() -> tuple[list[CommitRecord], Head | None]:
        store = await open_store(f"sqlite:{path}", create=False)
        async with store.snapshot() as reader:
            found = await reader.log(PARTITION, 0, 100_000), (await reader.heads([PARTITION])).get(PARTITION)
        await store.close()
        return found

    return step(read())


@pytest.mark.parametrize(("label", "kept_more"), [("commit.before", 0), ("commit.after", 1)])
@pytest.mark.parametrize("nth", [1, 7])
def test_a_kill_at_the_commit_loses_nothing_acknowledged(tmp_path: Path, label: str, kept_more: int, nth: int) -> None:
    path = tmp_path / "a.db"
    with committing(path, 20, f"{label}:kill:{nth}") as process:
        sequences = acknowledged(process)
        assert process.wait() == -signal.SIGKILL
    assert sequences == list(range(1, nth))
    count = len(sequences) + kept_more
    records = [record(PARTITION, sequence, f"k{sequence}") for sequence in range(1, count + 1)]
    assert kept(path) == (records, head(PARTITION, count) if count else None)


def test_a_kill_from_outside_in_the_stream_of_commits_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    total = 0
    for lines in (1, 40, 250):
        with committing(path, 1_000_000) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.kill()
            sequences = acknowledged(process)
            total = max(sequences, default=total + lines - 1)
        records, newest = kept(path)
        assert [entry.sequence for entry in records[:total]] == list(range(1, total + 1))
        assert len(records) - total in (0, 1)
        assert newest == (head(PARTITION, len(records)) if records else None)
        total = len(records)


@pytest.mark.parametrize("label", ["recover.before", "recover.after"])
def test_a_kill_in_recovery_leaves_a_file_that_opens(tmp_path: Path, label: str) -> None:
    path = tmp_path / "a.db"
    with committing(path, 3, "commit.after:kill:3") as process:
        process.wait()
    for _ in range(2):
        with committing(path, 1, f"{label}:kill") as process:
            assert acknowledged(process) == []
            assert process.wait() == -signal.SIGKILL
    assert [entry.sequence for entry in kept(path)[0]] == [1, 2, 3]


def test_a_second_process_is_told_the_pid_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with committing(path, 0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(RiffError) as caught:
            kept(path)
        assert caught.value.code == "RDB-E-LOCKED"
        assert caught.value.detail == {"pid": process.pid}
        assert f"is held by process {process.pid}; use --server" in caught.value.message
        process.kill()
        process.wait()
        assert kept(path) == ([], None)
