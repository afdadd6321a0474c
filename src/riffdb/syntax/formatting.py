"""The canonical layout of a source: the same tokens and comments, with the spaces and line ends that are usual here.

No token is added, taken away or moved, so the layout means what the source means. A declaration or statement has a line
of its own; within it the author's line breaks stay, and a line of more than 120 characters is broken where it may be.
One empty line at most stands where the author put some, and always around what is more than a line long.
Absent: a source with a mistake in its syntax, which has no layout.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from riffdb.core.diagnostics import Diagnostic, has_errors
from riffdb.core.spans import Source
from riffdb.syntax.lines import Lexeme, Lines, lines_of
from riffdb.syntax.parser import parse
from riffdb.syntax.tokens import lexemes

WIDTH = 120
INDENT = 2
_OPENING, _CLOSING = frozenset("({"), frozenset(")}")


@dataclass(frozen=True, slots=True)
class Formatted:
    """The text of a source in canonical layout; None with the diagnostics if its syntax has errors."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def format_source(source: Source) -> Formatted:
    """The canonical layout of a source."""
    tree, diagnostics = parse(source)
    if has_errors(diagnostics):
        return Formatted(None, tuple(diagnostics))
    found = lexemes(source)
    tokens = [lexeme for lexeme in found if lexeme[0] not in ("comment", "doc")]
    lines = lines_of(tree, tokens)
    angles = frozenset(offset for start, end in lines.types for offset in (start, end - 1))
    split = _split(found, lines)
    return Formatted(_Layout(source.text, split, _following(split), lines, angles=angles).text())


def _split(found: list[Lexeme], lines: Lines) -> list[Lexeme]:
    """The lexemes, with `>=` behind the arguments of a type as the two tokens that it is there."""
    ends = {end - 1 for _, end in lines.types}
    split: list[Lexeme] = []
    for kind, text, start in found:
        if text == ">=" and start in ends:
            split += [(">", ">", start), ("=", "=", start + 1)]
        else:
            split.append((kind, text, start))
    return split


def _following(found: list[Lexeme]) -> list[Lexeme]:
    """For each lexeme the next one, it or one behind it, that is no comment; found from behind, in one pass."""
    following = found[-1]
    nearest: list[Lexeme] = []
    for lexeme in reversed(found):
        if lexeme[0] not in ("comment", "doc"):
            following = lexeme
        nearest.append(following)
    nearest.reverse()
    return nearest


