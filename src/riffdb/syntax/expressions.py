"""Types, expressions, constants, payloads and outcomes.

Binary operators are read by precedence, left to right; comparisons do not chain. Depth is bounded twice, by nesting and
by the operators of one expression, so that whoever walks the tree needs no bound of its own.
Absent: what the names mean, and whether a number fits.
"""

from typing import Literal, cast

import msgspec

from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.limits import EXPRESSION_OPERATORS_MAX, OPTIONS_MAX
from riffdb.core.spans import Span
from riffdb.syntax.cursor import Cursor
from riffdb.syntax.position import BrokenItemError
from riffdb.syntax.strings import string_value
from riffdb.syntax.tree import (
    BinaryExpr,
    CallExpr,
    Expr,
    IfExpr,
    InExpr,
    IntArgument,
    IsNullExpr,
    LiteralExpr,
    MemberExpr,
    Name,
    NameExpr,
    Outcome,
    ParamExpr,
    Payload,
    PayloadItem,
    Selection,
    TimeExpr,
    TypeExpr,
    UnaryExpr,
)
from riffdb.syntax.words import BEGINNINGS

BinaryOperator = Literal["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"]

_COMPARISON = 3
_PRECEDENCE: dict[str, int] = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "is", "in", "not"), _COMPARISON),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_FOREIGN = {"and": "&&", "or": "||", "=": "=="}


# --- types -------------------------------------------------------------------------------------------------------


_TYPES_WITH_ARGUMENTS = ("string", "bytes", "decimal", "optional", "list", "limit")


def type_expr(cursor: Cursor) -> TypeExpr:
    """`NAME` or `NAME<…>`."""
    start = cursor.index
    if cursor.texts[start + 1 : start + 2] == [":"]:
        raise cursor.unexpected("a type")
    name = cursor.name("a type")
    if cursor.at("(") and name.text in _TYPES_WITH_ARGUMENTS:
        raise cursor.unexpected(f"`<` after `{name.text}`, as in `{name.text}<…>`")
    if not cursor.accept("<"):
        return TypeExpr(name, (), name.span)
    nesting = cursor.nest()
    arguments = [_type_argument(cursor)]
    while cursor.accept(","):
        arguments.append(_type_argument(cursor))
    if cursor.at(">="):
        cursor.texts[cursor.index] = cursor.kinds[cursor.index] = "="
        place = cursor.starts[cursor.index]
        cursor.starts[cursor.index] = place + 1
        span = Span(cursor.source, cursor.starts[start], place + 1)
    else:
        cursor.expect(">")
        span = cursor.span_from(start)
    cursor.nesting = nesting
    return TypeExpr(name, tuple(arguments), span)


def _type_argument(cursor: Cursor) -> TypeExpr | IntArgument:
    start = cursor.index
    if cursor.kinds[start] != "int":
        if cursor.kinds[start] != "name":
            raise cursor.unexpected("a type or a whole number")
        return type_expr(cursor)
    low = integer(cursor)
    is_range = cursor.accept("..")
    high = integer(cursor) if is_range else low
    return IntArgument(int(low.value or 0), int(high.value or 0), is_range, cursor.span_from(start))


def integer(cursor: Cursor) -> LiteralExpr:
    """A whole number."""
    index = cursor.index
    if cursor.kinds[index] != "int":
        raise cursor.unexpected("a whole number")
    cursor.index = index + 1
    return LiteralExpr("int", int(cursor.texts[index]), cursor.span(index))


# --- expressions -------------------------------------------------------------------------------------------------


def expr(cursor: Cursor, lowest: int = 1) -> Expr:
    """An expression of operators that bind at least as tightly as `lowest`."""
    if lowest == 1 and cursor.nesting == 0:
        cursor.operators = 0
    left = _unary(cursor)
    compared = False
    while True:
        operator = cursor.texts[cursor.index]
        precedence = _PRECEDENCE.get(operator)
        if precedence is None:
            if operator not in _FOREIGN or cursor.texts[cursor.index + 1] in (":", ",", "}", ")"):
                return left
            operator = _foreign(cursor, operator)
            precedence = _PRECEDENCE[operator]
        if precedence < lowest:
            return left
        if precedence == _COMPARISON:
            if compared:
                _chained(cursor)
            compared = True
        _count_operator(cursor)
        left = _operation(cursor, left, operator, precedence)


def _operation(cursor: Cursor, left: Expr, operator: str, precedence: int) -> Expr:
    cursor.index += 1
    if operator == "is":
        negated = cursor.accept("not")
        cursor.expect("null")
        return IsNullExpr(left, negated, _span_since(cursor, left))
    if operator == "not":
        cursor.expect("in")
        return InExpr(left, _options(cursor), True, _span_since(cursor, left))
    if operator == "in":
        return InExpr(left, _options(cursor), False, _span_since(cursor, left))
    right = expr(cursor, precedence + 1)
    return BinaryExpr(cast(BinaryOperator, operator), left, right, left.span.to(right.span))


def _span_since(cursor: Cursor, left: Expr) -> Span:
    return left.span.to(cursor.span(cursor.index - 1))


