"""Values in their three forms: the extremes of every type both ways, and everything outside refused with its path.

Units, since no command could show all of it: the decoders are what every edge trusts.
"""

import json
import math
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffdb.core.canonical import canonical_hash, canonical_json
from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX
from riffdb.core.types import BOOL, DATE, I64, TIMESTAMP, U64, Type, string
from riffdb.core.types import UUID as UUID_TYPE
from riffdb.core.values import decoder, encoder, enum_classes, native
from riffdb.database.codecs import InputCodec
from riffdb.plan.commands import InputPlan

ENUMS = {"Colour": ("Red", "Green", "Blue")}
CLASSES = enum_classes(ENUMS)
COLOUR = Type("enum", name="Colour")
BYTES = Type("bytes", bound=4)
MONEY = Type("decimal", bound=6, scale=2)
WIDE = Type("decimal", bound=38, scale=38)
WHOLE = Type("decimal", bound=38, scale=0)
LIMIT = Type("limit", bound=100)
LIST = Type("list", bound=3, scale=1, element=U64)
NULLABLES = Type("list", bound=3, element=U64.nullable)


def decoded(value_type: Type, value: object) -> Any:
    return decoder(value_type, ENUMS)(value, "f")


def wire(value_type: Type, inside: object) -> Any:
    return encoder(value_type, ENUMS)(inside)


def refused(value_type: Type, value: object) -> str:
    """The message of the refusal, whose path is the field's."""
    with pytest.raises(RiffError) as caught:
        decoded(value_type, value)
    assert (caught.value.code, caught.value.path) == ("RDB-E-INPUT", "f")
    return caught.value.message


