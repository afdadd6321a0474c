"""The house rules as tests: sizes, openings, words, purity, escapes, paths, pages. `docs/internals/STYLE.md` says why.

A rule is a function from a file's path and text to the lines that break it; each is tried on a planted fault below, so
that a rule which finds nothing any more is noticed. An exception is one line of `EXCEPTIONS`, with its reason.
Deliberately absent: what ruff, mypy and import-linter already check.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
Rule = Callable[[str, str], Iterator[str]]

EXCEPTIONS: dict[tuple[str, str], str] = {
    # (rule, path): the reason
    ("inner_imports", "src/riffdb/client/opening.py"): "the compiler is loaded only where an application is given",
}

MODULE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70
SMALL_LINES_MAX = 20
PURE = ("engine", "compiler", "syntax", "plan", "scheduler")

FILE_NAMES = ("utils", "util", "helpers", "helper", "common", "base", "misc", "manager")

# A word of a name, and what stands in its place. The table "Words" of STYLE.md, as far as a word alone can tell.
NAME_WORDS = {
    "ast": "Tree",
    "backend": "Store",
    "cfg": "the noun that it is",
    "cmd": "command",
    "common": "the noun that it is",
    "cst": "Tree",
    "ctx": "Input, Sealed or Overlay",
    "dlq": "DeadLetter",
    "evt": "event",
    "fsm": "workflow",
    "helper": "the noun or verb that it is",
    "helpers": "the noun or verb that it is",
    "idx": "index, or the noun that it counts",
    "lsn": "Position",
    "manager": "the noun that it is",
    "mgr": "the noun that it is",
    "misc": "the noun that it is",
    "msg": "message",
    "procedure": "Command",
    "repository": "Store",
    "req": "request",
    "resp": "answer",
    "schema": "Contract, Plan or layout",
    "txn": "commit",
    "util": "the noun or verb that it is",
    "utils": "the noun or verb that it is",
}


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and text of every name that the module itself gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def words_of(name: str) -> list[str]:
    """The words of a snake case or camel case name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def package_of(path: str) -> str:
    """The layer that a source file belongs to, empty for files outside `src/riffdb`."""
    parts = PurePosixPath(path).parts
    return parts[2] if parts[:2] == ("src", "riffdb") and len(parts) > 3 else ""


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """The line and text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def module_size(path: str, text: str) -> Iterator[str]:
    """A module has at most 700 lines."""
    lines = text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield f"{path}: {lines} lines, at most {MODULE_LINES_MAX}; split it by what it does"


def function_size(path: str, text: str) -> Iterator[str]:
    """A function has at most 70 lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: `{node.name}` has {lines} lines, at most {FUNCTION_LINES_MAX}"


def opening(path: str, text: str) -> Iterator[str]:
    """A module of the package opens with three to ten lines on what lives there; a small or other one with any."""
    docstring = ast.get_docstring(ast.parse(text))
    lines = len(docstring.splitlines()) if docstring else 0
    is_small = text.count("\n") <= SMALL_LINES_MAX
    if path.startswith("src/") and not (1 if is_small else 3) <= lines <= 10:
        yield f"{path}:1: the opening has {lines} lines; say in 3 to 10 what lives here, the invariant, what is absent"
    elif not lines:
        yield f"{path}:1: no opening docstring"


def file_name(path: str, text: str) -> Iterator[str]:
    """A file is a noun of the words table or the verb of a pass."""
    stem = PurePosixPath(path).stem
    is_handler = stem in ("handler", "handlers") and package_of(path) not in ("", "scheduler")
    if stem in FILE_NAMES or is_handler:
        yield f"{path}: name it after what it holds"


def names(path: str, text: str) -> Iterator[str]:
    """Names use the words of the table; each that does not is told what to use."""
    for line, name in names_of(ast.parse(text)):
        for word in words_of(name):
            if word in NAME_WORDS:
                yield f"{path}:{line}: `{word}` in `{name}`: say {NAME_WORDS[word]}"


def purity(path: str, text: str) -> Iterator[str]:
    """The inner layers open no file; ruff's lists cover the rest."""
    if package_of(path) not in PURE:
        return
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "input", "print")
        ):
            yield f"{path}:{node.lineno}: `{node.func.id}` in a pure folder; pass the text in"


