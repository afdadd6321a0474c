"""Expressions: the edges of each operator by hand, then random typed expressions against a naive interpreter.

The interpreter below walks the tree and knows no Python text; what it and the generated functions share is the plan.
"""

from collections.abc import Callable
from fractions import Fraction
from math import trunc
from typing import Any

import pytest
from hypothesis import given as each
from hypothesis import settings
from hypothesis import strategies as st

from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, UUID, Type, string
from riffdb.engine import compile_command
from riffdb.plan import Plan
from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    InputPlan,
    OutcomePlan,
    OutcomeUse,
    PayloadField,
    PayloadPlan,
)
from riffdb.plan.declarations import EntityPlan, FieldPlan
from riffdb.plan.expressions import (
    Among,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Constant,
    Expression,
    Field,
    Input,
    IsNull,
    TransactionTime,
    Unary,
)

TEXT, BYTES, DATE, MONEY = string(64), Type("bytes", bound=8), Type("date"), Type("decimal", bound=6, scale=2)
TYPES: dict[str, Type] = {
    "flag": BOOL,
    "a": I64,
    "b": I64,
    "c": U64,
    "d": U64,
    "s": TEXT,
    "t": TEXT,
    "m": TIMESTAMP,
    "n": TIMESTAMP,
    "money": MONEY,
    "cost": MONEY,
    "maybe_i64": I64.nullable,
    "maybe_u64": U64.nullable,
    "maybe_string": TEXT.nullable,
    "maybe_timestamp": TIMESTAMP.nullable,
}
NOW = 1_700_000_000_000_000
OVERFLOW, ZERO = "the result leaves the range of", "division by zero"

PAIR = EntityPlan(
    "Pair",
    (FieldPlan("id", U64),),
    "id",
    tuple(FieldPlan(name, kind) for name, kind in TYPES.items()),
)


def shown(expression: Expression, types: dict[str, Type] = TYPES) -> Callable[..., Any]:
    """The value of the expression, as a function of what its inputs, and the fields of a row with their names, are."""
    outcome = OutcomePlan("Shown", True, False, (PayloadField("value", expression.type),))
    command = CommandPlan(
        "Show",
        tuple(InputPlan(name, kind) for name, kind in types.items()),
        None,
        Constant(U64, 1),
        (BindStep("read", "pair", "Pair", (Constant(U64, 1),), OutcomeUse("Missing")),),
        OutcomeUse("Shown", (PayloadPlan("value", expression),)),
        (outcome, OutcomePlan("Missing", False, False)),
    )
    compiled = compile_command(Plan("pairs", "Pairs", 1, entities=(PAIR,), commands=(command,)), "Show")

    def value(**values: Any) -> Any:
        inputs = tuple(values.get(name) for name in types)
        row = (1, *(values.get(name) for name in TYPES), 1, 1)
        return compiled.evaluate(inputs, [row], NOW, 2).payload[0]

    return value


def value_of(expression: Expression, types: dict[str, Type] = TYPES, **values: Any) -> Any:
    """The value of the expression, once."""
    return shown(expression, types)(**values)


def operation(left: Any, operator: Any, right: Any, kind: Type) -> Any:
    """The value of `left operator right`, the operands as inputs."""
    types = {"left": kind, "right": kind}
    expression = Binary(kind, operator, Input(kind, "left"), Input(kind, "right"))
    return value_of(expression, types, left=left, right=right)


DATE_MIN, DATE_MAX = -719_162, 2_932_896

