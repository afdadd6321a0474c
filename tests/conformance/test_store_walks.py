"""Rows as every store keeps them: values of every kind, and walks over keys and indexes."""

import pytest

from riffdb.core.layout import Column, ColumnKind, Index, Table
from riffdb.core.records import Batch
from riffdb.storage.protocol import Scan
from tests.conformance.stores import (
    ALL_UNICODE,
    U64_MAX,
    VALUES,
    WORK,
    P,
    Place,
    Q,
    deletes,
    inserts,
    rows_of,
    scan,
    updates,
    wide,
    work,
)


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_kind_come_back_as_they_were(place: Place, kind: ColumnKind) -> None:
    table = wide(kind)
    rows = [(P, number, value, U64_MAX) for number, value in enumerate([None, *VALUES[kind]])]
    place.write(Batch(mutations=inserts(table, *rows)), table)
    found = rows_of(place, table, *rows)
    assert list(found.values()) == rows
    assert [type(row[2]) for row in found.values()] == [type(row[2]) for row in rows]


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_kind_are_keys(place: Place, kind: ColumnKind) -> None:
    table = Table("keyed", (Column("id", kind), Column("revision", "u64")), (0,))
    rows = [(value, number) for number, value in enumerate(VALUES[kind])]
    place.write(Batch(mutations=inserts(table, *reversed(rows))), table)
    assert list(rows_of(place, table, *rows).items()) == [((row[0],), row) for row in rows]
    assert scan(place, table, None, ()) == rows
    place.write(Batch(mutations=[*updates(table, *((row[0], 99) for row in rows[1:])), *deletes(table, rows[0])]))
    assert scan(place, table, None, ()) == [(row[0], 99) for row in rows[1:]]


def test_long_values_come_back_as_they_were(place: Place) -> None:
    text, blob = wide("text"), wide("blob")
    rows = [(P, 1, ALL_UNICODE, 1), (P, 2, "x" * 65_536, 1)]
    long = (P, 1, bytes(range(256)) * 256, 1)
    place.write(Batch(mutations=inserts(text, *rows) + inserts(blob, long)), text, blob)
    assert list(rows_of(place, text, *rows).values()) == rows
    assert rows_of(place, blob, long) == {(P, 1): long}


def test_a_missing_row_is_left_out(place: Place) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1))), WORK)
    assert rows_of(place, WORK, work(2), work(1), work(1)) == {("a", b"\1"): work(1)}
    assert place.read(lambda reader: reader.rows(WORK, [])) == {}


def test_names_that_are_words_of_sql_work(place: Place) -> None:
    table = Table(
        "select",
        tuple(Column(name, "text", name == "null") for name in ("from", "where", "null", 'quo"te', "rowid", "Ünï")),
        (1, 0),
        (Index("order", (1, 2, 0), (False, True, False)), Index("index", (1, 5, 0), (False, False, False))),
    )
    rows = [("1", "w", None, "q", "r", "u"), ("2", "w", "n", "q", "r", "u")]
    place.write(Batch(mutations=inserts(table, *rows)), table)
    assert scan(place, table, table.indexes[0], ("w",)) == [rows[1], rows[0]]
    changed = ("1", "w", "z", "q", "r", "u")
    place.write(Batch(mutations=updates(table, changed)))
    assert scan(place, table, table.indexes[0], ("w",)) == [changed, rows[1]]


# Walks


@pytest.mark.parametrize("kind", VALUES)
def test_an_index_walks_in_order_null_first(place: Place, kind: ColumnKind) -> None:
    table = wide(kind)
    values = [None, *VALUES[kind]]
    rows = [
        (P, number, value, 1) for value in values for number in (2 * values.index(value), 2 * values.index(value) + 1)
    ]
    other = [(Q, number, value, 1) for number, value in enumerate(values)]
    place.write(Batch(mutations=inserts(table, *reversed(rows), *other)), table)
    up, down = table.indexes
    falling = sorted(rows, key=lambda row: (-values.index(row[2]), row[1]))
    assert scan(place, table, up, (P,)) == rows
    assert scan(place, table, up, (P,), reverse=True) == rows[::-1]
    assert scan(place, table, down, (P,)) == falling
    assert scan(place, table, down, (P,), reverse=True) == falling[::-1]
    assert scan(place, table, up, (P,), limit=3) == rows[:3]
    assert scan(place, table, up, (P,), limit=0) == []
    for value in values:
        assert scan(place, table, up, (P, value)) == [row for row in rows if row[2] == value]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ["up", "down"])
def test_bounds_hold_at_every_value_and_leave_null_out(place: Place, kind: ColumnKind, name: str) -> None:
    table = wide(kind)
    values = VALUES[kind]
    rows = [(P, number, value, 1) for number, value in enumerate([None, *values])]
    place.write(Batch(mutations=inserts(table, *rows, *((Q, *row[1:]) for row in rows))), table)
    index = next(index for index in table.indexes if index.name == name)
    for low in range(len(values)):
        for high in range(low, len(values)):
            for lower_in, upper_in in ((True, True), (True, False), (False, True), (False, False)):
                expected = [
                    value
                    for position, value in enumerate(values)
                    if low + (not lower_in) <= position <= high - (not upper_in)
                ]
                found = scan(place, table, index, (P,), (values[low], lower_in), (values[high], upper_in))
                assert [row[2] for row in found] == (expected if name == "up" else expected[::-1])
        above = [row[2] for row in scan(place, table, index, (P,), lower=(values[low], True), reverse=True)]
        assert above == (values[low:][::-1] if name == "up" else values[low:])
        below = [row[2] for row in scan(place, table, index, (P,), upper=(values[low], False))]
        assert below == (values[:low] if name == "up" else values[:low][::-1])


