"""The transport to a database in this process. Who opened the file is its operator; a role may be acted as.

With a `ThreadDoor` nothing here suspends, so the sync client steps it; with a `LoopDoor` it serves one event loop.
"""

import getpass
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from riffdb.client.transport import ConsumerName, EventSource
from riffdb.core.errors import RiffError
from riffdb.database.callers import OPERATOR, Caller, visible_plan
from riffdb.database.database import Database
from riffdb.database.doors import Door, Run
from riffdb.plan import Plan
from riffdb.plan.changes import Deployment
from riffdb.storage import open_store

Act = Callable[..., Coroutine[Any, Any, bytes]]


def local_caller(role: str | None, ingress: str) -> Caller:
    """Who opened the file: `local:<user>`, an operator unless acting as a role."""
    return Caller(principal=f"local:{_user()}", role=OPERATOR if role is None else role, ingress=ingress)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody's name belongs to the id, as in many containers
        return str(os.getuid())


class EmbeddedTransport:
    """Calls the database directly."""

    def __init__(self, database: Database, caller: Caller) -> None:
        self._database = database
        self._caller = caller

    async def plan(self, *, renew: bool = False) -> Plan:
        """The deployed plan, never an older one, as far as the caller may see it."""
        return visible_plan(self._database.contract.plan, self._caller)

    def command(self, name: str, values: Mapping[str, object], key_name: str | None) -> Coroutine[Any, Any, bytes]:
        """Run a command."""
        return self._database.command(self._caller, name, values)

    async def resolve(self, name: str, values: Mapping[str, object]) -> bytes:
        """The stored answer under a key."""
        return await self._database.resolve(self._caller, name, values)

    async def query(self, name: str, values: Mapping[str, object]) -> bytes:
        """Run a query."""
        return await self._database.query(self._caller, name, values)

    async def batch(self, steps: Sequence[Mapping[str, object]], ordered: bool) -> bytes:
        """Run many steps."""
        return await self._database.batch(self._caller, steps, ordered=ordered)

    async def stream(self, verb: str, consumer: ConsumerName, arguments: Mapping[str, Any]) -> bytes:
        """What a consumer does."""
        act: Act = getattr(self._database, f"stream_{verb}")
        return await act(self._caller, consumer.stream, consumer.params, consumer=consumer.name, **arguments)

    def is_passing(self, error: RiffError) -> bool:
        """Only a full queue empties by itself; a database that is closed stays so."""
        return error.code == "RDB-E-OVERLOADED"

    def watch(self, name: str, values: Mapping[str, object]) -> EventSource:
        """The events of a live query."""
        return self._database.watch(self._caller, name, values)

    async def explain(self, name: str, values: Mapping[str, object] | None) -> dict[str, Any]:
        """How a query finds its rows."""
        return await self._database.explain(self._caller, name, values)

    async def operate(self, name: str, arguments: Mapping[str, object]) -> Any:
        """What an operation answers with."""
        act: Callable[..., Coroutine[Any, Any, Any]] = getattr(self._database.operations, name)
        return await act(self._caller, **arguments)

    async def backup(self, name: str) -> dict[str, Any]:
        """Write a backup into a new folder."""
        folder = os.path.abspath(name)
        return {"path": folder, "manifest": await self._database.operations.backup(self._caller, folder=folder)}

    async def deploy(self, plan: Plan) -> Deployment:
        """Put a contract on the database."""
        return await self._database.deploy(self._caller, plan)

    async def close(self) -> None:
        """Close the database."""
        await self._database.close()


async def open_database(url: str, make_door: Callable[[Run], Door], *, create: bool) -> Database:
    """The database at an address of this machine, for edges that bring their own caller."""
    if url.startswith(("http://", "https://")):
        raise RiffError(
            "RDB-E-USAGE", "this is the address of a server; `riffdb.connect(url, token)` and `--server URL` reach one"
        )
    store = await open_store(url, create=create)
    try:
        return await Database.open(store, make_door)
    except BaseException:
        await store.close()
        raise
