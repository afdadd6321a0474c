"""The collector: where every pass leaves its diagnostics, and the two ends of messages that all of them share.

A pass never raises for a mistake in a contract; it reports here, gives up on what the mistake touches and goes on.
Sorting and the bound on their number belong to the end of the compilation, not to the passes.
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

from riffdb.core.diagnostics import Diagnostic, Edit, Fix, Related, Severity
from riffdb.core.lints import LINTS, LintLevel
from riffdb.core.spans import Span
from riffdb.core.suggestions import nearest
from riffdb.syntax.tree import Name

NAMES_LISTED_MAX = 8
LIKE = 0.7
SURELY_LIKE = 0.75
"""How like a name must be to be suggested, and to be put in without a look."""


class Collector:
    """Diagnostics in the order in which they were found. What lints find is kept apart, so that a pass which counts its
    errors counts no warning; it is told only of a contract without errors."""

    def __init__(self, levels: Mapping[str, LintLevel] | None = None) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.lints: list[Diagnostic] = []
        self._levels = levels or {}

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        help: str | None = None,
    ) -> None:
        """Report an error."""
        self.diagnostics.append(Diagnostic(code, message, span, "error", related, fix, help))

    def lint(
        self,
        name: str,
        message: str,
        span: Span,
        *,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        help: str | None = None,
    ) -> None:
        """Report what a named lint found, at the level that it has here."""
        level = self.level(name)
        if level != "allow":
            severity: Severity = "error" if level == "error" else "warning"
            self.lints.append(Diagnostic(LINTS[name].code, message, span, severity, related, fix, help, name))

    def level(self, name: str) -> LintLevel:
        """What is done with what the lint of that name finds."""
        return self._levels.get(name, LINTS[name].level)

    def unknown(
        self, code: str, message: str, name: Name, candidates: Iterable[str], *, help: str | None = None
    ) -> None:
        """Report a name that means nothing here, with the nearest of the names that would have been right."""
        known = list(candidates)
        found = nearest(name.text, known)
        likeness = 0.0 if found is None else _likeness(name.text.lower(), found.lower())
        if found is None or likeness < LIKE:
            listed = ", ".join(f"`{candidate}`" for candidate in known)
            choice = f"known here: {listed}" if 0 < len(known) <= NAMES_LISTED_MAX else None
            self.error(code, message, name.span, help=help or choice)
        else:
            fix = replace(name.span, found, safe=likeness >= SURELY_LIKE)
            self.error(code, f"{message}; did you mean `{found}`?", name.span, fix=fix)


def _likeness(name: str, other: str) -> float:
    is_beginning = name.startswith(other) or other.startswith(name)
    return max(LIKE if is_beginning else 0.0, SequenceMatcher(None, name, other).ratio())


def replace(span: Span, text: str, safe: bool = True) -> Fix:
    """The fix that puts `text` in the place of a name."""
    return Fix(f"write `{text}`", (Edit(span, text),), safe)


def remove(span: Span, title: str) -> Fix:
    """The safe fix that takes the span out."""
    return Fix(title, (Edit(span, ""),), safe=True)
