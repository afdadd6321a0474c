"""What a command loads before it works. Counted in modules, not in time: what is loaded is paid for on any machine."""

import subprocess
import sys

import pytest

from riffdb.cli import COMMANDS
from tests.surface.processes import QUEUE

SCRIPT = """
import io, sys
from riffdb.cli import run
shown = sys.stdout
sys.stdout = sys.stderr = io.StringIO()
code = run(sys.argv[1:])
print(code, *sys.modules, file=shown)
"""
LAYERS = {f"riffdb.{name}" for name in ("http", "client", "database", "scheduler", "compiler", "engine", "storage")}
INNER = {"riffdb.syntax", "riffdb.plan"}
FOREIGN = {"msgspec", "apsw", "granian", "aiohttp", "uuid_utils", "rich", "asyncio", "ssl"}


def loaded(*arguments: str) -> set[str]:
    """The modules that a command line has loaded by its end."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, text=True)
    code, *modules = done.stdout.split()
    assert code == "0", done
    return set(modules)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("new", "--help")])
def test_help_loads_no_layer(arguments: tuple[str, ...]) -> None:
    assert not loaded(*arguments) & (LAYERS | INNER | FOREIGN)


def test_help_loads_no_command() -> None:
    assert not loaded("--help") & {f"riffdb.cli.{name}" for name in COMMANDS}


def test_check_loads_what_compiles_and_nothing_else() -> None:
    modules = loaded("check", str(QUEUE), "--json")
    assert not modules & (FOREIGN - {"msgspec"})
    assert modules & LAYERS == {"riffdb.client", "riffdb.compiler"}


def test_the_help_of_a_command_opens_no_store() -> None:
    for command in ("command run", "query run", "deploy", "history", "capability create", "worker", "serve"):
        assert not loaded(*command.split(), "--help") & {"apsw", "granian", "aiohttp"}, command
