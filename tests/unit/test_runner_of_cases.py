"""The runner of the cases itself, since a runner that passes everything would be seen by no other test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases.runner import Area, case_folders, run_case


def _shout(folder: Path) -> Mapping[str, str]:
    return {"loud.txt": (folder / "input.txt").read_text(encoding="utf-8").upper()}


AREAS: dict[str, Area] = {"shout": _shout}


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """An approved case of the area `shout`."""
    folder = tmp_path / "shout" / "greeting"
    (folder / "expected").mkdir(parents=True)
    (folder / "input.txt").write_text("hello\nworld\n", encoding="utf-8")
    (folder / "expected" / "loud.txt").write_text("HELLO\nWORLD\n", encoding="utf-8")
    return folder


def test_an_approved_case_passes_and_is_found(case: Path) -> None:
    assert case_folders(case.parent.parent) == [case]
    assert run_case(case, AREAS) == []


def test_a_difference_is_shown_and_left_alone(case: Path) -> None:
    (case / "input.txt").write_text("hello\nmoon\n", encoding="utf-8")
    (problem,) = run_case(case, AREAS)
    assert "-WORLD\n+MOON" in problem
    assert "make cases" in problem
    assert (case / "expected" / "loud.txt").read_text(encoding="utf-8") == "HELLO\nWORLD\n"


def test_update_rewrites_and_removes(case: Path) -> None:
    (case / "input.txt").write_text("hello\nmoon\n", encoding="utf-8")
    (case / "expected" / "old.txt").write_text("", encoding="utf-8")
    assert run_case(case, AREAS, update=True) == []
    assert {path.name for path in (case / "expected").iterdir()} == {"loud.txt"}
    assert (case / "expected" / "loud.txt").read_text(encoding="utf-8") == "HELLO\nMOON\n"


def test_a_line_end_that_is_missing_is_a_difference(case: Path) -> None:
    (case / "expected" / "loud.txt").write_text("HELLO\nWORLD", encoding="utf-8")
    (problem,) = run_case(case, AREAS)
    assert "only the line ends differ" in problem


def test_an_expected_file_that_nothing_writes_fails(case: Path) -> None:
    (case / "expected" / "old.txt").write_text("", encoding="utf-8")
    assert run_case(case, AREAS) == ["expected/old.txt is no longer written; `make cases` removes it"]


def test_a_case_that_expects_nothing_fails(case: Path) -> None:
    (case / "expected" / "loud.txt").unlink()
    assert run_case(case, AREAS) == ["nothing is expected yet; `make cases` writes it"]


def test_a_case_without_input_fails_even_when_updated(case: Path) -> None:
    (case / "input.txt").unlink()
    assert run_case(case, AREAS, update=True) == ["the case has no input file"]


def test_a_folder_of_no_area_fails(tmp_path: Path) -> None:
    folder = tmp_path / "whisper" / "greeting"
    folder.mkdir(parents=True)
    assert run_case(folder, AREAS) == ["no area `whisper`; the areas are shout"]
