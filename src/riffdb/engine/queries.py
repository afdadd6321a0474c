"""A query as generated source: its partition, the ranges of every path, what a row must pass, the values it answers.

The access paths stand in the plan and are only followed. Names: `p0` parameter, `now` the observed time, `b0` what the
first binding found (rows, one row or None, a number), `n0` the cursor behind it. Absent: reading, merging of ranges.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from riffdb.engine.arithmetic import offered_functions
from riffdb.engine.evaluation import CompiledBinding, CompiledPath, CompiledQuery, Ranges
from riffdb.engine.expressions import ATOM, Scope, Term, expression_text, rowless
from riffdb.engine.source import Source, execute, note, row_of
from riffdb.plan import Plan
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.queries import BindingPlan, BoundPlan, PathPlan, PrefixPlan, QueryField, QueryPlan


def compile_query(plan: Plan, name: str) -> CompiledQuery:
    """The functions of a query; `KeyError` if there is none."""
    query = plan.query(name)
    source = Source()
    _QueryWriter(plan, query, source).write()
    offered = {"Ranges": Ranges, "distinct": _distinct}
    made = execute(name, source.text, offered_functions(name) | offered)
    places = {part.name: place for place, part in enumerate(query.params)}
    bindings = tuple(
        _binding(number, binding, plan.entity(binding.entity), places, made)
        for number, binding in enumerate(query.bindings)
    )
    return CompiledQuery(name, made["partition"], bindings, made["select"], source.text)


def _distinct(prefixes: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(dict.fromkeys(prefixes))


def _binding(
    number: int, plan: BindingPlan, entity: EntityPlan, places: Mapping[str, int], made: Mapping[str, Any]
) -> CompiledBinding:
    paths = [
        _path(plan, path, entity, made[f"ranges_{number}_{case}"], made.get(f"residual_{number}_{case}"))
        for case, path in enumerate(plan.paths)
    ]
    asked = plan.field or plan.by
    return CompiledBinding(
        plan=plan,
        path=_choice(plan, paths, places),
        take=_take(plan.take, places),
        cursor=places[plan.cursor] if plan.cursor else None,
        column=entity.columns.index(asked) if asked else None,
        missing=made.get(f"missing_{number}"),
    )


def _path(plan: BindingPlan, path: PathPlan, entity: EntityPlan, ranges: Any, residual: Any) -> CompiledPath:
    columns = walked_columns(entity, path.index)
    prefix = tuple(entity.columns.index(name) for name, _ in columns[: len(path.prefix)])
    rest = tuple((name, descends != path.reverse) for name, descends in columns[len(prefix) :])
    order = path.order or plan.order or rest
    wanted = (plan.field, plan.kind == "max")
    return CompiledPath(
        index=path.index,
        prefix=prefix,
        order=tuple((entity.columns.index(name), descends) for name, descends in order),
        reverse=path.reverse,
        ranges=ranges,
        residual=residual,
        is_led=plan.kind in ("min", "max") and rest[:1] == (wanted,) and not entity.types[plan.field].optional,
    )


def walked_columns(entity: EntityPlan, index: str) -> tuple[tuple[str, bool], ...]:
    """The columns of an index, of a unique or (empty name) of the key, and whether they descend; the rest of the key
    follows them. `KeyError` if there is no such index."""
    ways: dict[str, tuple[tuple[str, bool], ...]] = {"": ()}
    ways |= {part.name: tuple(zip(part.columns, part.descending, strict=True)) for part in entity.indexes}
    ways |= {part.name: tuple((name, False) for name in part.columns) for part in entity.uniques}
    named = ways[index]
    known = {name for name, _ in named}
    return (*named, *((name, False) for name in entity.storage_key if name not in known))


def _choice(
    plan: BindingPlan, paths: Sequence[CompiledPath], places: Mapping[str, int]
) -> Callable[[tuple[Any, ...]], CompiledPath]:
    if len(paths) == 1:
        only = paths[0]
        return lambda params: only
    filters = [places[name] for name in plan.filters]
    by_case = {
        tuple(name in path.given for name in plan.filters): paths[number] for number, path in enumerate(plan.paths)
    }
    return lambda params: by_case[tuple(params[place] is not None for place in filters)]


def _take(take: str | int, places: Mapping[str, int]) -> Callable[[tuple[Any, ...]], int]:
    if isinstance(take, int):
        return lambda params: take
    place = places[take]

    def given(params: tuple[Any, ...]) -> int:
        number: int = params[place]
        return number

    return given


class _QueryWriter:
    def __init__(self, plan: Plan, query: QueryPlan, source: Source) -> None:
        self._plan, self._query, self._source = plan, query, source
        self._params = {part.name: f"p{number}" for number, part in enumerate(query.params)}
        self._names = [binding.name for binding in query.bindings]

    def write(self) -> None:
        with self._source.block("def partition(params):"):
            self._unpack(self._params, "params")
            partition = expression_text(self._query.partition, self._rowless("the partition"))
            self._source.line(f"return {partition}")
        for number, binding in enumerate(self._query.bindings):
            place = f"{binding.kind} {binding.name}"
            for case, path in enumerate(binding.paths):
                self._ranges(f"{number}_{case}", place, binding, path)
                self._residual(f"{number}_{case}", place, binding, path)
            if binding.missing is not None:
                self._select(f"missing_{number}", binding.missing.payload)
        self._select("select", self._query.payload)

    def _unpack(self, names: Mapping[str, str] | Sequence[str], value: str) -> None:
        listed = list(names.values()) if isinstance(names, Mapping) else list(names)
        if listed:
            self._source.line(f"{', '.join(listed)}{',' if len(listed) == 1 else ''} = {value}")

    def _ranges(self, number: str, place: str, binding: BindingPlan, path: PathPlan) -> None:
        scope = self._rowless(place)
        self._source.line()
        self._source.line()
        with self._source.block(f"def ranges_{number}(params, now):"):
            self._source.line(note(f"{place} from {binding.entity}, {path.index or 'its key'}"))
            self._unpack(self._params, "params")
            prefixes = self._prefixes(path.prefix, scope)
            self._source.line(f"return Ranges({prefixes}, {_bound(path.lower, scope)}, {_bound(path.upper, scope)})")

    def _prefixes(self, prefix: Sequence[PrefixPlan], scope: Scope) -> str:
        """The source of all combinations of the prefix columns' values, each once."""
        if all(part.among is None and len(part.values) == 1 for part in prefix):
            values = [expression_text(part.values[0], scope) for part in prefix]
            return f"({row_of(values)},)"
        for number, part in enumerate(prefix):
            self._source.line(f"a{number} = {_alternatives(part, scope)}")
        loops = " ".join(f"for v{number} in a{number}" for number in range(len(prefix)))
        return f"distinct([{row_of([f'v{number}' for number in range(len(prefix))])} {loops}])"

    def _residual(self, number: str, place: str, binding: BindingPlan, path: PathPlan) -> None:
        if path.residual is None:
            return
        columns = (*self._plan.entity(binding.entity).columns, "revision")

        def field(_binding: str, name: str) -> Term:
            return Term(f"row[{columns.index(name)}]", ATOM)

        def revision(_binding: str) -> Term:
            return field("", "revision")

        def row(_binding: str) -> Term:
            return Term("row", ATOM)

        scope = Scope(place, self._params, field, revision, row, self._source.temporary)
        self._source.line()
        self._source.line()
        with self._source.block(f"def residual_{number}(params, now):"):
            self._unpack(self._params, "params")
            with self._source.block("def meets(row):"):
                self._source.line(f"return {expression_text(path.residual, scope)}")
            self._source.line("return meets")

    def _select(self, name: str, payload: Sequence[QueryField]) -> None:
        self._source.line()
        self._source.line()
        with self._source.block(f"def {name}(params, now, found, nexts):"):
            self._unpack(self._params, "params")
            count = len(self._names)
            self._unpack([f"b{number}" for number in range(count)], "found")
            self._unpack([f"n{number}" for number in range(count)], "nexts")
            for number, part in enumerate(payload):
                self._source.line(note(f"{part.name}: {part.binding or 'computed'}"))
                self._source.line(f"s{number} = {self._value(part)}")
            listed = [f"s{number}" for number in range(len(payload))]
            self._source.line(f"return {row_of(listed) if listed else '()'}")

    def _value(self, part: QueryField) -> str:
        if part.value is not None:
            return expression_text(part.value, self._with_rows(part.name))
        number = self._names.index(part.binding)
        binding = self._query.bindings[number]
        if part.is_cursor:
            return f"n{number}"
        if binding.kind not in ("one", "maybe", "many"):
            return f"b{number}"
        columns = (*self._plan.entity(binding.entity).columns, "revision")
        if binding.kind == "many":
            fields = row_of([f"row[{columns.index(field)}]" for field in part.fields])
            return f"[{fields} for row in b{number}]"
        fields = row_of([f"b{number}[{columns.index(field)}]" for field in part.fields])
        return fields if binding.kind == "one" else f"None if b{number} is None else {fields}"

    def _with_rows(self, place: str) -> Scope:
        bindings = self._query.bindings

        def columns(binding: str) -> tuple[str, ...]:
            return (*self._plan.entity(bindings[self._names.index(binding)].entity).columns, "revision")

        def field(binding: str, name: str) -> Term:
            return Term(f"b{self._names.index(binding)}[{columns(binding).index(name)}]", ATOM)

        def revision(binding: str) -> Term:
            return field(binding, "revision")

        def row(binding: str) -> Term:
            return Term(f"b{self._names.index(binding)}", ATOM)

        return Scope(f"the answer {place}", self._params, field, revision, row, self._source.temporary)

    def _rowless(self, place: str) -> Scope:
        return rowless(place, self._params, self._source.temporary)


def _alternatives(part: PrefixPlan, scope: Scope) -> str:
    if part.among is not None:
        return expression_text(part.among, scope)
    return row_of([expression_text(value, scope) for value in part.values])


def _bound(bound: BoundPlan | None, scope: Scope) -> str:
    return "None" if bound is None else f"({expression_text(bound.value, scope)}, {bound.inclusive})"
