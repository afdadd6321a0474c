"""`riffdb restore`: a database made of a backup, as it was then or as it had stood before.

It goes to a path where nothing is, and begins a history of its own: cursors and delivery tokens of the old one are
refused. Absent: replacing a database, which is a matter of moving files while no server runs.
"""

import os

import click

from riffdb.cli.inputs import parse_commit
from riffdb.cli.output import note, print_json, print_text
from riffdb.core.errors import RiffError


@click.command("restore", short_help="make a database of a backup")
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--db", metavar="URL", required=True, help="The new database, such as sqlite:restored.db.")
@click.option("--until", metavar="TIME", help="As it stood at this time, such as 2026-01-31T09:30:00Z.")
@click.option("--until-commit", metavar="PARTITION:SEQUENCE", help="As it stood right after this commit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: str, db: str, until: str | None, until_commit: str | None, as_json: bool) -> int:
    """Make the database of the backup in DIR, at a path where nothing is."""
    from riffdb.client.embedded import local_caller
    from riffdb.core.stepping import step
    from riffdb.database.restoring import restore
    from riffdb.database.telling import decode_time

    if until is not None and until_commit is not None:
        raise click.UsageError("give one of --until and --until-commit")
    scheme, colon, place = db.partition(":")
    if scheme != "sqlite" or not colon or not place:
        raise RiffError("RDB-E-USAGE", "--db takes sqlite:PATH, a path where nothing is")
    commit = None if until_commit is None else parse_commit(until_commit)
    moment = decode_time(until, "until")
    made = step(restore(folder, place, local_caller(None, "embedded"), until=moment, commit=commit))
    if as_json:
        print_json(made)
    else:
        print_text(f"restored to {os.path.abspath(place)}, incarnation {made['incarnation']}")
        if made["ended"]:
            note(f"{len(made['ended'])} capabilities stay revoked that were revoked after that moment")
    return 0
