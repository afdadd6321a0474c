"""Aggregates: what is left of the rows of a binding when only a number of them is asked for.

Rows come in pieces, as they are read. A sum is looked at when all is summed, so that the order of the rows does not
decide whether it fits. Absent: how many rows are read.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from riffdb.core.errors import RiffError
from riffdb.core.layout import Row
from riffdb.core.limits import I64_MAX, I64_MIN, U64_MAX
from riffdb.core.types import Type
from riffdb.plan.queries import BindingPlan

DECIMAL_DIGITS_MAX = 38


class Fold(Protocol):
    """What takes rows in pieces and becomes a value."""

    def add(self, rows: Sequence[Row]) -> None:
        """Take in some rows, whose first value is the column."""
        ...

    def result(self) -> Any:
        """The inside value: a number, the least or greatest value or None, or pairs of a value and its number."""
        ...


def new_fold(query: str, binding: BindingPlan, column_type: Type | None) -> Fold:
    """An empty fold for an aggregate; `column_type` is that of the column which it is of, or counts by."""
    if column_type is None:
        return _Count()
    match binding.kind:
        case "count":
            return _CountBy()
        case "sum":
            return _Sum(column_type, f"{query}, sum {binding.name}")
        case "min" | "max":
            return _Extreme(is_max=binding.kind == "max")
    raise AssertionError(f"`{binding.kind}` is no aggregate")


class _Count:
    def __init__(self) -> None:
        self._count = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._count += len(rows)

    def result(self) -> int:
        return self._count


class _CountBy:
    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()

    def add(self, rows: Sequence[Row]) -> None:
        self._counts.update([row[0] for row in rows])

    def result(self) -> tuple[tuple[Any, int], ...]:
        """The pairs in the order of the values, null first."""
        return tuple(sorted(self._counts.items(), key=lambda pair: (pair[0] is not None, pair[0])))


class _Sum:
    def __init__(self, column_type: Type, place: str) -> None:
        self._type, self._place = column_type, place
        self._sum = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._sum += sum([row[0] for row in rows if row[0] is not None])

    def result(self) -> int:
        low, high = _bounds(self._type)
        if low <= self._sum <= high:
            return self._sum
        raise RiffError(
            "RDB-E-ARITHMETIC",
            f"{self._place}: the result leaves the range of {sum_type(self._type)}; ask for fewer rows at once",
        )


class _Extreme:
    def __init__(self, *, is_max: bool) -> None:
        self._is_max = is_max
        self._found: Any = None

    def add(self, rows: Sequence[Row]) -> None:
        values = [row[0] for row in rows if row[0] is not None]
        if self._found is not None:
            values.append(self._found)
        if values:
            self._found = max(values) if self._is_max else min(values)

    def result(self) -> Any:
        return self._found


def sum_type(column_type: Type) -> Type:
    """The type of a sum of such values: a decimal has all the digits that there are."""
    kept = column_type.required
    return Type("decimal", bound=DECIMAL_DIGITS_MAX, scale=kept.scale) if kept.kind == "decimal" else kept


def _bounds(column_type: Type) -> tuple[int, int]:
    match column_type.kind:
        case "i64":
            return I64_MIN, I64_MAX
        case "u64":
            return 0, U64_MAX
    return -(10**DECIMAL_DIGITS_MAX) + 1, 10**DECIMAL_DIGITS_MAX - 1
