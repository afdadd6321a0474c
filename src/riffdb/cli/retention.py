"""`riffdb retention`: how long request keys are remembered, and another time for it.

Only operators do this. Absent: when a key is new again, which the database decides at each command.
"""

import click

from riffdb.cli.inputs import parse_seconds
from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.command("retention", short_help="show or set how long things are kept")
@click.option("--keys", metavar="TIME", help="From now on remember request keys so long, such as 30d.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(keys: str | None, target: Target, as_json: bool) -> int:
    """Show or set how long request keys are remembered."""
    keys_seconds = parse_seconds(keys, "--keys")
    with target.open() as client:
        found = client.retention(keys_seconds=keys_seconds)
    if as_json:
        print_json(found)
    else:
        print_text(f"request keys are remembered for {found['keys_seconds']:,} seconds")
    return 0
