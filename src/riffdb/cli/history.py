"""`riffdb history`: who did what to a row, newest last.

Lease owners, tokens and secrets come redacted from the database. With `--json` each entry is one line, for operators
alone.
"""

import json

import click

from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.command("history", short_help="show who did what to a row")
@click.argument("entity", metavar="ENTITY")
@click.argument("key", metavar="KEY...", nargs=-1, required=True)
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
def command(entity: str, key: tuple[str, ...], target: Target, as_json: bool) -> int:
    """Show the commits that wrote the row of ENTITY with this KEY (its fields in declared order)."""
    with target.open() as client:
        entries = client.history(entity, *key)
    for entry in entries:
        if as_json:
            print_json(entry)
        else:
            changes = ", ".join(
                f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in entry["changes"].items()
            )
            print_text(f"{entry['time']}  #{entry['sequence']}  revision {entry['revision']}  {entry['command']}")
            print_text(f"    {entry['outcome']} by {entry['principal']}: {changes or 'no value changed'}")
    return 0