def inner_imports(path: str, text: str) -> Iterator[str]:
    """Imports of our own stand at the top, save in `cli`, where they cost start-up time."""
    if not path.startswith("src/") or package_of(path) == "cli":
        return
    tree = ast.parse(text)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                continue
            if any(module.split(".")[0] == "riffdb" for module in modules):
                yield f"{path}:{node.lineno}: an import of riffdb inside a function"


def skipped_tests(path: str, text: str) -> Iterator[str]:
    """No test is skipped or expected to fail."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in ("skip", "skipif", "skipUnless", "skipIf", "skipTest", "SkipTest", "xfail", "importorskip"):
                yield f"{path}:{node.lineno}: `{name}`: make the test pass or take it out"


def sleeps(path: str, text: str) -> Iterator[str]:
    """Tests wait for a signal, never for a while."""
    if not path.startswith("tests/"):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        is_yield = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if name == "sleep" and not is_yield:
            yield f"{path}:{node.lineno}: `sleep` in a test; wait for the event itself"


def type_escapes(path: str, text: str) -> Iterator[str]:
    """An escape from the type checker names its code and its reason."""
    for line, comment in comments_of(text):
        if re.search(r"#\s*type:\s*ignore", comment) and not re.search(
            r"#\s*type:\s*ignore\[[a-z, -]+\]\W+\w+\W+\w+", comment
        ):
            yield f"{path}:{line}: write `# type: ignore[code]  # and the reason`"


PLACES = re.compile(
    r"(?<![\w.~/-])/(?:home/\w|root/|work/|Users/\w)"
    r"|\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs|npmjs\.org|index\.crates\.io|static\.crates\.io"
    r"|proxy\.golang\.org|sum\.golang\.org|repo\d?\.maven|deb\.debian\.org)\b"
)


def places(path: str, text: str) -> Iterator[str]:
    """No path of one machine and no host of a package registry stands in the repository."""
    for number, line in enumerate(text.splitlines(), 1):
        found = PLACES.search(line)
        if found:
            yield f"{path}:{number}: `{found.group()}` belongs to one machine or one registry"


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that stand outside code fences."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def one_title(path: str, text: str) -> Iterator[str]:
    """A page has one title, and begins with it."""
    titles = [number for number, line in prose_lines(text) if line.startswith("# ")]
    if titles != [1]:
        yield f"{path}: titles on lines {titles}; one, on the first line"


def anchors(text: str) -> set[str]:
    """The anchors that the headings of a page make."""
    headings = (line.lstrip("#").strip() for _, line in prose_lines(text) if re.match(r"#+ ", line))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path: str, text: str) -> Iterator[str]:
    """Links between pages lead to a file and a heading that exist."""
    for number, line in prose_lines(text):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            page = (ROOT / path).parent / name
            if not page.exists():
                yield f"{path}:{number}: `{target}` leads nowhere"
            elif anchor and anchor not in anchors(page.read_text(encoding="utf-8") if name else text):
                yield f"{path}:{number}: `{target}`: no such heading"


PYTHON_RULES: tuple[Rule, ...] = (
    module_size,
    function_size,
    opening,
    file_name,
    names,
    purity,
    inner_imports,
    skipped_tests,
    sleeps,
    type_escapes,
)
PAGE_RULES: tuple[Rule, ...] = (one_title, links)
TEXT_RULES: tuple[Rule, ...] = (places,)


def tracked_files() -> list[str]:
    """The files that are, or by the next commit would be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in sorted(set(output.splitlines())) if (ROOT / path).is_file()]


def rules_for(path: str) -> tuple[Rule, ...]:
    """The rules that a file must pass, by its suffix."""
    match PurePosixPath(path).suffix:
        case ".py":
            return PYTHON_RULES + TEXT_RULES
        case ".md":
            return PAGE_RULES + TEXT_RULES
        case _:
            return TEXT_RULES


def findings() -> dict[tuple[str, str], list[str]]:
    """Every line that breaks a rule, by rule and path, before exceptions."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in tracked_files():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture or another binary file; the rules are about text
            continue
        for rule in rules_for(path):
            lines = list(rule(path, text))
            if lines:
                found[rule.__name__, path] = lines
    return found


def test_the_house_is_tidy() -> None:
    found = findings()
    lines = [line for place, lines in found.items() if place not in EXCEPTIONS for line in lines]
    stale = [f"the exception {place} is no longer needed" for place in EXCEPTIONS if place not in found]
    assert not lines + stale, "\n" + "\n".join(lines + stale)


def diagnostic_codes() -> set[str]:
    """Every code of a diagnostic that stands in the package."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "riffdb").rglob("*.py"))
    return {code for source in sources for code in re.findall(r"\bRDB-C\d+\b", source)}


