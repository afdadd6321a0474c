"""The first minutes with RiffDB: `riffdb new`, and what the application that it makes does, from this repository and
from an installed package."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from uuid import uuid4

import pytest

from riffdb.cli.new import TEMPLATES
from tests.surface.command_line import run_here
from tests.surface.processes import QUEUE, ROOT, run_riffdb


def files_of(folder: Path) -> dict[str, str]:
    """The text of every file below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def test_a_newcomer_has_an_item_done(tmp_path: Path) -> None:
    made = run_riffdb("new", "shop", cwd=tmp_path)
    assert (made.code, made.stdout) == (0, "")
    shop = tmp_path / "shop"
    told = [line.strip() for line in made.stderr.splitlines() if line.startswith("  ")]
    assert told[0] == "cd shop"
    for line in told[1:]:
        assert line.startswith("riffdb ")
        assert run_riffdb(*line.split()[1:], cwd=shop).code == 0, line

    work = {"organization_id": str(uuid4()), "work_id": str(uuid4()), "due_at": "2026-01-01T00:00:00Z"}
    database = {"RIFFDB_DB": "sqlite:work.db"}
    created = run_riffdb("command", "run", "CreateWork", "--input", json.dumps(work), cwd=shop, **database)
    assert (created.code, created.stdout.splitlines()[0]) == (0, "Created")
    turn = ("worker", "DueWorkItems", "--param", f"organization_id={work['organization_id']}", "--once", "--json")
    done = run_riffdb(*turn, "--handler", "handlers:complete", cwd=shop, **database)
    assert (done.code, done.json["result"], done.json["outcome"]) == (0, "Completed", "Completed"), done
    told_history = run_riffdb("history", "WorkItem", work["organization_id"], work["work_id"], cwd=shop, **database)
    assert [line.split()[-1] for line in told_history.stdout.splitlines()[::2]] == [
        "CreateWork",
        "ClaimWork",
        "CompleteWork",
        "ReleaseWork",
    ]


@pytest.mark.parametrize("template", TEMPLATES)
def test_only_the_name_differs_from_the_example(tmp_path: Path, template: str) -> None:
    assert run_here("new", tmp_path / "deep" / "er" / "shop-2", "--template", template).code == 0
    example = files_of(ROOT / "examples" / template)
    example["riffdb.toml"] = example["riffdb.toml"].replace(f'name = "{template}"', 'name = "shop-2"')
    assert files_of(tmp_path / "deep" / "er" / "shop-2") == example


@pytest.mark.parametrize(
    "name", ["", "1st", "_x", "a b", "a.b", "é", "x" * 61, "a/..", ".", "..", "/", "-x\n", "\udcff"]
)
def test_a_name_that_is_none_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_here("new", "--", name)
    assert (done.code, done.stderr.startswith("error[RDB-E-USAGE]: a name has up to 60 letters")) == (2, True), done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_what_is_there_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "shop"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine", "utf-8")
    else:
        place.symlink_to(tmp_path / "gone")
    done = run_here("new", place)
    assert (done.code, done.stderr.endswith("is there already; choose another name\n")) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
    assert kind != "folder" or list(place.iterdir()) == []


def test_an_installed_package_brings_the_template(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    source = ROOT / "src"
    assert {path.relative_to(source).as_posix() for path in (source / "riffdb").rglob("*.py")} <= names
    assert "riffdb/py.typed" in names
    assert {name for name in names if name.startswith("riffdb/templates/")} == {
        f"riffdb/templates/{template}/{name}"
        for template in TEMPLATES
        for name in files_of(ROOT / "examples" / template)
    }
    done = subprocess.run(
        [sys.executable, "-m", "riffdb", "new", "shop"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    example = files_of(QUEUE)
    example["riffdb.toml"] = example["riffdb.toml"].replace('name = "queue"', 'name = "shop"')
    assert files_of(tmp_path / "shop") == example
