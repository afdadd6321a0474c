"""The cursor: where the parser stands in the tokens, what it may expect there, and how it goes on after a mistake.

One mistake gives one diagnostic: after a report everything stays silent until the next declaration, member or
statement begins. A token that is merely left out is reported and taken as if it stood there, once a statement; all
else breaks the statement off, and its block goes on at the next line that begins one. Layout guides recovery alone.
Absent: the grammar.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import NESTING_MAX
from riffdb.core.spans import Span
from riffdb.syntax.position import BrokenItemError, Position
from riffdb.syntax.tree import Name
from riffdb.syntax.words import BEGINNINGS, CONTINUATIONS, DECLARATIONS, FORMS, RESERVED, SHAPES, WORDS, meant

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block(Generic[T]):
    """A kind of `{ … }`: what its items begin with and how each is parsed, from after its first word."""

    name: str
    expected: str
    parsers: Mapping[str, Callable[["Cursor", int], T]]
    commas: bool = False
    declares: frozenset[str] = frozenset()


class Cursor(Position):
    """A position that reads on, token by token and block by block."""

    # --- tokens ---

    def at(self, text: str) -> bool:
        """Whether the next token is `text`."""
        return self.texts[self.index] == text

    def accept(self, text: str) -> bool:
        """Read `text` if it is next."""
        if self.texts[self.index] == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Read `text`; a misspelt or missing one is reported and taken as read."""
        index = self.index
        if self.texts[index] == text:
            self.index = index + 1
        elif self.kinds[index] == "name" and text[0].isalpha() and meant(self.texts[index], (text,)):
            self.misspelt(text)
            self.index = index + 1
        else:
            self.missing(text)

    def misspelt(self, word: str) -> None:
        """Report that the next token is a misspelling of `word`."""
        span = self.span(self.index)
        fix = Fix(f"write `{word}`", (Edit(span, word),), safe=True)
        self.report("RDB-C009", f"unknown word {self.found(self.index)}; did you mean `{word}`?", span, fix=fix)

    def word(self, expected: str, words: tuple[str, ...]) -> Name:
        """Read one of some keywords, whose place allows nothing else."""
        index = self.index
        text = self.texts[index]
        if text not in words:
            nearest = meant(text, words) if self.kinds[index] == "name" else None
            if nearest is None:
                raise self.unexpected(expected)
            self.misspelt(nearest)
            text = nearest
        self.index = index + 1
        return Name(text, self.span(index))

    def clause(self, words: frozenset[str]) -> Name | None:
        """Read the keyword of a clause, if one stands here; a misspelt one is reported and taken as read."""
        index = self.index
        text = self.texts[index]
        if text not in words:
            if self.kinds[index] != "name" or text in self.levels[-1] or self.is_recovering:
                return None
            nearest = meant(text, words)
            if nearest is None or self.kinds[index + 1] == ":":
                return None
            self.misspelt(nearest)
            text = nearest
        self.index = index + 1
        return Name(text, self.span(index))

    def name(self, what: str, *then: str) -> Name:
        """Read a name. `then` lists all that can follow it, or nothing where that is a keyword or the next item."""
        index = self.index
        if self.kinds[index] != "name":
            return self._no_name(what, then)
        if then:
            if self.texts[index + 1] not in then and (self.texts[index] in then or self.is_beginning(index)):
                raise self.unexpected(what)
        elif self.texts[index] in BEGINNINGS and self._is_next_item(index):
            raise self.unexpected(what)
        self.index = index + 1
        start = self.starts[index]
        text = self.texts[index]
        return Name(text, Span(self.source, start, start + len(text)))

    def plain_name(self, what: str) -> Name:
        """Read a name where another name follows, so that nothing tells it from the beginning of a statement."""
        index = self.index
        if self.kinds[index] != "name":
            return self._no_name(what, ())
        self.index = index + 1
        return Name(self.texts[index], self.span(index))

    def _is_next_item(self, index: int) -> bool:
        return (self.is_plain_name(index + 1) or self.texts[index + 1] == "(") and self.is_beginning(index)

    def is_plain_name(self, index: int) -> bool:
        """Whether a token is a name that, as a keyword, could not stand behind a name or an expression here."""
        text = self.texts[index]
        return self.kinds[index] == "name" and text not in CONTINUATIONS and text not in self.levels[-1]

    def _no_name(self, what: str, then: tuple[str, ...]) -> Name:
        index = self.index
        text = self.texts[index]
        if text not in RESERVED or not self._may_follow(index + 1, then):
            raise self.unexpected(what)
        self.report(
            "RDB-C007",
            f"`{text}` is a reserved word and cannot be {what}",
            self.span(index),
            remedy=f"choose another name, such as `{text}_value`",
        )
        self.index = index + 1
        return Name(text, self.span(index))

    def _may_follow(self, index: int, then: tuple[str, ...]) -> bool:
        return self.texts[index] in (then or (*WORDS, *RESERVED, ",", ")", "}", "="))

    def any_name(self) -> Name | None:
        """Read a name of a bare list, where the next name may stand on the next line, unless a declaration begins."""
        index = self.index
        if self.kinds[index] != "name" or self.is_declaration(index):
            return None
        self.index = index + 1
        return Name(self.texts[index], self.span(index))

    def names(self, what: str) -> tuple[Name, ...]:
        """Read `(name, …)`."""
        self.expect("(")
        found = [self.name(what, ",", ")")]
        while self.separated(")"):
            found.append(self.name(what, ",", ")"))
        return tuple(found)

    def separated(self, closer: str) -> bool:
        """Read `,` and answer True, or `closer` and answer False; a missing comma is reported and taken as read."""
        text = self.texts[self.index]
        if text == ",":
            self.index += 1
            return True
        if text == closer:
            self.index += 1
            return False
        is_next = text not in WORDS or self.texts[self.index + 1] in (",", closer)
        if self.kinds[self.index] in ("name", "param", "int") and is_next and not self.is_beginning(self.index):
            self.missing(",")
            return True
        self._missing_closer(closer)
        return False

    def _missing_closer(self, closer: str) -> None:
        fix = Fix(f"add `{closer}`", (Edit(self.gap(self.index), closer),))
        has_cause = self.is_recovering
        broken = self.unexpected(f"`,` or `{closer}`", fix if self.kinds[self.index] != "bad" else None)
        if has_cause or self.kinds[self.index] in ("bad", "end") or self.is_beginning(self.index):
            raise broken

    # --- blocks ---

    def open(self, what: str) -> int:
        """Read `{`; the index of the token to name as the opener. A missing one is reported and taken as read."""
        index = self.index
        if self.texts[index] == "{":
            self.index = index + 1
            return index
        if self.kinds[index] == "bad" and self.kinds[index + 1] == "name":
            self.is_recovering = True
            self.index = index + 1
            return index
        self.missing("{")
        if self.kinds[index] != "name":
            raise self.unexpected(f"`{{` of {what}")
        return max(index - 1, 0)

    def close(self, opener: int, what: str) -> None:
        """Read the `}` of a list without keywords; where the next item begins instead, it is missing."""
        if self.texts[self.index] == "}":
            self.index += 1
        elif self.kinds[self.index] == "end" or self.is_beginning(self.index):
            self.unclosed(opener, what)
        else:
            raise self.unexpected("`,` or `}`")

    def unclosed(self, opener: int, what: str) -> None:
        """Report that a block is not closed before the next token."""
        if not self.is_recovering:
            place = self.gap(self.index)
            fix = Fix("add `}`", (Edit(place, "}" if self.begins_line(self.index) else " }"),))
            related = (Related("opened here", self.span(opener)),)
            message = f"{what} is not closed: expected `}}`"
            self.report("RDB-C011", message, self.tail(self.index), related=related, fix=fix)
        self.is_recovering = True

    def _ends(self, opener: int, block: Block[T]) -> bool:
        """Whether the block ends here: at its `}`, or where the text shows that it must have ended."""
        index = self.index
        text = self.texts[index]
        if text == "}":
            self.index = index + 1
            self.is_recovering = False
            return True
        if self.kinds[index] == "end":
            self.unclosed(opener, block.name)
            return True
        if text in DECLARATIONS and text not in block.declares and self.is_declaration(index):
            self.unclosed(opener, block.name)
            return True
        if text not in block.parsers and self.is_beginning(index) and not self.is_balanced:
            self.unclosed(opener, block.name)
            return True
        return False

    def items(self, block: Block[T]) -> Iterator[tuple[int, T]]:
        """Read `{ items }`; each parsed item with the index of its first token, broken ones left out."""
        opener = self.open(block.name)
        if len(self.levels) >= NESTING_MAX:
            raise self.too_deep()
        self.levels.append(block.parsers)
        while not self._ends(opener, block):
            start = self.index
            item = self.item(block)
            if item is not None:
                yield start, item
        self.levels.pop()

    def item(self, block: Block[T]) -> T | None:
        """Read one item of a block; None when it is broken, which is reported."""
        start, levels = self.index, len(self.levels)
        # What is left of an item that was read in spite of a mistake belongs to that item.
        is_left = self.is_recovering and not (self.begins_line(start) and self.column(start) <= self.column(self.first))
        origin = self.first if is_left else start
        self.is_recovering = is_left
        self.nesting = 0
        self.first = start
        try:
            word = self._first_word(block)
            self.keyword = word
            self.form = FORMS.get(word, "")
            item = block.parsers[word](self, start)
            if block.commas:
                self.accept(",")
            return item
        except BrokenItemError:
            del self.levels[levels:]
            self.recover(start, origin)
            return None

    def _first_word(self, block: Block[T]) -> str:
        """Read the keyword of an item; a misspelt or forgotten one is reported and taken as read."""
        index = self.index
        text = self.texts[index]
        if text in block.parsers:
            self.is_recovering = False
            self.index = index + 1
            return text
        if self.kinds[index] == "name" and not self.is_recovering:
            forgotten = self._forgotten(block)
            if forgotten is not None:
                place = Span(self.source, self.starts[index], self.starts[index])
                fix = Fix(f"add `{forgotten}`", (Edit(place, f"{forgotten} "),))
                message = f"expected `{forgotten}` before {self.found(index)}"
                self.report("RDB-C001", message, self.span(index), fix=fix)
                return forgotten
            word = meant(text, block.parsers)
            if word is not None and self.has_shape(index, self._shapes(word)):
                self.misspelt(word)
                self.index = index + 1
                return word
        self.form = ""
        raise self.unexpected(block.expected)

    def _shapes(self, word: str) -> tuple[tuple[str, ...], ...]:
        return (*DECLARATIONS.get(word, ()), *SHAPES.get(word, ())) or (("NAME",), ("INT",), ("(",))

    def _forgotten(self, block: Block[T]) -> str | None:
        after = self.texts[self.index + 1]
        if after == ":":
            return next((word for word in ("field", "input") if word in block.parsers), None)
        if after == "." and "set" in block.parsers and self.has_shape(self.index, ((".", "NAME", "="),)):
            return "set"
        return None

    # --- nesting and recovery ---

    def nest(self) -> int:
        """Go one level deeper; the nesting to go back to. Deeper than the limit is refused."""
        nesting = self.nesting
        if nesting >= NESTING_MAX:
            raise self.too_deep()
        self.nesting = nesting + 1
        return nesting

    def too_deep(self) -> BrokenItemError:
        """Report that the limit of nesting is reached here; to be raised."""
        if not self.is_recovering:
            message = f"nested more than {NESTING_MAX} deep"
            self.report("RDB-C010", message, self.span(self.index), remedy="split it into smaller parts")
        self.is_recovering = True
        return BrokenItemError()

    def _goes_on(self, index: int, depth: int, column: int) -> bool:
        """Whether an item begins at a token: by its shape, or by its word at the column of the broken one."""
        if self.is_beginning(index):
            return depth <= 0 or self.column(index) <= column
        is_word = depth <= 0 and self.texts[index] in self.levels[-1]
        return is_word and self.begins_line(index) and self.column(index) == column

    def recover(self, start: int, origin: int) -> None:
        """After a broken item, go past `start` to where the next one begins or its block closes.

        `origin` is where the broken item began.
        """
        texts = self.texts
        index = self.index
        column = self.column(origin)
        depth = texts[start:index].count("{") - texts[start:index].count("}")
        while self.kinds[index] != "end":
            text = texts[index]
            if text == "{":
                depth += 1
            elif text == "}":
                if depth <= 0:
                    break
                depth -= 1
            elif index > start and self._goes_on(index, depth, column):
                break
            index += 1
        self.index = index
