"""Contracts with something wrong in them, by the thousand: one error a mistake, and never a crash.

A unit test, since what must hold is a property of all texts. The seed is printed with each failure; `RIFFDB_MUTATIONS`
and `RIFFDB_SEED` change how many there are, and which. `make mutations` runs many more of them.
"""

import json
import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from riffdb.compiler import Compilation, compile
from riffdb.core.diagnostics import render, to_json
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.spans import Source
from riffdb.syntax.formatting import format_source
from riffdb.syntax.tokens import lexemes
from tests.unit.syntax_samples import EXAMPLE, EXAMPLES, GRAMMAR, LISTINGS

ROOT = Path(__file__).parents[2]
ERRORS_A_DELETION = 1.3
COUNT = int(os.environ.get("RIFFDB_MUTATIONS", "20000"))
SEED = int(os.environ.get("RIFFDB_SEED", "20261201"))
SHARDS = 8


@cache
def corpus() -> tuple[str, ...]:
    """Texts to spoil: every example, every sample, every case that has two tokens to spoil."""
    found = [*EXAMPLES.values(), EXAMPLE, GRAMMAR, LISTINGS]
    for path in sorted((ROOT / "tests" / "cases").rglob("*.riff")):
        text = path.read_bytes()
        if len(text) < 6_000:
            found.append(text.decode(errors="replace"))
    return tuple(text for text in found if len(tokens(text)) > 1)


def tokens(text: str) -> list[tuple[int, str]]:
    """Offsets and texts of the tokens."""
    found = lexemes(Source("a.riff", text))
    return [(start, token) for kind, token, start in found if kind not in ("comment", "doc", "end")]


def looked_at(text: str) -> Compilation:
    """What the compiler says to a text; every diagnostic can be shown, and there are not too many."""
    compilation = compile("spoilt", [Source("spoilt.riff", text)])
    assert len(compilation.diagnostics) <= DIAGNOSTICS_MAX
    for diagnostic in compilation.diagnostics:
        assert render(diagnostic) and json.dumps(to_json(diagnostic))
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    return compilation


def test_every_text_of_the_corpus_is_a_text_to_spoil() -> None:
    assert len(corpus()) > 300
    assert min(len(tokens(text)) for text in corpus()) > 1
    assert sum(len(tokens(text)) > 20 for text in corpus()) > 300


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_token_that_is_missing_is_one_mistake(name: str) -> None:
    text = EXAMPLES[name]
    counts = {}
    for start, token in tokens(text):
        spoilt = text[:start] + text[start + len(token) :]
        counts[start] = sum(found.severity == "error" for found in looked_at(spoilt).diagnostics)
    worst = sorted(counts, key=lambda start: -counts[start])[:5]
    places = [f"{counts[start]} without {text[start : start + 20]!r}" for start in worst]
    assert sum(counts.values()) / len(counts) <= ERRORS_A_DELETION, places


def _without(text: str, chance: random.Random) -> str:
    start, token = chance.choice(tokens(text))
    return text[:start] + text[start + len(token) :]


def _twice(text: str, chance: random.Random) -> str:
    start, token = chance.choice(tokens(text))
    return f"{text[:start]}{token} {text[start:]}"


def _exchanged(text: str, chance: random.Random) -> str:
    found = tokens(text)
    (first, one), (second, two) = sorted(chance.sample(found, 2))
    return f"{text[:first]}{two}{text[first + len(one) : second]}{one}{text[second + len(two) :]}"


def _inserted(text: str, chance: random.Random) -> str:
    start, _ = chance.choice(tokens(text))
    _, token = chance.choice(tokens(chance.choice(corpus()) or text) or [(0, "{")])
    return f"{text[:start]}{token} {text[start:]}"


def _replaced(text: str, chance: random.Random) -> str:
    start, token = chance.choice(tokens(text))
    _, other = chance.choice(tokens(text))
    return text[:start] + other + text[start + len(token) :]


