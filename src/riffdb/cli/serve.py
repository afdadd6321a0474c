"""`riffdb serve`: serve a database over HTTP, in one process.

It prints one line when connections are accepted and no token ever. A database whose file another process holds, an
address in use and an armed failpoint without its flag are refused before anything is served.
"""

import asyncio
import json
import os
from collections.abc import Callable

import click

from riffdb.core import failpoints
from riffdb.core.errors import RiffError


@click.command("serve", short_help="serve a database over HTTP")
@click.option("--db", metavar="URL", envvar="RIFFDB_DB", required=True, help="The database, such as sqlite:work.db.")
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:7433", show_default=True, help="Where to listen.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document when ready.")
@click.option("--allow-failpoints", is_flag=True, help=f"Let {failpoints.VARIABLE} act; for tests.")
def command(db: str, listen: str, as_json: bool, allow_failpoints: bool) -> int:
    """Serve until SIGTERM or SIGINT; a second signal stops at once."""
    if os.environ.get(failpoints.VARIABLE) and not allow_failpoints:
        raise RiffError("RDB-E-USAGE", f"{failpoints.VARIABLE} is set; a server takes it only with --allow-failpoints")

    def on_ready(url: str) -> None:
        ready = json.dumps({"listening": url, "pid": os.getpid()}) if as_json else f"RiffDB listens on {url}"
        click.echo(ready)

    asyncio.run(_serve(db, listen, on_ready))
    return 0


async def _serve(db: str, listen: str, on_ready: Callable[[str], None]) -> None:
    from riffdb.client.opening import open_database
    from riffdb.database.doors import LoopDoor
    from riffdb.http.server import serve

    database = await open_database(db, LoopDoor, create=False)
    try:
        await serve(database, listen, on_ready=on_ready)
    finally:
        await database.close()