EXTREMES: list[tuple[Type, object, object, object]] = [
    # type, inside, wire, native
    (BOOL, True, True, True),
    (BOOL, False, False, False),
    (I64, I64_MIN, "-9223372036854775808", I64_MIN),
    (I64, I64_MAX, "9223372036854775807", I64_MAX),
    (I64, 0, "0", 0),
    (U64, 0, "0", 0),
    (U64, U64_MAX, "18446744073709551615", U64_MAX),
    (string(4), "", "", ""),
    (string(4), "\U0001f600", "\U0001f600", "\U0001f600"),
    (string(4), "ä\x7f\n", "ä\x7f\n", "ä\x7f\n"),
    (BYTES, b"", "", b""),
    (BYTES, b"\xff\xfe\xfd\xfc", "__79_A", b"\xff\xfe\xfd\xfc"),
    (UUID_TYPE, bytes(16), "00000000-0000-0000-0000-000000000000", UUID(int=0)),
    (UUID_TYPE, b"\xff" * 16, "ffffffff-ffff-ffff-ffff-ffffffffffff", UUID(int=2**128 - 1)),
    (TIMESTAMP, TIMESTAMP_MIN, "0001-01-01T00:00:00.000000Z", datetime(1, 1, 1, tzinfo=UTC)),
    (TIMESTAMP, TIMESTAMP_MAX, "9999-12-31T23:59:59.999999Z", datetime.max.replace(tzinfo=UTC)),
    (TIMESTAMP, 0, "1970-01-01T00:00:00.000000Z", datetime(1970, 1, 1, tzinfo=UTC)),
    (TIMESTAMP, -1, "1969-12-31T23:59:59.999999Z", datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    (DATE, -719_162, "0001-01-01", date.min),
    (DATE, 2_932_896, "9999-12-31", date.max),
    (DATE, 11_016, "2000-02-29", date(2000, 2, 29)),
    (MONEY, 0, "0.00", Decimal("0.00")),
    (MONEY, 999_999, "9999.99", Decimal("9999.99")),
    (MONEY, -999_999, "-9999.99", Decimal("-9999.99")),
    (MONEY, -1, "-0.01", Decimal("-0.01")),
    (WIDE, 10**38 - 1, "0." + "9" * 38, Decimal("0." + "9" * 38)),
    (WHOLE, 1 - 10**38, "-" + "9" * 38, Decimal("-" + "9" * 38)),
    (COLOUR, 0, "Red", CLASSES["Colour"]("Red")),
    (COLOUR, 2, "Blue", CLASSES["Colour"]("Blue")),
    (LIST, (0, U64_MAX), ["0", str(U64_MAX)], [0, U64_MAX]),
    (NULLABLES, (), [], []),
    (NULLABLES, (None, 1), [None, "1"], [None, 1]),
    (U64.nullable, None, None, None),
    (LIST.nullable, None, None, None),
    (COLOUR.nullable, None, None, None),
]


@pytest.mark.parametrize(("value_type", "inside", "on_wire", "held"), EXTREMES, ids=lambda value: str(value)[:24])
def test_the_extremes_of_every_type_have_three_forms(
    value_type: Type, inside: object, on_wire: object, held: object
) -> None:
    assert decoded(value_type, on_wire) == inside
    assert decoded(value_type, held) == inside
    assert wire(value_type, inside) == on_wire
    back = native(value_type, CLASSES)(on_wire)
    assert back == held
    assert type(back) is type(held)


REFUSED: list[tuple[Type, tuple[Any, ...]]] = [
    (BOOL, (0, 1, "true", None, "", [], 1.0)),
    (I64, (I64_MIN - 1, I64_MAX + 1, str(I64_MIN - 1), str(I64_MAX + 1), 10**5_000)),
    (U64, (-1, "-1", 2**64, str(2**64), "9" * 5_000, Decimal(1), b"1", ["1"], {"n": 1}, None)),
    (LIMIT, (0, 101, "0", "101", -1)),
    *(
        (number, (1.0, math.nan, True, False, "-0", "+1", " 1", "1 ", "01", "1_0", "0x1", "1e3", "1.0", "", "\u0661"))
        for number in (I64, U64, LIMIT)
    ),
    (string(4), (1, None, b"a", ["a"], "\ud800", "a\udfffb", "\0", "a\0b", "12345", "äöü", "\U0001f600a")),
    (BYTES, ("A", "AA=", "AAA==", "AA===", "AAAA=", "====", "=AAA", "A=AA", "AA==AA==", "AB", "AAB", "AA+A", "AA/A")),
    (BYTES, ("AA\n", "AAAAAAA", b"12345", 1, None, bytearray(b"1"), [1], "Ä===")),
    (
        UUID_TYPE,
        (
            "0" * 32,
            "{00000000-0000-0000-0000-000000000000}",
            "urn:uuid:00000000-0000-0000-0000-000000000000",
            "00000000-0000-0000-0000-00000000000",
            "00000000-0000-0000-0000-00000000000g",
            "00000000-0000-0000-0000-000000000000\n",
            bytes(16),
            0,
            None,
        ),
    ),
    (
        TIMESTAMP,
        (
            "2026-01-31T09:30:00",
            "2026-01-31",
            "2026-01-31 09:30:00Z",
            "2026-01-31T09:30Z",
            "2026-01-31T09:30:00.Z",
            "2026-01-31T09:30:00.1234567Z",
            "2026-01-31T09:30:00,5Z",
            "2026-01-31T09:30:00Z ",
            "2026-1-31T09:30:00Z",
            "26-01-31T09:30:00Z",
            "+2026-01-31T09:30:00Z",
            "2026-02-30T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2016-12-31T23:59:60Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+00:60",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+1",
            "0000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59.999999-00:01",
            "\u0662026-01-01T00:00:00Z",
            datetime(2026, 1, 1),  # noqa: DTZ001  # naive on purpose
            date(2026, 1, 1),
            datetime.min.replace(tzinfo=timezone(timedelta(minutes=1))),
            datetime.max.replace(tzinfo=timezone(timedelta(minutes=-1))),
            1_800_000_000,
            1.5,
            None,
        ),
    ),
    (
        DATE,
        (
            "2026-02-30",
            "2026-13-01",
            "0000-01-01",
            "10000-01-01",
            "2026-1-1",
            "20260101",
            "2026-01-01T00:00:00Z",
            "2026-W01-1",
            datetime(2026, 1, 1, tzinfo=UTC),
            1,
            None,
        ),
    ),
    (MONEY, ("10000.00", "10000", "-10000", "0.001", "1e2", "1E2", "-0", "-0.00", "+1", " 1", "1.", ".5", "01", "1,5")),
    (MONEY, ("NaN", "Infinity", "", "\u0661", 1.5, True, 10_000, 10**5_000, None, b"1")),
    (MONEY, tuple(map(Decimal, ("0.001", "NaN", "sNaN", "-Infinity", "-0", "1E+999999999999", "1E-999999999999")))),
    (WIDE, ("1", "0." + "0" * 38 + "1")),
    (WHOLE, ("1" + "0" * 38,)),
    (COLOUR, ("red", "RED", "Red ", "", "Yellow", 0, None, ["Red"])),
    (LIST, ((), [], ["1"] * 4, "123", {"0": "1"}, None, {1, 2})),
]


@pytest.mark.parametrize(("value_type", "values"), REFUSED, ids=lambda part: str(part) if type(part) is Type else "")
def test_what_lies_outside_a_type_is_refused_with_its_path(value_type: Type, values: tuple[Any, ...]) -> None:
    for value in values:
        message = refused(value_type, value)
        assert message.startswith("f: must ")
        assert len(message) < 200, "it says what the value must be, not what it was"


@pytest.mark.parametrize("value", [-1, "x", None, 2**64, True])
def test_an_item_of_a_list_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(RiffError) as caught:
        decoded(LIST, ["1", value])
    assert caught.value.path == "f[1]"


def test_a_text_is_bounded_by_its_bytes() -> None:
    assert decoded(string(4), "äö") == "äö"
    assert "4 bytes" in refused(string(4), "äöa")


ACCEPTED: list[tuple[Type, object, object]] = [
    (I64, 5, 5),
    (U64, "5", 5),
    (LIMIT, 100, 100),
    (LIMIT, "1", 1),
    (UUID_TYPE, "ABCDEF00-0000-0000-0000-00000000000A", bytes.fromhex("abcdef000000000000000000000000" + "0a")),
    (TIMESTAMP, "1970-01-01t00:00:00z", 0),
    (TIMESTAMP, "1970-01-01T00:00:00.1Z", 100_000),
    (TIMESTAMP, "1970-01-01T00:00:00.000001Z", 1),
    (TIMESTAMP, "1970-01-01T01:30:00+01:30", 0),
    (TIMESTAMP, "1969-12-31T16:00:00-08:00", 0),
    (TIMESTAMP, "1970-01-01T00:00:00-00:00", 0),
    (TIMESTAMP, "1970-01-01T23:59:00+23:59", 0),
    (TIMESTAMP, "0001-01-01T23:59:00+23:59", TIMESTAMP_MIN),
    (TIMESTAMP, "9999-12-31T00:00:59.999999-23:59", TIMESTAMP_MAX),
    (TIMESTAMP, datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    (TIMESTAMP, datetime.min.replace(tzinfo=timezone(timedelta(hours=-14))), TIMESTAMP_MIN + 14 * 3_600_000_000),
    (TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone(timedelta(microseconds=1))), 999_999),
    (BYTES, "AA==", b"\0"),
    (BYTES, "AA", b"\0"),
    (BYTES, "AAA=", b"\0\0"),
    (BYTES, "-_8", b"\xfb\xff"),
    (MONEY, "1", 100),
    (MONEY, "1.5", 150),
    (MONEY, "1.5000", 150),
    (MONEY, 7, 700),
    (MONEY, Decimal("1E+2"), 10_000),
    (MONEY, Decimal("1.50"), 150),
    (MONEY, "-0.50", -50),
    (LIST, (1, "2"), (1, 2)),
    (COLOUR, CLASSES["Colour"]("Green"), 1),
    (string(5), CLASSES["Colour"]("Green"), "Green"),
]


@pytest.mark.parametrize(("value_type", "value", "inside"), ACCEPTED, ids=lambda value: str(value)[:30])
def test_other_writings_of_a_value_are_the_value(value_type: Type, value: object, inside: object) -> None:
    found = decoded(value_type, value)
    assert found == inside
    assert type(found) is type(inside)


def test_a_zone_without_an_offset_is_no_offset() -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, moment: datetime | None, /) -> None:
            return None

        tzname = dst = utcoffset

    assert "offset" in refused(TIMESTAMP, datetime(2026, 1, 1, tzinfo=Nowhere()))