def test_the_key_is_walked_by_prefix_and_range(place: Place) -> None:
    rows = [work(number, tenant) for tenant in ("a", "b") for number in (1, 2, 3, 4)]
    place.write(Batch(mutations=inserts(WORK, *reversed(rows))), WORK)
    assert scan(place, WORK, None, ()) == rows
    assert scan(place, WORK, None, ("b",)) == rows[4:]
    assert scan(place, WORK, None, ("b",), (b"\2", True), (b"\4", False)) == rows[5:7]
    assert scan(place, WORK, None, ("b", b"\3")) == [rows[6]]
    assert scan(place, WORK, None, (), lower=("a", False)) == rows[4:]
    assert scan(place, WORK, None, ("c",)) == []


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["up", "down"])
def test_a_walk_begins_behind_any_position(place: Place, kind: ColumnKind, name: str, reverse: bool) -> None:
    table = wide(kind)
    values = [None, *VALUES[kind]]
    rows = [(P, 2 * number + twin, value, 1) for number, value in enumerate(values) for twin in (0, 1)]
    place.write(Batch(mutations=inserts(table, *rows, *((Q, *row[1:]) for row in rows))), table)
    index = next(index for index in table.indexes if index.name == name)
    whole = scan(place, table, index, (P,), reverse=reverse)
    assert len(whole) == len(rows)
    for number, row in enumerate(whole):
        position = (row[2], row[1])
        assert scan(place, table, index, (P,), reverse=reverse, start=(position, False)) == whole[number + 1 :]
        assert scan(place, table, index, (P,), reverse=reverse, start=(position, True), limit=3) == whole[number:][:3]
        same = [other for other in whole if other[2] == row[2]]
        behind = whole[whole.index(same[-1]) + 1 :]
        assert scan(place, table, index, (P,), reverse=reverse, start=((row[2],), False)) == behind
        assert scan(place, table, index, (P,), reverse=reverse, start=((row[2],), True)) == same + behind
        assert scan(place, table, index, (P,), reverse=reverse, start=((row[2],), False), limit=2) == behind[:2]
    assert scan(place, table, index, (P,), reverse=reverse, start=((), True)) == whole
    assert scan(place, table, index, (P,), reverse=reverse, start=((), False)) == []


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["up", "down"])
def test_a_walk_with_bounds_begins_at_a_position_outside_them_too(place: Place, name: str, reverse: bool) -> None:
    table = wide("int")
    rows = [(P, number, value, 1) for number, value in enumerate([None, 1, 2, 2, 3, 4, 5])]
    place.write(Batch(mutations=inserts(table, *rows)), table)
    index = next(index for index in table.indexes if index.name == name)
    is_falling = (name == "down") != reverse
    for lower, upper in ((None, (4, False)), ((2, True), None), ((1, False), (4, True)), ((4, True), (2, True))):
        within = scan(place, table, index, (P,), lower, upper, reverse)
        for value in (None, 0, 1, 2, 3, 4, 5, 6):
            numbers = [-9 if value is None else value, *(row[2] for row in within)]
            expected = [row for row in within if (row[2] < numbers[0] if is_falling else row[2] > numbers[0])]
            assert scan(place, table, index, (P,), lower, upper, reverse, start=((value,), False)) == expected
            same = [row for row in within if row[2] == value]
            found = scan(place, table, index, (P,), lower, upper, reverse, start=((value,), True))
            assert sorted(found) == sorted(same + expected)


def test_a_walk_begins_between_rows_that_a_unique_does_not_tell_apart(place: Place) -> None:
    table = Table(
        "named",
        (Column("home", "text"), Column("id", "int"), Column("name", "text", True), Column("revision", "u64")),
        (0, 1),
        (Index("name", (0, 2), (False, False), unique=True),),
    )
    rows = [("h", 2, None, 1), ("h", 3, None, 1), ("h", 5, None, 1), ("h", 1, "a", 1), ("h", 4, "b", 1)]
    place.write(Batch(mutations=inserts(table, *rows)), table)
    index = table.indexes[0]
    for number, row in enumerate(rows):
        start = ((row[2], row[1]), False)
        assert scan(place, table, index, ("h",), start=start) == rows[number + 1 :]
        assert scan(place, table, index, ("h",), start=start, reverse=True) == rows[:number][::-1]
    assert scan(place, table, index, ("h", None), start=((2,), False)) == rows[1:3]
    assert scan(place, table, index, ("h", None, 3)) == [rows[1]]


def test_the_store_says_how_it_walks_without_a_value(place: Place) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1, "hidden"))), WORK)
    wanted = Scan(WORK, WORK.indexes[0], ("hidden",), start=((5, b"\1"), False))
    told = place.read(lambda reader: reader.explain(wanted))
    assert "work" in told and "hidden" not in told


def test_a_walk_brings_the_columns_that_are_wanted_alone(place: Place) -> None:
    rows = [work(number, due=number, owner=b"me") for number in (1, 2, 3)]
    place.write(Batch(mutations=inserts(WORK, *rows)), WORK)
    assert scan(place, WORK, WORK.indexes[0], ("a",), only=(2, 0)) == [(1, b"\1"), (2, b"\2"), (3, b"\3")]
    assert scan(place, WORK, WORK.indexes[0], ("a",), only=(3,), start=((2,), True)) == [(b"me",), (b"me",)]
    assert scan(place, WORK, WORK.indexes[0], ("a",), only=(4, 5), reverse=True, limit=1) == [(3, 1)]
