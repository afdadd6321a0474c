"""Queries through the database, on every store: pages, cursors and who may use them, bounds, outcomes, refusals.

What each form of a query answers is held against the twin (`tests/model/test_asking.py`); here is what the twin cannot
know.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.layout import Row
from riffdb.database.callers import Caller
from riffdb.database.cursors import Signer
from riffdb.storage.memory import MemoryReader
from riffdb.storage.protocol import Scan
from riffdb.storage.sqlite.views import SqliteReader
from tests.conformance.databases import LOCAL, START, Place
from tests.model.boards import BOARDS, boards_plan, card, compiled, put_rows

HOME = UUID(int=7)


@pytest.fixture
def boards(empty: Place) -> Place:
    """A place with the boards."""
    empty.deploy(boards_plan())
    return empty


def put(place: Place, *rows: Row, gone: tuple[Row, ...] = ()) -> None:
    place.is_tampered = True
    place.run(put_rows(place.store, place.database.contract, "Card", rows, gone))


def ask(place: Place, name: str, /, **values: object) -> Any:
    return json.loads(place.run(place.database.query(LOCAL, name, {"board": HOME} | values)))


def refused(place: Place, name: str, /, **values: object) -> tuple[str, str | None, str]:
    error = place.error_of(place.database.query(LOCAL, name, {"board": HOME} | values))
    return error.code, error.path, error.message


def pages(place: Place, name: str, cursor: str, **values: object) -> list[list[Any]]:
    """The rows of all pages, from the first to the one that nothing follows."""
    place.is_tampered = True
    found, text = [], None
    while True:
        payload = ask(place, name, **values, **{cursor: text})["payload"]
        found.append([int(row["id"]) for row in payload["cards"]])
        text = payload["next"]
        if text is None:
            return found


# Pages


@pytest.mark.parametrize(("name", "cursor"), [("Soonest", "from"), ("Some", "from"), ("ByStage", "from")])
def test_rows_of_one_microsecond_page_through_forwards(boards: Place, name: str, cursor: str) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(500)))
    found = pages(boards, name, cursor, limit=7)
    assert [len(page) for page in found] == [7] * 71 + [3]
    assert [number for page in found for number in page] == list(range(500))


def test_rows_of_one_microsecond_page_through_backwards(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(500)))
    found = pages(boards, "Before", "until", limit=9)
    assert [number for page in reversed(found) for number in page] == list(range(500))
    assert all(page == sorted(page) for page in found)
    merged = pages(boards, "Either", "until", limit=9)
    assert [number for page in reversed(merged) for number in page] == list(reversed(range(500)))


def test_pages_keep_their_place_while_rows_come_and_go(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(0, 500, 2)))
    seen, text, turn = [], None, 0
    while True:
        payload = ask(boards, "Soonest", limit=10, **{"from": text})["payload"]
        seen += [int(row["id"]) for row in payload["cards"]]
        text = payload["next"]
        if text is None:
            break
        last = seen[-1]
        # The row of the cursor goes, one comes before it and one right behind it.
        put(
            boards,
            card(HOME.bytes, last - 1, due=START),
            card(HOME.bytes, last + 1, due=START),
            gone=(card(HOME.bytes, last),),
        )
        turn += 1
    assert turn > 20 and seen == sorted(set(seen))
    assert set(range(0, 500, 2)) <= set(seen)
    assert not any(number % 2 and number - 1 not in seen for number in seen)


def test_nothing_follows_a_last_page_that_is_full(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number) for number in range(6)))
    assert [len(page) for page in pages(boards, "Soonest", "from", limit=3)] == [3, 3]
    assert pages(boards, "Soonest", "from", limit=6) == [[0, 1, 2, 3, 4, 5]]
    assert ask(boards, "Soonest", limit=7)["payload"]["next"] is None


def test_the_page_may_have_another_size_than_the_one_before(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number) for number in range(9)))
    first = ask(boards, "Soonest", limit=2)["payload"]["next"]
    second = ask(boards, "Soonest", limit=5, **{"from": first})["payload"]
    assert [row["id"] for row in second["cards"]] == ["2", "3", "4", "5", "6"]


# Cursors of others


def changed(text: str, place: int) -> str:
    content = bytearray(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    content[place] ^= 1
    return urlsafe_b64encode(content).decode().rstrip("=")


def cursor_of(place: Place, name: str = "Soonest", **values: object) -> str:
    text = ask(place, name, limit=1, **values)["payload"]["next"]
    assert isinstance(text, str)
    return text


def test_an_altered_cursor_is_refused_at_its_parameter(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(3)))
    text = cursor_of(boards)
    size = len(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    altered = [changed(text, place) for place in range(size)]
    for wrong in ["", "x", "not a cursor", "é", text[:-1], text + "A", text * 2, "A" * 200, *altered]:
        code, path, message = refused(boards, "Soonest", **{"from": wrong})
        assert (code, path) == ("RDB-E-INPUT", "from"), message
        assert wrong == "" or wrong == "x" or wrong not in message
    assert refused(boards, "Soonest", **{"from": "A" * 5_000})[:2] == ("RDB-E-INPUT", "from")
    assert refused(boards, "Soonest", **{"from": 7})[:2] == ("RDB-E-INPUT", "from")


def test_a_cursor_is_of_its_query_and_its_parameters(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(3)))
    put(boards, *(card(UUID(int=8).bytes, number, due=START) for number in range(3)))
    text = cursor_of(boards)
    assert "is no cursor of this query" in refused(boards, "Some", **{"from": text})[2]
    assert refused(boards, "Soonest", board=UUID(int=8), **{"from": text})[:2] == ("RDB-E-INPUT", "from")
    listed = cursor_of(boards, "Listed", stages=["New", "Done"])
    assert ask(boards, "Listed", stages=["New", "Done"], **{"from": listed})
    assert refused(boards, "Listed", stages=["Done", "New"], **{"from": listed})[:2] == ("RDB-E-INPUT", "from")
    filtered = cursor_of(boards, "Filtered", stage="New")
    for other in ({}, {"stage": "Done"}, {"owner": UUID(int=1)}):
        assert refused(boards, "Filtered", **other, **{"from": filtered})[:2] == ("RDB-E-INPUT", "from")


def test_a_cursor_ends_with_the_declaration_of_its_query(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(3)))
    text = cursor_of(boards)
    boards.deploy(
        compiled(BOARDS.replace("maybe named from", "maybe called from").replace("named: named", "named: called"))
    )
    assert ask(boards, "Soonest", **{"from": text})["payload"]["cards"]  # another query changed
    again = BOARDS.replace("return Cards { cards: cards, next", "return Cards { found: cards, next")
    boards.deploy(compiled(again))
    assert refused(boards, "Soonest", **{"from": text})[:2] == ("RDB-E-INPUT", "from")


def test_a_cursor_of_another_history_is_told_apart_from_one_of_another_database(boards: Place, tmp_path: Path) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(3)))
    text = cursor_of(boards)
    boards.store.incarnation = str(UUID(int=1))
    code, path, message = refused(boards, "Soonest", **{"from": text})
    assert (code, path) == ("RDB-E-INCARNATION", "from") and "before a restore" in message
    boards.store.secret = b"x" * 32
    assert refused(boards, "Soonest", **{"from": text})[:2] == ("RDB-E-INPUT", "from")


def test_a_cursor_outlives_a_restart(boards: Place) -> None:
    put(boards, *(card(HOME.bytes, number, due=START) for number in range(3)))
    text = cursor_of(boards)
    boards.reopen()
    assert [row["id"] for row in ask(boards, "Soonest", **{"from": text})["payload"]["cards"]] == ["1", "2"]


def test_every_value_comes_back_out_of_a_cursor() -> None:
    signer = Signer(b"k" * 32, str(UUID(int=5)))
    position = (None, True, False, 0, -5, (1 << 64) - 1, -(10**38) + 1, "", "12", "é\U0001f600", b"", b"\xff" * 1_000)
    text = signer.cursor(b"context", position)
    found = signer.position(b"context", text, "from")
    assert found == position
    assert [type(value) for value in found] == [type(value) for value in position]


# How much is read


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each walk brought."""
    found: list[int] = []
    for kind in (MemoryReader, SqliteReader):
        whole = kind.scan

        async def counted(reader: Any, scan: Scan, whole: Any = whole) -> list[Row]:
            rows: list[Row] = await whole(reader, scan)
            found.append(len(rows))
            return rows

        monkeypatch.setattr(kind, "scan", counted)
    return found


