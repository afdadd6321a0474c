"""Python values in the form that JSON carries, before any type is known: the server checks them by its plan.

Nothing is rounded or cut on the way: what has no exact form on the wire is refused with its path.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from riffdb.core.errors import input_error
from riffdb.core.limits import I64_MIN, U64_MAX
from riffdb.core.values import decimal_form


def wire_values(values: Mapping[str, object]) -> dict[str, object]:
    """The wire form of named values; `RDB-E-INPUT` for what has none."""
    return {name: wire_value(value, name) for name, value in values.items()}


def wire_value(value: object, path: str) -> object:
    """The wire form of one value."""
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, path)
        case int() | Decimal():
            return _number(value, path)
        case UUID():
            return str(value)
        case datetime():
            return _time(value, path)
        case date():
            return value.isoformat()
        case bytes():
            return urlsafe_b64encode(value).decode().rstrip("=")
        case list() | tuple():
            return [wire_value(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case Mapping():
            return {str(name): wire_value(item, f"{path}.{name}") for name, item in value.items()}
    raise input_error(path, f"a {type(value).__name__} has no form on the wire")


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise input_error(path, "must be valid Unicode, without lone surrogates") from None
    return value


def _number(value: int | Decimal, path: str) -> object:
    if isinstance(value, int) and I64_MIN <= value <= U64_MAX:
        return value
    form = decimal_form(value)
    if form is None:
        raise input_error(path, "must be a number of fewer digits")
    return form


def _time(value: datetime, path: str) -> str:
    if value.utcoffset() is None:
        raise input_error(path, "must be a time with its offset from UTC")
    try:
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except OverflowError:
        raise input_error(path, "must lie in the years 0001 to 9999 (UTC)") from None
