"""One mistake, one error: every name that a contract uses is misspelt in turn, and the compiler must point at it alone.

Cases show the texts of single mistakes; no folder could hold each name of a contract.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from riffdb.compiler import compile
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.spans import Source, Span
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


def nodes(part: object) -> Iterator[object]:
    """Every node of a tree."""
    if isinstance(part, tuple):
        for item in part:
            yield from nodes(item)
    elif is_dataclass(part) and not isinstance(part, Source | Span):
        yield part
        for field in fields(part):
            yield from nodes(getattr(part, field.name))


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
