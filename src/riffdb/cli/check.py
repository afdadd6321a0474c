"""`riffdb check`: compile an application and show its diagnostics, with `--fix` after applying the safe fixes.

With `--json` one document goes to stdout; without it everything is for people and goes to stderr. Exit 3 when an error
is among the diagnostics; warnings alone exit 0.
"""

from pathlib import Path

import click

from riffdb.cli.files import replace_file
from riffdb.cli.output import note, print_json
from riffdb.client.application import compile_application
from riffdb.client.repairs import repair_application
from riffdb.core.diagnostics import Diagnostic, has_errors, render, to_json


@click.command("check", short_help="compile a contract and show what is wrong with it")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--fix", "is_fixing", is_flag=True, help="Apply the safe fixes first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, is_fixing: bool, as_json: bool) -> int:
    """Compile the application in DIR; exit 3 if it has errors."""
    fixed: tuple[Diagnostic, ...] = ()
    if is_fixing:
        repaired = repair_application(folder)
        for path, source in repaired.changed.items():
            replace_file(Path(path), source.text, read=repaired.found[path])
        application, compilation, fixed = repaired.application, repaired.compilation, repaired.applied
    else:
        application, compilation = compile_application(folder)
    diagnostics = compilation.diagnostics
    is_wrong = has_errors(diagnostics)
    if as_json:
        document: dict[str, object] = {"ok": not is_wrong, "diagnostics": [to_json(known) for known in diagnostics]}
        print_json(document | ({"fixed": [to_json(known) for known in fixed]} if is_fixing else {}))
        return 3 if is_wrong else 0
    for diagnostic in fixed:
        note(_repaired(diagnostic))
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


def _repaired(diagnostic: Diagnostic) -> str:
    assert diagnostic.fix is not None
    line, column = diagnostic.span.source.position(diagnostic.span.start)
    return f"fixed[{diagnostic.code}]: {diagnostic.span.source.path}:{line}:{column}: {diagnostic.fix.title}"


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