def test_a_few_rows_of_many_ranges_are_a_few_entries(boards: Place, reads: list[int]) -> None:
    put(boards, *(card(HOME.bytes, number, due=START + number, stage=number % 4) for number in range(400)))
    for stages in (["New"], ["New", "Active", "Held", "Done"]):
        reads.clear()
        payload = ask(boards, "Listed", stages=stages, limit=32)["payload"]
        assert len(payload["cards"]) == 32
        assert 33 <= sum(reads) <= 45
    reads.clear()
    put(boards, *(card(HOME.bytes, 1_000 + number, stage=1, label="z") for number in range(60)))
    assert len(ask(boards, "Listed", stages=["New", "Active", "Held", "Done"], limit=32)["payload"]["cards"]) == 32
    assert sum(reads) <= 90  # one range has them all


def test_a_residual_condition_reads_so_many_entries_and_tells_where_to_go_on(boards: Place, reads: list[int]) -> None:
    put(boards, *(card(HOME.bytes, number, due=START, stage=3) for number in range(25_000)))
    put(boards, card(HOME.bytes, 12_000, due=START, stage=0), card(HOME.bytes, 24_999, due=START, stage=0))
    wanted: dict[str, Any] = {"least": 9, "stages": ["Done"], "limit": 5}
    found = []
    text = None
    for entries in (10_000, 10_000, 5_000):
        reads.clear()
        payload = ask(boards, "Residual", **wanted, **{"from": text})["payload"]
        found.append([int(row["id"]) for row in payload["cards"]])
        assert sum(reads) == entries
        text = payload["next"]
    assert found == [[], [12_000], [24_999]]
    assert text is None


