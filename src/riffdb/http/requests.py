"""A request as a route sees it: authenticated, authorized, its body read within bounds.

Nothing of the transport is left in it, so a route is a function of this value and the database alone.
"""

from dataclasses import dataclass

from riffdb.database.callers import Caller
from riffdb.database.database import Database


@dataclass(frozen=True, slots=True)
class Request:
    """`parts`: the variable parts of the address, percent-decoded. `caller` is nobody's on an open route."""

    database: Database
    caller: Caller
    parts: tuple[str, ...]
    body: bytes
