"""Types: from how a contract writes a type to `core.types.Type`, and which type fits where.

No value changes its type by itself; `fits` and `joined` know the lossless exceptions: a type fits its optional, a
smaller bound a larger one. Each place takes its own family of types: a list is an input's, a limit a query parameter's.
Absent: literals, which `literals` gives the type that their place asks for.
"""

from typing import Literal

from riffdb.compiler.collector import Collector, replace
from riffdb.compiler.draft import Declared
from riffdb.core.limits import LIST_ITEMS_MAX, QUERY_ROWS_MAX, TEXT_BYTES_MAX
from riffdb.core.types import BOOL, DATE, I64, TIMESTAMP, U64, UUID, Type
from riffdb.syntax.tree import IntArgument, TypeExpr

Place = Literal["field", "key", "computed", "event", "record", "input", "param"]

PLAIN = {"bool": BOOL, "i64": I64, "u64": U64, "uuid": UUID, "timestamp": TIMESTAMP, "date": DATE}
BUILT_IN = (*PLAIN, "string", "bytes", "decimal", "optional", "list", "limit", "cursor")
FOREIGN = {
    "bigint": "i64",
    "blob": "bytes",
    "boolean": "bool",
    "datetime": "timestamp",
    "float": "decimal",
    "int": "i64",
    "int64": "i64",
    "integer": "i64",
    "number": "i64",
    "numeric": "decimal",
    "str": "string",
    "text": "string",
    "timestamptz": "timestamp",
    "uint64": "u64",
    "varchar": "string",
}
"""Names of types elsewhere, and what they are here."""

KEY_KINDS = ("uuid", "u64", "i64", "string", "date", "timestamp", "enum")
DECIMAL_DIGITS_MAX = 38


def lower_type(written: TypeExpr, declared: Declared, place: Place, collector: Collector) -> Type | None:
    """The type that is written there, or None with a diagnostic."""
    name = written.name.text
    if name in PLAIN:
        return PLAIN[name] if _takes(written, "nothing", 0, 0, collector) else None
    match name:
        case "string" | "bytes":
            bound = _numbers(written, f"its largest size in bytes, such as `{name}<128>`", 1, collector)
            return None if bound is None else _text_type(written, name, bound[0], collector)
        case "decimal":
            numbers = _numbers(written, "its digits and those after the point, such as `decimal<12, 2>`", 2, collector)
            return None if numbers is None else _decimal_type(written, numbers, collector)
        case "optional":
            return _optional_type(written, declared, place, collector)
        case "list":
            return _list_type(written, declared, place, collector)
        case "limit":
            return _limit_type(written, place, collector)
        case "cursor":
            message = "a cursor is always optional, since the first page has none"
            collector.error("RDB-C204", message, written.span, help="write `optional<cursor>`")
            return None
    return _named_type(written, declared, collector)


def _named_type(written: TypeExpr, declared: Declared, collector: Collector) -> Type | None:
    name = written.name
    if name.text in declared.enums:
        return Type("enum", name=name.text) if _takes(written, "nothing", 0, 0, collector) else None
    if name.text in declared.records:
        message = f"`{name.text}` is a record, which is an item of a list input and nothing else"
        help_text = f"write `list<{name.text}, 1..64>` as the type of an input, or name its fields one by one"
        collector.error("RDB-C204", message, name.span, help=help_text)
        return None
    if name.text in declared.entities:
        message = f"`{name.text}` is an entity, and a row is no value"
        collector.error("RDB-C204", message, name.span, help="use the type of its key")
        return None
    message = f"there is no type `{name.text}`"
    meant = FOREIGN.get(name.text.lower())
    if meant is None:
        help_text = f"the types are {', '.join(f'`{known}`' for known in BUILT_IN)}, and the enums of the contract"
        collector.unknown("RDB-C201", message, name, [*BUILT_IN, *declared.enums], help=help_text)
    else:
        collector.error(
            "RDB-C201", f"{message}; did you mean `{meant}`?", name.span, fix=replace(name.span, meant, safe=False)
        )
    return None


def _takes(written: TypeExpr, what: str, low: int, high: int, collector: Collector) -> bool:
    if low <= len(written.arguments) <= high:
        return True
    collector.error("RDB-C202", f"`{written.name.text}` takes {what} in angle brackets", written.span)
    return False


def _numbers(written: TypeExpr, what: str, count: int, collector: Collector) -> tuple[int, ...] | None:
    numbers = [item.low for item in written.arguments if isinstance(item, IntArgument) and not item.is_range]
    if len(numbers) == count == len(written.arguments):
        return tuple(numbers)
    collector.error("RDB-C202", f"`{written.name.text}` takes {what}", written.span)
    return None


def _text_type(written: TypeExpr, kind: Literal["string", "bytes"], bound: int, collector: Collector) -> Type | None:
    if 1 <= bound <= TEXT_BYTES_MAX:
        return Type(kind, bound=bound)
    collector.error(
        "RDB-C203", f"the size of `{kind}` lies between 1 and {TEXT_BYTES_MAX:,}", written.arguments[0].span
    )
    return None


