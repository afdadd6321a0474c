"""`riffdb backup`: a whole copy of what is committed, with a manifest, while others go on writing.

With `--db` it goes into a new folder; with `--server` the server writes it under a name where it keeps its backups, so
nobody reaches other folders of its machine.
"""

import click

from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.command("backup", short_help="write a backup, while others go on")
@click.argument("name", metavar="DIR|NAME")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str, target: Target, as_json: bool) -> int:
    """Write a backup to the new folder DIR, or under NAME where the server keeps backups."""
    with target.open() as client:
        made = client.backup(name)
    if as_json:
        print_json(made)
    else:
        manifest = made["manifest"]
        print_text(made["path"])
        note(f"{manifest['commits']:,} commits in {manifest['bytes']:,} bytes, sha256 {manifest['sha256']}")
    return 0
