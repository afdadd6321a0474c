"""What both sources of a schedule's items share: the key and the due time of an item, and how their calls fail.

Fields are native values, as a client gives them. A client's error never passes as it is: the scheduler knows the closed
classes of failures alone.
"""

from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from riffdb.core.errors import RiffError
from riffdb.plan import Plan
from riffdb.plan.queries import SchedulePlan
from riffdb.scheduler import failure_of
from riffdb.scheduler.identity import Target

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Result = TypeVar("Result")


def target_of(plan: Plan, planned: SchedulePlan, fields: Mapping[str, Any]) -> Target:
    """The key of the leased row, partition first, as the selected fields give it."""
    return tuple(fields[name] for name in plan.entity(planned.entity).storage_key)


def due_microseconds(due: datetime) -> int:
    """A due time in µs since 1970-01-01 UTC."""
    return (due - EPOCH) // timedelta(microseconds=1)


async def failing_as_port(call: Awaitable[Result]) -> Result:
    """The result of a client's call, whose error becomes the scheduler's failure of its class."""
    try:
        return await call
    except RiffError as error:
        raise failure_of(error) from None
