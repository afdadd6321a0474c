"""No text makes the parser raise, every diagnostic has a place in the text, and nothing is dropped in silence.

The texts are right ones with tokens taken out, doubled, exchanged or put in, right ones cut off anywhere, and noise.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffdb.core.diagnostic_codes import DIAGNOSTIC_CODES
from riffdb.core.diagnostics import Diagnostic, render, to_json
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tokens import tokenize
from riffdb.syntax.tree import Tree
from riffdb.syntax.words import RESERVED, WORDS
from tests.unit.syntax_samples import EXAMPLE, GRAMMAR, LISTINGS, token_texts

SAMPLES = (LISTINGS, EXAMPLE, GRAMMAR)
SYMBOLS = (
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ">=",
    ":",
    ",",
    ".",
    "=",
    "==",
    "->",
    "..",
    "-",
    "!",
    "&&",
    "/",
    "$p",
    "@",
    ";",
)
LITERALS = ("1", "2.5", '"text"', '"open', "1x", "name", "Other", "// rest", "/// doc", "/*", "\u00e9", "\x00")
PIECES = (*sorted(WORDS), *sorted(RESERVED), *SYMBOLS * 4, *LITERALS * 2)


def check(text: str) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """Parse a text and look at what must hold for every text."""
    source = Source("noise.riff", text)
    tree, diagnostics = parse(source)
    assert (tree, diagnostics) == parse(source)
    assert len(diagnostics) <= 2 * DIAGNOSTICS_MAX
    assert list(diagnostics) == sorted(diagnostics, key=lambda found: found.span.start)
    for found in diagnostics:
        assert found.code in DIAGNOSTIC_CODES
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert not found.message[0].isupper() and not found.message.endswith(".")
        assert render(found) and to_json(found)
        for edit in found.fix.edits if found.fix is not None else ():
            assert 0 <= edit.span.start <= edit.span.end <= len(text)
    ends = [declaration.span for declaration in tree.declarations]
    assert all(0 <= span.start < span.end <= len(text) for span in ends)
    return tree, diagnostics


@st.composite
def changed(draw: st.DrawFn) -> str:
    """A sample with a few of its tokens changed, laid out as before or anew."""
    texts = token_texts(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 6))):
        texts = texts or ["contract"]
        place = draw(st.integers(0, len(texts) - 1))
        match draw(st.sampled_from(("delete", "double", "exchange", "insert", "replace", "cut"))):
            case "delete":
                del texts[place : place + draw(st.integers(1, 4))]
            case "double":
                texts[place:place] = texts[place : place + draw(st.integers(1, 4))]
            case "exchange":
                other = draw(st.integers(0, len(texts) - 1))
                texts[place], texts[other] = texts[other], texts[place]
            case "insert":
                texts.insert(place, draw(st.sampled_from(PIECES)))
            case "replace":
                texts[place] = draw(st.sampled_from(PIECES))
            case _:
                del texts[place + 1 :]
    gaps = draw(st.sampled_from(((" ",), ("\n",), (" ", " ", " ", "\n"), (" ", "\n  ", "\n"))))
    return "".join(text + gaps[index % len(gaps)] for index, text in enumerate(texts))


@given(changed())
def test_a_changed_text_gives_diagnostics_and_never_an_error(text: str) -> None:
    tree, diagnostics = check(text)
    if not diagnostics:
        covered = sum(len(token_texts(declaration.span.text)) for declaration in tree.declarations)
        assert covered == len(token_texts(text))


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.sampled_from((" ", "\n", "")))
def test_a_heap_of_tokens_gives_diagnostics_and_never_an_error(pieces: list[str], gap: str) -> None:
    check(gap.join(pieces))


@given(st.text(max_size=80))
def test_any_text_at_all_gives_diagnostics_and_never_an_error(text: str) -> None:
    check(text)
    check(f"contract C version 1 {{ entity E {{ field f: {text}")


def test_a_text_cut_off_anywhere_has_a_mistake_or_is_whole() -> None:
    whole = {declaration.span.end for declaration in parse(Source("noise.riff", EXAMPLE))[0].declarations}
    for end in range(0, len(EXAMPLE), 5):
        diagnostics = parse(Source("noise.riff", EXAMPLE[:end]))[1]
        assert all(0 <= found.span.start <= found.span.end <= end for found in diagnostics)
        if not diagnostics:
            stop = max((stop for stop in whole if stop <= end), default=0)
            assert not token_texts(EXAMPLE[stop:end]), EXAMPLE[stop:end]


def test_a_text_cut_off_between_two_tokens_has_one_mistake_at_most() -> None:
    for end in tokenize(Source("noise.riff", EXAMPLE)).starts[::2]:
        diagnostics = parse(Source("noise.riff", EXAMPLE[:end]))[1]
        assert len(diagnostics) <= 1, [render(found) for found in diagnostics]


@pytest.mark.parametrize("function", ["max", "coalesce", "concat"])
def test_the_arguments_of_a_function_count_as_operands(function: str) -> None:
    arguments = ", ".join(["1"] * 130)
    _, diagnostics = parse(
        Source("a.riff", f"contract A version 1 {{ entity B {{ invariant c: {function}({arguments}) }} }}")
    )
    assert [known.code for known in diagnostics] == ["RDB-C017"]