def _decimal_type(written: TypeExpr, numbers: tuple[int, ...], collector: Collector) -> Type | None:
    digits, scale = numbers
    if not 1 <= digits <= DECIMAL_DIGITS_MAX:
        message = f"a decimal has 1 to {DECIMAL_DIGITS_MAX} digits"
        collector.error("RDB-C203", message, written.arguments[0].span)
        return None
    if scale > digits:
        message = "a decimal has no more digits after the point than digits"
        collector.error("RDB-C203", message, written.arguments[1].span)
        return None
    return Type("decimal", bound=digits, scale=scale)


def _optional_type(written: TypeExpr, declared: Declared, place: Place, collector: Collector) -> Type | None:
    inner = written.arguments[0] if len(written.arguments) == 1 else None
    if not isinstance(inner, TypeExpr):
        collector.error("RDB-C202", "`optional` takes one type, such as `optional<uuid>`", written.span)
        return None
    if inner.name.text == "cursor" and not inner.arguments:
        if place != "param":
            collector.error("RDB-C204", "a cursor is a parameter of a query only", written.span)
            return None
        return Type("cursor", optional=True)
    found = lower_type(inner, declared, place, collector)
    if found is None:
        return None
    if found.optional or found.kind in ("list", "limit"):
        collector.error("RDB-C204", f"`{inner.name.text}` cannot be optional", inner.span)
        return None
    return found.nullable


def _list_type(written: TypeExpr, declared: Declared, place: Place, collector: Collector) -> Type | None:
    what = "a type and its least and most items, such as `list<uuid, 1..64>`"
    if len(written.arguments) != 2:
        collector.error("RDB-C202", f"`list` takes {what}", written.span)
        return None
    inner, items = written.arguments
    if not isinstance(inner, TypeExpr) or not isinstance(items, IntArgument) or not items.is_range:
        collector.error("RDB-C202", f"`list` takes {what}", written.span)
        return None
    if place not in ("input", "param"):
        message = "a list is an input of a command or a parameter of a query only"
        collector.error("RDB-C204", message, written.span, help="give each item a row of its own")
        return None
    if not (items.low <= items.high and 1 <= items.high <= LIST_ITEMS_MAX):
        message = f"the items of a list are given as `least..most`, with at most {LIST_ITEMS_MAX}"
        collector.error("RDB-C203", message, items.span)
        return None
    element = _element_type(inner, declared, place, collector)
    if element is None:
        return None
    if element.optional or element.kind in ("list", "limit"):
        collector.error("RDB-C204", f"`{inner.name.text}` cannot be an item of a list", inner.span)
        return None
    return Type("list", bound=items.high, scale=items.low, element=element)


def _element_type(inner: TypeExpr, declared: Declared, place: Place, collector: Collector) -> Type | None:
    if place == "input" and inner.name.text in declared.records:
        return Type("record", name=inner.name.text) if _takes(inner, "nothing", 0, 0, collector) else None
    return lower_type(inner, declared, place, collector)


def _limit_type(written: TypeExpr, place: Place, collector: Collector) -> Type | None:
    numbers = _numbers(written, "the most rows that may be asked for, such as `limit<100>`", 1, collector)
    if numbers is None:
        return None
    if place != "param":
        collector.error("RDB-C204", "a limit is a parameter of a query only", written.span, help="use `u64`")
        return None
    if not 1 <= numbers[0] <= QUERY_ROWS_MAX:
        collector.error("RDB-C203", f"a limit lies between 1 and {QUERY_ROWS_MAX:,}", written.arguments[0].span)
        return None
    return Type("limit", bound=numbers[0])


def joined(left: Type, right: Type) -> Type | None:
    """The smallest type that both fit, if there is one."""
    if left.kind == "null" or right.kind == "null":
        other = right if left.kind == "null" else left
        return other if other.kind == "null" else other.nullable
    if left.kind != right.kind or left.name != right.name:
        return None
    optional = left.optional or right.optional
    match left.kind:
        case "string" | "bytes" | "limit":
            return Type(left.kind, optional, max(left.bound, right.bound))
        case "decimal":
            return (
                Type("decimal", optional, max(left.bound, right.bound), left.scale) if same_scale(left, right) else None
            )
        case "list" if left.element is not None and right.element is not None:
            element = joined(left.element, right.element)
            bound, least = max(left.bound, right.bound), min(left.scale, right.scale)
            return None if element is None else Type("list", optional, bound, least, "", element)
    return left.nullable if optional else left


def same_scale(left: Type, right: Type) -> bool:
    """Whether two decimals have the same digits after the point."""
    return left.scale == right.scale


def fits(actual: Type, expected: Type) -> bool:
    """Whether every value of `actual` is, unchanged, one of `expected`."""
    return joined(actual, expected) == expected
