"""What the compiler has to say, as values: code, severity, message, span, related spans, a fix.

The same value is rendered for a terminal (`render`), printed as data (`to_json`) and, later, shown by an editor.
A message is lower case, without a full stop, with back-ticks round what the user wrote, and never holds user data.
Absent: raising. A diagnostic is collected; nothing here stops a compilation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from riffdb.core.spans import Span

EXCERPT_WIDTH = 160
EXCERPT_BEFORE = 40
"""How many characters of a long line are shown, and how many of them stand before the mistake."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the span's characters by `text`; an empty span inserts."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A suggested change; `safe` says that it can be applied without a look."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains the diagnostic, such as the first declaration of a name."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a contract, at one place, with its remedy where one is known."""

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    help: str | None = None
    lint: str = ""
    """The name of the lint that found it; empty for what is wrong under every setting."""


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether an error, not only a warning, is among the diagnostics."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def _place(span: Span) -> dict[str, object]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {"file": span.source.path, "line": line, "column": column, "end_line": end_line, "end_column": end_column}


def to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The diagnostic as plain data, in the shape of `check --json`."""
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        **({"lint": diagnostic.lint} if diagnostic.lint else {}),
        "message": diagnostic.message,
        **_place(diagnostic.span),
        "related": [{"message": related.message, **_place(related.span)} for related in diagnostic.related],
        "fix": None
        if fix is None
        else {
            "title": fix.title,
            "safe": fix.safe,
            "edits": [{**_place(edit.span), "text": edit.text} for edit in fix.edits],
        },
    }


def _excerpt(span: Span, mark: str) -> list[str]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    whole = span.source.line(line)
    width = max((end_column if end_line == line else len(whole) + 1) - column, 1)
    # A source may be one long line, and may hold what turns a terminal's text round.
    start = max(0, column - 1 - EXCERPT_BEFORE) if len(whole) > EXCERPT_WIDTH else 0
    text = "".join(_shown(character) for character in whole[start : start + EXCERPT_WIDTH])
    before, behind = "…" if start else "", "…" if start + EXCERPT_WIDTH < len(whole) else ""
    lead = "".join("\t" if character == "\t" else " " for character in before + text[: column - 1 - start])
    width = min(width, max(len(text) - (column - 1 - start), 1))
    number = str(line)
    gutter = " " * len(number)
    return [f"{gutter} |", f"{number} | {before}{text}{behind}", f"{gutter} | {lead}{mark * width}"]


def _shown(character: str) -> str:
    return character if character.isprintable() or character == "\t" else "\ufffd"


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as a person reads it: headline, place, excerpt, causes elsewhere, help."""
    line, column = diagnostic.span.source.position(diagnostic.span.start)
    lint = f" (lint: {diagnostic.lint})" if diagnostic.lint else ""
    lines = [
        f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}{lint}",
        f"  --> {diagnostic.span.source.path}:{line}:{column}",
        *_excerpt(diagnostic.span, "^"),
    ]
    for related in diagnostic.related:
        line, column = related.span.source.position(related.span.start)
        lines.append(f"  ::: {related.span.source.path}:{line}:{column}: {related.message}")
        lines.extend(_excerpt(related.span, "-"))
    if diagnostic.help is not None:
        lines.append(f"  = help: {diagnostic.help}")
    elif diagnostic.fix is not None:
        lines.append(f"  = help: {diagnostic.fix.title}")
    return "\n".join(lines) + "\n"
