"""Backups as operators have them: written under load, restored beside the original, verified; damaged ones told."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest

import riffdb
from riffdb.core.errors import RiffError
from tests.surface.command_line import run_here
from tests.surface.http_server import running
from tests.surface.processes import QUEUE, Done, Process

ORGANIZATION = UUID(int=10)
DUE = "2026-01-01T00:00:00Z"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with three items, of which the first was claimed, and a revoked capability."""
    path = tmp_path / "work.db"
    with riffdb.open(f"sqlite:{path}", QUEUE) as db:
        for number in range(1, 4):
            create(db, number)
        claim(db, 1)
        made = db.create_capability(role="WorkProducer")
        db.revoke_capability(made["id"])
    return path


def create(db: Any, number: int) -> Any:
    return db.command("CreateWork", organization_id=ORGANIZATION, work_id=UUID(int=number), due_at=DUE)


def claim(db: Any, number: int) -> Any:
    given = {"organization_id": ORGANIZATION, "work_id": UUID(int=number), "owner_id": UUID(int=12), "duration": 60}
    return db.command("ClaimWork", **given, expected_revision=1)


def run(*arguments: object) -> Done:
    return run_here(*map(str, arguments))


def url(file: Path) -> str:
    return f"sqlite:{file}"


def backed_up(file: Path, folder: Path) -> Any:
    done = run("backup", folder, "--db", url(file), "--json")
    assert done.code == 0, done
    return done.json["manifest"]


def restored(folder: Path, file: Path, *until: object) -> Any:
    done = run("restore", folder, "--db", url(file), *until, "--json")
    assert done.code == 0, done
    return done.json


def verified(file: Path) -> Any:
    done = run("verify", "--db", url(file), "--json")
    assert done.code == (0 if done.json["ok"] else 10)
    return done.json


def refused(*arguments: object) -> str:
    done = run(*arguments, "--json")
    assert done.code != 0
    code: str = done.json["code"]
    return code


def test_a_restored_database_is_another_history_with_the_same_commits(file: Path, tmp_path: Path) -> None:
    manifest = backed_up(file, tmp_path / "b")
    assert sorted(os.listdir(tmp_path / "b")) == ["database.sqlite", "manifest.json"]
    assert json.loads((tmp_path / "b" / "manifest.json").read_text()) == manifest
    assert [(tmp_path / "b" / name).stat().st_mode & 0o77 for name in ("", "database.sqlite")] == [0, 0]
    with riffdb.open(url(file)) as db:
        create(db, 9)
    told = restored(tmp_path / "b", tmp_path / "r.db")
    assert told["from"] == manifest["incarnation"] != told["incarnation"]
    assert (verified(tmp_path / "r.db")["ok"], verified(file)["ok"]) == (True, True)
    assert verified(tmp_path / "r.db")["commits"] == manifest["commits"] + 1
    with riffdb.open(url(tmp_path / "r.db")) as db:
        assert db.log(partition="system")[-1]["command"] == "restore"
        assert db.query("DueWork", organization_id=ORGANIZATION).payload["items"]
        again = create(db, 9)
        assert (again.outcome, again.replayed) == ("Created", False)


def test_a_database_is_restored_as_it_had_stood(file: Path, tmp_path: Path) -> None:
    with riffdb.open(url(file)) as db:
        log = db.log(partition=ORGANIZATION)
        token = db.create_capability(role="WorkScheduler")
        create(db, 5)
        db.revoke_capability(token["id"])
        create(db, 6)
    backed_up(file, tmp_path / "b")
    targets = {
        "commit": ("--until-commit", f"{ORGANIZATION}:2"),
        "time": ("--until", log[1]["time"]),
        "late": ("--until", log[3]["time"]),
        "token": ("--until-commit", f"{ORGANIZATION}:5"),
    }
    kept = {}
    for name, until in targets.items():
        place = tmp_path / f"{name}.db"
        told = restored(tmp_path / "b", place, *until)
        assert told["ended"] == ([token["id"]] if name == "token" else [])
        found = verified(place)
        assert found["ok"], found
        with riffdb.open(url(place)) as db:
            sequences = [entry["sequence"] for entry in db.log(partition=ORGANIZATION)]
            kept[name] = (len(sequences), found["rows"])
            if name == "token":
                assert db.capability(token["id"])["revoked_at"] == db.log(partition="system")[-1]["time"]
    assert kept == {"commit": (2, 2), "time": (2, 2), "late": (4, 3), "token": (5, 4)}


def test_what_cannot_be_restored_is_told_and_nothing_is_left(file: Path, tmp_path: Path) -> None:
    backed_up(file, tmp_path / "b")
    new = url(tmp_path / "new.db")
    before = sorted(os.listdir(tmp_path))
    assert refused("restore", tmp_path / "none", "--db", new) == "RDB-E-USAGE"
    assert refused("restore", tmp_path / "b", "--db", url(file)) == "RDB-E-USAGE"
    assert refused("restore", tmp_path / "b", "--db", url(tmp_path / "none" / "new.db")) == "RDB-E-USAGE"
    assert refused("restore", tmp_path / "b", "--db", "memory:") == "RDB-E-USAGE"
    assert refused("restore", tmp_path / "b", "--db", new, "--until", "2020-01-01T00:00:00Z") == "RDB-E-INPUT"
    assert refused("restore", tmp_path / "b", "--db", new, "--until", "soon") == "RDB-E-INPUT"
    assert refused("restore", tmp_path / "b", "--db", new, "--until-commit", f"{ORGANIZATION}:99") == "RDB-E-NOT-FOUND"
    assert refused("restore", tmp_path / "b", "--db", new, "--until-commit", "x") == "RDB-E-USAGE"
    both = ("--until", DUE, "--until-commit", f"{ORGANIZATION}:1")
    assert refused("restore", tmp_path / "b", "--db", new, *both) == "RDB-E-USAGE"
    assert sorted(os.listdir(tmp_path)) == before


