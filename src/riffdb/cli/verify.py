"""`riffdb verify`: whether everything that the database keeps agrees, from its pages to the rows of entities.

The log is done over again and compared with the rows. The first difference is named and exits 10. It may run beside a
server, which goes on serving.
"""

import click

from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options
from riffdb.core.codes import CODES


@click.command("verify", short_help="compare everything that is kept with the log")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(target: Target, as_json: bool) -> int:
    """Compare everything that is kept with the log of commits."""
    with target.open() as client:
        found = client.verify()
    if as_json:
        print_json(found)
    elif found["ok"]:
        print_text(f"{found['commits']:,} commits and {found['rows']:,} rows agree")
    if not found["ok"]:
        note(f"verification failed: {found['first_difference']}")
    elif found["trimmed"]:
        note(f"{found['trimmed']:,} older commits were trimmed; it began with the rows that they had left")
    if found["ok"] and found["erased"]:
        note(f"{found['erased']:,} secret values are erased and could not be compared")
    return 0 if found["ok"] else CODES["RDB-E-VERIFY"].exit