def test_a_residual_condition_over_ranges_passes_over_nothing(boards: Place) -> None:
    many = range(13_000)
    put(boards, *(card(HOME.bytes, number, due=START, stage=number % 2, open=number % 1_000 == 0) for number in many))
    found = pages(boards, "ResidualOfTwo", "until", limit=20)
    assert [number for page in reversed(found) for number in page] == [number for number in many if number % 1_000 == 0]
    assert len(found) == 2 and len(found[0]) < 13


def test_an_aggregate_reads_as_many_entries_as_it_takes(boards: Place, reads: list[int]) -> None:
    put(boards, *(card(HOME.bytes, number, size=number, weight=5) for number in range(45)))
    payload = ask(boards, "Numbers")["payload"]
    assert payload["all"] == "40"
    assert (payload["least"], payload["greatest"]) == ("0", "44")
    assert payload["weights"] == str(45 * 5)
    reads.clear()
    put(boards, card(HOME.bytes, 99, size=-3, stage=3))
    assert ask(boards, "Numbers")["payload"]["least"] == "-3"
    assert 1 in reads  # of an index that begins with it, one entry is enough


# Outcomes and values


def test_a_sum_that_leaves_its_range_is_an_error(boards: Place) -> None:
    high = (1 << 63) - 1
    put(boards, card(HOME.bytes, 1, size=high), card(HOME.bytes, 2, size=-high))
    assert ask(boards, "Numbers")["payload"]["sizes"] == "0"
    put(boards, card(HOME.bytes, 3, size=high), card(HOME.bytes, 4, size=1))
    code, _, message = refused(boards, "Numbers")
    assert code == "RDB-E-ARITHMETIC"
    assert message == "Numbers, sum sizes: the result leaves the range of i64; ask for fewer rows at once"


def test_one_without_a_row_answers_its_outcome_and_reads_no_further(boards: Place, reads: list[int]) -> None:
    answer = ask(boards, "OneCard", id=5, code=1, name="a")
    assert (answer["outcome"], answer["payload"]) == ("NoCard", {"id": "5", "asked": answer["as_of"]["time"]})
    assert reads == [0]
    put(boards, card(HOME.bytes, 5, size=7))
    answer = ask(boards, "OneCard", id=5, code=1, name="a")
    assert answer["outcome"] == "Found"
    assert answer["payload"]["size_and_one"] == "4"
    assert (answer["payload"]["tag"], answer["payload"]["card_of_tag"]) == (None, "0")


def test_a_secret_is_shown_by_the_queries_that_reveal_it_alone(boards: Place) -> None:
    put(boards, card(HOME.bytes, 1, pin="4711"))
    assert ask(boards, "Pins")["payload"] == {"cards": [{"id": "1", "pin": "4711"}]}
    assert ask(boards, "PinOf", id=1)["payload"] == {"pin": "4711"}
    assert "4711" not in json.dumps(ask(boards, "Soonest"))


# Refusals


def test_parameters_are_refused_at_their_path(boards: Place) -> None:
    assert refused(boards, "Soonest", limit=101)[1:] == ("limit", "limit: must lie between 1 and 100 (limit<100>)")
    assert refused(boards, "Soonest", limit=0)[1] == "limit"
    assert refused(boards, "Soonest", limti=3)[1:] == ("limti", "limti: is no parameter here; did you mean `limit`?")
    assert refused(boards, "Soonest", board="x")[1] == "board"
    assert refused(boards, "Listed", stages=[])[1] == "stages"
    assert refused(boards, "Listed", stages=["New", "Old"])[1] == "stages[1]"
    assert refused(boards, "Listed", stages=["New"] * 5)[2] == "stages: must have 1 to 4 items"
    error = boards.error_of(boards.database.query(LOCAL, "Listed", {"board": HOME}))
    assert (error.code, error.path) == ("RDB-E-INPUT", "stages")
    error = boards.error_of(boards.database.query(LOCAL, "Sonest", {"board": HOME}))
    assert error.code == "RDB-E-NOT-FOUND" and "did you mean `Soonest`?" in error.message


def test_an_explanation_is_for_operators_and_shows_no_value(boards: Place) -> None:
    told = boards.run(boards.database.explain(LOCAL, "Listed", {"board": HOME, "stages": ["New", "Done", "New"]}))
    (case,) = told["bindings"][0]["cases"]
    assert case["ranges"] == 2
    assert str(HOME) not in json.dumps(told)
    assert len(boards.run(boards.database.explain(LOCAL, "Filtered", None))["bindings"][0]["cases"]) == 4
    role = Caller("someone", "Reader", "test")
    error = boards.error_of(boards.database.explain(role, "Listed", None))
    assert error.code == "RDB-E-FORBIDDEN"
    assert boards.error_of(boards.database.explain(role, "Nothing", None)).message == error.message
