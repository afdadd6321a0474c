"""Access paths against a slow twin, and every fix of the query and schedule rules applied.

Cases show single texts; here a path must give the rows that the condition asks for, in order, whatever the demand; and
a fix must leave nothing to report.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from riffdb.client.application import load_application
from riffdb.compiler import compile
from riffdb.compiler.access_paths import Demand, choose, index_line, index_name, missing_index
from riffdb.compiler.access_paths import Path as AccessPath
from riffdb.core.spans import Source
from riffdb.core.types import U64
from riffdb.plan.declarations import EntityPlan, FieldPlan, IndexPlan, UniquePlan

CASES = Path(__file__).parents[1] / "cases" / "diagnostics"
COLUMNS = ("p", "k", "a", "b", "c")
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in product(range(2), repeat=len(COLUMNS))]


def entity(*indexes: Sequence[tuple[str, bool]]) -> EntityPlan:
    """An entity of five numbers, keyed by the partition `p` and `k`, with indexes that end in the rest of the key."""
    plans = []
    for number, columns in enumerate(indexes):
        named = [name for name, _ in columns]
        whole = [*columns, *((name, False) for name in ("p", "k") if name not in named)]
        names, descending = zip(*whole, strict=True)
        plans.append(IndexPlan(f"i{number}", names, descending))
    key = tuple(FieldPlan(name, U64) for name in COLUMNS[:2])
    fields = tuple(FieldPlan(name, U64) for name in COLUMNS[2:])
    return EntityPlan("E", key, "p", fields, indexes=tuple(plans))


def columns_of(path: AccessPath) -> list[tuple[str, bool]]:
    """The columns that a path reads."""
    return list(zip(path.index.columns, path.index.descending, strict=True))


def in_order(rows: Sequence[dict[str, int]], order: Sequence[tuple[str, bool]]) -> list[Any]:
    """The places of the rows in an order."""
    return [tuple(-row[name] if descending else row[name] for name, descending in order) for row in rows]


def scanned(path: AccessPath, demand: Demand) -> list[dict[str, int]]:
    """What a store gives for the path: equalities over a prefix, a range of the next column, one direction."""
    columns = columns_of(path)
    assert tuple(name for name, _ in columns[: len(path.equal)]) == path.equal
    assert (path.ranged is None) is not bool(demand.ranged)
    rows = [row for row in ROWS if all(row[name] == 0 for name in path.equal)]
    if path.ranged is not None:
        assert columns[len(path.equal)][0] == path.ranged in demand.ranged
        rows = [row for row in rows if row[path.ranged] <= 0]
    rows = sorted(rows, key=lambda row: in_order([row], columns))
    return rows[::-1] if path.reverse else rows


orderings = st.lists(
    st.tuples(st.sampled_from(COLUMNS), st.booleans()), min_size=1, max_size=4, unique_by=lambda o: o[0]
)
indexes = st.lists(orderings.map(lambda order: [("p", False), *(part for part in order if part[0] != "p")]), max_size=4)
demands = st.builds(
    lambda equal, ranged, order: Demand(
        ("p", *equal), tuple(name for name in ranged if name not in equal), tuple(order)
    ),
    st.lists(st.sampled_from(COLUMNS[1:]), max_size=3, unique=True),
    st.lists(st.sampled_from(COLUMNS[1:]), max_size=2, unique=True),
    orderings,
)


@given(indexes, demands)
def test_a_path_gives_the_rows_in_order(declared: list[list[tuple[str, bool]]], demand: Demand) -> None:
    plan = entity(*declared)
    path = choose(plan, demand)
    if path is None:
        return
    rows = scanned(path, demand)
    wanted = [
        row
        for row in ROWS
        if all(row[name] == 0 for name in demand.equal) and (path.ranged is None or row[path.ranged] <= 0)
    ]
    assert sorted(rows, key=str) == sorted(wanted, key=str)
    places = in_order(rows, demand.order)
    assert places == sorted(places)


@given(indexes, demands)
def test_the_index_that_is_printed_answers(declared: list[list[tuple[str, bool]]], demand: Demand) -> None:
    if not demand.is_possible:
        assert choose(entity(*declared), demand) is None
        return
    advice = missing_index(entity(), demand)
    assert choose(entity(advice), demand) is not None
    if len(advice) > 1:
        assert advice[0] == ("p", False)


def chosen(plan: EntityPlan, demand: Demand) -> tuple[str, bool] | None:
    """The name of the index that is chosen, and whether it is read backwards."""
    path = choose(plan, demand)
    return None if path is None else (path.index.name, path.reverse)


def test_the_key_comes_first_then_the_first_index_declared_then_the_uniques() -> None:
    plan = entity([("p", False), ("a", False)], [("p", False), ("a", False), ("b", False)])
    plan = structs.replace(plan, uniques=(UniquePlan("u", ("p", "a", "c")),))
    assert chosen(plan, Demand(("p",), (), (("k", True),))) == ("", True)
    assert chosen(plan, Demand(("p", "a"), (), (("a", False),))) == ("i0", False)
    assert chosen(plan, Demand(("p", "a"), (), (("b", True),))) == ("i1", True)
    assert chosen(plan, Demand(("p", "a"), (), (("c", True), ("k", True)))) == ("u", True)
    assert chosen(plan, Demand(("p",), ("b",), (("b", False),))) is None


def test_a_path_may_mix_directions_only_as_the_index_does() -> None:
    plan = entity([("p", False), ("a", True), ("b", False)])
    assert chosen(plan, Demand(("p",), (), (("a", True), ("b", False)))) == ("i0", False)
    assert chosen(plan, Demand(("p",), (), (("a", False), ("b", True)))) == ("i0", True)
    assert chosen(plan, Demand(("p",), (), (("a", False), ("b", False)))) is None


def test_of_two_ranges_that_which_the_order_begins_with_is_answered() -> None:
    plan = entity([("p", False), ("a", False)], [("p", False), ("b", False)])
    path = choose(plan, Demand(("p",), ("a", "b"), (("b", True),)))
    assert path is not None and (path.index.name, path.ranged, path.reverse) == ("i1", "b", True)


def test_the_line_of_an_index() -> None:
    columns = (("p", False), ("a", True))
    assert index_line(index_name(columns, "p", {"By_A"}), columns) == "index by_a_2 (p, a desc)"
    assert index_name((("p", False), ("x" * 50, False)), "p", set()) == "by_" + "x" * 40


# --- fixes -------------------------------------------------------------------------------------------------------


def applied(source: Source, edits: Sequence[tuple[int, int, str]]) -> Source:
    """The source with the edits made, the last place first."""
    text = source.text
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return Source(source.path, text)


def fixable() -> list[Path]:
    """The cases of these rules whose diagnostic has a fix."""
    folders = [folder for family in "678" for folder in sorted(CASES.glob(f"RDB-C{family}*"))]
    return [folder for folder in folders if '"fix": {' in (folder / "expected" / "check.json").read_text("utf-8")]


def test_there_are_fixes_to_try() -> None:
    assert len(fixable()) >= 10


@pytest.mark.parametrize("folder", fixable(), ids=lambda folder: folder.name)
def test_a_fix_leaves_nothing_to_report(folder: Path) -> None:
    (source,) = load_application(folder).sources
    (found,) = compile("case", [source]).diagnostics
    assert found.fix is not None
    edits = [(edit.span.start, edit.span.end, edit.text) for edit in found.fix.edits]
    assert [left for left in compile("case", [applied(source, edits)]).diagnostics if not left.lint] == []
