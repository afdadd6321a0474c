"""`riffdb log`: the newest commits, of one partition or of all, oldest first.

Filters are exact. Lease operands and secrets come redacted from the database. Absent: following what is committed, for
which there are streams.
"""

from typing import Any

import click

from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.command("log", short_help="show the newest commits")
@click.option("--partition", metavar="P", help="Of this partition; `system` has what operators did.")
@click.option("--command", metavar="NAME", help="Of this command.")
@click.option("--outcome", metavar="NAME", help="With this outcome.")
@click.option("--principal", metavar="WHO", help="By this principal.")
@click.option("--key", metavar="KEY", help="With this request key.")
@click.option("--since", metavar="TIME", help="Not before this time, such as 2026-01-31T09:30:00Z.")
@click.option("--until", metavar="TIME", help="Not after this time.")
@click.option("--before", metavar="SEQUENCE", type=int, help="Below this sequence of the partition.")
@click.option("--limit", metavar="N", type=int, help="At most so many, 100 if it is not said.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
def command(target: Target, as_json: bool, **filters: Any) -> int:
    """Show the newest commits, newest last."""
    with target.open() as client:
        entries = client.log(**filters)
    for entry in entries:
        if as_json:
            print_json(entry)
        else:
            place = f"{entry['partition']}:{entry['sequence']}"
            print_text(f"{entry['time']}  {place}  {entry['command']}  {entry['outcome']}  by {entry['principal']}")
    return 0
