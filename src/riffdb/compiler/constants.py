"""What an expression comes to when some of its leaves are constants: its value, or that nobody can know it yet.

Three-valued: `false && x` is false whatever x is. Values are as a plan keeps them, whose order is that of the inside
values. A result outside its type, a division by zero, and whatever is not decided here, is not known.
Absent: types, which the compiler has proven.
"""

from riffdb.core.limits import I64_MAX, I64_MIN, U64_MAX
from riffdb.core.types import Type
from riffdb.plan.expressions import (
    Among,
    Binary,
    Call,
    Conditional,
    Constant,
    Expression,
    IsNull,
    Kept,
    Unary,
)


def constant_of(expression: Expression) -> Constant | None:
    """The constant that the expression always comes to, as far as that can be told."""
    match expression:
        case Constant():
            return expression
        case Unary(operator="!", operand=operand):
            value = constant_of(operand)
            return None if value is None else Constant(expression.type, not value.value)
        case Unary(operand=operand):
            return _arithmetic(expression.type, "-", (Constant(expression.type, 0), constant_of(operand)))
        case Binary(operator="&&" | "||"):
            return _logical(expression)
        case Binary(operator="+" | "-" | "*" | "/" | "%" as sign, left=left, right=right):
            return _arithmetic(expression.type, sign, (constant_of(left), constant_of(right)))
        case Binary():
            return _comparison(expression)
        case IsNull(operand=operand, negated=negated):
            value = constant_of(operand)
            return None if value is None else Constant(expression.type, (value.value is None) != negated)
        case Among():
            return _among(expression)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            value = constant_of(condition)
            return None if value is None else constant_of(then if value.value else otherwise)
        case Call():
            return _call(expression)
    return None


def _logical(expression: Binary) -> Constant | None:
    decisive = expression.operator == "||"
    sides = [constant_of(expression.left), constant_of(expression.right)]
    values = [None if side is None else bool(side.value) for side in sides]
    if decisive in values:
        return Constant(expression.type, decisive)
    return None if None in values else Constant(expression.type, not decisive)


def _comparison(expression: Binary) -> Constant | None:
    left, right = constant_of(expression.left), constant_of(expression.right)
    if left is None or right is None:
        return None
    if expression.operator in ("==", "!="):
        return Constant(expression.type, (left.value == right.value) == (expression.operator == "=="))
    if left.value is None or right.value is None:  # a null here stands behind a test for it, and is not compared
        return None
    order = _order(left.value, right.value)
    is_equal_fine = order == 0 and expression.operator in ("<=", ">=")
    return Constant(expression.type, is_equal_fine or order == (-1 if expression.operator[0] == "<" else 1))


def _order(left: Kept, right: Kept) -> int:
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    assert isinstance(left, int) and isinstance(right, int), "an order is between two numbers or two texts"
    return (left > right) - (left < right)


def _among(expression: Among) -> Constant | None:
    value = constant_of(expression.operand)
    options = [constant_of(option) for option in expression.options]
    if value is None:
        return None
    if any(option is not None and option.value == value.value for option in options):
        return Constant(expression.type, not expression.negated)
    return None if None in options else Constant(expression.type, expression.negated)


def _arithmetic(kind: Type, sign: str, sides: tuple[Constant | None, Constant | None]) -> Constant | None:
    if sides[0] is None or sides[1] is None:
        return None
    left, right = sides[0].value, sides[1].value
    if not isinstance(left, int) or not isinstance(right, int) or (sign in "/%" and right == 0):
        return None
    match sign:
        case "+":
            value = left + right
        case "-":
            value = left - right
        case "*":
            value = left * right
        case _:
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            value = quotient if sign == "/" else left - quotient * right
    return Constant(kind, value) if _is_within(kind, value) else None


def _is_within(kind: Type, value: int) -> bool:
    match kind.kind:
        case "u64":
            return 0 <= value <= U64_MAX
        case "i64":
            return I64_MIN <= value <= I64_MAX
        case "decimal":
            return bool(abs(value) < 10**kind.bound)
    return False


def _call(call: Call) -> Constant | None:
    arguments = [constant_of(argument) for argument in call.arguments]
    if call.function == "coalesce":
        return _coalesce(call, arguments)
    whole = [argument for argument in arguments if argument is not None]
    if len(whole) < len(arguments) or call.function not in ("min", "max"):
        return None
    best = whole[0]
    for argument in whole[1:]:
        order = _order(argument.value, best.value)
        best = argument if (order < 0) == (call.function == "min") and order else best
    return Constant(call.type, best.value)


def _coalesce(call: Call, arguments: list[Constant | None]) -> Constant | None:
    for argument in arguments:
        if argument is None:
            return None
        if argument.value is not None:
            return Constant(call.type, argument.value)
    return Constant(call.type, None)
