"""What the pages show is true: contracts compile, commands print what is shown, tables say what the code says.

The tutorial, the guides and the README are followed from top to bottom in a folder of their own, with real processes.
`--update` writes the tables of the errors page anew.
"""

import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from riffdb.client.configuration import LimitSettings, SchedulePolicy, ServerSettings, parse_configuration
from riffdb.compiler import compile
from riffdb.core.codes import CODES
from riffdb.core.diagnostic_codes import DIAGNOSTIC_CODES
from riffdb.core.diagnostics import render
from riffdb.core.lints import LINTS
from riffdb.core.spans import Source
from tests.surface.pages import ROOT, Block, Reader, blocks_of

DOCS = ROOT / "docs"
FOLLOWED = [ROOT / "README.md", *sorted((DOCS / "tutorial").glob("*.md")), *sorted((DOCS / "guides").glob("*.md"))]
ERRORS = DOCS / "reference" / "errors.md"


def _title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _contracts() -> list[Block]:
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [block for page in pages for block in blocks_of(page) if block.language == "riff" and not block.name]


@pytest.mark.parametrize("block", _contracts(), ids=lambda block: block.place)
def test_a_printed_contract_compiles(block: Block) -> None:
    compilation = compile("page", (Source(block.place, block.text),))
    assert not compilation.diagnostics, "\n".join(render(diagnostic) for diagnostic in compilation.diagnostics)
    assert compilation.plan is not None


def test_the_readme_prints_a_contract_and_python() -> None:
    languages = [block.language for block in blocks_of(ROOT / "README.md")]
    assert "riff" in languages and "python" in languages


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Someone who follows pages, in an empty folder."""
    reader = Reader(tmp_path)
    try:
        yield reader
    finally:
        reader.end()


@pytest.mark.parametrize("page", FOLLOWED, ids=_title)
def test_a_page_can_be_followed(page: Path, reader: Reader, tmp_path: Path) -> None:
    if page.name == "README.md":
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    reader.follow(page)


@pytest.mark.parametrize("page", FOLLOWED[1:], ids=_title)
def test_a_page_that_is_followed_shows_nothing_that_is_not_run(page: Path) -> None:
    blocks = blocks_of(page)
    fences = page.read_text(encoding="utf-8").count("```")
    assert fences == 2 * len(blocks), "a fence that is none of `blocks_of`"
    assert [block.place for block in blocks if block.language != "console" and "." not in block.name] == []


WAITS = """python -c 'import signal; print("here", flush=True); signal.pause()'"""
PLANTED = [
    ("```console\n$ echo one\ntwo\n```", "echo one"),
    ("```console\n$ echo one; echo two\none\n```", "echo one; echo two"),
    ("```console\n$ (exit 3)\n$ echo $?\n4\n```", "echo $?"),
    ("```console\n$ cat a.txt\n```", "cat a.txt"),
    ("```python\nraise SystemExit(1)\n```", "page.md:3"),
    ("```console other\n$ echo one\ntwo\n```", "echo one"),
    (f"```console other\n$ {WAITS}\nhere\n```\n```console other\n^C\nmore\n```", "^C"),
]


@pytest.mark.parametrize(("text", "place"), PLANTED)
def test_what_a_page_shows_wrongly_is_noticed(reader: Reader, tmp_path: Path, text: str, place: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=re.escape(place)):
        reader.follow(page)


def test_a_page_is_followed_in_order_and_in_its_terminals(reader: Reader, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = f"""
```text sub/a.txt
one
two
```
```console
$ cd sub
$ export WORD=three
$ cat a.txt - ; echo $WORD
one
…
t…e
$ false
$ echo $?
1
$ echo 'over
lines'
over
lines
```
```console other
$ echo $WORD; {WAITS}

here
```
```console other
^C
…
KeyboardInterrupt
$ echo $?
130
$ cat sub/a.txt
one
two
```
"""
    page.write_text(text, encoding="utf-8")
    reader.follow(page)


def _error_rows() -> list[str]:
    rows = sorted(CODES.items(), key=lambda item: (item[1].status, item[0]))
    return [
        f"| `{name}` | {code.title} | {code.status} | {code.exit} | {'yes' if code.retryable else 'no'} |"
        for name, code in rows
    ]


def _diagnostic_rows() -> list[str]:
    return [f"| `{code}` | {title} |" for code, title in DIAGNOSTIC_CODES.items()]


def test_the_errors_page_lists_what_there_is(request: pytest.FixtureRequest) -> None:
    text = ERRORS.read_text(encoding="utf-8")
    for rows, first in ((_error_rows(), "RDB-E-"), (_diagnostic_rows(), "RDB-C")):
        table = re.compile(rf"(?:^\| `{first}.*\n)+", re.MULTILINE)
        text, count = table.subn(lambda _: "".join(f"{row}\n" for row in rows), text)  # noqa: B023  # called at once
        assert count == 1, f"one table of {first} codes"
    if request.config.getoption("--update"):
        ERRORS.write_text(text, encoding="utf-8")
    assert text == ERRORS.read_text(encoding="utf-8"), "write the tables with --update"


def test_the_language_page_lists_every_lint(request: pytest.FixtureRequest) -> None:
    page = DOCS / "reference" / "language.md"
    rows = [
        f"| `{lint.name}` | `{lint.code}` | {lint.level} | {DIAGNOSTIC_CODES[lint.code]} |" for lint in LINTS.values()
    ]
    table = re.compile(r"(?:^\| `[a-z-]+` \| `RDB-C9.*\n)+", re.MULTILINE)
    text, count = table.subn("".join(f"{row}\n" for row in rows), page.read_text(encoding="utf-8"))
    assert count == 1, "one table of lints"
    if request.config.getoption("--update"):
        page.write_text(text, encoding="utf-8")
    assert text == page.read_text(encoding="utf-8"), "write the table with --update"


def test_the_configuration_page_lists_every_setting_with_its_default() -> None:
    page = DOCS / "reference" / "configuration.md"
    text = page.read_text(encoding="utf-8")
    (shown,) = (block.text for block in blocks_of(page))
    assert parse_configuration(Source("riffdb.toml", shown)).given
    assert tomllib.loads(shown).keys() == {"application", "schedules", "server", "limits", "lints"}
    for settings in (SchedulePolicy(), LimitSettings()):
        for setting in fields(settings):
            default = f"{getattr(settings, setting.name):,}"
            assert re.search(rf"^\| `{setting.name}` \|.*\| {default} \|$", text, re.MULTILINE), setting.name
    assert ServerSettings().listen in text


def _needs(package: Path) -> set[str]:
    """The other packages of riffdb that a package imports."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    found = re.findall(r"^ *(?:from|import) riffdb\.(\w+)|import_module\(\"riffdb\.(\w+)", sources, re.MULTILINE)
    return {name for names in found for name in names if name} - {package.name}


def test_the_architecture_page_tells_what_each_package_needs() -> None:
    text = (DOCS / "internals" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d \| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", needs)) for name, needs in rows}
    packages = {path.parent for path in (ROOT / "src" / "riffdb").glob("*/__init__.py")}
    assert told.keys() == {package.name for package in packages}
    assert told.pop("cli") == set()  # everything below
    assert told == {package.name: _needs(package) for package in packages if package.name != "cli"}
