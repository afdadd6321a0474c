"""Queries of every form, asked of the twin and of both stores over the same random rows: the same pages and numbers.

Between two pages rows come and go, so that a cursor is held against rows that were not there when it was made.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from riffdb.core.layout import Row
from riffdb.core.stepping import step
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.contracts import Contract
from riffdb.database.reading import run_query
from riffdb.storage import open_store
from riffdb.storage.protocol import Scan, Store
from tests.model.any_query import Query, queries, with_indexes
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

    contract: Contract
    entity: str
    by_key: dict[Any, Row]

    def change(self, stores: list[Store], put: list[Row], gone: list[Row]) -> None:
        table = self.contract.tables[self.entity]
        new = {table.key_of(row): row for row in put}
        old = {key: row for row in gone if (key := table.key_of(row)) not in new and key in self.by_key}
        for store in stores:
            step(put_rows(store, self.contract, self.entity, list(new.values()), list(old.values())))
        self.by_key = {key: row for key, row in (self.by_key | new).items() if key not in old}

    def dicts(self) -> list[dict[str, Any]]:
        columns = (*self.contract.plan.entity(self.entity).columns, "revision")
        return [dict(zip(columns, row, strict=False)) for row in self.by_key.values()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Store]]:
    """Both stores, which an example empties before it begins."""
    urls = ["memory:", f"sqlite:{tmp_path_factory.mktemp('asking') / 'rows.db'}"]
    stores = [step(open_store(url, clock=lambda: NOW)) for url in urls]
    yield stores
    for store in stores:
        step(store.close())


def unlike_codes(rows: list[Row]) -> list[Row]:
    """The tags without those whose code another one has."""
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault((row[0], row[2]) if row[2] is not None else row[:2], row)
    return list({row[:2]: row for row in found.values()}.values())


STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
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


def on_the_wire(contract: Contract, name: str, values: dict[str, Any]) -> dict[str, Any]:
    kinds = {part.name: part.type for part in contract.plan.query(name).params}
    return {
        part: value if kinds[part].kind == "limit" else encode(kinds[part], value, contract.plan)
        for part, value in values.items()
    }


SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", [query.name for query in boards_plan().queries])
@SETTINGS
@given(data=st.data())
def test_a_query_answers_as_its_twin(files: list[Store], name: str, data: st.DataObject) -> None:
    params = CONTRACT.plan.query(name).params
    values = {part.name: data.draw(STRATEGIES[part.name]) for part in params if part.type.kind != "cursor"}
    agree(files, CONTRACT, name, values, data)


@settings(SETTINGS, max_examples=60)
@given(data=st.data(), asked=queries())
def test_any_query_that_compiles_answers_as_its_twin(files: list[Store], asked: Query, data: st.DataObject) -> None:
    plan = with_indexes(asked.text)
    assume(plan is not None)
    assert plan is not None
    values = {name: data.draw(strategy) for name, strategy in asked.values.items()}
    agree(files, Contract(plan), "Any", {"board": HOME, "limit": data.draw(st.integers(1, 9))} | values, data)


def agree(stores: list[Store], contract: Contract, name: str, values: dict[str, Any], data: st.DataObject) -> None:
    """Ask page after page of the twin and of the stores, while rows come and go."""
    cards, tags = Rows(contract, "Card", {}), Rows(contract, "Tag", {})
    for store in stores:
        step(prepare(store, contract))
    cards.change(stores, data.draw(st.lists(CARDS, max_size=40)), [])
    tags.change(stores, unlike_codes(data.draw(st.lists(TAGS, max_size=8))), [])
    cursors: list[dict[str, Any]] = [{}, {}]
    asking = Asking(contract.plan, name, {}, values, NOW)
    cursor_of = {binding.name: binding.cursor for binding in asking.query.bindings if binding.cursor}
    nexts = {part.binding: part.name for part in asking.query.payload if part.is_cursor}
    for _ in range(4):
        asking.rows = {"Card": cards.dicts(), "Tag": tags.dicts()}
        answer = asking.answer()
        for number, store in enumerate(stores):
            wire = on_the_wire(contract, name, values) | cursors[number]
            found = json.loads(step(run_query(store, contract, CALLER, name, wire)))
            cursors[number] = {
                cursor_of[binding]: found["payload"].get(shown)
                for binding, shown in nexts.items()
                if binding in cursor_of
            }
            for shown in nexts.values():
                if shown in found["payload"]:
                    found["payload"][shown] = found["payload"][shown] is not None
            assert (found["outcome"], found["payload"]) == answer
        asking.behind = {binding: page.last for binding in cursor_of if (page := asking.found[binding]).last}
        if len(asking.behind) < len(cursor_of) or not cursor_of:
            break
        gone = data.draw(st.lists(CARDS, max_size=3))
        if data.draw(st.booleans()):
            ends = {page.get("id") for page in asking.behind.values()}
            gone += [row for row in cards.by_key.values() if row[1] in ends]
        cards.change(stores, data.draw(st.lists(CARDS, max_size=5)), gone)


async def prepare(store: Store, contract: Contract) -> None:
    """Take all rows out, and make the indexes of the contract."""
    async with store.transaction() as transaction:
        await transaction.prepare(list(contract.tables.values()))
    for entity, table in contract.tables.items():
        async with store.snapshot() as reader:
            rows = await reader.scan(Scan(table, None, (), limit=10_000))
        await put_rows(store, contract, entity, [], rows)