ARITHMETIC = [
    # left, operator, right, type: the value, or what the error says
    (I64_MAX, "+", 1, I64, OVERFLOW),
    (I64_MAX - 1, "+", 1, I64, I64_MAX),
    (I64_MIN, "-", 1, I64, OVERFLOW),
    (I64_MIN, "+", -1, I64, OVERFLOW),
    (I64_MAX, "-", -1, I64, OVERFLOW),
    (I64_MIN, "*", -1, I64, OVERFLOW),
    (-(2**32), "*", 2**31, I64, I64_MIN),
    (I64_MIN, "/", -1, I64, OVERFLOW),
    (I64_MIN, "/", 1, I64, I64_MIN),
    (I64_MIN, "%", -1, I64, 0),
    (7, "/", 2, I64, 3),
    (-7, "/", 2, I64, -3),
    (7, "/", -2, I64, -3),
    (-7, "/", -2, I64, 3),
    (-1, "/", 2, I64, 0),
    (7, "%", 2, I64, 1),
    (-7, "%", 2, I64, -1),
    (7, "%", -2, I64, 1),
    (-7, "%", -2, I64, -1),
    (1, "/", 0, I64, ZERO),
    (1, "%", 0, I64, ZERO),
    (U64_MAX, "+", 1, U64, OVERFLOW),
    (U64_MAX, "+", 0, U64, U64_MAX),
    (0, "-", 1, U64, OVERFLOW),
    (1, "-", 1, U64, 0),
    (2**32, "*", 2**32, U64, OVERFLOW),
    (U64_MAX, "/", 2, U64, 2**63 - 1),
    (U64_MAX, "%", 10, U64, 5),
    (0, "/", 0, U64, ZERO),
    (0, "%", 0, U64, ZERO),
    (999_999, "+", 1, MONEY, OVERFLOW),
    (-999_999, "-", 1, MONEY, OVERFLOW),
    (999_998, "+", 1, MONEY, 999_999),
    (-999_998, "-", 1, MONEY, -999_999),
    (DATE_MAX, "+", 1, DATE, OVERFLOW),
    (DATE_MIN, "-", 1, DATE, OVERFLOW),
]


def name_of(value: Any) -> str:
    return str(value)


@pytest.mark.parametrize(("left", "operator", "right", "kind", "expected"), ARITHMETIC, ids=name_of)
def test_arithmetic_is_checked(left: int, operator: str, right: int, kind: Type, expected: int | str) -> None:
    if isinstance(expected, int):
        assert operation(left, operator, right, kind) == expected
        return
    with pytest.raises(RiffError, match=f"Show, return Shown: {expected}") as raised:
        operation(left, operator, right, kind)
    assert raised.value.code == "RDB-E-ARITHMETIC"
    assert (str(kind) in raised.value.message) == (expected == OVERFLOW)
    assert str(left) not in raised.value.message.replace("64", "") or left in (0, 1)


def test_negation_is_checked() -> None:
    assert value_of(Unary(I64, "-", Input(I64, "a")), a=I64_MAX) == -I64_MAX
    assert value_of(Unary(I64, "-", Constant(I64, -5))) == 5
    with pytest.raises(RiffError, match=OVERFLOW):
        value_of(Unary(I64, "-", Input(I64, "a")), a=I64_MIN)


def shifted(operator: Any) -> Expression:
    return Binary(TIMESTAMP, operator, Input(TIMESTAMP, "m"), Call(I64, "seconds", (Input(U64, "c"),)))


def test_a_moment_moved_by_seconds_is_checked_where_it_is_formed() -> None:
    assert value_of(shifted("+"), m=TIMESTAMP_MAX - 1_000_000, c=1) == TIMESTAMP_MAX
    assert value_of(shifted("-"), m=TIMESTAMP_MIN + 1_000_000, c=1) == TIMESTAMP_MIN
    for operator, moment, seconds in (
        ("+", TIMESTAMP_MAX - 999_999, 1),
        ("-", TIMESTAMP_MIN + 999_999, 1),
        ("+", 0, U64_MAX),
    ):
        with pytest.raises(RiffError, match=f"{OVERFLOW} timestamp"):
            value_of(shifted(operator), m=moment, c=seconds)


def test_seconds_between_truncate_toward_zero() -> None:
    between = Call(I64, "seconds_between", (Input(TIMESTAMP, "m"), Input(TIMESTAMP, "n")))
    assert value_of(between, m=0, n=1_999_999) == 1
    assert value_of(between, m=1_999_999, n=0) == -1
    assert value_of(between, m=TIMESTAMP_MIN, n=TIMESTAMP_MAX) == 315_537_897_599


def test_texts() -> None:
    s, t = Input(TEXT, "s"), Input(TEXT, "t")
    assert value_of(Call(U64, "length", (s,)), s="Grüße") == 7
    assert value_of(Call(U64, "length", (Input(BYTES, "s"),)), {"s": BYTES}, s=b"\xff\xfe") == 2
    assert value_of(Call(TEXT, "lower", (s,)), s="ÄBC İ") == "Äbc İ"
    assert value_of(Call(TEXT, "concat", (s, Constant(TEXT, "-"), t)), s="a", t="b") == "a-b"


