"""An expression of a plan in the words of the contract language, for whoever reads an explanation.

What it gives means the same as what was written, but need not be the same text: a plan has no comments and no
parentheses of taste. Absent: anything that is read by a machine.
"""

import json

from riffdb.core.types import Type
from riffdb.core.values import Enums, encoder
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

_LEVELS = ({"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"})
_ATOM = len(_LEVELS)


def wording(expression: Expression, enums: Enums) -> str:
    """The expression as a contract could write it."""
    match expression:
        case Constant(type=kind, value=value):
            return _constant(kind, value, enums)
        case Param(name=name):
            return f"${name}"
        case Input(name=name) | Item(name=name):
            return name
        case Field(binding=binding, name=name):
            return f"{binding}.{name}" if binding else name
        case Revision(binding=binding):
            return f"{binding}.revision" if binding else "revision"
        case Row(binding=binding):
            return binding
        case TransactionTime():
            return "tx.time"
        case Unary(operator=operator, operand=operand):
            return f"{operator}{_inside(operand, _ATOM, enums)}"
        case Binary(operator=operator, left=left, right=right):
            level = _level(expression)
            return f"{_inside(left, level, enums)} {operator} {_inside(right, level + 1, enums)}"
        case IsNull(operand=operand, negated=negated):
            return f"{_inside(operand, 3, enums)} is {'not ' if negated else ''}null"
        case Among(operand=operand, options=options, negated=negated):
            return f"{_inside(operand, 3, enums)} {'not ' if negated else ''}in {_options(options, enums)}"
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = [wording(part, enums) for part in (condition, then, otherwise)]
            return f"(if {parts[0]} then {parts[1]} else {parts[2]})"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(wording(argument, enums) for argument in arguments)})"


def _options(options: tuple[Expression, ...], enums: Enums) -> str:
    if len(options) == 1 and options[0].type.kind == "list":
        return wording(options[0], enums)
    return f"({', '.join(wording(option, enums) for option in options)})"


def _inside(expression: Expression, level: int, enums: Enums) -> str:
    text = wording(expression, enums)
    return text if _level(expression) >= level else f"({text})"


def _level(expression: Expression) -> int:
    match expression:
        case Binary(operator=operator):
            return next(level for level, operators in enumerate(_LEVELS) if operator in operators)
        case IsNull() | Among():
            return 2
    return _ATOM


def _constant(kind: Type, kept: Kept, enums: Enums) -> str:
    value = inside_value(kind, kept)
    if value is None:
        return "null"
    match kind.kind:
        case "enum":
            return f"{kind.name}.{enums[kind.name][value]}"
        case "bool" | "string":
            return json.dumps(value, ensure_ascii=False)
        case "i64" | "u64" | "limit":
            return str(value)
        case "decimal":
            return str(encoder(kind.required, enums)(value))
    return json.dumps(encoder(kind.required, enums)(value))