def test_a_number_of_another_class_is_no_number() -> None:
    class Level(IntEnum):
        LOW = 1

    refused(U64, Level.LOW)


# --- both ways, for any value --------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
kinds: st.SearchStrategy[tuple[Type, Any]] = st.one_of(
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(I64), st.integers(I64_MIN, I64_MAX)),
    st.tuples(st.just(U64), st.integers(0, U64_MAX)),
    st.tuples(st.just(string(65_536)), texts),
    st.tuples(st.just(Type("bytes", bound=64)), st.binary(max_size=64)),
    st.tuples(st.just(UUID_TYPE), st.binary(min_size=16, max_size=16)),
    st.tuples(st.just(TIMESTAMP), st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX)),
    st.tuples(st.just(DATE), st.integers(-719_162, 2_932_896)),
    st.tuples(st.just(COLOUR), st.integers(0, 2)),
    *(
        st.tuples(st.just(Type("decimal", bound=38, scale=scale)), st.integers(1 - 10**38, 10**38 - 1))
        for scale in (0, 2, 38)
    ),
    st.tuples(st.just(LIST), st.lists(st.integers(0, U64_MAX), min_size=1, max_size=3).map(tuple)),
)


@given(kinds)
def test_every_value_comes_back_from_the_wire(kind: tuple[Type, Any]) -> None:
    value_type, inside = kind
    assert decoded(value_type, json.loads(json.dumps(wire(value_type, inside)))) == inside


