"""The areas of the cases: what each runs over a case folder, and what it writes.

`diagnostics/RDB-Cnnn-in-words/` shows a mistake in a contract as a person and as a program gets it; `plan/<name>/`
shows what a contract compiles to. A case is an application with a `riffdb.toml`, or just `.riff` files, or a
`case.toml` whose `application` names the folder of one. Paths in outputs are relative to that folder, so that a case
reads the same on every machine. `cli/<name>/` shows command lines, one after the other; see `transcripts.py`.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from riffdb.client.application import CONFIGURATION_FILE, compile_application
from riffdb.compiler import Compilation, compile
from riffdb.core.diagnostics import has_errors, render, to_json
from riffdb.core.spans import Source
from riffdb.plan.identity import canonical, declaration_hashes, plan_hash
from tests.cases.runner import Area
from tests.cases.transcripts import cli


def _application(folder: Path) -> Path:
    """The folder itself, or the one that its `case.toml` names."""
    pointer = folder / "case.toml"
    return folder / tomllib.loads(pointer.read_text("utf-8"))["application"] if pointer.is_file() else folder


def _compile(folder: Path) -> Compilation:
    with chdir(_application(folder)):
        if Path(CONFIGURATION_FILE).is_file():
            return compile_application(Path())[1]
        # bytes, since reading as text would turn foreign line ends into ours
        sources = (Source(str(path), path.read_bytes().decode()) for path in sorted(Path().rglob("*.riff")))
        return compile("case", tuple(sources))


def _printed(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def diagnostics(folder: Path) -> Mapping[str, str]:
    """The diagnostics of a contract; a folder that is named after a code must show it."""
    found = _compile(folder).diagnostics
    code = re.match(r"RDB-C\d+", folder.name)
    codes = {diagnostic.code for diagnostic in found}
    assert code is None or code.group() in codes, f"{folder.name} shows {', '.join(sorted(codes)) or 'nothing'}"
    return {
        "check.txt": "\n".join(render(diagnostic) for diagnostic in found),
        "check.json": _printed(
            {"ok": not has_errors(found), "diagnostics": [to_json(diagnostic) for diagnostic in found]}
        ),
    }


def plan(folder: Path) -> Mapping[str, str]:
    """The canonical plan of a contract, laid out for reading, and its identities."""
    compilation = _compile(folder)
    assert compilation.plan is not None, "".join(render(diagnostic) for diagnostic in compilation.diagnostics)
    identities = {"plan": plan_hash(compilation.plan), **declaration_hashes(compilation.plan)}
    return {
        "plan.json": _printed(json.loads(canonical(compilation.plan))),
        "hashes.txt": "".join(f"{identity.hex()} {name}\n" for name, identity in identities.items()),
    }


AREAS: dict[str, Area] = {"cli": cli, "diagnostics": diagnostics, "plan": plan}
