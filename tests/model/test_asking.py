"""Queries of every form, asked of the twin and of both stores over the same random rows: the same pages and numbers.

Between two pages rows come and go, so that a cursor is held against rows that were not there when it was made.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffdb.core.layout import Row
from riffdb.core.stepping import step
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.contracts import Contract
from riffdb.database.reading import run_query
from riffdb.storage import open_store
from riffdb.storage.protocol import Scan, Store
from tests.model.asking import Asking
from tests.model.boards import boards_plan, card, put_rows
from tests.model.wire import encode

CALLER = Caller("local:twin", OPERATOR, "test")
NOW = 1_800_000_000_000_000
HOME, AWAY = b"h" * 16, b"a" * 16
OWNERS = [b"o" * 16, b"p" * 16]
CONTRACT = Contract(boards_plan())

FEW = st.integers(-2, 6)
CARDS: st.SearchStrategy[Row] = st.fixed_dictionaries(
    {
        "board": st.sampled_from([HOME, HOME, HOME, AWAY]),
        "number": st.integers(0, 30),
        "stage": st.integers(0, 3),
        "due": FEW.map(lambda number: NOW + number * 1_000_000),
        "size": FEW,
        "weight": st.integers(0, 7),
        "price": st.sampled_from([0, 1, 4_999, 5_000, -7]),
        "owner": st.none() | st.sampled_from(OWNERS),
        "label": st.none() | st.sampled_from(["", "a", "ab", "é"]),
        "hue": st.none() | st.integers(0, 3),
        "open": st.booleans(),
        "day": FEW,
        "pin": st.none() | st.just("1234"),
    }
).map(lambda values: card(**values))  # type: ignore[arg-type]  # each value has a type of its own
TAGS = st.tuples(st.sampled_from([HOME, AWAY]), st.sampled_from("abcdefg"), st.none() | FEW.map(abs), FEW.map(abs)).map(
    lambda values: (*values, 1, 1)
)


@dataclass
class Rows:
    """The rows of an entity by key, here and in the stores."""

    entity: str
    by_key: dict[Any, Row]

    def change(self, stores: list[Store], put: list[Row], gone: list[Row]) -> None:
        table = CONTRACT.tables[self.entity]
        new = {table.key_of(row): row for row in put}
        old = {key: row for row in gone if (key := table.key_of(row)) not in new and key in self.by_key}
        for store in stores:
            step(put_rows(store, CONTRACT, self.entity, list(new.values()), list(old.values())))
        self.by_key = {key: row for key, row in (self.by_key | new).items() if key not in old}

    def dicts(self) -> list[dict[str, Any]]:
        columns = (*CONTRACT.plan.entity(self.entity).columns, "revision")
        return [dict(zip(columns, row, strict=False)) for row in self.by_key.values()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Store]]:
    """Both stores, which an example empties before it begins."""
    urls = ["memory:", f"sqlite:{tmp_path_factory.mktemp('asking') / 'rows.db'}"]
    stores = [step(open_store(url, clock=lambda: NOW)) for url in urls]

    async def prepare(store: Store) -> None:
        async with store.transaction() as transaction:
            await transaction.prepare(list(CONTRACT.tables.values()))

    for store in stores:
        step(prepare(store))
    yield stores
    for store in stores:
        step(store.close())


def unlike_codes(rows: list[Row]) -> list[Row]:
    """The tags without those whose code another one has."""
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault((row[0], row[2]) if row[2] is not None else row[:2], row)
    return list({row[:2]: row for row in found.values()}.values())


def values_for(name: str, draw: st.DataObject) -> dict[str, Any]:
    """Inside values for the parameters of a query, cursors aside."""
    strategies: dict[str, st.SearchStrategy[Any]] = {
        "board": st.just(HOME),
        "limit": st.integers(1, 12),
        "since": FEW.map(lambda number: NOW + number * 1_000_000),
        "stages": st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
        "owner": st.none() | st.sampled_from(OWNERS),
        "stage": st.none() | st.integers(0, 3),
        "least": FEW,
        "id": st.integers(0, 30),
        "code": FEW.map(abs),
        "name": st.sampled_from("abcdefg"),
    }
    params = CONTRACT.plan.query(name).params
    return {part.name: draw.draw(strategies[part.name]) for part in params if part.type.kind != "cursor"}


def on_the_wire(name: str, values: dict[str, Any]) -> dict[str, Any]:
    kinds = {part.name: part.type for part in CONTRACT.plan.query(name).params}
    return {
        part: value if kinds[part].kind == "limit" else encode(kinds[part], value, CONTRACT.plan)
        for part, value in values.items()
    }


@pytest.mark.parametrize("name", [query.name for query in boards_plan().queries])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_query_answers_as_its_twin(files: list[Store], name: str, data: st.DataObject) -> None:
    cards, tags = Rows("Card", {}), Rows("Tag", {})
    for store in files:
        step(clear(store))
    cards.change(files, data.draw(st.lists(CARDS, max_size=40)), [])
    tags.change(files, unlike_codes(data.draw(st.lists(TAGS, max_size=8))), [])
    values = values_for(name, data)
    cursors: list[dict[str, Any]] = [{}, {}]
    asking = Asking(CONTRACT.plan, name, {}, values, NOW)
    cursor_of = {binding.name: binding.cursor for binding in asking.query.bindings if binding.cursor}
    for _ in range(4):
        asking.rows = {"Card": cards.dicts(), "Tag": tags.dicts()}
        outcome, payload = asking.answer()
        for number, store in enumerate(files):
            wire = on_the_wire(name, values) | cursors[number]
            found = json.loads(step(run_query(store, CONTRACT, CALLER, name, wire)))
            nexts = {part.binding: part.name for part in asking.query.payload if part.is_cursor}
            cursors[number] = {
                cursor_of[binding]: found["payload"][shown] for binding, shown in nexts.items() if binding in cursor_of
            }
            for shown in nexts.values():
                found["payload"][shown] = found["payload"][shown] is not None
            assert (found["outcome"], found["payload"]) == (outcome, payload)
        asking.behind = {binding: page.last for binding in cursor_of if (page := asking.found[binding]).last}
        if len(asking.behind) < len(cursor_of) or not cursor_of:
            break
        put = data.draw(st.lists(CARDS, max_size=5))
        last = [
            row
            for row in cards.by_key.values()
            if any(row[1] == page["id"] for page in asking.behind.values() if "id" in page)
        ]
        cards.change(files, put, last if data.draw(st.booleans()) else data.draw(st.lists(CARDS, max_size=3)))


async def clear(store: Store) -> None:
    """Take all rows out."""
    for entity, table in CONTRACT.tables.items():
        async with store.snapshot() as reader:
            rows = await reader.scan(Scan(table, None, (), limit=10_000))
        await put_rows(store, CONTRACT, entity, [], rows)
