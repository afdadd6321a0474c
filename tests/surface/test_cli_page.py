"""The page of the command line against the command line: each command has its section, each option its place."""

import re
from collections.abc import Iterator

import click
import pytest

from riffdb.cli import COMMANDS, root
from riffdb.core.codes import CODES
from tests.surface.processes import ROOT

PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
SHARED = "All commands"
EVERYWHERE = {"--db", "--server", "--role", "--json", "--help"}


def sections() -> dict[str, str]:
    """The text below each heading; of a command's, its words without arguments."""
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
    headings = (re.sub(r"^`riffdb ([a-z ]+[a-z]).*`$", r"\1", heading) for heading in parts[1::2])
    return dict(zip(headings, parts[2::2], strict=True))


def commands(group: click.Group = root, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def options_of(command: click.Command) -> set[str]:
    """The long names of a command's options."""
    return {name for param in command.params if isinstance(param, click.Option) for name in param.opts if "--" in name}


def test_each_command_has_its_section_and_no_other_has_one() -> None:
    assert sections().keys() == {SHARED, *(path for path, _ in commands())}


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_section_of_a_command_has_its_options_and_arguments(path: str, command: click.Command) -> None:
    section, shared = sections()[path], sections()[SHARED]
    for option in options_of(command) - EVERYWHERE:
        assert f"`{option}" in section, f"{option} of riffdb {path}"
    for option in options_of(command) & EVERYWHERE - {"--help"}:
        assert f"`{option}" in shared + section, f"{option} of riffdb {path}"
    heading = next(line for line in PAGE.splitlines() if re.match(rf"## `riffdb {path}\b", line))
    for param in command.params:
        if isinstance(param, click.Argument):
            assert param.make_metavar(click.Context(command)).strip("[].") in heading


def test_no_option_is_made_up() -> None:
    known = EVERYWHERE.union(*(options_of(command) for _, command in commands()))
    assert set(re.findall(r"--[a-z-]+\b", PAGE)) - known == set()


def test_each_variable_of_the_command_line_is_there_and_no_other() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "riffdb").rglob("*.py"))
    assert set(re.findall(r"\bRIFFDB_[A-Z]+\b", PAGE)) == set(re.findall(r"\bRIFFDB_[A-Z]+\b", sources))


def test_each_exit_code_that_can_happen_is_there() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)}
    assert listed == {0, 7, 130, *(code.exit for code in CODES.values())}


def test_the_table_of_the_help_is_what_each_command_says() -> None:
    context = click.Context(root)
    for name, words in COMMANDS.items():
        command = root.get_command(context, name)
        assert command is not None
        assert command.short_help == words
