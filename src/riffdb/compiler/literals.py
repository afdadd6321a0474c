"""Literals: the one place where a written value becomes an inside value of the type that its place asks for.

A literal that does not fit is an error; nothing is cut, rounded or wrapped. A message tells the type and never the
value, which may be a user's. A leading `-` belongs to the literal.
"""

from riffdb.compiler.collector import Collector
from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, TEXT_BYTES_MAX, U64_MAX
from riffdb.core.types import BOOL, I64, NULL, U64, Type, string
from riffdb.core.values import decoder
from riffdb.plan.expressions import Constant, kept_value
from riffdb.syntax.tree import BinaryExpr, Expr, LiteralExpr, UnaryExpr


def is_literal(expr: Expr) -> bool:
    """Whether the expression is made of literals alone, so that it takes its type from its place."""
    match expr:
        case LiteralExpr():
            return True
        case UnaryExpr(operator="-", operand=operand):
            return is_literal(operand)
        case BinaryExpr(operator="+" | "-" | "*" | "/" | "%", left=left, right=right):
            return is_literal(left) and is_literal(right)
    return False


def lower_literal(literal: LiteralExpr, hint: Type | None, collector: Collector) -> Constant | None:
    """The constant of a literal in the type of the hint, if that is one of the literal's family, else in its own."""
    return _lowered(literal, hint, collector, negative=False)


def lower_negative(expr: UnaryExpr, literal: LiteralExpr, hint: Type | None, collector: Collector) -> Constant | None:
    """The constant of a number with a leading `-`, which belongs to it."""
    return _lowered(LiteralExpr(literal.kind, literal.value, expr.span), hint, collector, negative=True)


def _lowered(literal: LiteralExpr, hint: Type | None, collector: Collector, negative: bool) -> Constant | None:
    match literal.kind:
        case "null":
            return Constant(NULL if hint is None else hint.nullable, None)
        case "bool":
            return Constant(BOOL, literal.value)
        case "string":
            return _text(literal, hint, collector)
        case "decimal":
            return _decimal(literal, hint, collector, negative)
    assert isinstance(literal.value, int)
    return _integer(literal, -literal.value if negative else literal.value, hint, collector)


def _integer(literal: LiteralExpr, value: int, hint: Type | None, collector: Collector) -> Constant | None:
    if hint is not None and hint.kind == "decimal":
        return _decimal(literal, hint, collector, value < 0)
    if hint is not None and hint.kind == "limit":
        return _checked(literal, value, 1, hint.bound, hint.required, collector)
    if hint is not None and hint.kind == "u64":
        return _checked(literal, value, 0, U64_MAX, U64, collector)
    if (hint is not None and hint.kind == "i64") or value <= I64_MAX:
        return _checked(literal, value, I64_MIN, I64_MAX, I64, collector)
    return _checked(literal, value, 0, U64_MAX, U64, collector)


def _checked(
    literal: LiteralExpr, value: int, low: int, high: int, kind: Type, collector: Collector
) -> Constant | None:
    if low <= value <= high:
        return Constant(kind, value)
    collector.error("RDB-C210", f"this number is no `{kind}`, which lies between {low} and {high}", literal.span)
    return None


def _text(literal: LiteralExpr, hint: Type | None, collector: Collector) -> Constant | None:
    text = str(literal.value)
    size = len(text.encode())
    if hint is not None and hint.kind in ("timestamp", "date", "uuid", "bytes"):
        return _decoded(literal, text, hint, collector)
    bound = hint.bound if hint is not None and hint.kind == "string" else TEXT_BYTES_MAX
    if size > bound:
        collector.error("RDB-C210", f"this text has {size} bytes, and at most {bound} fit here", literal.span)
        return None
    if "\0" in text:
        collector.error("RDB-C210", "a text holds no NUL character", literal.span)
        return None
    return Constant(string(bound if hint is not None and hint.kind == "string" else max(size, 1)), text)


def _decimal(literal: LiteralExpr, hint: Type | None, collector: Collector, negative: bool) -> Constant | None:
    text = str(literal.value)
    if hint is None or hint.kind != "decimal":
        whole, _, fraction = text.partition(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        hint = Type("decimal", bound=max(digits, 1), scale=len(fraction))
    return _decoded(literal, f"-{text}" if negative else text, hint, collector)


def _decoded(literal: LiteralExpr, text: str, kind: Type, collector: Collector) -> Constant | None:
    try:
        return Constant(kind.required, kept_value(decoder(kind.required, {})(text, "")))
    except RiffError as error:
        reason = error.message.partition(": ")[2]
        collector.error("RDB-C210", f"this is no `{kind.required}`, which {reason}", literal.span)
        return None
