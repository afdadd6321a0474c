"""The pages of the codes: each code has one, its wrong example shows it and nothing else, its right one is sound."""

import json
from pathlib import Path

import pytest

from riffdb.client.application import compile_application
from riffdb.core.diagnostic_codes import DIAGNOSTIC_CODES
from riffdb.core.diagnostics import render
from riffdb.core.errors import RiffError
from riffdb.core.explanation import TITLES, Example, explanation_of, parse_page
from tests.surface.command_line import run_here
from tests.surface.processes import ROOT

PAGES = ROOT / "src" / "riffdb" / "core" / "explanations"

# A file over 1 MiB is no example to print.
WITHOUT_WRONG_EXAMPLE = {"RDB-C002"}


def shown(code: str, example: Example, folder: Path) -> list[str]:
    """The diagnostics of an example as text: every error, and of the warnings those of the code itself.

    The application around an example has declarations that the example alone would use, so other warnings say nothing.
    """
    for name, text in example.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [
        render(diagnostic)
        for diagnostic in compile_application(folder)[1].diagnostics
        if diagnostic.code == code or diagnostic.severity == "error"
    ]


def test_each_code_has_its_page_and_no_other_page_is_there() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == sorted(TITLES)


@pytest.mark.parametrize("code", TITLES)
def test_a_page_has_the_title_of_its_code_and_is_narrow(code: str) -> None:
    lines = (PAGES / f"{code}.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"# {code}: {TITLES[code]}"
    assert [line for line in lines if len(line) > 120] == []
    assert isinstance(explanation_of(code).parts[0], str), "a page begins with why the rule is there"


@pytest.mark.parametrize("code", DIAGNOSTIC_CODES)
def test_the_wrong_example_shows_its_code_once_and_the_right_one_nothing(code: str, tmp_path: Path) -> None:
    wrong = [example for example in explanation_of(code).examples if example.is_wrong]
    right = [example for example in explanation_of(code).examples if not example.is_wrong]
    assert bool(wrong) is (code not in WITHOUT_WRONG_EXAMPLE)
    assert right, "no right example"
    for example in wrong:
        found = shown(code, example, tmp_path)
        assert [text[: text.index("]")] for text in found] in ([f"error[{code}"], [f"warning[{code}"]), "\n".join(found)
    for example in right:
        assert not (found := shown(code, example, tmp_path)), "\n".join(found)


def test_an_example_brings_what_it_mentions_and_nothing_else() -> None:
    page = (
        "# T\n\nWhy.\n\n```riff wrong\nentity Note {\n}\n```\n\n```riff right in ChangeNote\nset note.count = 1\n```\n"
    )
    wrong, right = parse_page("RDB-C301", page).examples
    assert wrong.files["team.riff"] == "contract Team version 1 {\n  entity Note {\n  }\n}\n"
    assert "    set note.count = 1\n    return Changed" in right.files["team.riff"]
    assert "entity Note {" in right.files["team.riff"] and "Job" not in right.files["team.riff"]


@pytest.mark.parametrize("written", ["RDB-C103", "c103", "rdb-c103"])
def test_a_code_may_be_written_short(written: str) -> None:
    assert explanation_of(written).code == "RDB-C103"


def test_the_list_has_every_code_with_its_title() -> None:
    assert run_here("explain").stdout.splitlines() == [f"{code:<25} {title}" for code, title in TITLES.items()]
    listed = [{"code": code, "title": title} for code, title in TITLES.items()]
    assert json.loads(run_here("explain", "--json").stdout) == {"codes": listed}


def test_an_unknown_code_gets_the_nearest_one() -> None:
    with pytest.raises(RiffError, match="did you mean `RDB-E-CONTENTION`") as refused:
        explanation_of("E-CONTENTON")
    assert refused.value.facts.exit == 5


def test_a_lint_is_explained_by_its_name() -> None:
    assert explanation_of("no-way-out") == explanation_of("RDB-C910")
    with pytest.raises(RiffError, match="did you mean `no-way-out`"):
        explanation_of("no-wayout")
