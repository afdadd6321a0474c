"""`riffdb check`: compile an application and show its diagnostics.

With `--json` one document goes to stdout; without it everything is for people and goes to stderr. Exit 3 when an error
is among the diagnostics; warnings alone exit 0.
"""

from pathlib import Path

import click

from riffdb.cli.output import note, print_json
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
        print_json({"ok": not is_wrong, "diagnostics": [to_json(diagnostic) for diagnostic in diagnostics]})
        return 3 if is_wrong else 0
    for diagnostic in diagnostics:
        note(render(diagnostic))
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    warnings = len(diagnostics) - errors
    if is_wrong:
        note(f"{application.name}: {_counted(errors, 'error')}")
        return 3
    plan = compilation.plan
    assert plan is not None
    parts = (
        _counted(len(plan.entities), "entity", "entities"),
        _counted(len(plan.commands), "command"),
        _counted(len(plan.queries), "query", "queries"),
        _counted(len(plan.schedules), "schedule"),
    )
    doubts = f", with {_counted(warnings, 'warning')}" if warnings else ""
    note(f"{application.name}: {plan.contract} version {plan.version} is sound{doubts}: {', '.join(parts)}")
    return 0


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