@given(kinds)
def test_every_value_comes_back_from_its_native_form(kind: tuple[Type, Any]) -> None:
    value_type, inside = kind
    held = native(value_type, CLASSES)(wire(value_type, inside))
    assert decoded(value_type, held) == inside


@given(kinds)
def test_null_belongs_to_an_optional_type_alone(kind: tuple[Type, Any]) -> None:
    value_type, inside = kind
    refused(value_type, None)
    assert decoded(value_type.nullable, None) is None
    assert wire(value_type.nullable, None) is None
    assert wire(value_type.nullable, inside) == wire(value_type, inside)


@given(st.text() | st.integers() | st.floats() | st.binary() | st.lists(st.integers()) | st.none())
def test_a_decoder_refuses_in_one_way_only(value: Any) -> None:
    refusals = []
    for value_type in (BOOL, I64, U64, string(4), BYTES, UUID_TYPE, TIMESTAMP, DATE, MONEY, COLOUR, LIST, LIMIT):
        try:
            found = decoded(value_type, value)
        except RiffError as error:
            refusals.append(error.code)
        else:
            assert decoded(value_type, wire(value_type, found)) == found
    assert set(refusals) <= {"RDB-E-INPUT"}


# --- the canonical text: hashes of inputs rest on it ---------------------------------------------------------------


@given(st.dictionaries(texts, kinds | st.tuples(st.just(U64.nullable), st.none())))
def test_the_text_of_wire_values_is_the_canonical_one(values: Mapping[str, tuple[Type, Any]]) -> None:
    form = {name: wire(value_type, inside) for name, (value_type, inside) in sorted(values.items())}
    assert msgspec.json.encode(form).decode() == canonical_json(form)


