"""When the answer of a query may change although nothing is committed: as the time passes that it compares with.

Where `tx.time` is a bound of a range, as in `available_at <= tx.time`, the next row beyond it tells the instant; where
it stands elsewhere, nothing does, and the query is read again every second. Never more often, and at least every
minute, since a clock may be set. A query without `tx.time` has no horizon.
"""

from collections.abc import Iterator
from dataclasses import replace

from riffdb.core.values import SECOND
from riffdb.database.reading import Asked, path_scans
from riffdb.engine import CompiledBinding
from riffdb.plan.expressions import Expression, TransactionTime, leaves
from riffdb.plan.queries import BindingPlan, BoundPlan, PathPlan, QueryField
from riffdb.storage.protocol import Reader, Scan
from riffdb.storage.walks import walk_columns

STEP_SECONDS = 1.0
"""The least time between two evaluations for the time's sake."""

FAR_SECONDS = 60.0
"""The most, if the query depends on the time at all."""


async def horizon_seconds(reader: Reader, asked: Asked, time: int) -> float | None:
    """After how many seconds the query, read at `time` (µs), must be read again; None if only commits change it."""
    compiled = asked.query.compiled
    if not is_timed(asked):
        return None
    if any(_has_time(part.value) for part in _fields(asked) if part.value is not None):
        return STEP_SECONDS
    instants = []
    for binding in compiled.bindings:
        path = _path_plan(asked, binding.plan)
        if not _is_told_by_bounds(path):
            return STEP_SECONDS
        for scan, is_inclusive in _beyond(asked, binding, path, time):
            place, descends = walk_columns(scan)[len(scan.prefix)]
            for row in await reader.scan(replace(scan, reverse=descends, limit=1)):
                instants.append(row[place] + (not is_inclusive))
    seconds = (min(instants) - time) / SECOND if instants else FAR_SECONDS
    return min(max(seconds, STEP_SECONDS), FAR_SECONDS)


def is_timed(asked: Asked) -> bool:
    """Whether the answer depends on the time."""
    conditions = [binding.where for binding in asked.query.plan.bindings]
    values = [part.value for part in _fields(asked) if part.value is not None]
    return any(_has_time(expression) for expression in (*conditions, *values))


def _fields(asked: Asked) -> Iterator[QueryField]:
    yield from asked.query.plan.payload
    for binding in asked.query.plan.bindings:
        if binding.missing is not None:
            yield from binding.missing.payload


def _has_time(expression: Expression) -> bool:
    return any(isinstance(leaf, TransactionTime) for leaf in leaves(expression))


def _path_plan(asked: Asked, binding: BindingPlan) -> PathPlan:
    """The path of the case that the parameters are."""
    names = [part.name for part in asked.query.plan.params]
    given = {name for name in binding.filters if asked.params[names.index(name)] is not None}
    return next(path for path in binding.paths if set(path.given) == given)


def _is_bound(bound: BoundPlan | None) -> bool:
    return bound is not None and isinstance(bound.value, TransactionTime)


def _is_told_by_bounds(path: PathPlan) -> bool:
    """Whether the time stands in the path as a whole bound, or not at all."""
    inner = [value for part in path.prefix for value in part.values]
    inner += [bound.value for bound in (path.lower, path.upper) if bound is not None and not _is_bound(bound)]
    if path.residual is not None:
        inner.append(path.residual)
    return not any(_has_time(expression) for expression in inner)


def _beyond(asked: Asked, binding: CompiledBinding, path: PathPlan, time: int) -> Iterator[tuple[Scan, bool]]:
    """Walks whose least value is the instant at which a row comes into a range or leaves it, and whether it does so at
    that very microsecond."""
    for scan in path_scans(asked, binding, binding.path(asked.params), time):
        if path.upper is not None and _is_bound(path.upper):
            lower = (time, not path.upper.inclusive)
            if scan.lower is not None and scan.lower[0] > time:
                lower = scan.lower
            yield replace(scan, reverse=False, lower=lower, upper=None), path.upper.inclusive
        if path.lower is not None and _is_bound(path.lower):
            yield replace(scan, reverse=False), not path.lower.inclusive
