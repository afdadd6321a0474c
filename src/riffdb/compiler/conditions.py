"""The condition of a query taken apart: its conjuncts as equalities, ranges over columns of the row, and the rest.

Every conjunct stands in one of them, never dropped: what this module hands on is the whole condition. Values stand on
one side and cover parameters, constants and `tx.time` alone. A conjunct as written and as lowered goes together, so
that whoever refuses it can point at it. Absent: types and narrowing, which the lowering of the expression has settled,
and the choice of an index.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from riffdb.core.types import BOOL
from riffdb.plan.expressions import (
    Among,
    Binary,
    Call,
    Conditional,
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
from riffdb.plan.queries import BoundPlan, PrefixPlan
from riffdb.syntax.tree import BinaryExpr, Expr, InExpr, IsNullExpr, UnaryExpr

Comparison = Literal["==", "<", "<=", ">", ">="]
_FLIPPED: dict[str, Comparison] = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPUTING = ("+", "-", "*", "/", "%")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a condition, as written and as lowered."""

    expr: Expr
    lowered: Expression


@dataclass(frozen=True, slots=True)
class Filter:
    """An optional filter: a conjunct that asks for nothing where its parameter is null, else for these conjuncts."""

    param: str
    whole: Part
    given: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Equality:
    """A column held equal to one of some values."""

    values: PrefixPlan
    part: Part

    @property
    def count(self) -> int:
        """How many values there are at most."""
        return len(self.values.values) if self.values.among is None else self.values.among.type.bound

    @property
    def single(self) -> Expression | None:
        """The value, if it is one alone."""
        return self.values.values[0] if len(self.values.values) == 1 else None


@dataclass(slots=True)
class Range:
    """The ends of the range over one column, as far as the condition gives them, and the conjuncts that do."""

    parts: list[Part] = field(default_factory=list)
    lower: BoundPlan | None = None
    upper: BoundPlan | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """A conjunct that is neither an equality nor a range of one column, and why."""

    part: Part
    reason: str


@dataclass(slots=True)
class Condition:
    """Conjuncts in source order, each in its place."""

    equal: dict[str, Equality] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    left: list[Leftover] = field(default_factory=list)


def conjuncts(whole: Part) -> Iterator[Part]:
    """The conjuncts of a condition."""
    expr, lowered = whole.expr, whole.lowered
    if isinstance(expr, BinaryExpr) and expr.operator == "&&":
        assert isinstance(lowered, Binary) and lowered.operator == "&&"
        yield from conjuncts(Part(expr.left, lowered.left))
        yield from conjuncts(Part(expr.right, lowered.right))
    else:
        yield whole


def filters_among(parts: Iterable[Part]) -> list[Part | Filter]:
    """The conjuncts, with those that are optional filters told as such: those that a path can answer if given."""
    return [_filter(part) or part for part in parts]


def _filter(part: Part) -> Filter | None:
    expr, lowered = part.expr, part.lowered
    if not (isinstance(expr, BinaryExpr) and isinstance(lowered, Binary) and lowered.operator == "||"):
        return None
    sides = (Part(expr.left, lowered.left), Part(expr.right, lowered.right))
    for asked, other in (sides, sides[::-1]):
        match asked.lowered:
            case IsNull(operand=Param(name=name), negated=False):
                given = tuple(conjuncts(other))
                return None if read(given).left else Filter(name, part, given)
    return None


