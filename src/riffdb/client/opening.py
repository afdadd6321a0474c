"""`open`, sync and async: from the address of a database in this process to a client.

`sqlite:PATH` and `memory:` are such addresses; a server is reached by `connect`, in `blocking` and `suspending`. With
`application=` the folder is compiled and deployed first, and the file is made if need be; without it, what is deployed
is used, and the compiler is not loaded.
"""

from collections.abc import Callable
from pathlib import Path

from riffdb.client.calls import AsyncClient, Client
from riffdb.client.embedded import EmbeddedTransport, local_caller, open_database
from riffdb.core.errors import input_error
from riffdb.core.stepping import step
from riffdb.core.suggestions import did_you_mean
from riffdb.database.database import Database
from riffdb.database.doors import Door, LoopDoor, Run, ThreadDoor
from riffdb.plan import Plan


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


async def _open(
    url: str, application: str | Path | None, role: str | None, create: bool, make_door: Callable[[Run], Door]
) -> EmbeddedTransport:
    plan = None if application is None else _compiled(application)
    database = await open_database(url, make_door, create=create or plan is not None)
    try:
        if plan is not None:
            await database.deploy(local_caller(None, "embedded"), plan)
        _check_role(database, role)
    except BaseException:
        await database.close()
        raise
    return EmbeddedTransport(database, local_caller(role, "embedded"))


def _compiled(application: str | Path) -> Plan:
    from riffdb.client.application import compiled_plan

    return compiled_plan(application)


def _check_role(database: Database, role: str | None) -> None:
    if role is not None and database.has_contract:
        roles = [declared.name for declared in database.contract.plan.roles]
        if role not in roles:
            raise input_error("role", f"the contract has no role of that name{did_you_mean(role, roles)}")