def _foreign(cursor: Cursor, operator: str) -> str:
    """Report an operator that other languages have; ours that it stands for."""
    ours = _FOREIGN[operator]
    if not cursor.is_recovering:
        span = cursor.span(cursor.index)
        fix = Fix(f"write `{ours}`", (Edit(span, ours),), safe=True)
        meaning = "two values are compared with" if operator == "=" else "conditions are joined with"
        cursor.report("RDB-C018", f"{meaning} `{ours}`, not with `{operator}`", span, fix=fix)
    cursor.is_recovering = True
    return ours


def _chained(cursor: Cursor) -> None:
    if not cursor.is_recovering:
        remedy = "join two comparisons with `&&`, or put one in parentheses"
        cursor.report("RDB-C020", "comparisons do not chain", cursor.span(cursor.index), remedy=remedy)
    cursor.is_recovering = True


def _count_operator(cursor: Cursor) -> None:
    cursor.operators += 1
    if cursor.operators > EXPRESSION_OPERATORS_MAX:
        if not cursor.is_recovering:
            message = f"more than {EXPRESSION_OPERATORS_MAX} operators in one expression"
            remedy = "use `in (…)`, or split it into several statements or computed fields"
            cursor.report("RDB-C017", message, cursor.span(cursor.index), remedy=remedy)
        cursor.is_recovering = True
        raise BrokenItemError


def _options(cursor: Cursor) -> tuple[Expr, ...] | ParamExpr:
    if cursor.kinds[cursor.index] == "param":
        return param(cursor)
    cursor.expect("(")
    found = exprs(cursor)
    if len(found) > OPTIONS_MAX:
        message = f"more than {OPTIONS_MAX:,} values in one `in (…)`"
        remedy = "keep them as rows of an entity, or compare with a list parameter"
        cursor.report("RDB-C017", message, found[OPTIONS_MAX].span, remedy=remedy)
    return found[:OPTIONS_MAX]


def exprs(cursor: Cursor, *, combined: bool = False) -> tuple[Expr, ...]:
    """The rest of `( expr, … )` after its parenthesis; those that are combined into one value count as operands."""
    nesting = cursor.nest()
    found = [expr(cursor)]
    while cursor.separated(")"):
        if combined:
            _count_operator(cursor)
        found.append(expr(cursor))
    cursor.nesting = nesting
    return tuple(found)


def param(cursor: Cursor) -> ParamExpr:
    """`$name`."""
    index = cursor.index
    if cursor.kinds[index] != "param":
        raise cursor.unexpected("a parameter such as `$limit`")
    cursor.index = index + 1
    span = cursor.span(index)
    return ParamExpr(Name(cursor.texts[index][1:], span), span)


def _unary(cursor: Cursor) -> Expr:
    index = cursor.index
    operator = cursor.texts[index]
    if operator == "!" or operator == "-":
        nesting = cursor.nest()
        cursor.index = index + 1
        operand = _unary(cursor)
        cursor.nesting = nesting
        return UnaryExpr("!" if operator == "!" else "-", operand, cursor.span(index).to(operand.span))
    if operator == "not" and not cursor.is_recovering:
        span = cursor.span(index)
        message = "a condition is negated with `!`, not with `not`"
        cursor.report("RDB-C018", message, span, remedy="write `!(…)`")
        cursor.is_recovering = True
        cursor.index = index + 1
    return _primary(cursor)


def _primary(cursor: Cursor) -> Expr:
    index = cursor.index
    kind = cursor.kinds[index]
    text = cursor.texts[index]
    if kind == "name":
        return _named(cursor)
    if kind == "param":
        return param(cursor)
    if kind == "int":
        return integer(cursor)
    if kind == "(":
        return _parenthesised(cursor)
    if kind == "tx":
        cursor.index = index + 1
        cursor.expect(".")
        cursor.expect("time")
        return TimeExpr(cursor.span_from(index))
    if kind == "if":
        raise cursor.unexpected("an expression; an `if` stands in parentheses: `(if … then … else …)`")
    literal = _literal(cursor)
    if literal is None:
        raise cursor.unexpected("an expression")
    if kind in ("true", "false") and text != kind:
        raise cursor.unexpected("an expression")
    return literal


def _literal(cursor: Cursor) -> LiteralExpr | None:
    index = cursor.index
    kind, text = cursor.kinds[index], cursor.texts[index]
    if kind == "int":
        return integer(cursor)
    if kind == "decimal":
        found = LiteralExpr("decimal", text, cursor.span(index))
    elif kind == "string":
        found = LiteralExpr("string", string_value(cursor, index), cursor.span(index))
    elif kind == "true" or kind == "false":
        found = LiteralExpr("bool", kind == "true", cursor.span(index))
    elif kind == "null":
        found = LiteralExpr("null", None, cursor.span(index))
    else:
        return None
    cursor.index = index + 1
    return found


