"""The paths of a binding against a slow twin: followed over all rows they give what the condition asks for, in order.

Every case of every binding is followed as the plan says it: ranges for all combinations of values, merged in the order,
what is left open asked of each row.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.plan import Plan
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Among, Binary, Constant, Expression, Field, IsNull, Param, Unary
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan

HEAD = """contract C version 1 {
  enum E { X, Y, Z }
  entity R {
    key (p: u64, k: u64)
    field e: E
    field a: u64
    field b: optional<u64>
    unique by_a (p, a, b)
"""
CONJUNCTS = (
    "e == E.Y",
    "e in (E.X, E.Z)",
    "(e == E.Z || e == E.X || e == E.Z)",
    "($e is null || e == $e)",
    "e != E.X",
    "a in $list",
    "a > 0",
    "a <= $n",
    "($n is null || a == $n)",
    "a not in (1, 2)",
    "b is null",
    "b == $n",
    "b is not null",
    "b is not null && b >= 1",
    "($e is null || b is not null && b < 2)",
    "k >= 1",
    "k in (0, 1, 1)",
    "($n is null || k <= $n)",
    "(a == 1 || k == 1)",
)
COLUMNS = ("p", "k", "e", "a", "b")
ROWS = [
    dict(zip(COLUMNS, values, strict=True)) for values in product((0, 1), range(2), range(3), range(3), (None, 0, 1, 2))
]
PARAMS = [
    {"p": 0, "n": number, "e": variant, "list": tuple(chosen)}
    for number, variant, chosen in product((None, 1), (None, 2), ((), (1,), (2, 0, 2)))
]

orders = st.lists(
    st.tuples(st.sampled_from(COLUMNS[1:]), st.booleans()), min_size=1, max_size=3, unique_by=lambda o: o[0]
)


def with_its_indexes(text: str) -> Plan | None:
    """The plan, with the indexes that the error prints where there is one; None where no index could answer."""
    source = Source("c.riff", text)
    found = compile("c", (source,))
    missing = next((diagnostic for diagnostic in found.diagnostics if diagnostic.code == "RDB-C620"), None)
    if missing is None:
        return found.plan
    assert missing.fix is not None
    (edit,) = missing.fix.edits
    whole = text[: edit.span.start] + edit.text + text[edit.span.end :]
    plan = compile("c", (Source("c.riff", whole),)).plan
    assert plan is not None, missing.fix.title
    return plan


index_lists = st.lists(orders, max_size=5)
conditions = st.lists(st.sampled_from(CONJUNCTS), max_size=3, unique=True)


def value_of(expression: Expression, row: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
    """The value of an expression, by the book."""
    match expression:
        case Constant(value=value):
            return value
        case Param(name=name):
            return params[name]
        case Field(name=name):
            return row[name]
        case IsNull(operand=operand, negated=negated):
            return (value_of(operand, row, params) is None) is not negated
        case Unary(operand=operand):
            return not value_of(operand, row, params)
        case Among(operand=operand, options=options, negated=negated):
            found = [value_of(option, row, params) for option in options]
            found = list(found[0]) if found and isinstance(found[0], tuple) else found
            return (value_of(operand, row, params) in found) is not negated
        case Binary(operator="&&", left=left, right=right):
            return value_of(left, row, params) and value_of(right, row, params)
        case Binary(operator="||", left=left, right=right):
            return value_of(left, row, params) or value_of(right, row, params)
        case Binary(operator=operator, left=left, right=right):
            one, other = value_of(left, row, params), value_of(right, row, params)
            if operator in ("==", "!="):
                return (one == other) is (operator == "==")
            return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operator]
    raise AssertionError(expression)


def place(row: Mapping[str, Any], order: tuple[tuple[str, bool], ...]) -> list[int]:
    """The place of a row in an order; null is first."""
    numbers = [(-1 if row[name] is None else row[name], descends) for name, descends in order]
    return [-number if descends else number for number, descends in numbers]


def columns_of(entity: EntityPlan, path: PathPlan) -> tuple[tuple[str, bool], ...]:
    """The columns that a path reads, the rest of the key included."""
    for index in entity.indexes:
        if index.name == path.index:
            return tuple(zip(index.columns, index.descending, strict=True))
    named = next((unique.columns for unique in entity.uniques if unique.name == path.index), ())
    return tuple((name, False) for name in (*named, *(key for key in entity.storage_key if key not in named)))


def alternatives(prefix: PrefixPlan, params: Mapping[str, Any]) -> list[Any]:
    """The values that a column of the prefix may equal."""
    found = params[prefix.among.name] if prefix.among is not None else [value_of(v, {}, params) for v in prefix.values]
    return list(dict.fromkeys(found))


def followed(
    entity: EntityPlan, binding: BindingPlan, path: PathPlan, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a path, read as the plan says."""
    columns = columns_of(entity, path)
    ranges: list[list[dict[str, Any]]] = []
    for values in product(*(alternatives(prefix, params) for prefix in path.prefix)):
        held = list(zip([name for name, _ in columns], values, strict=False))
        rows = [row for row in ROWS if all(row[name] == value for name, value in held)]
        for bound, sign in ((path.lower, 1), (path.upper, -1)):
            if bound is not None:
                name, end = columns[len(held)][0], value_of(bound.value, {}, params)
                rows = [row for row in rows if row[name] is not None]
                rows = [row for row in rows if sign * (row[name] - end) >= (0 if bound.inclusive else 1)]
        rows.sort(key=lambda row: place(row, columns), reverse=path.reverse)
        ranges.append(rows)
    order = path.order or binding.order
    for rows in ranges:
        assert [place(row, order) for row in rows] == sorted(place(row, order) for row in rows), "a range in its order"
    merged = sorted((row for rows in ranges for row in rows), key=lambda row: place(row, order))
    return [row for row in merged if path.residual is None or value_of(path.residual, row, params)]


@given(index_lists, conditions, orders)
@settings(max_examples=120, deadline=None)
def test_each_case_gives_the_rows_that_are_asked_for_in_order(
    indexes: list[list[tuple[str, bool]]], conjuncts: list[str], order: list[tuple[str, bool]]
) -> None:
    listed = [", ".join(["p", *(f"{name} desc" if down else name for name, down in index)]) for index in indexes]
    lines = "".join(f"    index i{number} ({columns})\n" for number, columns in enumerate(listed))
    where = " && ".join(["p == $p", *conjuncts])
    asked = ", ".join(f"{name} desc" if down else name for name, down in order)
    query = (
        "query Q($p: u64, $n: optional<u64>, $e: optional<E>, $list: list<u64, 0..5>) {\n"
        f"  many rows from R where {where} order by {asked} take 100\n  return A {{ rows }}\n}}\n"
    )
    plan = with_its_indexes(f"{HEAD}{lines}  }}\n}}\n{query}")
    if plan is None:
        return
    binding = plan.query("Q").bindings[0]
    entity = plan.entity("R")
    for params in PARAMS:
        given_now = tuple(name for name in binding.filters if params[name] is not None)
        path = next(path for path in binding.paths if set(path.given) == set(given_now))
        rows = followed(entity, binding, path, params)
        wanted = [row for row in ROWS if value_of(binding.where, row, params)]
        assert sorted(map(str, rows)) == sorted(map(str, wanted))
        places = [place(row, tuple(order)) for row in rows]
        assert places == sorted(places)
        keys = {tuple(place(row, path.order or binding.order)): row["k"] for row in rows}
        assert all(keys[tuple(place(row, path.order or binding.order))] == row["k"] for row in rows), "no ties"
