"""`make planted`: put one bug after the other into a copy of the source, and see which test finds it.

A bug is a text of one file and what stands in its place. The copy runs the twin first, then the tests beside the code;
the first that fails of each is what caught it, and stands in `docs/internals/planted-bugs.md`, which this writes. A bug
that nothing catches ends it with exit 1.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "internals" / "planted-bugs.md"
COPIED = ("src", "tests", "examples", "docs", "tools", "pyproject.toml", "CHANGELOG.md", "README.md")

ENGINE = ("tests/unit/test_engine_leases.py", "tests/unit/test_engine_commands.py", "tests/unit/test_engine_plans.py")
EXPRESSIONS = ("tests/unit/test_engine_expressions.py", "tests/unit/test_engine_interpreter.py")
DATABASE = (
    "tests/conformance/test_database.py",
    "tests/conformance/test_database_batches.py",
    "tests/conformance/test_database_lives.py",
    "tests/conformance/test_database_rules.py",
    "tests/conformance/test_database_rules_order.py",
)
STORES = ("tests/conformance/test_stores.py", "tests/conformance/test_stores_agree.py")
COMPILER = ("tests/cases",)


class Planted(NamedTuple):
    """A bug: what it is, where, which text it changes into which, and the tests beside the code that it breaks."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


BUGS = (
    Planted(
        "a token above the row's fence is taken for the holder's",
        "engine/leases.py",
        "or {self.fence} != {token}",
        "or {self.fence} > {token}",
        ENGINE,
    ),
    Planted(
        "a lease still counts at the microsecond at which it ends",
        "engine/leases.py",
        'return f"{self.expires_at} <= now"',
        'return f"{self.expires_at} < now"',
        ENGINE,
    ),
    Planted(
        "attempts are not counted",
        "engine/leases.py",
        "attempts = [] if self._lease.attempts is None else [self._slot.now(self._lease.attempts)]",
        "attempts: list[str] = []",
        ENGINE,
    ),
    Planted(
        "a claim takes a lease that is held, and refuses one that is over",
        "engine/leases.py",
        'return f"{self.owner} is not None and {self.expires_at} > now"',
        'return f"{self.owner} is not None and {self.expires_at} <= now"',
        ENGINE,
    ),
    Planted(
        "a transition takes a stale revision",
        "engine/leases.py",
        "(Check(stale, step.stale), Check(illegal, step.illegal))",
        '(Check(f"False and {stale}", step.stale), Check(illegal, step.illegal))',
        ENGINE,
    ),
    Planted(
        "a release leaves the owner",
        "engine/leases.py",
        'self.cleared = [(self.owner, "None"), (self.expires_at, "None")]',
        'self.cleared = [(self.expires_at, "None")]',
        ENGINE,
    ),
    Planted(
        "the longest duration is refused",
        "engine/leases.py",
        "<= {duration} <= {self._lease.seconds_max}",
        "<= {duration} < {self._lease.seconds_max}",
        ENGINE,
    ),
    Planted(
        "a claim checks who holds the lease before the duration",
        "engine/leases.py",
        "                    (step.invalid, parts.is_outside_bounds),\n"
        "                    (step.unavailable, parts.is_held),\n",
        "                    (step.unavailable, parts.is_held),\n"
        "                    (step.invalid, parts.is_outside_bounds),\n",
        ENGINE,
    ),
    Planted(
        "a revision advances by two",
        "engine/commit.py",
        'self._source.line(f"{slot.revision_committed} = {found} + 1")',
        'self._source.line(f"{slot.revision_committed} = {found} + 2")',
        ENGINE,
    ),
    Planted(
        "a revision at its end wraps",
        "engine/commit.py",
        'self._source.block(f"if {found} == U64_MAX:")',
        'self._source.block(f"if {found} > U64_MAX:")',
        ENGINE,
    ),
    Planted(
        "the event of an arm that was not taken is emitted",
        "engine/commit.py",
        "events = [(self._condition({emit.arm}), self._event(emit)) for emit in emits if not emit.in_loop]",
        "events = [(None, self._event(emit)) for emit in emits if not emit.in_loop]",
        ENGINE,
    ),
    Planted(
        "a row that is created again begins with fence 0",
        "engine/steps.py",
        "else {slot.tombstone}[{TOMBSTONE_FENCE}] or 0",
        "else 0 and {slot.tombstone}[{TOMBSTONE_FENCE}]",
        DATABASE,
    ),
    Planted(
        "a division rounds down where it should round toward zero",
        "engine/arithmetic.py",
        "return quotient if (dividend < 0) == (divisor < 0) else -quotient",
        "return dividend // divisor if quotient or dividend else 0",
        EXPRESSIONS,
    ),
    Planted(
        "a command may leave the lease out in an arm",
        "compiler/leases.py",
        "if arm.none is None and not is_nested and not _operations(arm, bound):",
        "if arm.none is None and is_nested and not _operations(arm, bound):",
        COMPILER,
    ),
    Planted(
        "a key with another input gets the stored answer",
        "database/secrets.py",
        "is_alike = record.input_hash == request.input_hash",
        "is_alike = len(record.input_hash) == len(request.input_hash)",
        DATABASE,
    ),
    Planted(
        "the time of a partition stands still while the clock does",
        "database/pipeline.py",
        "max(state.now, head.time + 1)",
        "max(state.now, head.time)",
        DATABASE,
    ),
    Planted(
        "a unique is not checked",
        "database/guards.py",
        "return bool(await sight.holders(",
        "return bool(0 and await sight.holders(",
        DATABASE,
    ),
    Planted(
        "a rule is judged over the rows as they were, without the command's own changes",
        "database/guards.py",
        "self._overlay, self._changes = transaction, overlay, changes",
        "self._overlay, self._changes = transaction, overlay, dict[str, Any]()",
        DATABASE,
    ),
    Planted(
        "a large u64 sorts before a small one in SQLite",
        "storage/sqlite/columns.py",
        '"({0} if {0} < beyond else wide_blob({0}))"',
        '"({0} if {0} < beyond else {0} - 2 * beyond)"',
        STORES,
    ),
)


