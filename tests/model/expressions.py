"""Expressions, by walking their tree: the meaning of each operator and function of the language, and nothing faster.

What a leaf means depends on where the expression stands, so it is asked of a scene. A value that leaves its range, or a
division by zero, is `RDB-E-ARITHMETIC`.
"""

from fractions import Fraction
from math import trunc
from typing import Any, Protocol

from riffdb.core.types import Type
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
    Param,
    Revision,
    Row,
    TransactionTime,
    Unary,
    inside_value,
)
from tests.model.wire import RefusedError, range_of


class Scene(Protocol):
    """What names mean at one place of a command."""

    time: int

    def given(self, name: str) -> Any:
        """An input, a service value or a parameter."""

    def item(self, name: str) -> Any:
        """A field of the element that a bulk command is at."""

    def field(self, binding: str, name: str) -> Any:
        """A field of a bound row."""

    def revision(self, binding: str) -> int:
        """The revision of a bound row."""

    def row(self, binding: str) -> Any:
        """A bound row, None when there is none."""


def value_of(expression: Expression, scene: Scene) -> Any:
    """The value of the expression in the scene."""
    match expression:
        case Constant(type=kind, value=kept):
            return inside_value(kind, kept)
        case Input(name=name) | Param(name=name):
            return scene.given(name)
        case Item(name=name):
            return scene.item(name)
        case Field(binding=binding, name=name):
            return scene.field(binding, name)
        case Revision(binding=binding):
            return scene.revision(binding)
        case Row(binding=binding):
            return scene.row(binding)
        case TransactionTime():
            return scene.time
        case Unary(operator="!", operand=operand):
            return not value_of(operand, scene)
        case Unary(operand=operand):
            return in_range(-value_of(operand, scene), expression.type)
        case Binary(operator="&&", left=left, right=right):
            return value_of(right, scene) if value_of(left, scene) else False
        case Binary(operator="||", left=left, right=right):
            return True if value_of(left, scene) else value_of(right, scene)
        case Binary():
            return _binary(expression, value_of(expression.left, scene), value_of(expression.right, scene))
        case IsNull(operand=operand, negated=negated):
            return (value_of(operand, scene) is None) != negated
        case Among(operand=operand, options=options, negated=negated):
            wanted = value_of(operand, scene)
            values = [value_of(option, scene) for option in options]
            if options and options[0].type.kind == "list":
                values = list(values[0])
            return (wanted in values) != negated
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return value_of(then if value_of(condition, scene) else otherwise, scene)
        case Call(function="coalesce", arguments=arguments):
            for argument in arguments:
                value = value_of(argument, scene)
                if value is not None:
                    return value
            return None
        case Call():
            return _call(expression, [value_of(argument, scene) for argument in expression.arguments])
    raise AssertionError(expression)


def in_range(value: int, kind: Type) -> int:
    """The value, if its type has it."""
    low, high = range_of(kind)
    if low <= value <= high:
        return value
    raise RefusedError("RDB-E-ARITHMETIC")


def ordered(value: Any) -> Any:
    """What an order compares: strings by their UTF-8 bytes."""
    return value.encode() if isinstance(value, str) else value


def _binary(expression: Binary, left: Any, right: Any) -> Any:
    match expression.operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return ordered(left) < ordered(right)
        case "<=":
            return ordered(left) <= ordered(right)
        case ">":
            return ordered(left) > ordered(right)
        case ">=":
            return ordered(left) >= ordered(right)
        case "+":
            return in_range(left + right, expression.type)
        case "-":
            return in_range(left - right, expression.type)
        case "*":
            return in_range(left * right, expression.type)
    if right == 0:
        raise RefusedError("RDB-E-ARITHMETIC")
    quotient = trunc(Fraction(left, right))
    return in_range(quotient if expression.operator == "/" else left - right * quotient, expression.type)


def _call(call: Call, arguments: list[Any]) -> Any:
    match call.function:
        case "min":
            return sorted(arguments, key=ordered)[0]
        case "max":
            return sorted(arguments, key=ordered)[-1]
        case "length":
            return len(arguments[0].encode() if isinstance(arguments[0], str) else arguments[0])
        case "concat":
            return "".join(arguments)
        case "lower":
            return "".join(chr(ord(letter) + 32) if "A" <= letter <= "Z" else letter for letter in arguments[0])
        case "seconds":
            return arguments[0] * 1_000_000
        case "seconds_between":
            return trunc(Fraction(arguments[1] - arguments[0], 1_000_000))
    raise AssertionError(call.function)
