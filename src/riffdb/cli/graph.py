"""`riffdb graph`: the workflows of an application as state diagrams, on stdout.

The text is whole before any of it is printed, and nothing else goes to stdout. Absent: what a diagram shows and how it
is written, which `codegen.graph` knows.
"""

from pathlib import Path

import click

from riffdb.cli.output import print_text
from riffdb.client.application import compiled_plan
from riffdb.codegen.graph import FORMATS, diagrams_of
from riffdb.core.errors import RiffError
from riffdb.core.suggestions import did_you_mean


@click.command("graph", short_help="draw the workflows of a contract")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="mermaid", help="What to write.")
@click.option("--workflow", metavar="NAME", help="Draw this workflow alone.")
def command(folder: Path, format_name: str, workflow: str | None) -> int:
    """Print the workflows of the application in DIR as state diagrams, with the commands on the arrows."""
    plan = compiled_plan(folder)
    diagrams = diagrams_of(plan)
    if not diagrams:
        raise RiffError("RDB-E-NOT-FOUND", f"`{plan.contract}` has no workflow, so there is nothing to draw")
    if workflow is not None:
        names = [diagram.workflow for diagram in diagrams]
        if workflow not in names:
            raise RiffError("RDB-E-NOT-FOUND", f"there is no workflow `{workflow}`{did_you_mean(workflow, names)}")
        diagrams = tuple(diagram for diagram in diagrams if diagram.workflow == workflow)
    print_text(FORMATS[format_name](diagrams))
    return 0
