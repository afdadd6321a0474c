"""Expressions: the edges of each operator by hand, then random typed expressions against a naive interpreter.

The interpreter below walks the tree and knows no Python text; what it and the generated functions share is the plan.
"""

from collections.abc import Callable
from typing import Any

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, UUID, Type, string
from riffdb.engine import Evaluation, compile_command
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
    Call,
    Conditional,
    Constant,
    Expression,
    Input,
    IsNull,
    Unary,
    kept_value,
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
        evaluation = compiled.evaluate(inputs, [row], NOW, 2)
        assert isinstance(evaluation, Evaluation)
        return evaluation.payload[0]

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


def test_literals_beside_null() -> None:
    null, three, maybe = Constant(I64.nullable, None), Constant(I64, 3), Input(I64.nullable, "maybe_i64")
    assert value_of(Call(I64, "coalesce", (null, maybe, three))) == 3
    assert value_of(Call(I64, "coalesce", (null, maybe, three)), maybe_i64=4) == 4
    assert value_of(Call(I64, "coalesce", (three, maybe))) == 3
    assert value_of(IsNull(BOOL, null, False)) is True
    assert value_of(IsNull(BOOL, Constant(TEXT, "a"), True)) is True


@pytest.mark.parametrize(
    ("value_type", "value"),
    [(UUID, bytes(range(16))), (BYTES, b"\xff"), (BYTES, b""), (BYTES.nullable, None), (TEXT, "00ff"), (TEXT, "")],
)
def test_literals_have_the_value_that_a_plan_keeps(value_type: Type, value: object) -> None:
    assert value_of(Constant(value_type, kept_value(value))) == value


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
