"""`riffdb deploy`: put a contract on a database, and tell every change with the line that makes it.

A contract with errors is shown and refused (exit 3). A change that needs a migration or is incompatible refuses the
whole (exit 4). With `--db` a missing file is made. Absent: which changes there are, and what refuses them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from riffdb.cli.output import note, print_json, report
from riffdb.cli.targets import Target, operator_options
from riffdb.client.application import compile_application, sound_plan
from riffdb.compiler import Compilation
from riffdb.core.errors import RiffError
from riffdb.plan.changes import COMPATIBLE, Change, change_json, change_of
from riffdb.plan.identity import plan_hash


@click.command("deploy", short_help="put a contract on a database")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, target: Target, as_json: bool) -> int:
    """Compile the application in DIR and deploy it; a change that stored rows do not fit is refused (exit 4)."""
    _, compilation = compile_application(folder)
    plan = sound_plan(compilation)
    try:
        with target.open(create=True) as client:
            deployment = client.deploy(plan)
    except RiffError as error:
        return _refused(error, compilation, as_json=as_json)
    if as_json:
        facts = {"contract": plan.contract, "version": plan.version, "hash": plan_hash(plan).hex()}
        changes = [_placed(change, compilation) for change in deployment.changes]
        print_json({"outcome": deployment.outcome, **facts, "changes": changes})
    else:
        note(f"{plan.contract} version {plan.version}: {deployment.outcome}")
        _tell(deployment.changes, compilation)
    return 0


def _refused(error: RiffError, compilation: Compilation, *, as_json: bool) -> int:
    """Show an error; one about changes with the place of each."""
    changes = _changes_of(error)
    if not changes:
        raise error
    if as_json:
        error.detail["changes"] = [_placed(change, compilation) for change in changes]
        return report(error, as_json=True)
    refused = sum(change.verdict != COMPATIBLE for change in changes)
    counted = f"{refused} of {len(changes)} changes cannot" if len(changes) > 1 else "the change cannot"
    code = report(RiffError(error.code, f"{counted} be deployed, so nothing was changed"), as_json=False)
    _tell(changes, compilation)
    return code


def _changes_of(error: RiffError) -> list[Change]:
    told = error.detail.get("changes")
    try:
        return [change_of(change) for change in told] if isinstance(told, list) else []
    except msgspec.ValidationError:  # of a server of another version
        return []


def _tell(changes: Sequence[Change], compilation: Compilation) -> None:
    for change in changes:
        facts = _placed(change, compilation)
        place = f"{facts['file']}:{facts['line']}: " if "file" in facts else ""
        note(f"  {place}{change.verdict}: {change.what}")
        if change.verdict != COMPATIBLE:
            note(f"    {change.reason}")


def _placed(change: Change, compilation: Compilation) -> dict[str, Any]:
    """The facts of a change with the place of what it is about, or of what was around that which is gone."""
    span = compilation.place(change.family, change.declaration, change.member)
    if span is None:
        return dict(change_json(change))
    line, column = span.source.position(span.start)
    return {**change_json(change), "file": span.source.path, "line": line, "column": column}
