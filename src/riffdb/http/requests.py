"""A request as a route sees it: authenticated, authorized, its body read within bounds.

Nothing of the transport is left in it, so a route is a function of this value and the database alone.
"""

from dataclasses import dataclass

from riffdb.core.limits import HEARTBEAT_SECONDS
from riffdb.database.callers import Caller
from riffdb.database.database import Database


@dataclass(frozen=True, slots=True)
class Request:
    """`parts`: the variable parts of the address, percent-decoded; `query` is what stands behind them, as it was sent.
    `caller` is nobody's on an open route.

    `deadline`: when the client has no use for the answer any more, by the monotonic clock.
    `last_event_id` and `heartbeat_seconds` are for answers that last.
    """

    database: Database
    caller: Caller
    parts: tuple[str, ...]
    body: bytes
    query: str = ""
    deadline: float | None = None
    last_event_id: str | None = None
    heartbeat_seconds: float = HEARTBEAT_SECONDS
