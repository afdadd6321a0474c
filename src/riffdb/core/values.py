"""Values in their three forms: inside (plain), on the wire (JSON), and native (what a Python caller holds).

Inside, a value is what the engine and the stores work with: `uuid` is 16 bytes, `timestamp` microseconds and `date`
days since 1970-01-01 (UTC), `decimal` an integer scaled by its type, an enum the ordinal of its variant, a list or a
record a tuple, null is None; `bool`, integers, text and bytes are themselves. A decoder takes the wire form or the
native form and refuses whatever is outside the type, naming the path: nothing is cut, rounded, normalised or wrapped.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

from riffdb.core.errors import input_error
from riffdb.core.limits import CURSOR_TEXT_MAX, I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type

Enums = Mapping[str, tuple[str, ...]]
Records = Mapping[str, Sequence[tuple[str, Type]]]
"""The fields of every record of a contract, by its name and in declared order."""
Decoder = Callable[[Any, str], Any]
Encoder = Callable[[Any], Any]

SECOND = 1_000_000
"""A second as times are counted, in µs."""

_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,19})")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))"
)
_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}={2}|[A-Za-z0-9_-]{3}=|[A-Za-z0-9_-]{2}|[A-Za-z0-9_-]{3})?"
)
_DECIMAL_TEXT_MAX = 80
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # UTC is meant; its text is made without an offset
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_TEXTS_KEPT = 4_096
"""One command shows the same ids and times in its answer, its record and its changes."""


NO_RECORDS: Records = {}


def decoder(value_type: Type, enums: Enums, records: Records = NO_RECORDS) -> Decoder:
    """The function from (wire or native value, path) to the inside value; it raises `RDB-E-INPUT` with the path."""
    decode = _decode_required(value_type, enums, records)
    if not value_type.optional:
        return decode
    return lambda value, path: None if value is None else decode(value, path)


def _decode_required(value_type: Type, enums: Enums, records: Records) -> Decoder:
    match value_type.kind:
        case "bool":
            return _decode_bool
        case "i64":
            return _integer_decoder(I64_MIN, I64_MAX, "i64")
        case "u64":
            return _integer_decoder(0, U64_MAX, "u64")
        case "limit":
            return _integer_decoder(1, value_type.bound, f"limit<{value_type.bound}>")
        case "string":
            return _text_decoder(value_type.bound)
        case "cursor":
            return _text_decoder(CURSOR_TEXT_MAX)
        case "bytes":
            return _bytes_decoder(value_type.bound)
        case "uuid":
            return _decode_uuid
        case "timestamp":
            return _decode_timestamp
        case "date":
            return _decode_date
        case "decimal":
            return _decimal_decoder(value_type.bound, value_type.scale)
        case "enum":
            return _enum_decoder(value_type.name, enums[value_type.name])
        case "list" if value_type.element is not None:
            return _list_decoder(decoder(value_type.element, enums, records), value_type.scale, value_type.bound)
        case "record":
            return _record_decoder(value_type.name, records[value_type.name], enums)
    raise AssertionError(f"no values are read for the type {value_type}")


def _decode_bool(value: Any, path: str) -> bool:
    if value is True or value is False:
        return value
    raise input_error(path, "must be true or false")


def _integer_decoder(low: int, high: int, name: str) -> Decoder:
    def decode(value: Any, path: str) -> int:
        if type(value) is str and _INTEGER.fullmatch(value) and value != "-0":
            value = int(value)
        if type(value) is not int:
            raise input_error(path, f"must be a whole number ({name}), as a number or a decimal string")
        if low <= value <= high:
            return value
        raise input_error(path, f"must lie between {low} and {high} ({name})")

    return decode


def _text_decoder(bound: int) -> Decoder:
    def decode(value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise input_error(path, "must be a string")
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            raise input_error(path, "must be valid Unicode, without lone surrogates") from None
        if size > bound:
            raise input_error(path, f"must be at most {bound} bytes of UTF-8")
        if "\0" in value:
            raise input_error(path, "must not hold the NUL character")
        return str(value)

    return decode


def _bytes_decoder(bound: int) -> Decoder:
    def decode(value: Any, path: str) -> bytes:
        if isinstance(value, str):
            value = _parse_base64(value, path)
        if not isinstance(value, bytes):
            raise input_error(path, "must be bytes, as base64url on the wire")
        if len(value) > bound:
            raise input_error(path, f"must be at most {bound} bytes")
        return bytes(value)

    return decode


def _parse_base64(text: str, path: str) -> bytes:
    """The bytes; each has two texts, with its padding and without, so that nothing in a text is passed over."""
    if _BASE64.fullmatch(text):
        digits = text.rstrip("=")
        value = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
        if urlsafe_b64encode(value).decode().rstrip("=") == digits:
            return value
    raise input_error(path, "must be base64url (RFC 4648, section 5), its padding whole or left out")


def _decode_uuid(value: Any, path: str) -> bytes:
    if type(value) is str and _UUID.fullmatch(value):
        return bytes.fromhex(value.replace("-", ""))
    if isinstance(value, UUID):
        return value.int.to_bytes(16, "big")  # as its `bytes`, without the call of a property
    raise input_error(path, "must be a UUID in the hyphenated form")


def _decode_timestamp(value: Any, path: str) -> int:
    if type(value) is str:
        return _parse_timestamp(value, path)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise input_error(path, "must be a time with its offset from UTC")
        return _in_range((value - _EPOCH) // _MICROSECOND, path)
    raise input_error(path, "must be a time such as 2026-01-31T09:30:00.000000Z")


def _parse_timestamp(value: str, path: str) -> int:
    match = _TIME.fullmatch(value)
    if match is None:
        raise input_error(path, "must be a time such as 2026-01-31T09:30:00.000000Z, with at most six decimals")
    year, month, day, hour, minute, second, fraction, _, sign, offset_hour, offset_minute = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        raise input_error(path, "must be a time that exists") from None
    micros = (moment - _EPOCH) // _MICROSECOND + int((fraction or "0").ljust(6, "0"))
    if sign is not None:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            raise input_error(path, "must have an offset below 24 hours")
        shift = (int(offset_hour) * 60 + int(offset_minute)) * 60_000_000
        micros += -shift if sign == "+" else shift
    return _in_range(micros, path)


def _in_range(micros: int, path: str) -> int:
    if TIMESTAMP_MIN <= micros <= TIMESTAMP_MAX:
        return micros
    raise input_error(path, "must lie in the years 0001 to 9999 (UTC)")


def _decode_date(value: Any, path: str) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_DAY
    match = _DATE.fullmatch(value) if type(value) is str else None
    try:
        if match is not None:
            return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH_DAY
    except ValueError:
        pass
    raise input_error(path, "must be a date that exists, such as 2026-01-31")


def _decimal_decoder(digits: int, scale: int) -> Decoder:
    def decode(value: Any, path: str) -> int:
        text = decimal_form(value) if isinstance(value, Decimal | int) and not isinstance(value, bool) else value
        match = _DECIMAL.fullmatch(text) if isinstance(text, str) and len(text) <= _DECIMAL_TEXT_MAX else None
        if match is None or (match[1] and not match[0].strip("-0.")):
            raise input_error(path, 'must be a decimal number as a string, such as "12.50"')
        fraction = match[3] or ""
        if len(fraction) > scale and fraction[scale:].strip("0"):
            raise input_error(path, f"must have at most {scale} digits after the point")
        scaled = int(match[2] + fraction[:scale].ljust(scale, "0"))
        if scaled >= 10**digits:
            raise input_error(path, f"must have at most {digits} digits, {scale} of them after the point")
        return -scaled if match[1] else scaled

    return decode


def decimal_form(value: Decimal | int) -> str | None:
    """The digits of a number without an exponent; None if it is no number, or longer than any of a decimal type."""
    if isinstance(value, int):
        return str(value) if value.bit_length() < _DECIMAL_TEXT_MAX * 3 else None
    if not value.is_finite() or max(abs(value.adjusted()), len(value.as_tuple().digits)) > _DECIMAL_TEXT_MAX:
        return None
    return format(value, "f")


def _enum_decoder(name: str, variants: tuple[str, ...]) -> Decoder:
    ordinals = {variant: ordinal for ordinal, variant in enumerate(variants)}

    def decode(value: Any, path: str) -> int:
        ordinal = ordinals.get(value) if isinstance(value, str) else None
        if ordinal is None:
            raise input_error(path, f"must be one of the variants of {name}: {', '.join(variants)}")
        return ordinal

    return decode


def _list_decoder(element: Decoder, low: int, high: int) -> Decoder:
    def decode(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise input_error(path, "must be a list")
        if not low <= len(value) <= high:
            raise input_error(path, f"must have {low} to {high} items")
        return tuple(element(item, f"{path}[{index}]") for index, item in enumerate(value))

    return decode


def _record_decoder(name: str, fields: Sequence[tuple[str, Type]], enums: Enums) -> Decoder:
    places = {field: (place, decoder(kind, enums)) for place, (field, kind) in enumerate(fields)}
    required = [(field, place, kind) for place, (field, kind) in enumerate(fields) if not kind.optional]

    def decode(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, Mapping):
            raise input_error(path, f"must be an object with the fields of {name}")
        decoded = [None] * len(places)
        for field, given in value.items():
            known = places.get(field)
            if known is None:
                raise input_error(f"{path}.{field}", f"is no field of {name}{did_you_mean(str(field), places)}")
            decoded[known[0]] = known[1](given, f"{path}.{field}")
        for field, place, kind in required:
            if decoded[place] is None:
                raise input_error(f"{path}.{field}", f"is missing; give a value of type {kind}")
        return tuple(decoded)

    return decode


def encoder(value_type: Type, enums: Enums, records: Records = NO_RECORDS) -> Encoder:
    """The function from an inside value to its wire form; that of a record names its fields in order of their names and
    leaves out those that are null, so that one value has one form, also when the record has grown."""
    encode = _encode_required(value_type, enums, records)
    if encode is None:
        return unchanged
    if not value_type.optional:
        return encode
    return lambda value: None if value is None else encode(value)


def _encode_required(value_type: Type, enums: Enums, records: Records) -> Encoder | None:
    match value_type.kind:
        case "bool":
            return bool
        case "i64" | "u64":
            return str
        case "bytes":
            return lambda value: urlsafe_b64encode(value).decode().rstrip("=")
        case "uuid":
            return uuid_text
        case "timestamp":
            return timestamp_text
        case "date":
            return lambda value: date.fromordinal(value + _EPOCH_DAY).isoformat()
        case "decimal":
            scale = value_type.scale
            return lambda value: decimal_text(value, scale)
        case "enum":
            return enums[value_type.name].__getitem__
        case "list" if value_type.element is not None:
            encode = encoder(value_type.element, enums, records)
            return lambda value: [encode(item) for item in value]
        case "record":
            return _record_encoder(records[value_type.name], enums)
    return None


def _record_encoder(fields: Sequence[tuple[str, Type]], enums: Enums) -> Encoder:
    parts = sorted((name, place, encoder(kind, enums)) for place, (name, kind) in enumerate(fields))
    return lambda value: {name: encode(value[place]) for name, place, encode in parts if value[place] is not None}


def unchanged(value: Any) -> Any:
    """The value: the encoder of a type whose wire form is its inside value."""
    return value


@lru_cache(_TEXTS_KEPT)
def uuid_text(value: bytes) -> str:
    """The lower-case hyphenated form of 16 bytes."""
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@lru_cache(_TEXTS_KEPT)
def timestamp_text(value: int) -> str:
    """RFC 3339 with six digits and `Z` of microseconds since 1970-01-01."""
    seconds, microseconds = divmod(value, 1_000_000)
    return f"{_second_text(seconds)}.{str(1_000_000 + microseconds)[1:]}Z"


@lru_cache(_TEXTS_KEPT)
def _second_text(seconds: int) -> str:
    return (_NAIVE_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def decimal_text(value: int, scale: int) -> str:
    """The decimal string of a scaled integer, always with `scale` digits after the point."""
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + digits if scale == 0 else f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def native(value_type: Type, enums: Mapping[str, type[StrEnum]]) -> Encoder:
    """The function from a wire value, as a JSON reader gives it, to what a Python caller holds."""
    convert = _native_required(value_type, enums)
    return lambda value: None if value is None else convert(value)


def _native_required(value_type: Type, enums: Mapping[str, type[StrEnum]]) -> Encoder:
    match value_type.kind:
        case "i64" | "u64":
            return int
        case "bytes":
            decode = _bytes_decoder(U64_MAX)
            return lambda value: decode(value, "payload")
        case "uuid":
            return UUID
        case "timestamp":
            return lambda value: _EPOCH + timedelta(microseconds=_parse_timestamp(value, "payload"))
        case "date":
            return date.fromisoformat
        case "decimal":
            return Decimal
        case "enum":
            return enums[value_type.name]
        case "list" if value_type.element is not None:
            convert = native(value_type.element, enums)
            return lambda value: [convert(item) for item in value]
    return unchanged


def enum_classes(enums: Enums) -> dict[str, type[StrEnum]]:
    """One `StrEnum` for each enum of a contract; members are the variants, values their names.

    A variant that cannot be a member's name (`mro`, and what begins with `_`) has a member named `variant_…`.
    """
    return {name: StrEnum(name, _members(variants)) for name, variants in enums.items()}  # type: ignore[misc]  # functional form with a computed name


def _members(variants: tuple[str, ...]) -> dict[str, str]:
    members: dict[str, str] = {}
    for variant in variants:
        member = f"variant_{variant.lstrip('_')}" if variant.startswith("_") or variant == "mro" else variant
        while member in members or (member != variant and member in variants):
            member += "_"
        members[member] = variant
    return members
