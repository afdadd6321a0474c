"""The cases of the command line: a list of command lines, and what each prints and exits with.

`case.toml` has `run`, the lines; `application`, the folder that they run in a copy of (else the case's own folder);
`stdin` and `environment`, the same for all lines. What differs from run to run is named by its kind and order of
appearance, such as `<uuid 1>`; a later line may use such a name for the value.
"""

import re
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from tests.cases.runner import EXPECTED
from tests.surface.command_line import run_here

_IGNORED = ("__pycache__", "*.db*", "case.toml", EXPECTED)
_KINDS = {
    "token": r"\brdb_[0-9A-Za-z]{43,}\b",
    "uuid": r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    "hash": r"\b[0-9a-f]{64}\b",
    "time": r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "pid": r"(?<=process )\d+\b",
    "mark": r"(?<=operator:)[0-9a-f]{12}\b",
    "user": r"(?<=\blocal:)[^\s\":]+",
}
_VALUE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))


class Names:
    """The names of the values that differ from run to run; what the case itself says stays as it is."""

    def __init__(self, said: str, folder: Path) -> None:
        self._said = said
        self._folder = str(folder)
        self._names: dict[str, str] = {}
        self._counts = dict.fromkeys(_KINDS, 0)

    def named(self, text: str) -> str:
        """The text with names for values."""
        return _VALUE.sub(self._name, text.replace(self._folder, "<folder>"))

    def valued(self, text: str) -> str:
        """The text with values for names."""
        for value, name in self._names.items():
            text = text.replace(name, value)
        return text

    def _name(self, match: re.Match[str]) -> str:
        value, kind = match.group(), match.lastgroup
        assert kind is not None
        if value in self._said:
            return value
        if value not in self._names:
            self._counts[kind] += 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"
        return self._names[value]


def cli(folder: Path) -> Mapping[str, str]:
    """The transcript of a case's command lines."""
    said = (folder / "case.toml").read_text("utf-8")
    case = tomllib.loads(said)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary).resolve() / "work"
        shutil.copytree(folder / case.get("application", "."), work, ignore=shutil.ignore_patterns(*_IGNORED))
        names = Names(said, work)
        with chdir(work):
            return {"transcript.txt": "\n".join(_entry(line, case, names) for line in case["run"])}


def _entry(line: list[str], case: Mapping[str, Mapping[str, str]], names: Names) -> str:
    arguments = [names.valued(argument) for argument in line]
    done = run_here(*arguments, stdin=str(case.get("stdin", "")).encode(), **case.get("environment", {}))
    shown = " ".join(argument if re.fullmatch(r"[\w./:=@<>-]+", argument) else f"'{argument}'" for argument in line)
    parts = [f"$ riffdb {shown}".rstrip() + "\n", f"exit {done.code}\n"]
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        if text:
            parts.append(f"--- {name}\n{names.named(text)}")
            if not text.endswith("\n"):
                parts.append("(no line end)\n")
    return "".join(parts)
