"""When the answer of a query may change although nothing is committed: as the time goes on that it compares with.

A query without `tx.time` has no horizon.
"""

from riffdb.database.reading import Asked
from riffdb.plan.expressions import TransactionTime, leaves
from riffdb.plan.queries import QueryPlan

STEP_SECONDS = 1.0
"""The least time between two evaluations for the time's sake."""


def horizon_seconds(asked: Asked) -> float | None:
    """After how many seconds the query must be evaluated again; None if only commits change its answer."""
    return STEP_SECONDS if _is_timed(asked.query.plan) else None


def _is_timed(query: QueryPlan) -> bool:
    expressions = [binding.where for binding in query.bindings]
    expressions += [part.value for part in query.payload if part.value is not None]
    return any(isinstance(leaf, TransactionTime) for expression in expressions for leaf in leaves(expression))
