"""`riffdb get`: a row as it is, or as it stood at a commit or at a time.

Lease owners, tokens and secrets come redacted from the database; so operators see what the log shows and no more.
"""

import json

import click

from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.command("get", short_help="show a row, now or as it stood")
@click.argument("entity", metavar="ENTITY")
@click.argument("key", metavar="KEY...", nargs=-1, required=True)
@click.option("--at", metavar="SEQUENCE|TIME", help="As it stood right after this commit, or at this time.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(entity: str, key: tuple[str, ...], at: str | None, target: Target, as_json: bool) -> int:
    """Show the row of ENTITY with this KEY (its fields in declared order)."""
    with target.open() as client:
        row = client.get(entity, *key, at=at)
    if as_json:
        print_json(row)
    else:
        print_text(
            f"revision {row['revision']}, written at {row['commit']['time']} by commit {row['commit']['sequence']}"
        )
        for name, value in (row["key"] | row["fields"]).items():
            print_text(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    return 0