def codes_without_case(codes: set[str], cases: Path) -> list[str]:
    """The codes for which no case folder `<code>` or `<code>-<words>` shows the rendered text."""
    shown = {code for code in codes for folder in (code, f"{code}-*") if any(cases.glob(f"{folder}/expected/*"))}
    return sorted(codes - shown)


def test_every_diagnostic_code_has_a_case() -> None:
    missing = codes_without_case(diagnostic_codes(), ROOT / "tests" / "cases" / "diagnostics")
    assert not missing, f"no case folder tests/cases/diagnostics/<code>-<words>/ for {', '.join(missing)}"


def test_a_code_without_case_is_found(tmp_path: Path) -> None:
    (tmp_path / "RDB-C001-shown" / "expected").mkdir(parents=True)
    (tmp_path / "RDB-C001-shown" / "expected" / "check.txt").touch()
    (tmp_path / "RDB-C002-empty").mkdir()
    assert codes_without_case({"RDB-C001", "RDB-C002", "RDB-C00"}, tmp_path) == ["RDB-C00", "RDB-C002"]


DOC = '"""One.\n\nTwo.\n"""\n'
PLANTED: list[tuple[Rule, str, str, str]] = [
    # rule, path, what it must find, what it must leave alone
    (module_size, "src/riffdb/core/a.py", "x = 1\n" * 701, "x = 1\n" * 700),
    (function_size, "a.py", "def f():\n" + "    x = 1\n" * 70, "def f():\n" + "    x = 1\n" * 69),
    (opening, "src/riffdb/core/a.py", '"""One line."""\n' + "x = 1\n" * 20, DOC + "x = 1\n" * 20),
    (opening, "src/riffdb/core/a.py", "x = 1\n", '"""One line, for a small module."""\n'),
    (opening, "tests/unit/a.py", "x = 1\n", '"""One line."""\n'),
    (names, "a.py", "def f(ctx): ...\n", "def f(context): ...\n"),
    (names, "a.py", "class ParserAST: ...\n", "class Forecast: ...\n"),
    (names, "a.py", "self.db_backend = 1\n", "import ast\n"),
    (purity, "src/riffdb/engine/a.py", "open('x')\n", "store.open('x')\n"),
    (inner_imports, "src/riffdb/http/a.py", "def f():\n    from riffdb.core import x\n", "def f():\n    import json\n"),
    (inner_imports, "src/riffdb/http/a.py", "def f():\n    import riffdb.core\n", "import riffdb.core\n"),
    (skipped_tests, "tests/a.py", "@pytest.mark.xfail\ndef f(): ...\n", "skipped = 1\n"),
    (sleeps, "tests/a.py", "time.sleep(1)\n", "asyncio.sleep(0)\n"),
    (sleeps, "tests/a.py", "sleep(0.1)\n", "sleeping = 'sleep(1)'\n"),
    (type_escapes, "a.py", "x = 1  # type: " + "ignore\n", "x = 1  # type: ignore[misc]  # the stub is wrong\n"),
    (type_escapes, "a.py", "x = 1  # type: ignore[misc]\n", "x = '# type: ignore'\n"),
    (places, "a.md", "see " + "/root" + "/x\n", "GET /v1/rows/x and ~/code/y\n"),
    (places, "a.lock", "https://files.python" + "hosted.org/x\n", "https://example.org/x\n"),
    (one_title, "a.md", "# One\n\n# Two\n", "# One\n\n```sh\n# not a title\n```\n"),
    (one_title, "a.md", "text\n", "# One\n"),
    (links, "a.md", "[x](no-such-page.md)\n", "[x](README.md) and `[x](y)`\n"),
    (links, "a.md", "# One\n[x](#two)\n", "# One two\n[x](#one-two)\n"),
]


@pytest.mark.parametrize(("rule", "path", "bad", "good"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_finds_its_planted_fault(rule: Rule, path: str, bad: str, good: str) -> None:
    assert list(rule(path, bad))
    assert list(rule(path, good)) == []


def test_a_rule_finds_its_planted_name() -> None:
    assert list(file_name("src/riffdb/core/utils.py", ""))
    assert list(file_name("src/riffdb/http/handler.py", ""))
    assert list(file_name("src/riffdb/scheduler/handler.py", "")) == []
    assert list(file_name("examples/queue/handlers.py", "")) == []
