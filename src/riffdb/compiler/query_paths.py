"""The paths of a query's binding: for each case of its optional filters one, over all values of the prefix columns.

Equalities, and one range where there is any, have to be answered by the path; other conjuncts are residual. `one` and
`maybe` fix the whole key or a unique, so that there is at most one row, and everything else is asked of it.
Nothing is reported here: a lack is told as a value, so that advice can ask again with what it would add.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import prod

from msgspec import structs

from riffdb.compiler.access_paths import Demand, Ordering, Path, choose, index_name, missing_index, with_key
from riffdb.compiler.conditions import (
    Condition,
    Equality,
    Filter,
    Leftover,
    Part,
    conjuncts,
    filters_among,
    parts_if,
    read,
)
from riffdb.core.limits import QUERY_RANGES_MAX
from riffdb.core.types import BOOL
from riffdb.plan.declarations import EntityPlan, EnumPlan
from riffdb.plan.expressions import Binary, Constant, Expression
from riffdb.plan.queries import PathPlan, PrefixPlan

FILTERS_MAX = QUERY_RANGES_MAX.bit_length() - 1
"""Optional filters of one binding; each doubles its cases."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a binding asks: of an entity, which rows, in which order; `wished` is an order that would do some good, such
    as that in which the first row has the least value."""

    entity: EntityPlan
    enums: Mapping[str, EnumPlan]
    where: Part
    order: tuple[Ordering, ...] = ()
    is_single: bool = False
    wished: tuple[Ordering, ...] = ()

    def parts(self) -> list[Part | Filter]:
        """The conjuncts; of one row everything can be asked, so that no case is told apart."""
        parts = list(conjuncts(self.where))
        return list(parts) if self.is_single else filters_among(parts)


@dataclass(frozen=True, slots=True)
class Way:
    """A path with the order in which it gives rows and the conjuncts that it leaves open."""

    path: PathPlan
    order: tuple[Ordering, ...]
    left: tuple[Leftover, ...] = ()


@dataclass(frozen=True, slots=True)
class Cases:
    """More optional filters than cases can be told apart."""

    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Ranges:
    """More combinations of values than ranges are merged."""

    equalities: tuple[Equality, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Order:
    """An order that no index could give beside the range of `column`."""

    column: str
    part: Part


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes that are missing, by their names, the first for the case in which these filters are given."""

    columns: Mapping[str, tuple[Ordering, ...]]
    given: tuple[str, ...]
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Several:
    """A condition that more than one row may meet; `equal` are the columns that it fixes."""

    equal: tuple[str, ...]


Lack = Cases | Ranges | Order | Indexes | Several


def ways_of(question: Question) -> tuple[Way, ...] | Lack:
    """The ways in all cases of the filters, that without any of them first; or what there is no way without."""
    if question.wished:
        as_wished = ways_of(replace(question, order=question.wished, wished=()))
        return as_wished if isinstance(as_wished, tuple) else ways_of(replace(question, wished=()))
    parts = question.parts()
    if question.is_single:
        return _single_way(question, read(parts_if(parts, ())))
    filters = [part for part in parts if isinstance(part, Filter)]
    names = tuple(dict.fromkeys(part.param for part in filters))
    if len(names) > FILTERS_MAX:
        return Cases(tuple(filters))
    ways: list[Way] = []
    missing: dict[str, tuple[Ordering, ...]] = {}
    first: tuple[str, ...] = ()
    for given in _cases(names):
        found = _way(question, read(parts_if(parts, given)))
        if isinstance(found, Demand):
            columns = missing_index(question.entity, found)
            question, name = _with_index(question, columns)
            first = first if missing else given
            missing[name] = columns
        elif isinstance(found, Way):
            ways.append(replace(found, path=structs.replace(found.path, given=given)))
        else:
            return found
    return Indexes(missing, first, names) if missing else tuple(ways)


def left_by(question: Question, found: tuple[Way, ...] | Lack) -> list[Leftover]:
    """What the ways leave open; where there are none, what no index could answer, in whichever case."""
    if isinstance(found, tuple):
        return [leftover for way in found for leftover in way.left]
    if isinstance(found, Several):
        return []
    parts = question.parts()
    return read(parts_if(parts, {part.param for part in parts if isinstance(part, Filter)})).left


