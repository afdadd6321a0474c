"""Applying the safe fixes of diagnostics to the texts that they are about.

A fix is applied whole or not at all. Of two that touch the same characters only the first is taken: what the other one
says was said about a text that is then no longer there. Absent: files, and compiling again, which shows what is left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from riffdb.core.diagnostics import Diagnostic, Edit
from riffdb.core.spans import Source


@dataclass(frozen=True, slots=True)
class Repair:
    """What one round of fixes did: the diagnostics whose fix was applied, and the new source of each changed path."""

    applied: tuple[Diagnostic, ...]
    sources: Mapping[str, Source]


def repair(diagnostics: Iterable[Diagnostic]) -> Repair:
    """The sources after the safe fixes of the diagnostics, in their order."""
    applied: list[Diagnostic] = []
    edits: dict[str, list[Edit]] = {}
    for diagnostic in diagnostics:
        fix = diagnostic.fix
        if fix is None or not fix.safe or any(_meet(edit, edits) for edit in fix.edits):
            continue
        applied.append(diagnostic)
        for edit in fix.edits:
            edits.setdefault(edit.span.source.path, []).append(edit)
    return Repair(tuple(applied), {path: _edited(of_path) for path, of_path in edits.items()})


def _meet(edit: Edit, edits: Mapping[str, list[Edit]]) -> bool:
    """Whether an edit has characters, or the place of an insertion, in common with one that is taken already."""
    start, end = edit.span.start, edit.span.end
    return any(other.span.start <= end and start <= other.span.end for other in edits.get(edit.span.source.path, ()))


def _edited(edits: list[Edit]) -> Source:
    source = edits[0].span.source
    parts, end = [], 0
    for edit in sorted(edits, key=lambda edit: edit.span.start):
        parts += [source.text[end : edit.span.start], edit.text]
        end = edit.span.end
    return Source(source.path, "".join(parts) + source.text[end:])
