"""The areas of the cases: what each runs over a case folder, and what it writes.

`diagnostics/RDB-Cnnn-in-words/` shows a mistake in a contract as a person and as a program gets it; `plan/<name>/`
shows what a contract compiles to, `graph/<name>/` its workflows in every format. A case is an application with a
`riffdb.toml`, or just `.riff` files, or a `case.toml` whose `application` names the folder of one.
`compatibility/<kind>/` shows what changed from `old.riff` to `new.riff`, and its class; `format/<name>/` sources and
their canonical layout. Paths in outputs are relative
to that folder, so that a case reads the same on every machine. `cli/<name>/` shows command lines, one after the other;
see `transcripts.py`.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from riffdb.client.application import CONFIGURATION_FILE, compile_application
from riffdb.codegen.graph import FORMATS, diagrams_of
from riffdb.compiler import Compilation, compile
from riffdb.core.diagnostics import has_errors, render, to_json
from riffdb.core.spans import Source
from riffdb.database.layouts import moved_tables
from riffdb.plan.changes import RULES
from riffdb.plan.compatibility import contract_changes
from riffdb.plan.identity import canonical, declaration_hashes, plan_hash
from riffdb.syntax.formatting import format_source
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


def compatibility(folder: Path) -> Mapping[str, str]:
    """What changed from one contract to another, each with the place in the new one that makes it so."""
    compilations = []
    for name in ("old.riff", "new.riff"):
        compilation = compile("case", (Source(name, (folder / name).read_text("utf-8")),))
        assert compilation.plan is not None, "".join(render(found) for found in compilation.diagnostics)
        compilations.append(compilation)
    old, new = compilations
    assert old.plan is not None and new.plan is not None
    lines = []
    for change in (*contract_changes(old.plan, new.plan), *moved_tables(old.plan, new.plan)):
        span = new.place(change.family, change.declaration, change.member)
        assert span is not None
        lifted = RULES[change.kind].lifted_by
        until = f", unless `{change.entity}` has {lifted}" if lifted else ""
        place = f"{span.source.path}:{span.source.position(span.start)[0]}"
        lines.append(f"{place}: {change.verdict}{until}: {change.what} [{change.kind}]\n")
    kinds = [line.rpartition("[")[2] for line in lines]
    assert any(kind == f"{folder.name}]\n" for kind in kinds), f"{folder.name} shows {kinds}"
    return {"changes.txt": "".join(lines)}


def graph(folder: Path) -> Mapping[str, str]:
    """The workflows of a contract as diagrams, in every format."""
    compilation = _compile(folder)
    assert compilation.plan is not None, "".join(render(diagnostic) for diagnostic in compilation.diagnostics)
    diagrams = diagrams_of(compilation.plan)
    return {f"workflows.{name}": f"{form(diagrams)}\n" for name, form in FORMATS.items()}


def layouts(folder: Path) -> Mapping[str, str]:
    """Each source in its canonical layout, which is its own layout."""
    found = {}
    for path in sorted(folder.glob("*.riff")):
        text = format_source(Source(path.name, path.read_bytes().decode())).text
        assert text is not None, f"{path.name} has errors"
        assert format_source(Source(path.name, text)).text == text, f"{path.name} is laid out twice"
        found[path.name] = text
    return found


AREAS: dict[str, Area] = {
    "cli": cli,
    "compatibility": compatibility,
    "diagnostics": diagnostics,
    "format": layouts,
    "graph": graph,
    "plan": plan,
}
