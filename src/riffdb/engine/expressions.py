"""An expression of the plan as one Python expression.

The text keeps the order of evaluation and stops early where the language does; arithmetic is checked at every step
against the range of its type. Strings compare as Python compares them: by code points, which is the order of their
UTF-8 bytes, because UTF-8 was made so and admitted texts hold no lone surrogates. What a name reads is the caller's
matter (`Scope`). Absent: type checks and null checks, which the compiler has made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from riffdb.core.types import Type
from riffdb.engine.source import row_of
from riffdb.plan.expressions import (
    Among,
    Binary,
    Call,
    Conditional,
    Constant,
    Expression,
    Field,
    Input,
    IsNull,
    Item,
    Kept,
    Param,
    Revision,
    Row,
    TransactionTime,
    Unary,
    inside_value,
)

# How tightly a text binds, in Python's order; parentheses stand only where a place asks for more.
CONDITIONAL, OR, AND, NOT, COMPARE, SUM, PRODUCT, NEGATIVE, ATOM = range(9)

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%"))


class Term(NamedTuple):
    """A Python expression and how tightly it binds."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: its place for messages, and what names read there.

    A binding is empty for the row itself; a field of a bulk command's element stands among the inputs under its name
    with a leading point. `temporary` gives a fresh name.
    """

    place: str
    inputs: Mapping[str, str]
    field: Callable[[str, str], Term]
    revision: Callable[[str], Term]
    row: Callable[[str], Term]
    temporary: Callable[[], str]


def rowless(place: str, inputs: Mapping[str, str], temporary: Callable[[], str]) -> Scope:
    """A scope of inputs, or parameters, alone."""

    def no_field(binding: str, column: str) -> Term:
        raise AssertionError(f"{place} reads no row")

    def no_row(binding: str) -> Term:
        raise AssertionError(f"{place} reads no row")

    return Scope(place, inputs, no_field, no_row, no_row, temporary)


def expression_text(expression: Expression, scope: Scope) -> str:
    """The Python text of an expression, to stand between commas or behind an equals sign."""
    return _term(expression, scope).text


def constant_text(value_type: Type, value: Kept) -> str:
    """The Python text of a literal."""
    return repr(inside_value(value_type, value))


def is_direct(expression: Expression) -> bool:
    """Whether evaluating it computes nothing, so that it cannot fail."""
    return isinstance(expression, Constant | Input | Param | Field)


def _at(expression: Expression, scope: Scope, level: int) -> str:
    return _inside(_term(expression, scope), level)


def _inside(term: Term, level: int) -> str:
    return term.text if term.level >= level else f"({term.text})"


def _term(expression: Expression, scope: Scope) -> Term:
    match expression:
        case Constant(value=value):
            is_negative = isinstance(value, int) and value < 0
            return Term(constant_text(expression.type, value), NEGATIVE if is_negative else ATOM)
        case Input(name=name) | Param(name=name):
            return Term(scope.inputs[name], ATOM)
        case Item(name=name):
            return Term(scope.inputs[f".{name}"], ATOM)
        case Field(binding=binding, name=name):
            return scope.field(binding, name)
        case Revision(binding=binding):
            return scope.revision(binding)
        case Row(binding=binding):
            return scope.row(binding)
        case TransactionTime():
            return Term("now", ATOM)
        case Unary(operator="!", operand=operand):
            return Term(f"not {_at(operand, scope, NOT)}", NOT)
        case Unary(operand=operand):
            name = scope.temporary()
            check = _range_check(expression.type, "-", name, f"-{_at(operand, scope, NEGATIVE)}")
            return _checked(name, [check], expression.type, scope)
        case Binary():
            return _binary(expression, scope)
        case IsNull(operand=Input() | Field() | Row() as operand, negated=negated):
            return Term(f"{_at(operand, scope, SUM)} {'is not' if negated else 'is'} None", COMPARE)
        case IsNull(operand=operand, negated=negated):
            # Python warns of `is` beside what it can fold to a literal.
            return Term(f"{_at(operand, scope, SUM)} {'!=' if negated else '=='} None", COMPARE)
        case Among(operand=operand, options=options, negated=negated):
            listed = row_of([_option(option, scope) for option in options])
            return Term(f"{_at(operand, scope, SUM)} {'not in' if negated else 'in'} {listed}", COMPARE)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = [_at(part, scope, OR) for part in (then, condition, otherwise)]
            return Term(f"{parts[0]} if {parts[1]} else {parts[2]}", CONDITIONAL)
        case Call():
            return _call(expression, scope)


def _option(option: Expression, scope: Scope) -> str:
    """What `in` looks through: a value, or all values of a list."""
    return f"*{_at(option, scope, ATOM)}" if option.type.kind == "list" else _at(option, scope, OR)


def _binary(expression: Binary, scope: Scope) -> Term:
    operator = expression.operator
    if operator in _ARITHMETIC:
        return _arithmetic(expression, scope)
    if operator in _COMPARISONS:
        # Above COMPARE on both sides: Python would read `a < b == c` as a chain.
        sides = [_at(side, scope, SUM) for side in (expression.left, expression.right)]
        return Term(f"{sides[0]} {operator} {sides[1]}", COMPARE)
    word, level = ("and", AND) if operator == "&&" else ("or", OR)
    first, steps = _chain(expression, frozenset((operator,)))
    operands = [first, *(step.right for step in steps)]
    return Term(f" {word} ".join(_at(operand, scope, level) for operand in operands), level)


def _chain(expression: Binary, operators: frozenset[str]) -> tuple[Expression, list[Binary]]:
    """The operations down the left side, innermost first: a chain may be long, where nesting is bounded."""
    steps: list[Binary] = []
    rest: Expression = expression
    while isinstance(rest, Binary) and rest.operator in operators:
        steps.append(rest)
        rest = rest.left
    return rest, steps[::-1]


def _arithmetic(expression: Binary, scope: Scope) -> Term:
    first, steps = _chain(expression, _ARITHMETIC)
    so_far = _term(first, scope)
    name = scope.temporary()
    checks: list[str] = []
    for step in steps:
        raw = _unchecked(step, so_far, scope)
        if step.operator == "%" or (step.operator == "/" and step.type.kind == "u64"):
            so_far = raw
        else:
            checks.append(_range_check(step.type, step.operator, name, raw.text))
            so_far = Term(name, ATOM)
    if not checks:
        return so_far
    return _checked(_inside(so_far, OR), checks, expression.type, scope)


def _unchecked(step: Binary, left: Term, scope: Scope) -> Term:
    if step.operator in ("/", "%"):
        function = "quotient" if step.operator == "/" else "remainder"
        right = _at(step.right, scope, OR)
        return Term(f"{function}({scope.place!r}, {_inside(left, OR)}, {right})", ATOM)
    level = PRODUCT if step.operator == "*" else SUM
    right = _at(step.right, scope, level + 1)
    return Term(f"{_inside(left, level)} {step.operator} {right}", level)


def _range_check(value_type: Type, operator: str, name: str, raw: str) -> str:
    """The condition that binds the name to the result and holds while it is in range."""
    result = f"({name} := {raw})"
    match value_type.kind:
        case "u64" if operator == "-":
            return f"{result} >= 0"
        case "u64":
            return f"{result} <= U64_MAX"
        case "i64":
            return f"I64_MIN <= {result} <= I64_MAX"
        case "timestamp":
            return f"TIMESTAMP_MIN <= {result} <= TIMESTAMP_MAX"
        case "date":
            return f"DATE_MIN <= {result} <= DATE_MAX"
        case "decimal":
            return f"-(10**{value_type.bound}) < {result} < 10**{value_type.bound}"
    raise AssertionError(f"no arithmetic gives {value_type}")


def _checked(result: str, checks: list[str], value_type: Type, scope: Scope) -> Term:
    failure = f"overflow({scope.place!r}, {str(value_type.required)!r})"
    return Term(f"{result} if {' and '.join(checks)} else {failure}", CONDITIONAL)


def _call(call: Call, scope: Scope) -> Term:
    arguments = call.arguments
    match call.function:
        case "coalesce":
            return _coalesce(arguments, scope)
        case "min":
            return _extreme("<=", arguments, scope)
        case "max":
            return _extreme(">=", arguments, scope)
        case "length":
            function = "length" if arguments[0].type.kind == "bytes" else "utf8_length"
            return Term(f"{function}({_at(arguments[0], scope, OR)})", ATOM)
        case "concat":
            return Term(" + ".join(_at(argument, scope, PRODUCT) for argument in arguments), SUM)
        case "lower":
            return Term(f"ascii_lower({_at(arguments[0], scope, OR)})", ATOM)
        case "seconds":
            # Unchecked on purpose: the timestamp that it is added to, or taken from, is checked.
            return Term(f"{_at(arguments[0], scope, PRODUCT)} * 1000000", PRODUCT)
        case "seconds_between":
            return Term(f"seconds_between({', '.join(_at(argument, scope, OR) for argument in arguments)})", ATOM)


def _named(term: Term, scope: Scope) -> tuple[str, str]:
    """The text that computes a value, and the name under which it can be had once more."""
    if term.level == ATOM and "(" not in term.text:
        return term.text, term.text
    name = scope.temporary()
    return f"({name} := {term.text})", name


def _coalesce(arguments: tuple[Expression, ...], scope: Scope) -> Term:
    result = _term(arguments[-1], scope)
    for argument in reversed(arguments[:-1]):
        if isinstance(argument, Constant):
            result = result if argument.value is None else _term(argument, scope)
            continue
        value, name = _named(_term(argument, scope), scope)
        result = Term(f"{name} if {value} is not None else {result.text}", CONDITIONAL)
    return result


def _extreme(comparison: str, arguments: tuple[Expression, ...], scope: Scope) -> Term:
    result = _term(arguments[0], scope)
    for argument in arguments[1:]:
        left, left_name = _named(result, scope)
        right, right_name = _named(_term(argument, scope), scope)
        result = Term(f"{left_name} if {left} {comparison} {right} else {right_name}", CONDITIONAL)
    return result
