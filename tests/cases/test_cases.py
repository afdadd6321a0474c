"""Every case against what was approved; `make cases` approves what there is now."""

from pathlib import Path

import pytest

from tests.cases.areas import AREAS
from tests.cases.runner import case_folders, run_case

ROOT = Path(__file__).parent


def _identifier(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("folder", case_folders(ROOT), ids=_identifier)
def test_case(folder: Path, request: pytest.FixtureRequest) -> None:
    problems = run_case(folder, AREAS, update=request.config.getoption("--update"))
    if problems:
        pytest.fail("\n".join([f"tests/cases/{_identifier(folder)}", *problems]), pytrace=False)


def test_there_are_cases_of_every_area() -> None:
    assert {folder.parent.name for folder in case_folders(ROOT)} == AREAS.keys()
