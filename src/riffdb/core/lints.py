"""The lints: every warning of the compiler by name, with its code, its level where nothing is said, and what it finds.

A name, once published, keeps its meaning, as its code does. What a lint finds is sound as a contract: it compiles and
runs, and is most likely not meant. Absent: the checks, which stand in `compiler/lints`, and who sets a level.
"""

from dataclasses import dataclass
from typing import Literal, get_args

LintLevel = Literal["allow", "warn", "error"]
LEVELS: tuple[LintLevel, ...] = get_args(LintLevel)


@dataclass(frozen=True, slots=True)
class Lint:
    """A warning that has a name; its one-line title stands in `DIAGNOSTIC_CODES`."""

    name: str
    code: str
    level: LintLevel = "warn"


LINTS: dict[str, Lint] = {
    lint.name: lint
    for lint in (
        Lint("unused-input", "RDB-C901"),
        Lint("unused-parameter", "RDB-C902"),
        Lint("unused-binding", "RDB-C903"),
        Lint("unused-type", "RDB-C904"),
        Lint("unused-event", "RDB-C905"),
        Lint("unused-entity", "RDB-C906"),
        Lint("unused-index", "RDB-C907"),
        Lint("unused-transition", "RDB-C908"),
        Lint("unreachable-state", "RDB-C909"),
        Lint("no-way-out", "RDB-C910"),
        Lint("unclaimed-lease", "RDB-C911"),
        Lint("unreleased-lease", "RDB-C912"),
        Lint("impossible-outcome", "RDB-C913"),
        Lint("needless-clause", "RDB-C915"),
    )
}
