"""Golden folders: `<area>/<name>/` holds inputs, `<area>/<name>/expected/` what they gave when it was last approved.

An area is a function from the folder to its outputs, text by file name. A case fails when an output differs, when an
expected file is no longer written, when nothing is expected, and when there is no input: a case that proves nothing
must not pass. Rewriting is asked for with `--update` alone.
"""

from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path

Area = Callable[[Path], Mapping[str, str]]

EXPECTED = "expected"


def case_folders(root: Path) -> list[Path]:
    """Every case below `root`, in order: the folders of the folders."""
    areas = (area for area in sorted(root.iterdir()) if area.is_dir() and not area.name.startswith((".", "_")))
    return [case for area in areas for case in sorted(area.iterdir()) if case.is_dir() and case.name != "__pycache__"]


def run_case(folder: Path, areas: Mapping[str, Area], update: bool = False) -> list[str]:
    """What is wrong with the case, as texts for a person; with `update`, its expected files are rewritten first."""
    area = areas.get(folder.parent.name)
    if area is None:
        return [f"no area `{folder.parent.name}`; the areas are {', '.join(sorted(areas))}"]
    if not any(path.is_file() for path in folder.rglob("*") if EXPECTED not in path.relative_to(folder).parts):
        return ["the case has no input file"]
    outputs = area(folder)
    if not outputs:
        return ["the case gave no output"]
    if update:
        _write(folder / EXPECTED, outputs)
    return _compare(folder / EXPECTED, outputs)


def _expected(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _compare(folder: Path, outputs: Mapping[str, str]) -> list[str]:
    expected = _expected(folder)
    if not expected:
        return ["nothing is expected yet; `make cases` writes it"]
    problems = []
    for name in sorted(expected.keys() | outputs.keys()):
        if name not in outputs:
            problems.append(f"{EXPECTED}/{name} is no longer written; `make cases` removes it")
        elif name not in expected:
            problems.append(f"{EXPECTED}/{name} is new; `make cases` writes it")
        elif expected[name] != outputs[name]:
            difference = unified_diff(
                expected[name].splitlines(), outputs[name].splitlines(), f"{EXPECTED}/{name}", "now", lineterm=""
            )
            shown = list(difference) or [f"{EXPECTED}/{name}: only the line ends differ"]
            problems.append("\n".join([*shown, "", "If this is meant, `make cases` updates it."]))
    return problems


def _write(folder: Path, outputs: Mapping[str, str]) -> None:
    for name in _expected(folder).keys() - outputs.keys():
        (folder / name).unlink()
    for name, text in outputs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
