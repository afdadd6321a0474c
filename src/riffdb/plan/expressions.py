"""Expressions of a plan: names resolved, types known, nothing implicit left.

Every node carries its `type`; a literal holds an inside value (`core.values`: an enum is its ordinal) in a form that
JSON has too, so that a plan is the same before and after it was a text: bytes are hexadecimal digits (`kept_value`).
Reading a row that may be absent (`maybe`) is guarded by an `IsNull` over `Row` before it; the compiler has proven it.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from riffdb.core.types import Type

Kept: TypeAlias = bool | int | str | None
"""An inside value as a plan keeps it."""


def kept_value(value: object) -> Kept:
    """The form in which a plan keeps an inside value of a scalar type: bytes, of `uuid` too, as hexadecimal digits."""
    if isinstance(value, bytes):
        return value.hex()
    assert value is None or isinstance(value, bool | int | str), "a constant is a scalar"
    return value


def inside_value(value_type: Type, kept: Kept) -> Any:
    """The inside value of the form that `kept_value` gave."""
    return bytes.fromhex(kept) if value_type.kind in ("uuid", "bytes") and isinstance(kept, str) else kept


class Constant(msgspec.Struct, frozen=True, omit_defaults=True, tag="constant", tag_field="node"):
    """A literal, `null` or an enum variant."""

    type: Type
    value: Kept


class Input(msgspec.Struct, frozen=True, omit_defaults=True, tag="input", tag_field="node"):
    """An input of the command, or a service value, by name."""

    type: Type
    name: str


class Param(msgspec.Struct, frozen=True, omit_defaults=True, tag="param", tag_field="node"):
    """A parameter of the query or stream, by name without `$`."""

    type: Type
    name: str


class Item(msgspec.Struct, frozen=True, omit_defaults=True, tag="item", tag_field="node"):
    """A field of the element that a bulk command is at."""

    type: Type
    name: str


class Field(msgspec.Struct, frozen=True, omit_defaults=True, tag="field", tag_field="node"):
    """A stored or computed field of a bound row, or (empty `binding`) of the row itself in computed and where."""

    type: Type
    binding: str
    name: str


class Revision(msgspec.Struct, frozen=True, omit_defaults=True, tag="revision", tag_field="node"):
    """The revision of a bound row (empty `binding`: of the row itself)."""

    type: Type
    binding: str


class Row(msgspec.Struct, frozen=True, omit_defaults=True, tag="row", tag_field="node"):
    """The whole bound row of an entity, secrets left out; in payloads, and under `IsNull` for `maybe`."""

    type: Type
    binding: str
    entity: str


class TransactionTime(msgspec.Struct, frozen=True, omit_defaults=True, tag="time", tag_field="node"):
    """`tx.time`."""

    type: Type


class Unary(msgspec.Struct, frozen=True, omit_defaults=True, tag="unary", tag_field="node"):
    """`!` of a bool, `-` of a number (checked)."""

    type: Type
    operator: Literal["!", "-"]
    operand: "Expression"


BinaryOperator: TypeAlias = Literal["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"]


class Binary(msgspec.Struct, frozen=True, omit_defaults=True, tag="binary", tag_field="node"):
    """A binary operation over operands of fitting types; arithmetic is checked, `&&` and `||` stop early."""

    type: Type
    operator: BinaryOperator
    left: "Expression"
    right: "Expression"


class IsNull(msgspec.Struct, frozen=True, omit_defaults=True, tag="is_null", tag_field="node"):
    """`x is null`, or `x is not null` when `negated`."""

    type: Type
    operand: "Expression"
    negated: bool


class Among(msgspec.Struct, frozen=True, omit_defaults=True, tag="in", tag_field="node"):
    """`x in (…)`, or `not in` when `negated`."""

    type: Type
    operand: "Expression"
    options: tuple["Expression", ...]
    negated: bool


class Conditional(msgspec.Struct, frozen=True, omit_defaults=True, tag="if", tag_field="node"):
    """`(if c then a else b)`."""

    type: Type
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


FunctionName: TypeAlias = Literal["coalesce", "min", "max", "length", "concat", "lower", "seconds", "seconds_between"]


class Call(msgspec.Struct, frozen=True, omit_defaults=True, tag="call", tag_field="node"):
    """A built-in function. `seconds(u64)` is i64 microseconds, beside `+`/`-` of a timestamp."""

    type: Type
    function: FunctionName
    arguments: tuple["Expression", ...]


Expression: TypeAlias = (
    Constant
    | Input
    | Param
    | Item
    | Field
    | Revision
    | Row
    | TransactionTime
    | Unary
    | Binary
    | IsNull
    | Among
    | Conditional
    | Call
)


def leaves(expression: Expression) -> list[Expression]:
    """Every node of the expression that has no operands, in source order."""
    match expression:
        case Unary(operand=inner) | IsNull(operand=inner):
            return leaves(inner)
        case Binary(left=left, right=right):
            return leaves(left) + leaves(right)
        case Among(operand=inner, options=options):
            return leaves(inner) + [leaf for option in options for leaf in leaves(option)]
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return leaves(condition) + leaves(then) + leaves(otherwise)
        case Call(arguments=arguments):
            return [leaf for argument in arguments for leaf in leaves(argument)]
    return [expression]
