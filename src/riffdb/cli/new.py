"""`riffdb new`: a ready application folder from a template that ships with RiffDB.

A template is one of the examples, whole; only the application's name is changed. Nothing that exists is touched.
"""

import re
import shutil
from pathlib import Path

import click

import riffdb
from riffdb.core.errors import RiffError

TEMPLATES = ("queue",)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")


@click.command("new", short_help="make a ready application folder")
@click.argument("name", metavar="NAME")
@click.option("--template", type=click.Choice(TEMPLATES), default="queue", show_default=True)
def command(name: str, template: str) -> int:
    """Make the folder NAME with an application that runs."""
    folder = Path(name)
    if not _NAME.fullmatch(folder.name):
        raise RiffError("RDB-E-USAGE", "a name has letters, digits, `_` and `-`, and begins with a letter")
    if folder.exists():
        raise RiffError("RDB-E-USAGE", f"`{folder}` is there already; choose another name")
    try:
        shutil.copytree(template_folder(template), folder, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
    except OSError as error:
        raise RiffError("RDB-E-USAGE", f"`{folder}` cannot be made: {error.strerror}") from error
    configuration = folder / "riffdb.toml"
    text = configuration.read_text(encoding="utf-8")
    configuration.write_text(re.sub(r'(?m)^name = ".*"$', f'name = "{folder.name}"', text, count=1), encoding="utf-8")
    click.echo(f"made {folder}; now:\n", err=True)
    click.echo(f"  riffdb check {folder}", err=True)
    click.echo(f"  riffdb deploy {folder} --db sqlite:{folder.name}.db", err=True)
    return 0


def template_folder(template: str) -> Path:
    """Where a template lies: inside the installed package, or in the repository that the package was installed from."""
    package = Path(riffdb.__file__).parent
    packaged = package / "templates" / template
    return packaged if packaged.is_dir() else package.parents[1] / "examples" / template
