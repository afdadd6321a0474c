"""The condition of a query taken apart: its conjuncts as equalities and one range over columns of the row.

A conjunct that is neither is named with its reason, never dropped: what this module hands on is the whole condition.
Values stand on one side and cover parameters, constants and `tx.time` alone. Absent: types and narrowing, which the
lowering of the expression has settled, and the choice of an index.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from riffdb.core.spans import Span
from riffdb.core.types import BOOL
from riffdb.plan.expressions import (
    Among,
    Binary,
    Constant,
    Expression,
    Field,
    IsNull,
    Param,
    Revision,
    TransactionTime,
    Unary,
    leaves,
)
from riffdb.plan.queries import BoundPlan
from riffdb.syntax.tree import BinaryExpr, Expr

Comparison = Literal["==", "<", "<=", ">", ">="]
_FLIPPED: dict[str, Comparison] = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Equality:
    """A column held equal to a value."""

    value: Expression
    span: Span


@dataclass(slots=True)
class Range:
    """The ends of the range over one column, as far as the condition gives them."""

    column: str
    span: Span
    lower: BoundPlan | None = None
    upper: BoundPlan | None = None


@dataclass(frozen=True, slots=True)
class Odd:
    """A conjunct that no path answers: `union` and `membership` ask for several ranges, `calculation` compares what is
    computed from columns, `residual` is anything else."""

    kind: Literal["union", "membership", "calculation", "residual"]
    expr: Expr
    lowered: Expression
    reason: str


@dataclass(slots=True)
class Condition:
    """A condition taken apart, in source order."""

    equal: dict[str, Equality] = field(default_factory=dict)
    range: Range | None = None
    odd: list[Odd] = field(default_factory=list)


def take_apart(expr: Expr, lowered: Expression) -> Condition:
    """The conjuncts of a condition, given as written and as lowered."""
    condition = Condition()
    for part, value in _conjuncts(expr, lowered):
        reason = _take(condition, part.span, value)
        if reason is not None:
            condition.odd.append(Odd(*_kind(value), part, value, reason))
    return condition


def _conjuncts(expr: Expr, lowered: Expression) -> Iterator[tuple[Expr, Expression]]:
    if isinstance(expr, BinaryExpr) and expr.operator == "&&":
        assert isinstance(lowered, Binary) and lowered.operator == "&&"
        yield from _conjuncts(expr.left, lowered.left)
        yield from _conjuncts(expr.right, lowered.right)
    else:
        yield expr, lowered


def _take(condition: Condition, span: Span, value: Expression) -> str | None:
    """Put one conjunct where it belongs, or say why it belongs nowhere."""
    match value:
        case Field(name=name):
            return _take_equal(condition, name, Equality(Constant(BOOL, True), span))
        case Unary(operator="!", operand=Field(name=name)):
            return _take_equal(condition, name, Equality(Constant(BOOL, False), span))
        case IsNull(operand=Field(name=name) as operand, negated=False):
            return _take_equal(condition, name, Equality(Constant(operand.type, None), span))
        case Binary(operator="==" | "<" | "<=" | ">" | ">=" as operator, left=Field(name=name), right=other):
            return _take_comparison(condition, name, operator, other, span)
        case Binary(operator="==" | "<" | "<=" | ">" | ">=" as operator, left=other, right=Field(name=name)):
            return _take_comparison(condition, name, _FLIPPED[operator], other, span)
    return "this is neither an equality nor a range of one field"


def _take_comparison(
    condition: Condition, name: str, operator: Comparison, other: Expression, span: Span
) -> str | None:
    if reads_row(other):
        return "this compares the row with itself"
    if operator == "==":
        return _take_equal(condition, name, Equality(other, span))
    return _take_bound(condition, name, operator, other, span)


def _take_equal(condition: Condition, name: str, equality: Equality) -> str | None:
    if name in condition.equal or (condition.range is not None and condition.range.column == name):
        return f"`{name}` has a condition already"
    condition.equal[name] = equality
    return None


def _take_bound(condition: Condition, name: str, operator: Comparison, other: Expression, span: Span) -> str | None:
    if name in condition.equal:
        return f"`{name}` has a condition already"
    found = condition.range or Range(name, span)
    if found.column != name:
        return f"`{found.column}` has a range already, and one range is all that an index answers"
    end = "upper" if operator in ("<", "<=") else "lower"
    if getattr(found, end) is not None:
        return f"the range of `{name}` has this end already"
    setattr(found, end, BoundPlan(other, operator in ("<=", ">=")))
    condition.range = found
    return None


def _kind(value: Expression) -> tuple[Literal["union", "membership", "calculation", "residual"]]:
    match value:
        case Binary(operator="||"):
            return ("union",)
        case Among(negated=False, operand=Field()):
            return ("membership",)
        case Binary(operator="==" | "<" | "<=" | ">" | ">=", left=left, right=right):
            if any(_is_calculation(side) and not reads_row(other) for side, other in ((left, right), (right, left))):
                return ("calculation",)
    return ("residual",)


def _is_calculation(value: Expression) -> bool:
    return reads_row(value) and not isinstance(value, Field | Revision)


def calculated_side(odd: Odd) -> tuple[Expr, Expression]:
    """The side of a `calculation` that reads the row, as written and as lowered."""
    assert isinstance(odd.expr, BinaryExpr) and isinstance(odd.lowered, Binary)
    left_reads = reads_row(odd.lowered.left)
    return (odd.expr.left, odd.lowered.left) if left_reads else (odd.expr.right, odd.lowered.right)


def reads_row(value: Expression) -> bool:
    """Whether the expression reads a column or the revision of a row."""
    return any(isinstance(leaf, Field | Revision) for leaf in leaves(value))


def reads_outside(value: Expression) -> bool:
    """Whether the expression reads a parameter or the time, which a computed field cannot."""
    return any(isinstance(leaf, Param | TransactionTime) for leaf in leaves(value))
