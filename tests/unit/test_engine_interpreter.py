"""Expressions against those of the slow twin, which walks the tree and knows no Python text.

Every operator is tried inside every other, where parentheses are lost first; then random trees of greater depth. What
the twin and the generated functions share is the plan alone.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given as each
from hypothesis import settings
from hypothesis import strategies as st

from riffdb.core.errors import RiffError
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64
from riffdb.plan.expressions import (
    Among,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Constant,
    Expression,
    Field,
    FunctionName,
    Input,
    IsNull,
    TransactionTime,
    Unary,
    kept_value,
)
from tests.model.expressions import value_of
from tests.model.wire import RANGES as WHOLE
from tests.model.wire import RefusedError
from tests.unit.test_engine_expressions import MONEY, NOW, TEXT, TYPES, shown

RANGES = WHOLE | {"decimal": (-999_999, 999_999)}


class Values:
    """The scene of one expression: inputs and fields by name."""

    time = NOW

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def given(self, name: str) -> Any:
        return self.values[name]

    def field(self, binding: str, name: str) -> Any:
        return self.values[name]

    def item(self, name: str) -> Any:
        raise AssertionError(name)

    revision = row = item


def agree(expression: Expression, values: dict[str, Any]) -> None:
    """Both give the same value, or both find that a value leaves its range."""
    generated = shown(expression)
    try:
        expected = value_of(expression, Values(values))
    except RefusedError:
        with pytest.raises(RiffError) as raised:
            generated(**values)
        assert raised.value.code == "RDB-E-ARITHMETIC"
        return
    found = generated(**values)
    assert (found, type(found)) == (expected, type(expected))


# --- shapes ------------------------------------------------------------------------------------------------------

KINDS = {"bool": BOOL, "i64": I64, "u64": U64, "string": TEXT, "timestamp": TIMESTAMP, "decimal": MONEY}
OPTIONAL = ("i64", "u64", "string", "timestamp")
COMPARISONS: tuple[BinaryOperator, ...] = ("==", "!=", "<", "<=", ">", ">=")
ARITHMETIC: dict[str, tuple[BinaryOperator, ...]] = {
    "i64": ("+", "-", "*", "/", "%"),
    "u64": ("+", "-", "*", "/", "%"),
    "decimal": ("+", "-"),
}


class Shape(NamedTuple):
    """One node: the kind of its value, those of its operands (`maybe …` takes null), and what makes it of them."""

    kind: str
    operands: tuple[str, ...]
    make: Callable[..., Expression]


def binary_shape(operator: BinaryOperator, kind: str, left: str, right: str) -> Shape:
    return Shape(kind, (left, right), lambda *sides: Binary(KINDS[kind], operator, *sides))


def call_shape(function: FunctionName, kind: str, *operands: str) -> Shape:
    return Shape(kind, operands, lambda *arguments: Call(KINDS[kind], function, arguments))


def narrowed(kind: str) -> Callable[[Any, Expression], Expression]:
    """`(if x is not null then x else …)`, where the second x is known to be there."""
    required = KINDS[kind]

    def make(maybe: Any, otherwise: Expression) -> Expression:
        inside = Input(required, maybe.name) if isinstance(maybe, Input) else Field(required, "pair", maybe.name)
        return Conditional(required, IsNull(BOOL, maybe, True), inside, otherwise)

    return make


def shapes_of(kind: str) -> list[Shape]:
    """The shapes that a kind has, or gives to conditions."""
    found = [Shape(kind, ("bool", kind, kind), lambda *parts: Conditional(KINDS[kind], *parts))]
    found += [binary_shape(operator, kind, kind, kind) for operator in ARITHMETIC.get(kind, ())]
    found += [binary_shape(operator, "bool", kind, kind) for operator in COMPARISONS[: 2 if kind == "bool" else 6]]
    if kind != "bool":
        found += [call_shape("min", kind, kind, kind, kind), call_shape("max", kind, kind, kind)]
    if kind in OPTIONAL:
        maybe = f"maybe {kind}"
        found += [
            Shape(kind, (maybe, kind), narrowed(kind)),
            call_shape("coalesce", kind, maybe, maybe, kind),
            Shape("bool", (maybe,), lambda operand: IsNull(BOOL, operand, False)),
            Shape("bool", (kind,), lambda operand: IsNull(BOOL, operand, True)),
            Shape("bool", (kind, maybe, kind), lambda operand, *options: Among(BOOL, operand, options, False)),
            Shape("bool", (maybe, kind), lambda operand, *options: Among(BOOL, operand, options, True)),
            binary_shape("==", "bool", maybe, kind),
        ]
    return found


SHAPES = [shape for kind in KINDS for shape in shapes_of(kind)] + [
    Shape("bool", ("bool",), lambda operand: Unary(BOOL, "!", operand)),
    binary_shape("&&", "bool", "bool", "bool"),
    binary_shape("||", "bool", "bool", "bool"),
    Shape("i64", ("i64",), lambda operand: Unary(I64, "-", operand)),
    Shape("decimal", ("decimal",), lambda operand: Unary(MONEY, "-", operand)),
    binary_shape("*", "decimal", "decimal", "i64"),
    binary_shape("*", "decimal", "u64", "decimal"),
    call_shape("length", "u64", "string"),
    call_shape("lower", "string", "string"),
    call_shape("concat", "string", "string", "string"),
    call_shape("seconds_between", "i64", "timestamp", "timestamp"),
    Shape(
        "timestamp",
        ("timestamp", "u64"),
        lambda moment, count: Binary(TIMESTAMP, "+", moment, Call(I64, "seconds", (count,))),
    ),
    Shape(
        "timestamp",
        ("timestamp", "u64"),
        lambda moment, count: Binary(TIMESTAMP, "-", moment, Call(I64, "seconds", (count,))),
    ),
]


def leaf(kind: str, random: Random) -> Expression:
    """An input, a field of a row, a literal, or the time."""
    if kind.startswith("maybe "):
        name = kind.replace(" ", "_")
        nullable: list[Expression] = [Input(TYPES[name], name), Field(TYPES[name], "pair", name)]
        return random.choice(nullable)
    value_type = KINDS[kind]
    name = random.choice([name for name, known in TYPES.items() if known == value_type])
    options: list[Expression] = [Input(value_type, name), Field(value_type, "pair", name)]
    options.append(Constant(value_type, kept_value(value(kind, random))))
    if kind == "timestamp":
        options.append(TransactionTime(TIMESTAMP))
    return random.choice(options)


def tree(kind: str, depth: int, random: Random) -> Expression:
    """A random expression of that kind."""
    if depth == 0 or kind.startswith("maybe ") or random.random() < 0.1:
        return leaf(kind, random)
    shape = random.choice([shape for shape in SHAPES if shape.kind == kind])
    make: Callable[..., Expression] = shape.make
    return make(*(tree(operand, depth - 1, random) for operand in shape.operands))


def value(kind: str, random: Random) -> Any:
    """A value near nothing, near an end of the range, or anywhere in it."""
    if kind == "bool":
        return random.random() < 0.5
    if kind == "string":
        return "".join(random.choices("aAzZ[@ßİ\u0800\uffff\U00010000'", k=random.randrange(4)))
    low, high = RANGES[kind]
    ends = [low, low + 1, high - 1, high, random.randint(low, high)]
    return random.choice(ends) if random.random() < 0.25 else random.randint(max(low, -3), 3)


def environment(random: Random) -> dict[str, Any]:
    """A value for every input and field."""
    return {
        name: None if kind.optional and random.random() < 0.4 else value(kind.kind, random)
        for name, kind in TYPES.items()
    }


PLACES = [
    pytest.param(outer, place, id=f"{number}-{place}")
    for number, outer in enumerate(SHAPES)
    for place, operand in enumerate(outer.operands)
    if not operand.startswith("maybe ")
]


@pytest.mark.parametrize(("outer", "place"), PLACES)
def test_every_operator_inside_every_other(outer: Shape, place: int) -> None:
    random = Random(place)
    for inner in SHAPES:
        if inner.kind == outer.operands[place]:
            operands = [leaf(operand, random) for operand in outer.operands]
            operands[place] = inner.make(*(leaf(operand, random) for operand in inner.operands))
            expression = outer.make(*operands)
            agree(expression, environment(random))


@settings(max_examples=500)
@each(st.integers(0, 2**32), st.sampled_from(list(KINDS)))
def test_random_trees(seed: int, kind: str) -> None:
    random = Random(seed)
    agree(tree(kind, 4, random), environment(random))


def test_both_sides_of_the_comparison_have_something_to_say() -> None:
    # Were nearly all trees out of range, or nearly none, the property above would say little.
    random, left = Random(1), 0
    for _ in range(500):
        try:
            value_of(tree("i64", 4, random), Values(environment(random)))
        except RefusedError:
            left += 1
    assert 50 < left < 450
