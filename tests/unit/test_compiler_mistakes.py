"""One mistake, one error: every name that a contract uses is misspelt in turn, and the compiler must point at it alone.

Cases show the texts of single mistakes; no folder could hold each name of a contract.
"""

from pathlib import Path

import pytest

from riffdb.compiler import compile
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tree import (
    LeaseDecl,
    LeaseStmt,
    MemberExpr,
    Name,
    NameExpr,
    SetStmt,
    TransitionDecl,
    TransitionStmt,
    TypeExpr,
    WorkflowDecl,
)
from tests.unit.syntax_samples import nodes

CONTRACT = Path(__file__).parents[1] / "cases" / "plan" / "printed-listings" / "work.riff"
TEXT = CONTRACT.read_text(encoding="utf-8")

USES: dict[type, tuple[str, ...]] = {
    # what looks a name up, and in which of its parts
    NameExpr: ("name",),
    MemberExpr: ("owner", "member"),
    TypeExpr: ("name",),
    SetStmt: ("binding", "field"),
    TransitionStmt: ("transition", "binding"),
    LeaseStmt: ("lease", "binding"),
    WorkflowDecl: ("entity", "state", "initial"),
    TransitionDecl: ("sources", "destination"),
    LeaseDecl: ("owner", "expires_at", "fencing_token", "attempts"),
}


def uses() -> list[Name]:
    """Every name that the contract looks up."""
    tree, found = parse(Source("work.riff", TEXT))
    assert not found
    names: list[Name] = []
    for node in nodes(tree):
        for part in USES.get(type(node), ()):
            value = getattr(node, part)
            names.extend(item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Name))
    return names


def test_a_misspelt_name_is_the_only_error() -> None:
    odd = []
    names = uses()
    for name in names:
        text = f"{TEXT[: name.span.start]}{name.text[:-1]}qz{TEXT[name.span.end :]}"
        found = compile("case", (Source("work.riff", text),)).diagnostics
        if [diagnostic.span.start for diagnostic in found] != [name.span.start]:
            line, column = name.span.source.position(name.span.start)
            odd.append((name.text, line, column, [(diagnostic.code, diagnostic.span.text) for diagnostic in found]))
    assert len(names) > 100
    assert odd == []


@pytest.mark.parametrize("count", [2, DIAGNOSTICS_MAX + 50])
def test_diagnostics_are_bounded_and_in_order(count: int) -> None:
    lines = "\n".join(f"  field f{number}: string<0>" for number in range(count))
    contract = f"contract C version 1 {{ entity E {{\n  key (id: uuid)\n{lines}\n}} }}"
    role = "role R { query Unknown }"
    compilation = compile("case", [Source("b.riff", contract), Source("a.riff", role)])
    places = [(found.span.source.path, found.span.start) for found in compilation.diagnostics]
    assert compilation.plan is None
    assert len(places) == min(count + 1, DIAGNOSTICS_MAX)
    assert places == sorted(places)


def test_a_name_that_is_wrong_all_over_a_command_is_one_error_and_one_fix() -> None:
    text = TEXT.replace("set work.", "set wrk.")
    found = compile("case", [Source("work.riff", text)]).diagnostics
    assert [diagnostic.code for diagnostic in found] == ["RDB-C205"]
    fix = found[0].fix
    assert fix is not None and fix.safe
    for edit in sorted(fix.edits, key=lambda edit: -edit.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert text == TEXT


def test_the_same_wrong_name_in_two_commands_is_two_errors() -> None:
    text = TEXT.replace(" on work ", " on job ")
    found = compile("case", [Source("work.riff", text)]).diagnostics
    assert [diagnostic.code for diagnostic in found] == ["RDB-C205"] * text.count("mutate ")


def test_no_source_at_all_is_an_error() -> None:
    compilation = compile("case", [])
    assert compilation.plan is None
    assert [diagnostic.code for diagnostic in compilation.diagnostics] == ["RDB-C100"]
