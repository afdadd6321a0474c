"""Changed rows by their values: kept from the first question on, and the only ones that a question looks at."""

from typing import Any

from riffdb.core.layout import Column, Index, Key, Row, Table
from riffdb.database.overlay import Overlay

TABLE = Table("note", (Column("id", "int"), Column("name", "text")), (0,), (Index("by_name", (1,), (False,), True),))
NAME = (1,)


def holders(overlay: Overlay, name: str) -> dict[Key, Row]:
    return dict(overlay.changed(TABLE, NAME).holders((name,)))


def test_rows_that_changed_before_and_after_the_first_question_are_found() -> None:
    overlay = Overlay()
    overlay.change(TABLE, (1,), (1, "a"))
    assert holders(overlay, "a") == {(1,): (1, "a")}
    overlay.change(TABLE, (2,), (2, "a"))
    assert holders(overlay, "a") == {(1,): (1, "a"), (2,): (2, "a")}


def test_a_row_is_found_by_the_values_that_it_has_now() -> None:
    overlay = Overlay()
    assert holders(overlay, "a") == {}
    for name in ("a", "b", "a"):
        overlay.change(TABLE, (1,), (1, name))
    assert (holders(overlay, "a"), holders(overlay, "b")) == ({(1,): (1, "a")}, {})
    overlay.change(TABLE, (1,), None)
    assert holders(overlay, "a") == {}


def test_a_row_that_was_only_read_is_the_business_of_the_store() -> None:
    overlay = Overlay()
    overlay.of(TABLE)[(1,)] = (1, "a")
    assert holders(overlay, "a") == {}


def test_a_question_looks_at_rows_with_its_values_alone() -> None:
    class Walked(tuple[int, str]):
        looks = 0

        def __getitem__(self, place: Any) -> Any:
            Walked.looks += 1
            return super().__getitem__(place)

    overlay = Overlay()
    for number in range(100):
        overlay.change(TABLE, (number,), Walked((number, f"n{number}")))
    holders(overlay, "n1")
    looked = Walked.looks
    for number in range(100):
        assert len(holders(overlay, f"n{number}")) == 1
    assert (looked, Walked.looks) == (100, 100)
