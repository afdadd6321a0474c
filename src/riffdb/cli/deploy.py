"""`riffdb deploy`: put a contract on a database.

A contract with errors is shown and refused (exit 3), a change that the stored rows do not fit is refused whole
(exit 4). With `--db` a missing file is made.
"""

from pathlib import Path

import click

from riffdb.cli.output import note, print_json
from riffdb.cli.targets import Target, operator_options
from riffdb.client.application import compiled_plan
from riffdb.plan.identity import plan_hash


@click.command("deploy", short_help="put a contract on a database")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, target: Target, as_json: bool) -> int:
    """Compile the application in DIR and deploy it; a change that stored rows do not fit is refused (exit 4)."""
    plan = compiled_plan(folder)
    with target.open(create=True) as client:
        outcome = client.deploy(plan)
    if as_json:
        identity = plan_hash(plan).hex()
        print_json({"outcome": outcome, "contract": plan.contract, "version": plan.version, "hash": identity})
    else:
        note(f"{plan.contract} version {plan.version}: {outcome}")
    return 0
