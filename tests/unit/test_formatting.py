"""The canonical layout over every contract of this repository and over the same tokens in any other layout.

A unit test, since what must hold is a property of all texts, and cases show but a few of them.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from riffdb.core.diagnostics import has_errors
from riffdb.core.spans import Source
from riffdb.syntax import formatting, parse
from riffdb.syntax.formatting import WIDTH, format_source
from riffdb.syntax.lines import Lexeme, Lines
from riffdb.syntax.tokens import lexemes
from tests.model.contracts import draw
from tests.unit.syntax_samples import EXAMPLE, EXAMPLES, GRAMMAR, LISTINGS

ROOT = Path(__file__).parents[2]
SEED = 20_261_201


def _sound(path: Path) -> bool:
    try:
        return not has_errors(parse(Source(str(path), path.read_bytes().decode()))[1])
    except UnicodeDecodeError:
        return False


FOLDERS = ("examples", "tests/cases", "src/riffdb")
CORPUS = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.riff")) if _sound(path)]


def formatted(text: str) -> str:
    result = format_source(Source("a.riff", text))
    assert result.text is not None, result.diagnostics
    return result.text


def meaning(node: object) -> Any:
    """A tree without its places."""
    if isinstance(node, tuple):
        return tuple(meaning(part) for part in node)
    if isinstance(node, msgspec.Struct):
        fields = [name for name in node.__struct_fields__ if not name.endswith("span")]
        return type(node).__name__, tuple(meaning(getattr(node, name)) for name in fields)
    return node


def tree(text: str) -> Any:
    return meaning(parse(Source("a.riff", text))[0])


def comments(text: str) -> list[str]:
    return [part[1].rstrip() for part in lexemes(Source("a.riff", text)) if part[0] in ("comment", "doc")]


def check(text: str) -> None:
    once = formatted(text)
    assert tree(once) == tree(text)
    assert comments(once) == comments(text)
    assert formatted(once) == once
    assert not [line for line in once.splitlines() if line != line.rstrip() or "\t" in line]
    assert "\n\n\n" not in once


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) > 200


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_layout_of_a_file_means_the_same_and_is_its_own_layout(path: Path) -> None:
    check(path.read_bytes().decode())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_and_what_pages_print_are_laid_out(name: str) -> None:
    assert formatted(EXAMPLES[name]) == EXAMPLES[name]


@pytest.mark.parametrize("text", [LISTINGS, EXAMPLE, GRAMMAR], ids=["listings", "example", "grammar"])
def test_the_layout_of_every_rule_of_the_grammar(text: str) -> None:
    check(text)


def respaced(text: str, chance: random.Random) -> str:
    """The same tokens and comments with other spaces and line ends, and comments in between."""
    parts: list[str] = []
    for kind, token, _ in lexemes(Source("a.riff", text)):
        if kind == "end":
            break
        parts.append(token)
        if kind in ("comment", "doc"):
            parts.append("\n" * chance.randint(1, 3))
        elif chance.random() < 0.03:
            parts.append(f" // {chance.randint(0, 9)}\n")
        else:
            parts.append(chance.choice([" ", " ", "  ", "\t", "\n", "\r\n", "\n\n\n    "]))
    return "".join(parts)


@pytest.mark.parametrize("number", range(150))
def test_any_other_layout_comes_to_one_that_means_the_same(number: int) -> None:
    chance = random.Random(SEED + number)
    path = chance.choice(CORPUS)
    check(respaced(path.read_bytes().decode(), chance))


@pytest.mark.parametrize("seed", range(40))
def test_the_layout_of_a_contract_that_chance_wrote(seed: int) -> None:
    check(draw(seed).text)


def test_without_line_breaks_and_comments_every_layout_comes_to_the_same() -> None:
    for path in CORPUS:
        found = lexemes(Source("a.riff", path.read_bytes().decode()))
        tokens = [token for kind, token, _ in found if kind not in ("comment", "doc")]
        texts = {formatted(space.join(tokens)) for space in (" ", "   ", "\t")}
        assert len(texts) == 1
        (text,) = texts
        assert formatted(text) == text


def test_a_line_that_is_too_long_is_broken_where_it_may_be() -> None:
    items = ", ".join(f"name_{number}: {number}" for number in range(20))
    words = ("stale", "unavailable", "invalid", "exhausted")
    clauses = " ".join(f"{word} Outcome{word.capitalize()} {{}}" for word in words)
    text = f"""contract A version 1 {{ command B {{ input a: u64 mutate E(a) as e else Missing {{ {items} }}
    lease claim held on e owner owner_of_the_lease duration_seconds duration_of_it revision seen_revision {clauses}
    return Done {{}} }} }}"""
    check(text)
    lines = formatted(text).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "      name_0: 0," in lines and "    }" in lines


def test_a_source_with_a_mistake_has_no_layout() -> None:
    result = format_source(Source("a.riff", "contract A version 1 { entity }"))
    assert result.text is None and has_errors(result.diagnostics)


def test_nothing_is_laid_out_as_nothing() -> None:
    assert formatted("") == formatted(" \n\n") == ""
    assert formatted("// alone") == "// alone\n"
    assert formatted("\ufeff// alone\r\n\r\n\r\n// twice  ") == "// alone\n\n// twice\n"


class Counted(list[Lexeme]):
    """Lexemes that count how many of them are looked at by place."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looks += len(found) if isinstance(place, slice) else 1
        return found


def looks(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many lexemes the layout of a text looks at by place."""
    counted: list[Counted] = []

    def counting(found: list[Lexeme], lines: Lines) -> list[Lexeme]:
        counted.append(Counted(split(found, lines)))
        return counted[-1]

    split = formatting._split
    with monkeypatch.context() as patch:
        patch.setattr(formatting, "_split", counting)
        formatted(text)
    return sum(found.looks for found in counted)


COMMAND = "command C { input a: u64 require x: a > 1 && a < 5 else No { a: a, b: a } return Yes { a: a } }"
GROWING: dict[str, Callable[[int], str]] = {
    "comments": lambda count: "// a\n" * count,
    "commands": lambda count: f"contract A version 1 {{ {COMMAND * count} }}",
    "items": lambda count: _returning(", ".join(["a: a"] * count)),
    "comments in a payload": lambda count: _returning("// a\n" * count + "a: a"),
}


def _returning(items: str) -> str:
    return f"contract A version 1 {{ command C {{ input a: u64 return Yes {{ {items} }} }} }}"


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_text_is_twice_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grow = GROWING[name]
    assert looks(grow(400), monkeypatch) <= 2.1 * looks(grow(200), monkeypatch) + 10