def _named(cursor: Cursor) -> Expr:
    """`name`, `name.member` or `name(…)`; where the next statement begins instead, the expression is missing."""
    index = cursor.index
    text = cursor.texts[index]
    if text in BEGINNINGS and cursor.is_plain_name(index + 1) and cursor.is_beginning(index):
        raise cursor.unexpected("an expression")
    follower = cursor.texts[index + 1]
    if text == "apply" or text == "none":
        _check_arm(cursor, text, follower)
    cursor.index = index + 1
    name = Name(text, cursor.span(index))
    if follower == ".":
        cursor.index = index + 2
        member = cursor.name("a field or variant")
        return MemberExpr(name, member, cursor.span_from(index))
    if follower == "(":
        cursor.index = index + 2
        return CallExpr(name, exprs(cursor, combined=True), cursor.span_from(index))
    return NameExpr(name, name.span)


def _check_arm(cursor: Cursor, text: str, follower: str) -> None:
    """Refuse the `apply {` or `none Outcome {` of an arm where its condition should stand."""
    if text == "apply":
        is_arm = follower == "{" and not cursor.has_selections
    else:
        is_arm = follower != "apply" and cursor.has_shape(cursor.index, (("NAME", "{"),))
    if is_arm:
        raise cursor.unexpected("an expression")


def _parenthesised(cursor: Cursor) -> Expr:
    start = cursor.index
    cursor.index = start + 1
    nesting = cursor.nest()
    if cursor.accept("if"):
        condition = expr(cursor)
        cursor.expect("then")
        then = expr(cursor)
        cursor.expect("else")
        otherwise = expr(cursor)
        cursor.expect(")")
        found: Expr = IfExpr(condition, then, otherwise, cursor.span_from(start))
    else:
        inner = expr(cursor)
        cursor.expect(")")
        found = msgspec.structs.replace(inner, span=cursor.span_from(start))
    cursor.nesting = nesting
    return found


def constant(cursor: Cursor) -> Expr:
    """A literal, a negative number, `null` or `Enum.Variant`."""
    index = cursor.index
    if cursor.accept("-"):
        if cursor.kinds[cursor.index] not in ("int", "decimal"):
            raise cursor.unexpected("a number")
        number = _literal(cursor)
        if number is not None:
            return UnaryExpr("-", number, cursor.span_from(index))
    literal = _literal(cursor)
    if literal is not None:
        return literal
    if cursor.kinds[index] != "name" or (cursor.texts[index + 1] != "." and cursor.is_beginning(index)):
        raise cursor.unexpected("a constant: a literal, `null` or `Enum.Variant`")
    owner = cursor.name("an enum", ".")
    cursor.expect(".")
    member = cursor.name("a variant")
    return MemberExpr(owner, member, cursor.span_from(index))


# --- payloads and outcomes ---------------------------------------------------------------------------------------


def outcome(cursor: Cursor) -> Outcome:
    """`Name { … }`; the braces always stand."""
    start = cursor.index
    name = cursor.name("an outcome", "{")
    if cursor.at("{"):
        return Outcome(name, payload(cursor), cursor.span_from(start))
    place = cursor.gap(cursor.index)
    if not cursor.is_recovering:
        fix = Fix("add `{}`", (Edit(place, " {}"),), safe=True)
        message = f"expected a payload after the outcome `{name.text}`; its braces always stand"
        cursor.report("RDB-C001", message, name.span, fix=fix)
    cursor.is_recovering = True
    return Outcome(name, Payload((), place), name.span)


def payload(cursor: Cursor) -> Payload:
    """`{ name: value, … }`."""
    opener = cursor.open("the payload")
    items: list[PayloadItem] = []
    while not cursor.at("}"):
        items.append(_payload_item(cursor))
        if cursor.accept(","):
            continue
        index = cursor.index
        if cursor.kinds[index] != "name" or cursor.texts[index + 1] not in (":", ",", "}"):
            break
        if not cursor.is_recovering:
            cursor.missing(",")
    cursor.close(opener, "the payload")
    return Payload(tuple(items), cursor.span_from(opener))


def _payload_item(cursor: Cursor) -> PayloadItem:
    start = cursor.index
    name = cursor.name("a name of the payload", ":", ",", "}")
    selected = None
    if cursor.accept(":"):
        value = expr(cursor)
        if cursor.at("{"):
            selected = _checked_selection(cursor)
    else:
        value = NameExpr(name, name.span)
    return PayloadItem(name, value, selected, cursor.span_from(start))


def _checked_selection(cursor: Cursor) -> Selection | None:
    found = selection(cursor)
    if cursor.has_selections:
        return found
    if not cursor.is_recovering:
        fix = Fix("take the selection out", (Edit(found.span, ""),))
        message = "only a query selects fields with `{ … }` after a value"
        cursor.report("RDB-C019", message, found.span, fix=fix)
    return None


def selection(cursor: Cursor) -> Selection:
    """`{ field … }`, with or without commas."""
    opener = cursor.open("the selection")
    fields: list[Name] = []
    while (field := cursor.any_name()) is not None:
        fields.append(field)
        cursor.accept(",")
    cursor.close(opener, "the selection")
    return Selection(tuple(fields), cursor.span_from(opener))
