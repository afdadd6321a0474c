"""`riffdb check`: compile an application and show its diagnostics.

With `--json` one document goes to stdout; without it everything is for people and goes to stderr. Exit 3 when an error
is among the diagnostics; warnings alone exit 0.
"""

import json
from pathlib import Path

import click

from riffdb.client.application import compile_application
from riffdb.core.diagnostics import has_errors, render, to_json


@click.command("check", short_help="compile a contract and show what is wrong with it")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, as_json: bool) -> int:
    """Compile the application in DIR; exit 3 if it has errors."""
    application, compilation = compile_application(folder)
    diagnostics = compilation.diagnostics
    is_wrong = has_errors(diagnostics)
    if as_json:
        document = {"ok": not is_wrong, "diagnostics": [to_json(diagnostic) for diagnostic in diagnostics]}
        click.echo(json.dumps(document, ensure_ascii=False))
        return 3 if is_wrong else 0
    for diagnostic in diagnostics:
        click.echo(render(diagnostic), err=True)
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    if is_wrong:
        click.echo(f"{application.name}: {errors} error{'s' if errors > 1 else ''}", err=True)
        return 3
    plan = compilation.plan
    assert plan is not None
    click.echo(
        f"{application.name}: {plan.contract} version {plan.version} is sound: {len(plan.entities)} entities,"
        f" {len(plan.commands)} commands, {len(plan.queries)} queries, {len(plan.schedules)} schedules",
        err=True,
    )
    return 0
