"""The safe fixes of the cases: each one repairs, and brings no other error; and how fixes are applied to a folder.

`REPAIRED` lists the codes that have one, so that none loses it unseen; a code of later need not stand there.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from riffdb.cli.files import replace_file
from riffdb.client.repairs import repair_application
from riffdb.compiler import compile
from riffdb.core.diagnostics import Diagnostic, Edit, Fix, render
from riffdb.core.repair import repair
from riffdb.core.spans import Source, Span
from tests.surface.processes import ROOT

CASES = ROOT / "tests" / "cases" / "diagnostics"

# No code loses its safe fix, so that `check --fix` never does less than it did.
REPAIRED = [
    "C001",
    "C003",
    "C009",
    "C018",
    "C104",
    "C201",
    "C205",
    "C206",
    "C207",
    "C306",
    "C307",
    "C310",
    "C340",
    "C341",
    "C404",
    "C414",
    "C420",
    "C430",
    "C432",
    "C434",
    "C436",
    "C438",
    "C502",
    "C518",
    "C542",
    "C543",
    "C550",
    "C603",
    "C630",
    "C631",
    "C704",
    "C820",
]


def sources_of(case: Path) -> tuple[Source, ...]:
    """The contract of a case."""
    files = sorted(case.rglob("*.riff"))
    return tuple(Source(path.relative_to(case).as_posix(), path.read_bytes().decode()) for path in files)


def errors_of(sources: tuple[Source, ...]) -> list[Diagnostic]:
    """What is wrong with a contract."""
    return [found for found in compile("case", sources).diagnostics if found.severity == "error"]


def safe_fixes() -> list[tuple[str, str, int]]:
    """Every safe fix that a case shows for its own code: the code, the case, and which of its diagnostics has it."""
    found = []
    for case in sorted(CASES.glob("RDB-C*")):
        code = re.match(r"RDB-C\d+", case.name)
        assert code is not None
        for number, diagnostic in enumerate(errors_of(sources_of(case))):
            if diagnostic.code == code.group() and diagnostic.fix is not None and diagnostic.fix.safe:
                found.append((code.group(), case.name, number))
    return found


SAFE = safe_fixes()


@pytest.mark.parametrize(("code", "case", "number"), SAFE, ids=lambda value: str(value))
def test_a_safe_fix_repairs_and_breaks_nothing(code: str, case: str, number: int) -> None:
    sources = sources_of(CASES / case)
    before = errors_of(sources)
    done = repair([before[number]])
    after = errors_of(tuple(done.sources.get(source.path, source) for source in sources))
    was, now = Counter(found.code for found in before), Counter(found.code for found in after)
    assert was - now == Counter({code: 1}), "\n".join(render(found) for found in after)
    assert now - was == Counter(), "\n".join(render(found) for found in after)


def test_no_code_loses_its_safe_fix() -> None:
    assert sorted(set(REPAIRED) - {code.removeprefix("RDB-") for code, _, _ in SAFE}) == []


def _diagnostic(source: Source, *edits: tuple[int, int, str], safe: bool = True) -> Diagnostic:
    changes = tuple(Edit(Span(source, start, end), text) for start, end, text in edits)
    return Diagnostic("RDB-C001", "wrong", changes[0].span, fix=Fix("mend it", changes, safe))


def test_fixes_that_touch_each_other_are_not_applied_together() -> None:
    source = Source("a.riff", "abcdef")
    first, second = _diagnostic(source, (0, 2, "X")), _diagnostic(source, (2, 3, "Y"))
    assert repair([first, second]).applied == (first,)
    apart = _diagnostic(source, (3, 3, "+"))
    assert repair([first, apart]).sources["a.riff"].text == "Xc+def"


def test_a_fix_is_applied_whole_or_not_at_all() -> None:
    source = Source("a.riff", "abcdef")
    both = _diagnostic(source, (4, 5, ""), (0, 1, "Y"))
    done = repair([_diagnostic(source, (0, 1, "X")), both])
    assert done.sources["a.riff"].text == "Xbcdef"
    assert repair([both]).sources["a.riff"].text == "Ybcdf"


def test_a_fix_that_is_not_safe_is_left_to_the_user() -> None:
    done = repair([_diagnostic(Source("a.riff", "abc"), (0, 1, "X"), safe=False)])
    assert done.applied == () and done.sources == {}


def test_a_repair_goes_on_until_nothing_safe_is_left(tmp_path: Path) -> None:
    (tmp_path / "riffdb.toml").write_text('[application]\nname = "many"\n', encoding="utf-8")
    condition = " and ".join(f"amount < {bound}" for bound in range(1, 5))
    body = f"command Count {{ input amont: u64 require few: {condition} else Few {{}} return Counted }}"
    (tmp_path / "many.riff").write_text(f"contract Many version 1 {{ {body} }}\n", encoding="utf-8")
    done = repair_application(tmp_path)
    assert Counter(found.code for found in done.applied) == {"RDB-C018": 3, "RDB-C001": 1, "RDB-C205": 1}
    assert [found.code for found in done.compilation.diagnostics] == ["RDB-C503"]
    assert done.changed.keys() == {str(tmp_path / "many.riff")}


def test_a_file_keeps_its_line_ends_its_mode_and_its_link(tmp_path: Path) -> None:
    path, link = tmp_path / "a.riff", tmp_path / "link.riff"
    path.write_bytes(b"one\r\n")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_file(link, "two\r\n")
    assert path.read_bytes() == b"two\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [path, link]