def _cut_short(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


NOISE = (
    "\0",
    "\u202e",
    "\ud800",
    "é",
    "“",
    "`",
    "[",
    "\\",
    '"',
    "'",
    ";",
    "/*",
    "#",
    "\ufeff",
    "\u2028",
    "0x",
    "9" * 30,
)


def _noisy(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text))
    return text[:start] + chance.choice(NOISE) + text[start:]


def _from_bytes(text: str, chance: random.Random) -> str:
    spoilt = bytearray(text.encode(errors="replace"))
    for _ in range(chance.randint(1, 4)):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    return spoilt.decode(errors="replace")


SPOILERS: tuple[Callable[[str, random.Random], str], ...] = (
    _without,
    _twice,
    _exchanged,
    _inserted,
    _replaced,
    _cut_short,
    _noisy,
    _from_bytes,
)


def _in_a_require(condition: str) -> str:
    return (
        f"contract A version 1 {{ command B {{ input a: u64 require c: {condition} else No {{}} return Yes {{}} }} }}"
    )


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_text_with_anything_in_it_is_told_what_is_wrong(shard: int) -> None:
    for number in range(shard, COUNT, SHARDS):
        chance = random.Random(f"{SEED}/{number}")
        text = chance.choice(corpus())
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            if len(tokens(text)) > 1:
                text = chance.choice(SPOILERS)(text, chance)
        try:
            looked_at(text)
            layout = format_source(Source("spoilt.riff", text)).text
            assert layout is None or format_source(Source("spoilt.riff", layout)).text == layout
        except BaseException as error:
            raise AssertionError(f"seed {SEED}, mutation {number}:\n{text!r}") from error


MIB = 1 << 20
HOSTILE = {
    "a mebibyte of open braces": "{" * MIB,
    "a mebibyte of closing braces": "}" * MIB,
    "a mebibyte of open parentheses in an expression": _in_a_require("(" * (MIB - 500)),
    "a mebibyte of signs": _in_a_require("-" * (MIB - 500)),
    "a mebibyte of one name": "a" * MIB,
    "a mebibyte of one number": "9" * MIB,
    "a mebibyte of one string": f'"{"x" * (MIB - 2)}"',
    "a mebibyte of quotes": '"' * MIB,
    "50,000 lines of nothing": "\n" * 50_000,
    "50,000 lines of a misspelt word": "feild a: u64\n" * 50_000,
    "50,000 lines of fields": f"contract A version 1 {{ entity E {{ key (a: u64)\n{'field b: u64' + chr(10)}" * 20_000,
    "50,000 comments": "// a\n" * 50_000,
    "blocks in blocks": "contract A version 1 { command B { " + "decide x { otherwise apply { " * 5_000,
    "types in types": f"contract A version 1 {{ entity E {{ field f: {'optional<' * 50_000}",
    "conditions in conditions": _in_a_require("(if " * 20_000),
    "a chain of operators": _in_a_require(" && ".join(["true"] * 100_000)),
    "a chain of comparisons": _in_a_require(" < ".join(["1"] * 100_000)),
    "a hundred thousand values to compare with": _in_a_require(f"1 in ({', '.join(str(n) for n in range(100_000))})"),
    "one name 20,000 times": f"contract A version 1 {{ {'enum State { A } ' * 20_000} }}",
    "20,000 names that nothing declares": f"role R {{ command {', '.join(f'C{n}' for n in range(20_000))} }}",
    "NUL": "contract A version 1 {\0 entity\0 E { key (a: u64) } }",
    "text that turns round": "contract A version 1 { // \u202e } }\n entity \u2066E { key (a: u64) } }",
    "half a character": 'contract A version 1 { entity E { key (a: u64) field t: string<9> = "\\u{d800}" } }',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_told_what_is_wrong(name: str) -> None:
    found = looked_at(HOSTILE[name]).diagnostics
    assert found
    shown = "".join(render(diagnostic) for diagnostic in found)
    assert len(shown) < 100 * 1_500
    assert "\u202e" not in shown and "\0" not in shown