def main() -> None:
    """Plant every bug, print what caught it, and write the page."""
    lines = []
    for bug in BUGS:
        caught = [catches(bug, ("tests/model/test_twin.py",)), catches(bug, bug.tests)]
        print(f"{bug.name}: {' and '.join(found for found in caught if found) or 'NOT CAUGHT'}", flush=True)
        twin, beside = (f"`{found}`" if found else "not by itself" for found in caught)
        lines.append(f"| {bug.name} | `{bug.file}` | {twin} | {beside} |")
        if not any(caught):
            sys.exit(1)
    PAGE.write_text(
        "# Planted bugs\n\n"
        "Bugs that were put into a copy of the source, one at a time, and the first test that failed: of the\n"
        "stories of the [slow twin](../../tests/model/running.py), and of the tests beside the code. `make planted`\n"
        "plants them again and writes this page; the bugs stand in `tests/model/planted.py`.\n\n"
        "| bug | in | the twin | beside the code |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


def catches(bug: Planted, tests: tuple[str, ...]) -> str:
    """The first test that fails with the bug in its place, empty if none does."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        (copy / "src" / "riffdb" / bug.file).write_text(planted(bug))
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"^(?:FAILED|ERROR) tests/([^\s\[]+)", run.stdout, re.MULTILINE)
    if run.returncode and found is None:
        sys.exit(f"the tests did not run with `{bug.name}`:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return found[1] if found else ""


def planted(bug: Planted) -> str:
    """The file with the bug in it."""
    text = (ROOT / "src" / "riffdb" / bug.file).read_text()
    if text.count(bug.text) != 1:
        sys.exit(f"`{bug.name}` has no place: its text stands {text.count(bug.text)} times in {bug.file}")
    return text.replace(bug.text, bug.instead)


if __name__ == "__main__":
    main()