def _cases(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for count in range(len(names) + 1):
        yield from combinations(names, count)


def _with_index(question: Question, columns: tuple[Ordering, ...]) -> tuple[Question, str]:
    """The question as if the index were there, so that one line is not asked for twice."""
    entity = question.entity
    rules = {rule.name for family in (entity.uniques, entity.references, entity.invariants) for rule in family}
    taken = {*entity.columns, *rules, *(index.name for index in entity.indexes)}
    name = index_name(columns, entity.partition, taken)
    indexes = (*entity.indexes, with_key(entity, name, columns))
    return replace(question, entity=structs.replace(entity, indexes=indexes)), name


def _way(question: Question, condition: Condition) -> Way | Demand | Ranges | Order:
    """The way in one case; or what an index would have to answer, or why none could."""
    partition = question.entity.partition
    equal = tuple(sorted(condition.equal, key=lambda name: name != partition))
    count = prod(equality.count for equality in condition.equal.values())
    if count > QUERY_RANGES_MAX:
        many = tuple(equality for equality in condition.equal.values() if equality.count > 1)
        return Ranges(many, count)
    demand = Demand(equal, tuple(condition.ranges), question.order)
    path = choose(question.entity, demand)
    if path is not None:
        return _along(question, condition, path, {})
    spread = _spread(question, demand, QUERY_RANGES_MAX // count)
    if spread:
        (name,) = spread
        wider = replace(demand, equal=(*equal, name))
        path = choose(question.entity, wider)
        if path is not None:
            return _along(question, condition, path, spread)
        demand = demand if demand.is_possible else wider
    if demand.is_possible:
        return demand
    column = demand.ranged[0]
    return Order(column, condition.ranges[column].parts[0])


def _spread(question: Question, demand: Demand, most: int) -> dict[str, PrefixPlan]:
    """All values of the enum that leads the order unconstrained, if one does and they are not too many."""
    order = demand.free_order
    if not order or order[0][0] in demand.ranged:
        return {}
    name = order[0][0]
    kind = question.entity.types[name]
    if kind.kind != "enum":
        return {}
    values: list[Constant] = [Constant(kind, None)] if kind.optional else []
    values += [Constant(kind.required, ordinal) for ordinal in range(len(question.enums[kind.name].variants))]
    return {name: PrefixPlan(tuple(values))} if len(values) <= most else {}


def _along(question: Question, condition: Condition, path: Path, spread: Mapping[str, PrefixPlan]) -> Way:
    """The way of a path."""
    left = list(condition.left)
    for column, other in condition.ranges.items():
        if column != path.ranged:
            reason = f"`{path.ranged}` has a range already, and one range is all that an index answers"
            left += [Leftover(part, reason) for part in other.parts]
    left.sort(key=lambda leftover: leftover.part.expr.span.start)  # since one may be what lets the next compare
    found = None if path.ranged is None else condition.ranges[path.ranged]
    values = {name: equality.values for name, equality in condition.equal.items()} | dict(spread)
    plan = PathPlan(
        index=path.index.name,
        prefix=tuple(values[name] for name in path.equal),
        lower=None if found is None else found.lower,
        upper=None if found is None else found.upper,
        reverse=path.reverse,
        residual=_all_of([leftover.part for leftover in left]),
    )
    return Way(plan, _order(question, path, values) if question.order else (), tuple(left))


def _order(question: Question, path: Path, values: Mapping[str, PrefixPlan]) -> tuple[Ordering, ...]:
    """The whole order of the rows: as asked for, then as the index goes on, each key column that is not fixed."""
    fixed = {name for name, alternatives in values.items() if len(alternatives.values) == 1}
    asked = tuple(part for part in question.order if part[0] not in fixed)
    named = fixed | {name for name, _ in asked} | (values.keys() - set(question.entity.storage_key))
    pairs = zip(path.index.columns, path.index.descending, strict=True)
    return (*asked, *((name, descending != path.reverse) for name, descending in pairs if name not in named))


def _all_of(parts: list[Part]) -> Expression | None:
    values = [part.lowered for part in parts]
    return reduce(lambda left, right: Binary(BOOL, "&&", left, right), values) if values else None


def _single_way(question: Question, condition: Condition) -> tuple[Way, ...] | Several:
    """The way to the one row: the whole key, or the first unique that the condition fixes with values not null."""
    entity = question.entity
    fixed = {name: equality.single for name, equality in condition.equal.items()}
    for name, columns in (("", entity.storage_key), *((unique.name, unique.columns) for unique in entity.uniques)):
        if all(_is_fixed(entity, column, fixed.get(column)) for column in columns):
            used = [condition.equal[column].part for column in columns]
            rest = [part for part in conjuncts(question.where) if not any(part.expr is one.expr for one in used)]
            prefix = tuple(condition.equal[column].values for column in columns)
            return (Way(PathPlan(name, prefix, residual=_all_of(rest)), (), _asked_of_one(rest)),)
    return Several(tuple(name for name, value in fixed.items() if value is not None))


def _is_fixed(entity: EntityPlan, column: str, value: Expression | None) -> bool:
    return value is not None and not (entity.types[column].optional and value.type.optional)


def _asked_of_one(rest: list[Part]) -> tuple[Leftover, ...]:
    return tuple(Leftover(part, "this is asked of the row that is found") for part in rest)
