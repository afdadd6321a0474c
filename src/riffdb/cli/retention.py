"""`riffdb retention`: what is kept for how long. Without `--apply` it counts what of the log could go, and no more.

Only operators do this. Absent: when a request key is new again, which the database decides at each command.
"""

import click

from riffdb.cli.inputs import parse_seconds
from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@click.command("retention", short_help="trim the log, and say how long keys are remembered")
@click.option("--older-than", metavar="TIME", help="Which commits may go, such as 90d; not below that of keys.")
@click.option("--keys", metavar="TIME", help="From now on remember request keys so long, such as 30d.")
@click.option("--apply", is_flag=True, help="Trim the log, instead of counting what could go.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(older_than: str | None, keys: str | None, apply: bool, target: Target, as_json: bool) -> int:
    """Count the oldest commits that nobody can ask for any more, or trim them, while others go on."""
    older_than_seconds, keys_seconds = parse_seconds(older_than, "--older-than"), parse_seconds(keys, "--keys")
    with target.open() as client:
        found = client.retention(older_than_seconds=older_than_seconds, keys_seconds=keys_seconds, apply=apply)
    if as_json:
        print_json(found)
        return 0
    print_text(f"request keys are remembered for {_length(found['keys_seconds'])}")
    commits = f"{found['commits']:,} commits of {found['partitions']:,} partitions"
    if found["applied"]:
        print_text(f"{commits} were trimmed; {found['rows']:,} rows stand for them")
    else:
        print_text(f"{commits} are older than {_length(found['older_than_seconds'])} and could be trimmed")
    if found["held"]:
        note(f"{found['held']:,} more are kept for consumers that have not settled their events")
    if found["commits"] and not found["applied"]:
        note("nothing was changed; --apply trims them")
    return 0


def _length(seconds: int) -> str:
    """A length of time in the largest unit that tells it whole."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    count = seconds // size
    return f"{count:,} {unit}{'s' * (count != 1)}"
