"""The long explanation of each code: a page of text with a wrong and a right example.

A page is `explanations/CODE.md`. An example is a part of the application beside the pages: a declaration stands in the
place of the one of its name, statements stand in the command that the fence names, and whatever the example mentions
comes with it. A fence that says `whole` is an application as it is. Absent: compiling, which a test does to each.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from textwrap import dedent, indent

from riffdb.core.codes import CODES
from riffdb.core.diagnostic_codes import DIAGNOSTIC_CODES
from riffdb.core.errors import RiffError
from riffdb.core.lints import LINTS
from riffdb.core.suggestions import did_you_mean

TITLES = {**DIAGNOSTIC_CODES, **{code: facts.title for code, facts in CODES.items()}}

_FOLDER = "explanations"
_WHOLE = "whole"
_FENCE = re.compile(r"^```(riff|toml) (wrong|right)(?: (whole)| in (\w+))?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(
    r"^((?:bulk |reimport )?command|enum|record|entity|event|workflow|query|stream|role|schedule) (\w+)",
    re.MULTILINE,
)
_BESIDE = ("query", "stream", "role", "schedule")
_PLACE = "  // the example\n"
_CONTRACT = "contract Team version 1 {\n"
_SETTINGS = '[application]\nname = "team"\n'


@dataclass(frozen=True, slots=True)
class Example:
    """One example: the text that is shown, where it stands, and the files of the application that it is a part of."""

    is_wrong: bool
    text: str
    place: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The page of a code; `parts` are its paragraphs and examples in their order."""

    code: str
    title: str
    parts: tuple[str | Example, ...]

    @property
    def examples(self) -> tuple[Example, ...]:
        """The examples alone."""
        return tuple(part for part in self.parts if isinstance(part, Example))


@dataclass(frozen=True, slots=True)
class _Declaration:
    kind: str
    name: str
    text: str


def explanation_of(code: str) -> Explanation:
    """The page of a code, which may be written in small letters and without `RDB-`, or of a lint by its name;
    `RDB-E-NOT-FOUND` without one."""
    lint = LINTS.get(code.lower())
    written = code.upper() if lint is None else lint.code
    full = written if written.startswith("RDB-") else f"RDB-{written}"
    if full not in TITLES:
        hint = did_you_mean(code, LINTS) or did_you_mean(full, TITLES)
        raise RiffError("RDB-E-NOT-FOUND", f"there is no code `{code}`{hint}")
    return parse_page(full, _read(f"{full}.md"))


def parse_page(code: str, page: str) -> Explanation:
    """The page from its text; the first line is the title and stands in the table of codes already."""
    _, _, body = page.partition("\n")
    parts: list[str | Example] = []
    end = 0
    for fence in _FENCE.finditer(body):
        parts.append(body[end : fence.start()].strip())
        language, kind, whole, command, text = fence.groups()
        parts.append(Example(kind == "wrong", text, command or "", _files(language, whole or command or "", text)))
        end = fence.end()
    parts.append(body[end:].strip())
    return Explanation(code, TITLES[code], tuple(part for part in parts if part))


def _read(name: str) -> str:
    return files("riffdb.core").joinpath(_FOLDER, name).read_text("utf-8")


def _files(language: str, place: str, text: str) -> dict[str, str]:
    if language == "toml":
        return {"riffdb.toml": f"{_SETTINGS}\n{text}", "team.riff": _composed([], "JobWork")}
    if place != _WHOLE:
        text = _composed(_split(text), text) if not place else _in_command(place, text)
    return {"riffdb.toml": _SETTINGS, "team.riff": text}


@cache
def _application() -> tuple[_Declaration, ...]:
    """The declarations of the application, each as it would stand beside the contract."""
    inside, _, beside = _read("application.riff").removeprefix(_CONTRACT).partition("\n}\n")
    return (*_split(dedent(inside)), *_split(beside.lstrip()))


def _split(text: str) -> list[_Declaration]:
    heads = list(_HEAD.finditer(text))
    ends = [0, *(head.start() for head in heads[1:]), len(text)]
    return [
        _Declaration(head[1], head[2], text[start:end].rstrip() + "\n")
        for head, (start, end) in zip(heads, pairwise(ends), strict=bool(heads))
    ]


def _in_command(name: str, statements: str) -> str:
    command = next(known for known in _application() if known.name == name)
    before, _, after = command.text.partition(_PLACE)
    if re.search(r"^return\b", statements, re.MULTILINE):
        after = "}\n"
    text = before + indent(statements, "  ") + after
    return _composed([_Declaration(command.kind, name, text)], text)


def _composed(given: list[_Declaration], mentioning: str) -> str:
    """An application of the given declarations and of those that they need."""
    names = {declaration.name for declaration in given}
    entities = {word for known in given if known.kind == "workflow" for word in re.findall(r"entity (\w+)", known.text)}
    needed: list[_Declaration] = []
    words = set(re.findall(r"\w+", mentioning))
    while True:
        more = [
            known for known in _application() if known.name not in names and _is_needed(known, words, names, entities)
        ]
        if not more:
            break
        needed += more
        names.update(known.name for known in more)
        words.update(word for known in more for word in re.findall(r"\w+", known.text))
    ordered = [known for known in _application() if known in needed] + given
    inside = "\n".join(indent(known.text, "  ") for known in ordered if known.kind not in _BESIDE)
    beside = "\n".join(known.text for known in ordered if known.kind in _BESIDE)
    return f"{_CONTRACT}{inside}}}\n" + (f"\n{beside}" if beside else "")


def _is_needed(known: _Declaration, words: set[str], names: set[str], entities: set[str]) -> bool:
    """Whether it is mentioned; a workflow comes with its entity, unless the example has one for that entity."""
    if known.kind != "workflow":
        return known.name in words
    entity = re.findall(r"entity (\w+)", known.text)[0]
    return entity in names and entity not in entities
