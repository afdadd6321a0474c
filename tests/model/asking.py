"""The slow twin of queries: each from its condition, order and kind, over all rows, with no index and no range.

It is given whole rows and inside values and says what the answer is on the wire. A page is told by the row behind which
it begins. What it does not know: how many entries a residual condition may read.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.queries import BindingPlan, QueryField
from tests.model.expressions import ordered, value_of
from tests.model.wire import encode

Row = dict[str, Any]


@dataclass
class Page:
    """The rows that a `many` shows, and the one behind which the next page begins, if there is any."""

    rows: list[Row]
    last: Row | None


@dataclass
class _Scene:
    """What names mean in a query: of the row that is asked, or of the single rows that were found."""

    time: int
    params: dict[str, Any]
    rows: dict[str, Any]

    def given(self, name: str) -> Any:
        return self.params[name]

    def item(self, name: str) -> Any:
        raise AssertionError(name)

    def field(self, binding: str, name: str) -> Any:
        return self.rows[binding][name]

    def revision(self, binding: str) -> int:
        revision: int = self.rows[binding]["revision"]
        return revision

    def row(self, binding: str) -> Any:
        return self.rows[binding]


class Asking:
    """One query over rows by entity. `behind`: for a binding with a cursor, the row at which the last page ended."""

    def __init__(self, plan: Plan, name: str, rows: dict[str, list[Row]], params: dict[str, Any], time: int) -> None:
        self.plan, self.query = plan, plan.query(name)
        self.rows, self.params, self.time = rows, params, time
        self.behind: dict[str, Row] = {}
        self.found: dict[str, Any] = {}

    def answer(self) -> tuple[str, dict[str, Any]]:
        """The outcome and its payload; where a cursor would stand, whether there is one."""
        for binding in self.query.bindings:
            self.found[binding.name] = found = self.bound(binding)
            if found is None and binding.missing is not None:
                return binding.missing.name, self.payload(binding.missing.payload)
        return self.query.outcome, self.payload(self.query.payload)

    def matching(self, binding: BindingPlan) -> list[Row]:
        """Every row that meets the condition."""
        return [
            row
            for row in self.rows[binding.entity]
            if value_of(binding.where, _Scene(self.time, self.params, {"": row}))
        ]

    def bound(self, binding: BindingPlan) -> Any:
        """What a binding finds."""
        rows = self.matching(binding)
        if binding.kind == "many":
            return self.page(binding, rows)
        if binding.kind in ("one", "maybe"):
            assert len(rows) <= 1
            return rows[0] if rows else None
        if binding.kind == "count" and not binding.by:
            return min(len(rows), int(binding.take))
        values = [row[binding.by or binding.field] for row in rows]
        match binding.kind:
            case "count":
                return [(value, values.count(value)) for value in sorted(set(values), key=_null_first)]
            case "sum":
                return sum(values)
            case "min":
                return min(values, key=ordered, default=None)
        return max(values, key=ordered, default=None)

    def page(self, binding: BindingPlan, rows: list[Row]) -> Page:
        """The page of a `many`: the rows right behind the cursor, or right before it."""
        order, take = self.order(binding), self.params.get(str(binding.take), binding.take)
        for name, descends in reversed(order):
            rows.sort(key=partial(_column, name), reverse=descends)
        backwards = binding.cursor_kind == "before"
        if backwards:
            rows.reverse()
        behind = self.behind.get(binding.name)
        if behind is not None:
            rows = [row for row in rows if _follows(row, behind, order) != backwards and not _same(row, behind, order)]
        page = rows[:take]
        return Page(page[::-1] if backwards else page, page[-1] if len(rows) > take else None)

    def order(self, binding: BindingPlan) -> tuple[tuple[str, bool], ...]:
        """The order in the case of the filters that are given."""
        given = {name for name in binding.filters if self.params[name] is not None}
        (path,) = [path for path in binding.paths if set(path.given) == given]
        return path.order or binding.order

    def payload(self, fields: tuple[QueryField, ...]) -> dict[str, Any]:
        """The values of an outcome on the wire."""
        return {part.name: self.value(part) for part in fields}

    def value(self, part: QueryField) -> Any:
        """One value on the wire."""
        if part.value is not None:
            value = value_of(part.value, _Scene(self.time, self.params, self.found))
            return encode(part.value.type, value, self.plan)
        binding = next(binding for binding in self.query.bindings if binding.name == part.binding)
        found, types = self.found[part.binding], self.plan.entity(binding.entity).types
        if part.is_cursor:
            return found.last is not None
        if binding.kind == "many":
            return [self.shown(row, part.fields, types) for row in found.rows]
        if binding.kind in ("one", "maybe"):
            return None if found is None else self.shown(found, part.fields, types)
        if binding.kind == "count":
            kind = types.get(binding.by)
            if kind is None:
                return str(found)
            return [{binding.by: encode(kind, value, self.plan), "n": str(number)} for value, number in found]
        return encode(types[binding.field], found, self.plan)

    def shown(self, row: Row, fields: tuple[str, ...], types: dict[str, Type]) -> dict[str, Any]:
        """A row on the wire."""
        return {name: encode(types[name], row[name], self.plan) for name in fields}


def _column(name: str, row: Row) -> tuple[bool, Any]:
    return _null_first(row[name])


def _null_first(value: Any) -> tuple[bool, Any]:
    return value is not None, ordered(value)


def _same(row: Row, other: Row, order: tuple[tuple[str, bool], ...]) -> bool:
    return all(row[name] == other[name] for name, _ in order)


def _follows(row: Row, other: Row, order: tuple[tuple[str, bool], ...]) -> bool:
    """Whether the row stands behind the other."""
    for name, descends in order:
        if row[name] != other[name]:
            return (_null_first(row[name]) > _null_first(other[name])) != descends
    return False