def test_a_backup_takes_an_empty_folder_and_leaves_nothing_where_it_fails(file: Path, tmp_path: Path) -> None:
    backed_up(file, tmp_path / "b")
    assert refused("backup", tmp_path / "b", "--db", url(file)) == "RDB-E-USAGE"
    assert refused("backup", file / "b", "--db", url(file)) == "RDB-E-UNAVAILABLE"
    assert refused("backup", tmp_path / "m", "--db", "memory:") == "RDB-E-USAGE"
    assert not (tmp_path / "m").exists()
    assert verified(file)["ok"]


@pytest.mark.parametrize(("name", "step"), [("manifest.json", 7), ("database.sqlite", 4_093)])
def test_a_damaged_backup_is_told(file: Path, tmp_path: Path, name: str, step: int) -> None:
    backed_up(file, tmp_path / "b")
    copy = tmp_path / "b" / name
    content = copy.read_bytes()
    for position in range(0, len(content), step):
        flipped = bytearray(content)
        flipped[position] ^= 1
        copy.write_bytes(flipped)
        assert run("restore", tmp_path / "b", "--db", url(tmp_path / "new.db")).code == 10, position
    for damaged in (content[:-1], content + b"\0", b""):
        copy.write_bytes(damaged)
        assert run("restore", tmp_path / "b", "--db", url(tmp_path / "new.db")).code == 10
    copy.unlink()
    assert run("restore", tmp_path / "b", "--db", url(tmp_path / "new.db")).code in (2, 10)


class Serving:
    """`riffdb serve` with a folder for backups, as a process."""

    def __init__(self, file: Path, failpoint: str = "") -> None:
        folder = file.parent
        with riffdb.open(url(file)) as db:
            self.token = db.create_capability()["token"]
        flags = ("--allow-failpoints",) if failpoint else ()
        place = ("--db", url(file), "--listen", "127.0.0.1:0", "--backups", folder / "kept")
        arguments = ("serve", *place, "--json", *flags)
        variables = {"RIFFDB_FAILPOINT": failpoint} if failpoint else {}
        self.process = Process(folder / "stderr.txt", arguments, folder, variables)
        self.url = json.loads(self.process.line())["listening"]


@contextmanager
def serving(file: Path, failpoint: str = "") -> Iterator[Serving]:
    found = Serving(file, failpoint)
    try:
        yield found
    finally:
        found.process.end()


def test_a_backup_is_written_and_verified_under_load(file: Path, tmp_path: Path) -> None:
    stop = Event()
    written: list[int] = []
    with serving(file) as server:

        def load() -> None:
            with riffdb.connect(server.url, server.token) as db:
                while not stop.is_set():
                    written.append(create(db, 1_000 + len(written)).commit.sequence)

        thread = Thread(target=load)
        thread.start()
        try:
            with riffdb.connect(server.url, server.token) as db:
                made = [db.backup(f"b-{number}") for number in range(3)]
                assert db.verify()["ok"]
                with pytest.raises(RiffError) as caught:
                    db.backup("../b")
        finally:
            stop.set()
            thread.join()
        assert server.process.stop() == 0
    assert (caught.value.code, caught.value.path) == ("RDB-E-INPUT", "name")
    assert written == sorted(written)
    assert verified(file)["ok"]
    for number, one in enumerate(made):
        assert one["path"] == str(tmp_path / "kept" / f"b-{number}")
        restored(Path(one["path"]), tmp_path / f"r-{number}.db")
        found = verified(tmp_path / f"r-{number}.db")
        assert (found["ok"], found["commits"]) == (True, one["manifest"]["commits"] + 1)


def test_a_server_that_is_killed_in_a_backup_leaves_none(file: Path, tmp_path: Path) -> None:
    with serving(file, "backup.mid:kill") as server:
        with riffdb.connect(server.url, server.token) as db, pytest.raises(RiffError):
            db.backup("b")
        assert server.process.ended() == -signal.SIGKILL
    assert refused("restore", tmp_path / "kept" / "b", "--db", url(tmp_path / "r.db")) == "RDB-E-USAGE"
    assert verified(file)["ok"]
    backed_up(file, tmp_path / "b2")


def test_a_server_without_a_folder_for_backups_says_so() -> None:
    with running() as here, here.server.client() as client:
        reply = client.call("POST", "/v1/admin/backup", {"name": "b"})
        assert (reply.status, reply.json["code"]) == (400, "RDB-E-USAGE")
        worker = here.server.token("WorkScheduler")
        assert client.call("POST", "/v1/admin/backup", {"name": "b"}, token=worker).status == 403