@dataclass(slots=True)
class _Layout:
    source: str
    lexemes: list[Lexeme]
    following: list[Lexeme]
    """For each lexeme the next one that is no comment."""
    lines: Lines
    out: list[str] = field(default_factory=list)
    column: int = 0
    indent: int = 0
    """The indentation of the line that is being written."""
    statement: int = 0
    """The indentation of the line that began the statement."""
    angles: frozenset[int] = frozenset()
    """The `<` and `>` of types."""
    is_behind_comment: bool = False
    """Whether the line before is a comment."""
    broken: set[int] = field(default_factory=set)
    """Items and closing braces of payloads that do not fit their line."""
    opened: list[int] = field(default_factory=list)
    """For each open bracket within a statement the indentation of its line."""

    def text(self) -> str:
        """The whole layout."""
        previous: Lexeme | None = None
        for index, lexeme in enumerate(self.lexemes):
            kind = lexeme[0]
            if kind == "end":
                break
            gap = self._gap(previous, lexeme)
            if kind in ("comment", "doc"):
                self._comment(index, lexeme, gap, previous)
            else:
                self._token(index, lexeme, gap, previous)
            previous = lexeme
        return "".join(self.out).strip("\n") + "\n" if self.out else ""

    def _gap(self, previous: Lexeme | None, lexeme: Lexeme) -> int:
        """How many line ends stand between two lexemes."""
        if previous is None:
            return 0
        return self.source.count("\n", previous[2] + len(previous[1]), lexeme[2])

    # --- comments ---

    def _comment(self, index: int, lexeme: Lexeme, gap: int, previous: Lexeme | None) -> None:
        text = lexeme[1].rstrip()
        if previous is not None and gap == 0 and previous[0] not in ("comment", "doc"):
            self._write(f"  {text}")
            return
        following = self.following[index]
        is_first = not self.is_behind_comment or gap > 1
        self.is_behind_comment = True
        self._new_line(self._indent_of_comment(following), self._is_apart(previous, following, gap, is_first))
        self._write(text)

    def _indent_of_comment(self, following: Lexeme) -> int:
        start = following[2]
        if start in self.lines.closing:
            return INDENT * (self.lines.closing[start] + 1)
        if start in self.lines.starts:
            return INDENT * self.lines.starts[start]
        return 0 if following[0] == "end" else self._continued("")

    # --- tokens ---

    def _token(self, index: int, lexeme: Lexeme, gap: int, previous: Lexeme | None) -> None:
        _, text, start = lexeme
        follows_comment = previous is not None and previous[0] in ("comment", "doc")
        if start in self.lines.closing and previous is not None and previous[1] == "{":
            pass
        elif start in self.lines.starts or start in self.lines.closing:
            is_start = start in self.lines.starts
            indent = INDENT * (self.lines.starts if is_start else self.lines.closing)[start]
            is_apart = is_start and self._is_apart(previous, lexeme, gap, not self.is_behind_comment)
            self._new_line(indent, is_apart)
            self.statement = indent
            self.opened.clear()
        elif follows_comment or gap > 0 or start in self.broken or self._is_too_long(index, lexeme, previous):
            self._new_line(self.statement if start in self.lines.wide else self._continued(text), False)
        else:
            self._write(self._space(previous, lexeme))
        self.is_behind_comment = False
        if text in _OPENING:
            self.opened.append(self.indent)
            if start in self.lines.payloads:
                self._payload(index, start)
        elif text in _CLOSING and self.opened:
            self.opened.pop()
        self._write(text)

    def _payload(self, index: int, start: int) -> None:
        """Break a payload whole, an item a line, if its first item stands on a line of its own or it is too long."""
        items, end = self.lines.payloads[start]
        width = self.column + 1
        for before, following in self._ahead(index):
            width += len(self._space(before, following)) + len(following[1])
            if following[2] >= end or width > WIDTH:
                break
        is_open = self._gap(self.lexemes[index], self.lexemes[index + 1]) > 0
        if items and (is_open or width > WIDTH):
            self.broken.update((*items, end))

    def _continued(self, text: str) -> int:
        """The indentation of a line within a statement."""
        if not self.opened:
            return self.statement + INDENT
        return self.opened[-1] + (0 if text in _CLOSING else INDENT)

    def _is_too_long(self, index: int, lexeme: Lexeme, previous: Lexeme | None) -> bool:
        """Whether the line would be too long before the next place at which it may be broken."""
        if lexeme[2] not in self.lines.soft:
            return False
        width = self.column + len(self._space(previous, lexeme)) + len(lexeme[1])
        for before, following in self._ahead(index):
            start = following[2]
            if width > WIDTH or following[0] in ("comment", "doc", "end") or self._gap(before, following):
                break
            if start in self.lines.starts or start in self.lines.closing or start in self.lines.soft:
                break
            width += len(self._space(before, following)) + len(following[1])
        return width > WIDTH

    def _ahead(self, index: int) -> Iterator[tuple[Lexeme, Lexeme]]:
        """Neighbours from a lexeme on, as far as they are asked for: who measures a line stops at its end."""
        return ((self.lexemes[place], self.lexemes[place + 1]) for place in range(index, len(self.lexemes) - 1))

    # --- empty lines and spaces ---

    def _is_apart(self, previous: Lexeme | None, lexeme: Lexeme, gap: int, is_first: bool) -> bool:
        """Whether an empty line stands before a line: where the author put one, and round long declarations."""
        if previous is None or previous[1] == "{" or lexeme[2] in self.lines.closing:
            return False
        is_behind_long = self.lines.closing.get(previous[2], 2) <= 1  # a declaration of the contract or of the file
        return gap > 1 or (is_first and (lexeme[2] in self.lines.apart or is_behind_long))

    def _space(self, previous: Lexeme | None, lexeme: Lexeme) -> str:
        if previous is None:
            return ""
        (_, before, place), (_, text, start) = previous, lexeme
        if start in self.lines.wide:
            return "  "
        if start in self.lines.tight or place in self.lines.unary or text in (",", ":", ")", "."):
            return ""
        if before in ("(", ".") or ".." in (before, text) or (before == "{" and text == "}"):
            return ""
        is_in_type = (text in "<>" and start in self.angles) or (before == "<" and place in self.angles)
        return "" if is_in_type else " "

    def _new_line(self, indent: int, is_apart: bool) -> None:
        if self.out:
            self.out.append("\n\n" if is_apart else "\n")
        self.out.append(" " * indent)
        self.indent = self.column = indent

    def _write(self, text: str) -> None:
        self.out.append(text)
        self.column += len(text)
