"""`open` and `connect`, sync and async: from an address to a client.

`sqlite:PATH` and `memory:` open a database in this process, `http://…` reaches a server. With `application=` the folder
is compiled and deployed first, and the file is made if need be; without it, what is deployed is used.
"""

from collections.abc import Callable
from pathlib import Path

from riffdb.client.application import compile_application
from riffdb.client.calls import AsyncClient, Client
from riffdb.client.embedded import EmbeddedTransport, local_caller
from riffdb.client.remote import RemoteTransport, RetryBudget
from riffdb.core.diagnostics import render, to_json
from riffdb.core.errors import RiffError, input_error
from riffdb.core.stepping import step
from riffdb.core.suggestions import did_you_mean
from riffdb.database.database import Database
from riffdb.database.doors import Door, LoopDoor, Run, ThreadDoor
from riffdb.plan import Plan
from riffdb.storage import open_store

TIMEOUT_SECONDS = 30.0


def open(url: str, application: str | Path | None = None, *, role: str | None = None, create: bool = False) -> Client:
    """Open a database in this process; `RDB-E-CONTRACT` carries the diagnostics of an application with errors.

    A missing file is made if an application is given, or with `create`.
    """
    return Client(step(_open(url, application, role, create, ThreadDoor)))


async def open_async(
    url: str, application: str | Path | None = None, *, role: str | None = None, create: bool = False
) -> AsyncClient:
    """Open a database in this process, for use on this event loop."""
    return AsyncClient(await _open(url, application, role, create, LoopDoor))


def connect(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> Client:
    """Reach a server; nothing is sent before the first call."""
    from riffdb.client.blocking import BlockingExchange

    return Client(RemoteTransport(BlockingExchange(url, token, timeout_seconds), budget or RetryBudget()))


def connect_async(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> AsyncClient:
    """Reach a server from this event loop; nothing is sent before the first call."""
    from riffdb.client.suspending import SuspendingExchange

    return AsyncClient(RemoteTransport(SuspendingExchange(url, token, timeout_seconds), budget or RetryBudget()))


def compiled_plan(folder: str | Path) -> Plan:
    """The plan of an application's folder; `RDB-E-CONTRACT` with the rendered diagnostics if it has errors."""
    _, compilation = compile_application(Path(folder))
    if compilation.plan is None:
        text = "\n".join(render(diagnostic) for diagnostic in compilation.diagnostics)
        facts = {"diagnostics": [to_json(diagnostic) for diagnostic in compilation.diagnostics]}
        raise RiffError("RDB-E-CONTRACT", f"the contract has errors:\n\n{text}", detail=facts)
    return compilation.plan


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


async def _open(
    url: str, application: str | Path | None, role: str | None, create: bool, make_door: Callable[[Run], Door]
) -> EmbeddedTransport:
    plan = None if application is None else compiled_plan(application)
    database = await open_database(url, make_door, create=create or plan is not None)
    try:
        if plan is not None:
            await database.deploy(local_caller(None, "embedded"), plan)
        _check_role(database, role)
    except BaseException:
        await database.close()
        raise
    return EmbeddedTransport(database, local_caller(role, "embedded"))


def _check_role(database: Database, role: str | None) -> None:
    if role is not None and database.has_contract:
        roles = [declared.name for declared in database.contract.plan.roles]
        if role not in roles:
            raise input_error("role", f"the contract has no role of that name{did_you_mean(role, roles)}")
