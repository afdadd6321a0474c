"""Access paths: which index, unique or the key answers a query's binding, and which index would if none does.

A path is equalities over a prefix of the columns, then at most one range, read in the columns' order or wholly
reversed. It gives the rows in the order that is asked for: nothing is sorted afterwards.
Absent: reading the condition, which `conditions` does, the values and cases of a binding (`query_paths`), and saying
what is wrong, which `advice` does.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from riffdb.plan.declarations import EntityPlan, IndexPlan

Ordering = tuple[str, bool]
"""A column and whether it descends."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a binding asks of a path: the columns held equal, in the order of the source with the partition first; the
    columns with a range, of which the path answers one; the order of the rows."""

    equal: tuple[str, ...]
    ranged: tuple[str, ...]
    order: tuple[Ordering, ...]

    @property
    def free_order(self) -> tuple[Ordering, ...]:
        """The order without the columns that are held equal, by which the rows of one range are not ordered."""
        return tuple(part for part in self.order if part[0] not in self.equal)

    @property
    def range_column(self) -> str | None:
        """The column whose range an index would answer: that which begins the order, or the first."""
        order = self.free_order
        if order and order[0][0] in self.ranged:
            return order[0][0]
        return self.ranged[0] if self.ranged else None

    @property
    def is_possible(self) -> bool:
        """Whether any index could answer: the order has to begin where a range is."""
        order = self.free_order
        return not self.ranged or not order or order[0][0] in self.ranged


@dataclass(frozen=True, slots=True)
class Path:
    """The index or unique (empty: the key) with its columns, those that are held equal, the column whose range it
    answers, and whether it is read backwards."""

    index: IndexPlan
    equal: tuple[str, ...]
    ranged: str | None
    reverse: bool


def choose(entity: EntityPlan, demand: Demand) -> Path | None:
    """The path that answers the demand: the key if it does, else the first index that does, else the first unique."""
    for index in _candidates(entity):
        held = index.columns[: len(demand.equal)]
        if set(held) != set(demand.equal):
            continue
        rest = tuple(zip(index.columns, index.descending, strict=True))[len(held) :]
        if demand.ranged and (not rest or rest[0][0] not in demand.ranged):
            continue
        direction = _direction(rest, demand.free_order)
        if direction is not None:
            return Path(index, held, rest[0][0] if demand.ranged else None, direction)
    return None


def _candidates(entity: EntityPlan) -> Iterator[IndexPlan]:
    key = entity.storage_key
    yield IndexPlan("", key, (False,) * len(key))
    yield from entity.indexes
    for unique in entity.uniques:
        yield with_key(entity, unique.name, [(name, False) for name in unique.columns])


def with_key(entity: EntityPlan, name: str, columns: Sequence[Ordering]) -> IndexPlan:
    """The index over these columns, which ends in the rest of the key."""
    named = {column for column, _ in columns}
    rest = tuple(column for column in entity.storage_key if column not in named)
    directions = (*(descending for _, descending in columns), *(False for _ in rest))
    return IndexPlan(name, (*(column for column, _ in columns), *rest), directions)


def _direction(columns: Sequence[Ordering], order: Sequence[Ordering]) -> bool | None:
    """Whether the columns are to be read backwards to give the order; None if they do not give it either way."""
    head = tuple(columns[: len(order)])
    if head == tuple(order):
        return False
    return True if head == tuple((name, not descending) for name, descending in order) else None


def missing_index(entity: EntityPlan, demand: Demand) -> tuple[Ordering, ...]:
    """The columns of the shortest index that would answer the demand; the rest of the key follows by itself."""
    columns: list[Ordering] = [(name, False) for name in demand.equal]
    order, ranged = demand.free_order, demand.range_column
    columns.extend(order or ([] if ranged is None else [(ranged, False)]))
    return tuple(_without_key_tail(entity, columns, len(demand.equal) + (ranged is not None)))


def _without_key_tail(entity: EntityPlan, columns: list[Ordering], keep: int) -> list[Ordering]:
    for length in range(max(keep, 1), len(columns)):
        head = {name for name, _ in columns[:length]}
        implied = [(name, False) for name in entity.storage_key if name not in head]
        if columns[length:] == implied[: len(columns) - length]:
            return columns[:length]
    return columns


def index_name(columns: Sequence[Ordering], partition: str, taken: Set[str]) -> str:
    """A name for a new index over the columns, such as `by_state_due_at`, that differs from those taken."""
    words = [name for name, _ in columns if name != partition] or [partition]
    name = "by_" + "_".join(words)
    name = name if len(name) <= 48 else f"by_{words[0][:40]}"
    folded = {other.lower() for other in taken}
    if name.lower() not in folded:
        return name
    return next(f"{name}_{number}" for number in range(2, len(folded) + 3) if f"{name}_{number}".lower() not in folded)


def index_line(name: str, columns: Sequence[Ordering]) -> str:
    """The declaration of the index as a contract writes it."""
    return f"index {name} ({', '.join(column + ' desc' * descending for column, descending in columns)})"
