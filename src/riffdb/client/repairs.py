"""An application with its safe fixes applied, round after round, until none is left.

A fix may bring another mistake to light, or stand where another one did, so each round compiles anew; after a bounded
number of rounds what is left is shown as it is. Only contract sources are changed, and only in memory: writing them is
the edge's work.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from riffdb.client.application import Application, compile_loaded, load_application
from riffdb.compiler import Compilation
from riffdb.core.diagnostics import Diagnostic
from riffdb.core.repair import repair
from riffdb.core.spans import Source

ROUNDS_MAX = 10


@dataclass(frozen=True, slots=True)
class RepairedApplication:
    """What was applied, the files that differ from what lies in the folder, what was found in all files, and what is
    left to say."""

    application: Application
    compilation: Compilation
    applied: tuple[Diagnostic, ...]
    changed: Mapping[str, Source]
    found: Mapping[str, str]


def repair_application(folder: Path) -> RepairedApplication:
    """The application in a folder after its safe fixes; `RDB-E-USAGE` if it cannot be read."""
    application = load_application(folder)
    found = {source.path: source.text for source in application.sources}
    applied: list[Diagnostic] = []
    changed: dict[str, Source] = {}
    for _ in range(ROUNDS_MAX):
        done = repair(compile_loaded(application)[1].diagnostics)
        if not done.applied:
            break
        applied += done.applied
        changed |= done.sources
        sources = tuple(done.sources.get(source.path, source) for source in application.sources)
        application = replace(application, sources=sources)
    return RepairedApplication(*compile_loaded(application), tuple(applied), changed, found)