def test_every_character_has_one_canonical_text() -> None:
    everything = "".join(map(chr, [*range(1, 0xD800), *range(0xE000, 0x110000)]))
    assert msgspec.json.encode(everything).decode() == canonical_json(everything)


def test_canonical_json_has_one_order_and_no_floats() -> None:
    assert canonical_json({"b": 1, "a": [True, None, ("x",)], "ä": "é\n"}) == '{"a":[true,null,["x"]],"b":1,"ä":"é\\n"}'
    assert canonical_hash({"a": 1, "b": 2}) == canonical_hash({"b": 2, "a": 1})
    for floating in (1.0, {"a": [1.0]}, [math.inf]):
        with pytest.raises(ValueError, match="float"):
            canonical_json(floating)


def codec(*inputs: InputPlan) -> InputCodec:
    return InputCodec(inputs, ENUMS, "input")


def test_defaults_and_nulls_are_left_out_of_the_canonical_input() -> None:
    inputs = codec(
        InputPlan("b", U64),
        InputPlan("a", string(8).nullable),
        InputPlan("c", U64, has_default=True, default=7),
    )
    for values in ({"b": 1}, {"b": "1", "a": None}, {"c": 7, "b": 1}, {"a": None, "c": "7", "b": "1"}):
        assert inputs.canonical(inputs.decode(values)) == '{"b":"1"}'
    assert inputs.canonical(inputs.decode({"b": 1, "c": 0, "a": ""})) == '{"a":"","b":"1","c":"0"}'


def test_a_null_in_place_of_a_default_is_no_default() -> None:
    inputs = codec(InputPlan("a", string(8).nullable, has_default=True, default="x"))
    assert inputs.decode({}) == inputs.decode({"a": "x"}) == ("x",)
    assert inputs.canonical(inputs.decode({})) == "{}"
    assert inputs.canonical(inputs.decode({"a": None})) == '{"a":null}'


def test_secrets_are_left_out_where_they_are_not_wanted() -> None:
    inputs = codec(InputPlan("a", string(8), secret=True), InputPlan("b", U64))
    decoded_values = inputs.decode({"a": "hush", "b": 1})
    assert inputs.has_secrets
    assert inputs.canonical(decoded_values) == '{"b":"1"}'
    assert inputs.secret(decoded_values) == '{"a":"hush"}'


def test_names_of_inputs_are_checked() -> None:
    inputs = codec(InputPlan("work_id", U64), InputPlan("note", string(8).nullable))
    for values, path, words in (
        ({"work_idd": 1}, "work_idd", "did you mean `work_id`?"),
        ({"x" * 100_000: 1}, "x" * 100_000, "is no input"),
        ({}, "work_id", "is missing"),
        ({"note": "a"}, "work_id", "is missing"),
    ):
        with pytest.raises(RiffError) as caught:
            inputs.decode(values)
        assert (caught.value.code, caught.value.path) == ("RDB-E-INPUT", path)
        assert words in caught.value.message


# --- enums as Python holds them --------------------------------------------------------------------------------------

STRANGE = ("mro", "_x_", "__init__", "_x", "x_", "variant_x_", "name", "value", "title", "None_", "self", "class")


def test_every_variant_is_a_member_whatever_its_name() -> None:
    classes = enum_classes({"E": STRANGE})
    assert [str(member) for member in classes["E"]] == list(STRANGE)
    for ordinal, variant in enumerate(STRANGE):
        member = native(Type("enum", name="E"), classes)(variant)
        assert member == variant
        assert isinstance(member, StrEnum)
        assert decoder(Type("enum", name="E"), {"E": STRANGE})(member, "f") == ordinal
    assert classes["E"]["title"] == "title"


def test_base64_is_as_the_standard_library_writes_it() -> None:
    for size in range(5):
        value = bytes(range(250, 250 + size))
        padded = urlsafe_b64encode(value).decode()
        assert decoded(BYTES, padded) == decoded(BYTES, padded.rstrip("=")) == value
        assert wire(BYTES, value) == padded.rstrip("=")
