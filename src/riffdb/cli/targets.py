"""Which database a command talks to: `--db URL` opens it here, `--server URL` with `RIFFDB_TOKEN` reaches a server.

Exactly one of the two is given; flags win over `RIFFDB_DB` and `RIFFDB_SERVER`. Whoever opens the file is its operator
and may act as a role.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from riffdb.client.calls import Client
from riffdb.core.errors import RiffError

DB_VARIABLE = "RIFFDB_DB"
SERVER_VARIABLE = "RIFFDB_SERVER"
TOKEN_VARIABLE = "RIFFDB_TOKEN"  # the variable's name, no token


@dataclass(frozen=True, slots=True)
class Target:
    """The database that the options name."""

    db: str | None
    server: str | None
    role: str | None

    def open(self, *, create: bool = False) -> Client:
        """A client, for a `with` block; `create` makes a missing database file."""
        if self.server is not None:
            from riffdb.client.blocking import connect

            return connect(self.server, token())
        from riffdb.client.opening import open

        assert self.db is not None
        return open(self.db, role=self.role, create=create)


def token() -> str:
    """The token of the environment; it is never taken from an option, which other users could see."""
    found = os.environ.get(TOKEN_VARIABLE, "")
    if not found:
        raise RiffError("RDB-E-UNAUTHENTICATED", f"set {TOKEN_VARIABLE} to a token of the server")
    return found


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--db`, `--server` and `--role`; the function gets a `target`."""
    acting = click.option("--role", "acting_role", metavar="NAME", help="Act as this role (with --db).")
    return acting(operator_options(function))


def operator_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--db` and `--server`, for what operators alone may do; the function gets a `target`."""

    @click.option(
        "--db",
        metavar="URL",
        envvar=DB_VARIABLE,
        help=f"Open this database here, such as sqlite:work.db; or {DB_VARIABLE}.",
    )
    @click.option(
        "--server",
        metavar="URL",
        envvar=SERVER_VARIABLE,
        help=f"Ask this server, with the token in {TOKEN_VARIABLE}; or {SERVER_VARIABLE}.",
    )
    @wraps(function)
    def with_target(
        *args: Any, db: str | None, server: str | None, acting_role: str | None = None, **options: Any
    ) -> Any:
        return function(*args, target=chosen(db, server, acting_role), **options)

    return with_target


def chosen(db: str | None, server: str | None, role: str | None) -> Target:
    """The target of these options; a usage error unless exactly one place is named."""
    context = click.get_current_context()
    flags = [name for name in ("db", "server") if _is_flag(context, name)]
    if len(flags) == 1:
        db, server = (db, None) if flags == ["db"] else (None, server)
    if db is not None and server is not None:
        variables = f"{DB_VARIABLE} and {SERVER_VARIABLE} are both set; unset one, or give --db or --server"
        raise click.UsageError("give one of --db and --server, not both" if flags else variables)
    if db is None and server is None:
        raise click.UsageError(f"give --db URL or --server URL, or set {DB_VARIABLE} or {SERVER_VARIABLE}")
    if server is not None and role is not None:
        raise click.UsageError("--role goes with --db; a server knows the role of the token")
    if role == "":
        raise click.UsageError("--role takes the name of a role of the contract")
    return Target(db, server, role)


def _is_flag(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
