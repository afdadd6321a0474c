"""The twin's own wire forms: what a JSON value means for a type, and how a value is said in an answer.

Written beside `core.values` and not from it. Inside, a value is what a plan's constants are: 16 bytes for `uuid`,
microseconds and days since 1970, a scaled integer for `decimal`, an ordinal for an enum, None for null.
"""

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from riffdb.core.types import Type
from riffdb.plan import Plan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RANGES = {
    "i64": (-(2**63), 2**63 - 1),
    "u64": (0, 2**64 - 1),
    "timestamp": (-62_135_596_800_000_000, 253_402_300_799_999_999),
    "date": (-719_162, 2_932_896),
}


class RefusedError(Exception):
    """The command ends with this error: nothing is recorded or changed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def range_of(kind: Type) -> tuple[int, int]:
    """The least and the greatest value of a type of numbers."""
    if kind.kind == "decimal":
        return 1 - 10**kind.bound, 10**kind.bound - 1
    return RANGES[kind.kind]


def decode(kind: Type, value: Any, plan: Plan) -> Any:
    """The inside value of a wire value; `RDB-E-INPUT` if the type has no such value."""
    if value is None:
        if kind.optional:
            return None
        raise RefusedError("RDB-E-INPUT")
    if isinstance(value, bool) != (kind.kind == "bool"):
        raise RefusedError("RDB-E-INPUT")
    try:
        return _decode(kind, value, plan)
    except (ValueError, TypeError, AttributeError, OverflowError, ArithmeticError):
        raise RefusedError("RDB-E-INPUT") from None


def _decode(kind: Type, value: Any, plan: Plan) -> Any:
    match kind.kind:
        case "bool":
            return value
        case "i64" | "u64":
            return _within(int(value), kind)
        case "string":
            return _sized(value, value.encode(), kind.bound)
        case "bytes":
            content = base64.urlsafe_b64decode(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4))
            return _sized(content, content, kind.bound)
        case "uuid":
            return UUID(value).bytes
        case "timestamp":
            moment = datetime.fromisoformat(value)
            return _within((moment - EPOCH) // timedelta(microseconds=1), kind)
        case "date":
            return (date.fromisoformat(value) - EPOCH.date()).days
        case "decimal":
            scaled = Decimal(value).scaleb(kind.scale)
            if scaled != scaled.to_integral_value():
                raise ValueError(value)
            return _within(int(scaled), kind)
        case "enum":
            return variants_of(kind, plan).index(value)
        case "list":
            assert kind.element is not None
            if not isinstance(value, list) or not kind.scale <= len(value) <= kind.bound:
                raise ValueError(value)
            return tuple(decode(kind.element, item, plan) for item in value)
        case "record":
            fields = fields_of(kind, plan)
            if not value.keys() <= fields.keys():
                raise ValueError(value)
            return {name: decode(part, value.get(name), plan) for name, part in fields.items()}
    raise AssertionError(kind)


def fields_of(kind: Type, plan: Plan) -> dict[str, Type]:
    """The fields of a record, or those of a whole row that is put back: what is stored, and the revision."""
    for entity in plan.entities:
        if entity.name == kind.name:
            return {part.name: part.type for part in (*entity.key, *entity.fields)} | {"revision": Type("u64")}
    return {part.name: part.type for part in plan.record(kind.name).fields}


def _within(value: int, kind: Type) -> int:
    low, high = range_of(kind)
    if low <= value <= high:
        return value
    raise ValueError(value)


def _sized(value: Any, content: bytes, bound: int) -> Any:
    if len(content) > bound or (isinstance(value, str) and "\0" in value):
        raise ValueError(value)
    return value


def encode(kind: Type, value: Any, plan: Plan) -> Any:
    """The wire form of an inside value."""
    if value is None:
        return None
    match kind.kind:
        case "bool" | "string":
            return value
        case "i64" | "u64":
            return str(value)
        case "bytes":
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
        case "uuid":
            return str(UUID(bytes=value))
        case "timestamp":
            moment = EPOCH + timedelta(microseconds=value)
            return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case "date":
            return (EPOCH.date() + timedelta(days=value)).isoformat()
        case "decimal":
            return format(Decimal(value).scaleb(-kind.scale), "f")
        case "enum":
            return variants_of(kind, plan)[value]
        case "list":
            assert kind.element is not None
            return [encode(kind.element, item, plan) for item in value]
        case "record":
            return {name: encode(part, value[name], plan) for name, part in fields_of(kind, plan).items()}
    raise AssertionError(kind)


def variants_of(kind: Type, plan: Plan) -> tuple[str, ...]:
    """The variants of an enum's type."""
    return plan.enum_variants()[kind.name]


def partition_text(kind: Type, value: Any) -> str:
    """A partition as the commit of an answer names it."""
    if kind.kind == "uuid":
        return str(UUID(bytes=value))
    return str(value)


def text_of(document: Any) -> str:
    """The JSON text of a document, as answers and records have it."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