def parts_if(parts: Iterable[Part | Filter], given: Collection[str]) -> list[Part]:
    """The conjuncts in the case that these filters are given, and the others null."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Part):
            found.append(part)
        elif part.param in given:
            found.extend(part.given)
    return found


def read(parts: Iterable[Part]) -> Condition:
    """Put each conjunct where it belongs; of two that would stand in one place the first does."""
    condition = Condition()
    others: list[Part] = []
    for part in parts:
        found = _alternatives(part.lowered)
        if found is None:
            others.append(part)
        elif found[0] in condition.equal:
            condition.left.append(Leftover(part, f"`{found[0]}` has a condition already"))
        else:
            condition.equal[found[0]] = Equality(found[1], part)
    present: list[tuple[str, Part]] = []
    for part in others:
        match part.lowered:
            case IsNull(operand=Field(name=name), negated=True):
                present.append((name, part))
            case _:
                reason = _take_bound(condition, part)
                if reason is not None:
                    condition.left.append(Leftover(part, reason))
    for name, part in present:
        if name in condition.ranges:  # which leaves null out
            condition.ranges[name].parts.append(part)
        else:
            condition.left.append(Leftover(part, "this is neither an equality nor a range of one field"))
    return condition


def _alternatives(value: Expression) -> tuple[str, PrefixPlan] | None:
    """The column and the values that it may equal, if that is all that the conjunct says."""
    match value:
        case Field(name=name):
            return name, PrefixPlan((Constant(BOOL, True),))
        case Unary(operator="!", operand=Field(name=name)):
            return name, PrefixPlan((Constant(BOOL, False),))
        case IsNull(operand=Field(name=name) as operand, negated=False):
            return name, PrefixPlan((Constant(operand.type, None),))
        case Binary(operator="==", left=Field(name=name), right=other) if not reads_row(other):
            return name, PrefixPlan((other,))
        case Binary(operator="==", left=other, right=Field(name=name)) if not reads_row(other):
            return name, PrefixPlan((other,))
        case Among(operand=Field(name=name), options=options, negated=False) if not any(map(reads_row, options)):
            match options:
                case (Param(type=kind) as among,) if kind.kind == "list":
                    return name, PrefixPlan(among=among)
            return name, PrefixPlan(tuple(dict.fromkeys(options)))
        case Binary(operator="||", left=left, right=right):
            one, other_one = _alternatives(left), _alternatives(right)
            if one is None or other_one is None or one[0] != other_one[0]:
                return None
            if one[1].among is not None or other_one[1].among is not None:
                return None
            return one[0], PrefixPlan(tuple(dict.fromkeys((*one[1].values, *other_one[1].values))))
    return None


def _take_bound(condition: Condition, part: Part) -> str | None:
    """Put a comparison into the range of its column, or say why it belongs nowhere."""
    match part.lowered:
        case Binary(operator="<" | "<=" | ">" | ">=" as operator, left=Field(name=name), right=other):
            return _take_end(condition, part, name, operator, other)
        case Binary(operator="<" | "<=" | ">" | ">=" as operator, left=other, right=Field(name=name)):
            return _take_end(condition, part, name, _FLIPPED[operator], other)
        case Binary(operator="==", left=left, right=right) if reads_row(left) and reads_row(right):
            return "this compares the row with itself"
        case Binary(operator="||") if len({leaf.name for leaf in leaves(part.lowered) if isinstance(leaf, Field)}) > 1:
            return "this asks for one field or another"
    if any(isinstance(leaf, Revision) for leaf in leaves(part.lowered)):
        return "no index holds the revision"
    return "this is neither an equality nor a range of one field"


def _take_end(condition: Condition, part: Part, name: str, operator: Comparison, other: Expression) -> str | None:
    if reads_row(other):
        return "this compares the row with itself"
    if name in condition.equal:
        return f"`{name}` has a condition already"
    found = condition.ranges.get(name, Range())
    end = "upper" if operator in ("<", "<=") else "lower"
    if getattr(found, end) is not None:
        return f"the range of `{name}` has this end already"
    setattr(found, end, BoundPlan(other, operator in ("<=", ">=")))
    found.parts.append(part)
    condition.ranges[name] = found
    return None


def reads_row(value: Expression) -> bool:
    """Whether the expression reads a column or the revision of a row."""
    return any(isinstance(leaf, Field | Revision) for leaf in leaves(value))


def reads_outside(value: Expression) -> bool:
    """Whether the expression reads a parameter or the time, which a computed field cannot."""
    return any(isinstance(leaf, Param | TransactionTime) for leaf in leaves(value))


# --- what is computed from the row -------------------------------------------------------------------------------


def calculations(part: Part) -> Iterator[Part]:
    """The largest parts of a condition that compute a value from columns of the row."""
    if not reads_row(part.lowered):
        return
    if _is_computing(part.lowered):
        yield part
        return
    for inner in _inner(part):
        yield from calculations(inner)


def without(part: Part, calculation: Part, value: Expression) -> Part:
    """The part with `value` in the place of one of its calculations."""
    return Part(part.expr, _replaced(part, calculation, value))


def _replaced(part: Part, calculation: Part, value: Expression) -> Expression:
    if part.expr is calculation.expr:
        return value
    if _is_computing(part.lowered):
        return part.lowered
    inner = [_replaced(one, calculation, value) for one in _inner(part)]
    match part.lowered:
        case Unary(type=kind, operator=sign):
            return Unary(kind, sign, *inner)
        case IsNull(type=kind, negated=negated):
            return IsNull(kind, inner[0], negated)
        case Binary(type=kind, operator=operator):
            return Binary(kind, operator, *inner)
        case Among(type=kind, options=options, negated=negated):
            return Among(kind, inner[0], tuple(inner[1:]) or options, negated)
    return part.lowered


def _is_computing(value: Expression) -> bool:
    match value:
        case Call() | Conditional() | Unary(operator="-"):
            return True
        case Binary(operator=operator):
            return operator in _COMPUTING
    return False


def _inner(part: Part) -> list[Part]:
    """The operands of a connective or a comparison."""
    match part.expr, part.lowered:
        case BinaryExpr(left=left, right=right), Binary() as lowered:
            return [Part(left, lowered.left), Part(right, lowered.right)]
        case UnaryExpr(operand=operand), Unary() as lowered:
            return [Part(operand, lowered.operand)]
        case IsNullExpr(operand=operand), IsNull() as lowered:
            return [Part(operand, lowered.operand)]
        case InExpr(operand=operand, options=options), Among() as lowered:
            found = [Part(operand, lowered.operand)]
            if isinstance(options, tuple):
                found += [Part(*pair) for pair in zip(options, lowered.options, strict=True)]
            return found
    return []
