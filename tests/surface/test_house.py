"""What a newcomer relies on before any of the code runs: the commands that README, CI and Makefile name, and the locks.

The install itself is not run here; every other test stands on it.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", _text(f"requirements/{lock}.lock"), re.MULTILINE))


def _readme_commands() -> list[str]:
    fences = re.findall(r"^```sh\n(.*?)^```", _text("README.md"), re.MULTILINE | re.DOTALL)
    return [line.split("#")[0].strip() for fence in fences for line in fence.splitlines() if line.startswith("make ")]


def test_the_readme_names_exactly_the_two_commands() -> None:
    assert _readme_commands() == ["make demo", "make test"]


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else() -> None:
    lines = [line.strip() for line in _text(".ci/run").splitlines()]
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == [_readme_commands()[-1]]


def test_help_lists_every_verb_and_no_other() -> None:
    # Inside `make test` a make is a second one, and would tell which folder it enters.
    command = ["make", "--no-print-directory", "help"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    listed = [line.split()[1] for line in printed.splitlines()]
    declared = re.findall(r"^\.PHONY: (\w+)$", _text("Makefile"), re.MULTILINE)
    assert listed == declared
    allowed = "help install demo format check test cases conformance simulate clients docs bench publish"
    campaigns = "twin mutations planted kills"  # long, and by hand
    assert set(listed) <= {*allowed.split(), *campaigns.split()}


def test_every_dependency_is_locked_and_both_locks_agree() -> None:
    project = tomllib.loads(_text("pyproject.toml"))
    run, dev = _pins("run"), _pins("dev")
    names = {re.split(r"[<>=~! ;\[]", requirement)[0] for requirement in project["project"]["dependencies"]}
    assert names <= run.keys()
    assert set(project["dependency-groups"]["dev"]) <= dev.keys()
    assert run.items() <= dev.items()


def test_the_locks_hold_pins_and_hashes_and_no_address() -> None:
    pin = re.compile(r"[a-z0-9-]+==[\w.]+( ; [\w ='.<>!]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    for lock in ("run", "dev"):
        wrong = [line for line in _text(f"requirements/{lock}.lock").splitlines() if not pin.fullmatch(line)]
        assert wrong == []


def test_the_changelog_begins_with_this_version_or_with_what_is_unreleased() -> None:
    version = re.search(r'^__version__ = "([^"]+)"', _text("src/riffdb/__init__.py"), re.MULTILINE)
    sections = re.findall(r"^## (\S+)", _text("CHANGELOG.md"), re.MULTILINE)
    assert version
    assert sections[0] in ("Unreleased", version.group(1))


def test_importing_the_package_loads_no_layer_and_no_other_package() -> None:
    script = (
        "import sys; before = set(sys.modules); import riffdb; loaded = set(sys.modules) - before; "
        "print(sorted(name for name in loaded if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert printed == "['riffdb']\n"
