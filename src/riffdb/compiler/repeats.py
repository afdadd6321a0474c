"""Repeats: a name that is wrong in the same way all over one declaration is one mistake, so it is reported once.

The first of the diagnostics stays, and its fix mends every place. Absent: judging across declarations, where the same
unknown name may well be meant differently.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from riffdb.core.diagnostics import Diagnostic
from riffdb.syntax.tree import ContractDecl, Tree

NAME_CODES = {
    **dict.fromkeys(("RDB-C104", "RDB-C201", "RDB-C206", "RDB-C207", "RDB-C211", "RDB-C306", "RDB-C518"), ""),
    "RDB-C205": "name",
    **dict.fromkeys(("RDB-C404", "RDB-C405", "RDB-C406"), "variant"),
}
"""Diagnostics that say of a name that it means nothing, or nothing that can be used, at its place; those that bear the
same word here are the same mistake in whatever words they say it."""


def without_repeats(diagnostics: Iterable[Diagnostic], trees: Sequence[Tree]) -> list[Diagnostic]:
    """The diagnostics in their order, of those that repeat each other within one declaration the first alone."""
    starts = {tree.span.source.path: _starts(tree) for tree in trees}
    found: list[Diagnostic] = []
    seen: dict[tuple[str, str, str, int], int] = {}
    for diagnostic in diagnostics:
        if diagnostic.code not in NAME_CODES:
            found.append(diagnostic)
            continue
        span = diagnostic.span
        region = bisect_right(starts.get(span.source.path, []), span.start)
        kind = NAME_CODES[diagnostic.code] or f"{diagnostic.code} {diagnostic.message}"
        place = seen.setdefault((kind, span.text, span.source.path, region), len(found))
        if place == len(found):
            found.append(diagnostic)
        else:
            found[place] = _also_mending(found[place], diagnostic)
    return found


def _starts(tree: Tree) -> list[int]:
    starts = []
    for declaration in tree.declarations:
        starts.append(declaration.span.start)
        if isinstance(declaration, ContractDecl):
            starts.extend(member.span.start for member in declaration.members)
    return sorted(starts)


def _also_mending(first: Diagnostic, repeat: Diagnostic) -> Diagnostic:
    if first.fix is None or repeat.fix is None or first.fix.title != repeat.fix.title:
        return first
    return replace(first, fix=replace(first.fix, edits=(*first.fix.edits, *repeat.fix.edits)))
