"""Where something stands in a source: a `Source` is one file's text, a `Span` a half-open range of its characters.

Offsets are characters, not bytes; lines and columns count from 1. A span never crosses files.
Absent: reading files, which is the edge's work.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """One source file: its path as the user would name it, and its text."""

    path: str
    text: str

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets at which the lines of the text begin."""
        starts = [0]
        for offset, character in enumerate(self.text):
            if character == "\n":
                starts.append(offset + 1)
        return tuple(starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its end."""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    def to(self, other: "Span") -> "Span":
        """The span from the start of this one to the end of `other`."""
        return Span(self.source, self.start, max(self.end, other.end))

    @property
    def text(self) -> str:
        """The characters that the span covers."""
        return self.source.text[self.start : self.end]
