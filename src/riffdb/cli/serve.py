"""`riffdb serve`: serve a database over HTTP, in one process.

It prints one line when connections are accepted and no token ever. What no flag and no variable says comes from
`[server]` and `[limits]` of the `riffdb.toml`, if there is one. A database whose file another process holds, an
address in use and an armed failpoint without its flag are refused before anything is served.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import DB_VARIABLE
from riffdb.core import failpoints
from riffdb.core.errors import RiffError

if TYPE_CHECKING:
    from riffdb.client.configuration import Configuration

LISTEN_VARIABLE = "RIFFDB_LISTEN"


@click.command("serve", short_help="serve a database over HTTP")
@click.option(
    "--db", metavar="URL", envvar=DB_VARIABLE, help=f"The database, such as sqlite:work.db; or {DB_VARIABLE}."
)
@click.option(
    "--listen", metavar="HOST:PORT", envvar=LISTEN_VARIABLE, help=f"Where; or {LISTEN_VARIABLE}, or 127.0.0.1:7433."
)
@click.option(
    "--application",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Whose riffdb.toml to read, if not this folder's.",
)
@click.option(
    "--backups",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where operators may have it write backups; or `backups` under `[server]`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document when ready.")
@click.option("--allow-failpoints", is_flag=True, help=f"Let {failpoints.VARIABLE} act; for tests.")
def command(
    db: str | None,
    listen: str | None,
    application: Path | None,
    backups: Path | None,
    as_json: bool,
    allow_failpoints: bool,
) -> int:
    """Serve until SIGTERM or SIGINT; a second signal stops at once."""
    if os.environ.get(failpoints.VARIABLE) and not allow_failpoints:
        raise RiffError("RDB-E-USAGE", f"{failpoints.VARIABLE} is set; a server takes it only with --allow-failpoints")
    configuration = _configuration(application)
    url = _database(configuration, application or Path()) if db is None else db
    if url is None:
        raise click.UsageError(f"give --db URL, or set {DB_VARIABLE} or `db` under `[server]` of riffdb.toml")

    def on_ready(address: str) -> None:
        if as_json:
            print_json({"listening": address, "pid": os.getpid()})
        else:
            print_text(f"RiffDB listens on {address}")

    if backups is None and configuration is not None and configuration.server.backups is not None:
        backups = (application or Path()) / Path(configuration.server.backups).expanduser()
    asyncio.run(_serve(url, listen, backups, configuration, on_ready))
    return 0


def _configuration(application: Path | None) -> "Configuration | None":
    from riffdb.client.application import CONFIGURATION_FILE, read_configuration

    if application is None and not Path(CONFIGURATION_FILE).is_file():
        return None
    return read_configuration(application or Path())


def _database(configuration: "Configuration | None", folder: Path) -> str | None:
    """The address in the file; a path there is counted from the file's folder."""
    db = None if configuration is None else configuration.server.db
    if db is None or not db.startswith("sqlite:"):
        return db
    return f"sqlite:{folder / Path(db.removeprefix('sqlite:')).expanduser()}"


async def _serve(
    url: str,
    listen: str | None,
    backups: Path | None,
    configuration: "Configuration | None",
    on_ready: Callable[[str], None],
) -> None:
    from riffdb.client.configuration import LimitSettings, ServerSettings
    from riffdb.client.embedded import open_database
    from riffdb.database.doors import LoopDoor
    from riffdb.http.server import serve

    server = ServerSettings() if configuration is None else configuration.server
    limits = LimitSettings() if configuration is None else configuration.limits
    address = server.listen if listen is None else listen
    database = await open_database(url, LoopDoor, create=False)
    database.operations.backups_folder = None if backups is None else os.path.abspath(backups)
    try:
        await serve(
            database,
            address,
            on_ready=on_ready,
            body_bytes_max=limits.body_bytes_max,
            heartbeat_seconds=limits.heartbeat_seconds,
            watches_max=limits.watches_max,
        )
    finally:
        await database.close()
