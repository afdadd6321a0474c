"""The steps between two answers of a query, for lists that chance made: applied, they make the new one of the old."""

from random import Random

from riffdb.database.differing import apply_steps, steps_between


def rows(*numbers: int) -> dict[str, object]:
    """A payload whose list has these items."""
    return {"items": [{"n": number} for number in numbers]}


def told(old: dict[str, object], new: dict[str, object]) -> list[tuple[object, ...]]:
    """The steps, in short."""
    return [(step["op"], step["index"], step["value"]["n"]) for step in steps_between(old, new)]


def test_the_fewest_items_come_and_go() -> None:
    assert told(rows(1, 2, 3), rows(1, 2, 3)) == []
    assert told(rows(1, 2, 3), rows(1, 3)) == [("remove", 1, 2)]
    assert told(rows(1, 3), rows(1, 2, 3)) == [("insert", 1, 2)]
    assert told(rows(1, 2, 3), rows(1, 9, 3)) == [("replace", 1, 9)]
    assert told(rows(1, 2, 3, 4), rows(2, 3, 4, 5)) == [("remove", 0, 1), ("insert", 3, 5)]
    assert told(rows(1, 2, 3, 4), rows(4, 1, 2, 3)) == [("insert", 0, 4), ("remove", 4, 4)]
    assert told(rows(), rows(1, 1)) == [("insert", 0, 1), ("insert", 1, 1)]
    assert told(rows(1, 1, 2), rows()) == [("remove", 0, 1), ("remove", 0, 1), ("remove", 0, 2)]


def test_other_values_are_set() -> None:
    old = {"number": "1", "row": {"a": 1}, "gone": {"a": 1}, "same": None}
    new = {"number": "2", "row": {"a": 2}, "gone": None, "same": None}
    steps = steps_between(old, new)
    assert [(step["path"], step["op"], step["value"]) for step in steps] == [
        ("number", "set", "2"),
        ("row", "set", {"a": 2}),
        ("gone", "set", None),
    ]
    assert apply_steps(old, steps) == new


def test_the_steps_make_the_new_of_the_old() -> None:
    random = Random(4)
    for _ in range(3_000):
        values = random.randint(1, 6)
        old, new = ([random.randrange(values) for _ in range(random.randrange(9))] for _ in range(2))
        before, after = rows(*old) | {"n": len(old)}, rows(*new) | {"n": len(new)}
        steps = steps_between(before, after)
        assert apply_steps(before, steps) == after
        assert before == rows(*old) | {"n": len(old)}, "the old one stays as it was"
        assert len([step for step in steps if step["path"] == "items"]) <= len(old) + len(new)