def test_texts_are_ordered_by_their_bytes() -> None:
    less = shown(Binary(BOOL, "<", Input(TEXT, "s"), Input(TEXT, "t")))
    texts = ["", "A", "Z", "a", "\x7f", "\x80", "ÿ", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff"]
    assert sorted(texts, key=str.encode) == texts
    for left in texts:
        for right in texts:
            assert less(s=left, t=right) == (left.encode() < right.encode())


def test_null_equals_only_null() -> None:
    maybe, other = Input(I64.nullable, "maybe_i64"), Input(I64.nullable, "other")
    types = {"maybe_i64": I64.nullable, "other": I64.nullable}
    for left in (None, 0):
        for right in (None, 0):
            equal = (left is None) == (right is None)
            assert value_of(Binary(BOOL, "==", maybe, other), types, maybe_i64=left, other=right) == equal
            assert value_of(Binary(BOOL, "!=", maybe, other), types, maybe_i64=left, other=right) != equal
            assert value_of(Among(BOOL, maybe, (other,), False), types, maybe_i64=left, other=right) == equal
            assert value_of(Among(BOOL, maybe, (other,), True), types, maybe_i64=left, other=right) != equal


def test_a_comparison_of_comparisons_is_no_chain() -> None:
    less = Binary(BOOL, "<", Input(I64, "a"), Input(I64, "b"))
    assert value_of(Binary(BOOL, "==", less, Constant(BOOL, False)), a=2, b=1) is True
    assert value_of(Binary(BOOL, "==", Constant(BOOL, False), less), a=2, b=1) is True


def test_and_or_if_and_coalesce_stop_early() -> None:
    fails = Binary(I64, "/", Constant(I64, 1), Constant(I64, 0))
    faulty, flag = Binary(BOOL, "==", fails, Constant(I64, 1)), Input(BOOL, "flag")
    assert value_of(Binary(BOOL, "&&", flag, faulty), flag=False) is False
    assert value_of(Binary(BOOL, "||", flag, faulty), flag=True) is True
    assert value_of(Conditional(I64, flag, Input(I64, "a"), fails), flag=True, a=4) == 4
    assert value_of(Call(I64, "coalesce", (Input(I64.nullable, "maybe_i64"), fails)), maybe_i64=4) == 4
    with pytest.raises(RiffError, match=ZERO):
        value_of(Call(I64, "coalesce", (Input(I64.nullable, "maybe_i64"), fails)))


def test_identifiers_in_a_plan_that_was_kept_as_json_are_base64() -> None:
    assert value_of(Constant(UUID, "AAECAwQFBgcICQoLDA0ODw==")) == bytes(range(16))
    assert value_of(Constant(BYTES, "_w==".replace("_", "/"))) == b"\xff"
    assert value_of(Constant(TEXT, "AAECAwQFBgcICQoLDA0ODw==")) == "AAECAwQFBgcICQoLDA0ODw=="


def test_a_chain_may_be_long() -> None:
    total: Expression = Input(I64, "a")
    either: Expression = Binary(BOOL, "==", Input(I64, "a"), Constant(I64, 0))
    for step in range(1, 2000):
        total = Binary(I64, "+" if step % 2 else "-", total, Constant(I64, step))
        either = Binary(BOOL, "||", either, Binary(BOOL, "==", Input(I64, "a"), Constant(I64, step)))
    assert value_of(total, a=5) == 5 + 1000
    assert value_of(either, a=1999) is True
    assert value_of(either, a=2000) is False


def test_what_nests_too_deeply_is_the_contracts_fault() -> None:
    deep: Expression = Input(BOOL, "flag")
    for _ in range(230):
        deep = Binary(BOOL, "==", Constant(BOOL, True), deep)
    with pytest.raises(RiffError, match="Show: an expression nests too deeply") as raised:
        value_of(deep, flag=True)
    assert raised.value.code == "RDB-E-CONTRACT"


# --- the interpreter ---------------------------------------------------------------------------------------------

RANGES = {
    "i64": (I64_MIN, I64_MAX),
    "u64": (0, U64_MAX),
    "timestamp": (TIMESTAMP_MIN, TIMESTAMP_MAX),
    "decimal": (-999_999, 999_999),
}


class OutOfRangeError(Exception):
    """A value left its range, or a division by zero."""


def in_range(value: int, kind: Type) -> int:
    low, high = RANGES[kind.kind]
    if low <= value <= high:
        return value
    raise OutOfRangeError


def interpret(expression: Expression, values: dict[str, Any]) -> Any:
    match expression:
        case Constant(value=value):
            return value
        case Input(name=name) | Field(name=name):
            return values[name]
        case TransactionTime():
            return NOW
        case Unary(operator="!", operand=operand):
            return not interpret(operand, values)
        case Unary(operand=operand):
            return in_range(-interpret(operand, values), expression.type)
        case Binary(operator="&&", left=left, right=right):
            return interpret(right, values) if interpret(left, values) else False
        case Binary(operator="||", left=left, right=right):
            return True if interpret(left, values) else interpret(right, values)
        case Binary():
            return interpret_binary(expression, values)
        case IsNull(operand=operand, negated=negated):
            return (interpret(operand, values) is None) != negated
        case Among(operand=operand, options=options, negated=negated):
            wanted = interpret(operand, values)
            return (wanted in [interpret(option, values) for option in options]) != negated
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return interpret(then if interpret(condition, values) else otherwise, values)
        case Call():
            return interpret_call(expression, values)
    raise AssertionError(expression)


def interpret_binary(expression: Binary, values: dict[str, Any]) -> Any:
    left, right = interpret(expression.left, values), interpret(expression.right, values)
    if isinstance(left, str) and expression.operator not in ("==", "!="):
        left, right = left.encode(), right.encode()
    match expression.operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "+":
            return in_range(left + right, expression.type)
        case "-":
            return in_range(left - right, expression.type)
        case "*":
            return in_range(left * right, expression.type)
    if right == 0:
        raise OutOfRangeError
    quotient = trunc(Fraction(left, right))
    return in_range(quotient if expression.operator == "/" else left - right * quotient, expression.type)


def interpret_call(call: Call, values: dict[str, Any]) -> Any:
    if call.function == "coalesce":
        for argument in call.arguments:
            value = interpret(argument, values)
            if value is not None:
                return value
        return None
    arguments = [interpret(argument, values) for argument in call.arguments]
    match call.function:
        case "min":
            return sorted(arguments)[0]
        case "max":
            return sorted(arguments)[-1]
        case "length":
            return len(arguments[0].encode())
        case "concat":
            return "".join(arguments)
        case "lower":
            return "".join(chr(ord(letter) + 32) if "A" <= letter <= "Z" else letter for letter in arguments[0])
        case "seconds":
            return arguments[0] * 1_000_000
        case "seconds_between":
            return trunc(Fraction(arguments[1] - arguments[0], 1_000_000))
    raise AssertionError(call.function)


# --- random expressions ------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


def edges(low: int, high: int) -> st.SearchStrategy[int]:
    near = st.sampled_from([low, low + 1, high - 1, high, *(number for number in (-2, -1, 0, 1, 2) if number >= low)])
    return near | st.integers(low, high) | st.integers(max(low, -1000), 1000)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "i64": edges(I64_MIN, I64_MAX),
    "u64": edges(0, U64_MAX),
    "string": TEXTS,
    "timestamp": edges(TIMESTAMP_MIN, TIMESTAMP_MAX),
    "decimal": edges(-999_999, 999_999),
}
KINDS = {"bool": BOOL, "i64": I64, "u64": U64, "string": TEXT, "timestamp": TIMESTAMP, "decimal": MONEY}
ENVIRONMENTS = st.fixed_dictionaries(
    {name: st.none() | VALUES[kind.kind] if kind.optional else VALUES[kind.kind] for name, kind in TYPES.items()}
)


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int) -> Expression:
    """An expression of a required type, as the compiler could have made it."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(leaves(kind))
    inner = expressions(kind, depth - 1)
    shapes = ["if", *(("narrowed", "coalesce") if kind in OPTIONAL else ()), *SHAPES[kind]]
    match draw(st.sampled_from(shapes)):
        case "if":
            return Conditional(KINDS[kind], draw(expressions("bool", depth - 1)), draw(inner), draw(inner))
        case "narrowed":
            maybe = draw(optionals(kind))
            return Conditional(KINDS[kind], IsNull(BOOL, maybe, True), _required(maybe), draw(inner))
        case "coalesce":
            return Call(KINDS[kind], "coalesce", (draw(optionals(kind)), draw(inner)))
        case "min" | "max" as function:
            return Call(KINDS[kind], function, tuple(draw(st.lists(inner, min_size=2, max_size=3))))
        case "negated":
            return Unary(KINDS[kind], "-", draw(inner))
        case "chain":
            return draw(chains(kind, depth))
        case "scaled":
            return Binary(MONEY, "*", draw(inner), draw(expressions("i64", depth - 1)))
        case "length":
            return Call(U64, "length", (draw(expressions("string", depth - 1)),))
        case "lower":
            return Call(TEXT, "lower", (draw(inner),))
        case "concat":
            return Call(TEXT, "concat", (draw(inner), draw(inner)))
        case "moved":
            seconds = Call(I64, "seconds", (draw(expressions("u64", depth - 1)),))
            return Binary(TIMESTAMP, draw(st.sampled_from(["+", "-"])), draw(inner), seconds)
        case "between":
            moments = expressions("timestamp", depth - 1)
            return Call(I64, "seconds_between", (draw(moments), draw(moments)))
        case shape:
            return draw(conditions(shape, depth - 1))


OPTIONAL = ("i64", "u64", "string", "timestamp")
SHAPES = {
    "bool": ["not", "and", "or", "compared", "compared", "is null", "among"],
    "i64": ["min", "max", "negated", "chain", "chain", "between"],
    "u64": ["min", "max", "chain", "chain", "length"],
    "string": ["min", "max", "lower", "concat"],
    "timestamp": ["min", "max", "moved"],
    "decimal": ["min", "max", "negated", "chain", "scaled"],
}


@st.composite
def leaves(draw: st.DrawFn, kind: str) -> Expression:
    name = draw(st.sampled_from([name for name, known in TYPES.items() if known == KINDS[kind]]))
    options: list[Expression] = [Input(KINDS[kind], name), Field(KINDS[kind], "pair", name)]
    if kind == "timestamp":
        options.append(TransactionTime(TIMESTAMP))
    return draw(st.sampled_from(options) | VALUES[kind].map(lambda value: Constant(KINDS[kind], value)))


@st.composite
def optionals(draw: st.DrawFn, kind: str) -> Input | Field:
    optional, name = KINDS[kind].nullable, f"maybe_{kind}"
    return Input(optional, name) if draw(st.booleans()) else Field(optional, "pair", name)


def _required(maybe: Input | Field) -> Expression:
    if isinstance(maybe, Input):
        return Input(maybe.type.required, maybe.name)
    return Field(maybe.type.required, maybe.binding, maybe.name)


@st.composite
def chains(draw: st.DrawFn, kind: str, depth: int) -> Expression:
    sums: list[BinaryOperator] = ["+", "-"]
    products: list[BinaryOperator] = [] if kind == "decimal" else ["*", "/", "%"]
    operators = st.sampled_from(sums + products)
    chain = draw(expressions(kind, depth - 1))
    for _ in range(draw(st.integers(1, 4))):
        chain = Binary(KINDS[kind], draw(operators), chain, draw(expressions(kind, depth - 1)))
    return chain


@st.composite
def conditions(draw: st.DrawFn, shape: str, depth: int) -> Expression:
    inner = expressions("bool", depth)
    match shape:
        case "not":
            return Unary(BOOL, "!", draw(inner))
        case "and":
            return Binary(BOOL, "&&", draw(inner), draw(inner))
        case "or":
            return Binary(BOOL, "||", draw(inner), draw(inner))
        case "is null":
            kind = draw(st.sampled_from(OPTIONAL))
            return IsNull(BOOL, draw(optionals(kind)), draw(st.booleans()))
        case "compared":
            kind = draw(st.sampled_from(list(KINDS)))
            equalities: list[BinaryOperator] = ["==", "!="]
            orders: list[BinaryOperator] = [] if kind == "bool" else ["<", "<=", ">", ">="]
            sides = draw(expressions(kind, depth)), draw(expressions(kind, depth))
            return Binary(BOOL, draw(st.sampled_from(equalities + orders)), *sides)
    kind = draw(st.sampled_from(OPTIONAL))
    members = st.lists(expressions(kind, depth) | optionals(kind), min_size=1, max_size=3)
    return Among(BOOL, draw(optionals(kind) | expressions(kind, depth)), tuple(draw(members)), draw(st.booleans()))


@settings(max_examples=200)
@each(st.sampled_from(list(KINDS)).flatmap(lambda kind: expressions(kind, 3)), ENVIRONMENTS)
def test_generated_text_says_what_the_tree_says(expression: Expression, values: dict[str, Any]) -> None:
    try:
        expected = interpret(expression, values)
    except OutOfRangeError:
        with pytest.raises(RiffError) as raised:
            value_of(expression, **values)
        assert raised.value.code == "RDB-E-ARITHMETIC"
        return
    found = value_of(expression, **values)
    assert (found, type(found)) == (expected, type(expected))
