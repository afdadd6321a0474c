"""The stores: where rows, commit records, heads, capabilities and contracts are kept, and the one clock.

`protocol.py` says what a store offers, `memory` and `sqlite` offer it, `open_store` opens one by its URL. A module of a
store's own driver is loaded when such a store is opened, since the command line starts without one. Absent: plans,
commands and outcomes, of which a store knows nothing.
"""

import re
from importlib import import_module
from os import urandom

from riffdb.core.errors import RiffError
from riffdb.storage.clock import Chance, Clock
from riffdb.storage.memory import MemoryStore
from riffdb.storage.protocol import Store

__all__ = ["open_store"]


async def open_store(url: str, *, create: bool = True, clock: Clock | None = None, chance: Chance = urandom) -> Store:
    """The store at `sqlite:PATH`, made when it is missing and `create` stands, or a new one at `memory:`.

    A URL that names no store, and a path that can hold none, is `RDB-E-USAGE`; a file that cannot be reached
    `RDB-E-UNAVAILABLE`; one that another process holds `RDB-E-LOCKED` with its pid; a damaged one `RDB-E-STORAGE`.
    """
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite" and colon:
        store: Store = import_module("riffdb.storage.sqlite").open_sqlite(
            rest, create=create, clock=clock, chance=chance
        )
        return store
    if url == "memory:":
        return MemoryStore(clock, chance)
    named = (
        f"{scheme}: is no store" if colon and re.fullmatch(r"[a-z][a-z0-9+]{0,19}", scheme) else "this names no store"
    )
    raise RiffError("RDB-E-USAGE", f"{named}; write sqlite:PATH for a file, or memory: for one that lasts no longer")
