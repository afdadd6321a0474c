"""A position in the tokens of one source: where things stand, and what is reported there.

One mistake gives one diagnostic: while `is_recovering` is set, what is only its consequence stays silent. The places
that a report points at are chosen here. Absent: reading on, which is the cursor's part.
"""

from collections.abc import Mapping
from functools import cached_property

from riffdb.core.diagnostics import Diagnostic, Edit, Fix, Related
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.spans import Span
from riffdb.syntax.tokens import Tokens
from riffdb.syntax.words import BEGINNINGS, DECLARATIONS, SHAPES


class BrokenItemError(Exception):
    """What is being parsed cannot be; its diagnostic stands already. Never leaves the parser."""


class FullReportError(Exception):
    """So much is wrong that no further diagnostic would be shown. Never leaves the parser."""


class Position:
    """A place in the tokens of one source, with the diagnostics so far."""

    def __init__(self, tokens: Tokens) -> None:
        self.source = tokens.source
        self.texts = tokens.texts
        self.kinds = tokens.kinds
        self.starts = tokens.starts
        self.docs = tokens.docs
        self.diagnostics: list[Diagnostic] = []
        self.index = 0
        self.is_recovering = False
        self.has_selections = False
        self.nesting = 0
        self.operators = 0
        self.first = 0
        self.keyword = ""
        self.form = ""
        self.levels: list[Mapping[str, object]] = []

    # --- places ---

    def span(self, index: int) -> Span:
        """The span of one token."""
        start = self.starts[index]
        return Span(self.source, start, start + len(self.texts[index]))

    def span_from(self, start: int) -> Span:
        """The span from one token to the last one that was read."""
        last = max(self.index - 1, start)
        return Span(self.source, self.starts[start], self.starts[last] + len(self.texts[last]))

    def gap(self, index: int) -> Span:
        """The empty span after the token before `index`, where a missing token would stand."""
        place = self.starts[index - 1] + len(self.texts[index - 1]) if index else 0
        return Span(self.source, place, place)

    def tail(self, index: int) -> Span:
        """The last character before a token's gap, to point at when the token itself stands on a later line."""
        place = self.gap(index).start
        return Span(self.source, max(place - 1, 0), place)

    def doc(self, index: int) -> str:
        """The doc comment before a token."""
        lines = self.docs.get(index)
        return "\n".join(lines) if lines else ""

    def begins_line(self, index: int) -> bool:
        """Whether a token is the first of its line."""
        return index == 0 or self.source.text.find("\n", self.starts[index - 1], self.starts[index]) >= 0

    def column(self, index: int) -> int:
        """How far a token is indented, in characters, counted to a thousand."""
        start = self.starts[index]
        lowest = max(start - 1_000, 0)
        return start - max(self.source.text.rfind("\n", lowest, start) + 1, lowest)

    def has_shape(self, index: int, shapes: tuple[tuple[str, ...], ...]) -> bool:
        """Whether the tokens after `index` have one of the shapes."""
        for shape in shapes:
            for place, wanted in enumerate(shape, index + 1):
                if place >= len(self.texts):
                    break
                if wanted == "NAME":
                    fits = self.kinds[place] == "name"
                elif wanted == "INT":
                    fits = self.kinds[place] == "int"
                else:
                    fits = self.texts[place] == wanted
                if not fits:
                    break
            else:
                return True
        return False

    def is_declaration(self, index: int) -> bool:
        """Whether a declaration begins at a token that begins a line."""
        shapes = DECLARATIONS.get(self.texts[index])
        return shapes is not None and self.begins_line(index) and self.has_shape(index, shapes)

    def is_beginning(self, index: int) -> bool:
        """Whether an item of the blocks that we are in begins at a token that begins a line."""
        text = self.texts[index]
        if text not in BEGINNINGS or not self.begins_line(index):
            return False
        if text in DECLARATIONS and self.has_shape(index, DECLARATIONS[text]):
            return True
        return text in SHAPES and any(text in level for level in self.levels) and self.has_shape(index, SHAPES[text])

    @cached_property
    def is_balanced(self) -> bool:
        """Whether the file opens and closes as many braces; only asked when something is wrong."""
        return self.texts.count("{") == self.texts.count("}")

    # --- reports ---

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        remedy: str | None = None,
    ) -> None:
        """Add a diagnostic."""
        if len(self.diagnostics) >= DIAGNOSTICS_MAX:
            raise FullReportError
        self.diagnostics.append(Diagnostic(code, message, span, related=related, fix=fix, help=remedy))

    def found(self, index: int) -> str:
        """How a message names a token; never the text of a string."""
        kind, text = self.kinds[index], self.texts[index]
        if kind == "end":
            return "the end of the file"
        if kind == "string":
            return "a string"
        if kind == "bad":
            return "a wrong token"
        if len(text) > 60:
            return "a long number" if kind in ("int", "decimal") else "a long name"
        return f"`{text}`"

    def unexpected(self, expected: str, fix: Fix | None = None) -> BrokenItemError:
        """Report that something else was expected here, unless a mistake before it is the cause; to be raised."""
        index = self.index
        if not self.is_recovering and self.kinds[index] != "bad":
            remedy = f"write `{self.form}`" if self.form else None
            span, found = self.span(index), f", found {self.found(index)}"
            if index > self.first and self.kinds[index] in ("name", "end", "}") and self.begins_line(index):
                span, found = self.tail(index), f" after {self.found(index - 1)}"
            self.report("RDB-C001", f"expected {expected}{found}", span, fix=fix, remedy=remedy)
        self.is_recovering = True
        return BrokenItemError()

    def missing(self, text: str) -> None:
        """Report that `text` is missing here and go on as if it stood here; breaks off where that is hopeless."""
        if self.is_recovering:
            raise BrokenItemError
        lead = " " if text[0].isalpha() or text in "{=" else ""
        fix = Fix(f"add `{text}`", (Edit(self.gap(self.index), lead + text),))
        broken = self.unexpected(f"`{text}`", fix if self.kinds[self.index] in ("name", "param", "int") else None)
        if self.kinds[self.index] in ("bad", "end") or self.is_beginning(self.index):
            raise broken

    def has_errors_since(self, start: int) -> bool:
        """Whether a mistake at or after a token is known."""
        place = self.starts[start]
        return any(diagnostic.span.start >= place for diagnostic in self.diagnostics)
