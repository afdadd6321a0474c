"""A query as generated source: its partition, the ranges that it reads, and the selection from what was read.

The access path stands in the plan and is only followed. Names: `p0` parameter, `now` the observed time.
"""

from collections.abc import Mapping

from riffdb.engine.arithmetic import offered_functions
from riffdb.engine.evaluation import CompiledQuery, IndexRange
from riffdb.engine.expressions import Scope, expression_text, rowless
from riffdb.engine.source import Source, execute, note, row_of
from riffdb.plan import Plan
from riffdb.plan.queries import BindingPlan, BoundPlan, QueryField, QueryPlan


def compile_query(plan: Plan, name: str) -> CompiledQuery:
    """The functions of a query; `KeyError` if there is none."""
    query = plan.query(name)
    source = Source()
    params = {part.name: f"p{number}" for number, part in enumerate(query.params)}
    writer = _QueryWriter(plan, query, params, source)
    writer.write()
    offered = {"IndexRange": IndexRange, "tuple": tuple}
    namespace = execute(name, source.text, offered_functions(name) | offered)
    return CompiledQuery(name, namespace["partition"], namespace["ranges"], namespace["select"], source.text)


class _QueryWriter:
    def __init__(self, plan: Plan, query: QueryPlan, params: Mapping[str, str], source: Source) -> None:
        self._plan, self._query, self._params, self._source = plan, query, params, source

    def write(self) -> None:
        with self._source.block("def partition(params):"):
            self._unpack()
            self._source.line(f"return {expression_text(self._query.partition, self._scope('the partition'))}")
        self._source.line()
        self._source.line()
        with self._source.block("def ranges(params, now):"):
            self._unpack()
            for number, binding in enumerate(self._query.bindings):
                self._range(number, binding)
            self._source.line(f"return {_row_of_many('q', len(self._query.bindings))}")
        self._source.line()
        self._source.line()
        with self._source.block("def select(rows):"):
            for number, selection in enumerate(self._query.payload):
                self._selection(number, selection)
            self._source.line(f"return {_row_of_many('s', len(self._query.payload))}")

    def _unpack(self) -> None:
        names = list(self._params.values())
        if names:
            self._source.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = params")

    def _range(self, number: int, binding: BindingPlan) -> None:
        self._source.line(note(f"many {binding.name} from {binding.entity}"))
        scope = self._scope(f"many {binding.name}")
        path = binding.paths[0]
        equals = [expression_text(part.values[0], scope) for part in path.prefix]
        parts = [
            repr(binding.entity),
            repr(path.index),
            row_of(equals) if equals else "()",
            _bound(path.lower, scope),
            _bound(path.upper, scope),
            repr(path.reverse),
            self._params[binding.take] if isinstance(binding.take, str) else str(binding.take),
        ]
        self._source.line(f"q{number} = IndexRange({', '.join(parts)})")

    def _selection(self, number: int, selection: QueryField) -> None:
        self._source.line(note(f"{selection.name}: {selection.binding}"))
        names = [binding.name for binding in self._query.bindings]
        place = names.index(selection.binding)
        columns = (*self._plan.entity(self._query.bindings[place].entity).columns, "revision")
        fields = row_of([f"row[{columns.index(field)}]" for field in selection.fields])
        self._source.line(f"s{number} = tuple([{fields} for row in rows[{place}]])")

    def _scope(self, place: str) -> Scope:
        return rowless(place, self._params, self._source.temporary)


def _bound(bound: BoundPlan | None, scope: Scope) -> str:
    return "None" if bound is None else f"({expression_text(bound.value, scope)}, {bound.inclusive})"


def _row_of_many(letter: str, number: int) -> str:
    return row_of([f"{letter}{index}" for index in range(number)]) if number else "()"
