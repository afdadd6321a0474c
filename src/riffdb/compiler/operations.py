"""Operators and functions over operands whose types are known: which there are, what they take and what they give.

Pure tables and small decisions. An operand that may be null never comes here; whoever lowers it has seen to that.
Absent: the walk over an expression and its names, which is `expressions`.
"""

from dataclasses import dataclass
from typing import get_args

from riffdb.compiler.typing import joined, same_scale
from riffdb.core.types import BOOL, I64, U64, Type, string
from riffdb.plan.expressions import FunctionName

INTEGERS = ("i64", "u64")
ORDERED = ("i64", "u64", "decimal", "string", "bytes", "uuid", "timestamp", "date", "enum")
FUNCTIONS: tuple[FunctionName, ...] = get_args(FunctionName)

LEAST_ARGUMENTS = {
    "coalesce": 2,
    "min": 2,
    "max": 2,
    "length": 1,
    "concat": 2,
    "lower": 1,
    "seconds": 1,
    "seconds_between": 2,
}
ANY_NUMBER = ("coalesce", "min", "max", "concat")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an operation does not take its operands, and what to do."""

    message: str
    help: str | None = None


def arithmetic(operator: str, left: Type, right: Type) -> Type | Refusal:
    """The type of `left operator right` for `+ - * / %`."""
    if left.kind in INTEGERS and left.kind == right.kind:
        return left
    if left.kind == right.kind == "decimal" and operator in "+-":
        if same_scale(left, right):
            return joined(left, right) or left
        return Refusal(f"`{left}` and `{right}` differ in the digits after the point")
    if operator == "*" and left.kind == "decimal" and right.kind in INTEGERS:
        return left
    if operator == "*" and left.kind in INTEGERS and right.kind == "decimal":
        return right
    if left.kind == "timestamp" and right.kind in INTEGERS and operator in "+-":
        return Refusal(
            f"a number is no length of time, so `{operator}` needs one", "write `seconds(…)` around the number"
        )
    if left.kind == right.kind == "timestamp" and operator == "-":
        return Refusal("two timestamps are not subtracted with `-`", "write `seconds_between(a, b)`")
    if operator == "+" and left.kind == right.kind == "string":
        return Refusal("`+` does not join texts", "write `concat(a, b)`")
    if {left.kind, right.kind} == {"i64", "u64"}:
        return Refusal(f"`{operator}` takes two `i64` or two `u64`, not one of each")
    return Refusal(f"`{operator}` does not take `{left}` and `{right}`")


def comparison(operator: str, left: Type, right: Type) -> Type | Refusal:
    """The type of `left operator right` for the six comparisons; `==` and `!=` take optionals."""
    shared = joined(left, right)
    if shared is None or shared.kind in ("null", "list", "record", "cursor", "limit"):
        help_text = "declare both with the same type" if {left.kind, right.kind} == {"i64", "u64"} else None
        return Refusal(f"`{left}` and `{right}` cannot be compared", help_text)
    if operator not in ("==", "!=") and shared.kind not in ORDERED:
        return Refusal(f"`{left}` has no order; only `==` and `!=` compare it")
    return BOOL


def function_type(name: str, arguments: tuple[Type, ...]) -> Type | Refusal:
    """The type of a call of any function but `seconds`, whose arguments have been counted."""
    match name:
        case "coalesce":
            return _coalesce(arguments)
        case "min" | "max":
            return _extreme(name, arguments)
        case "length":
            if arguments[0].kind in ("string", "bytes"):
                return U64
        case "lower":
            if arguments[0].kind == "string":
                return arguments[0]
        case "concat":
            if all(argument.kind == "string" for argument in arguments):
                return string(sum(argument.bound for argument in arguments))
        case "seconds_between":
            if all(argument.kind == "timestamp" for argument in arguments):
                return I64
    shown = " and ".join(f"`{argument}`" for argument in arguments)
    return Refusal(f"`{name}` does not take {shown}")


def _coalesce(arguments: tuple[Type, ...]) -> Type | Refusal:
    shared = _all_joined(arguments)
    if shared is None or shared.kind == "null":
        return Refusal("the arguments of `coalesce` have no type in common")
    return shared if all(argument.optional for argument in arguments) else shared.required


def _extreme(name: str, arguments: tuple[Type, ...]) -> Type | Refusal:
    shared = _all_joined(arguments)
    if shared is None or shared.kind not in ORDERED:
        return Refusal(f"the arguments of `{name}` have no ordered type in common")
    return shared


def _all_joined(arguments: tuple[Type, ...]) -> Type | None:
    shared: Type | None = arguments[0]
    for argument in arguments[1:]:
        shared = None if shared is None else joined(shared, argument)
    return shared
