"""`riffdb new`: a ready application folder from a template that ships with RiffDB.

A template is one of the examples, whole; only the application's name is changed. Nothing that exists is touched, and
what cannot be made whole is taken away again.
"""

import re
import shlex
import shutil
from pathlib import Path

import click

import riffdb
from riffdb.cli.output import note, print_json
from riffdb.core.errors import RiffError

TEMPLATES = ("queue", "pipeline")
CONFIGURATION_FILE = "riffdb.toml"  # named here too, since its reader brings the compiler along
_KINDS = (CONFIGURATION_FILE, "riffdb.lock", "*.riff", "*.py", "*.md")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")


@click.command("new", short_help="make a ready application folder")
@click.argument("path", metavar="NAME")
@click.option("--template", type=click.Choice(TEMPLATES), default="queue", show_default=True, help="Which example.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(path: str, template: str, as_json: bool) -> int:
    """Make the folder NAME, or a/folder/NAME, with an application that runs."""
    folder = Path(path)
    if not _NAME.fullmatch(folder.name):
        raise RiffError("RDB-E-USAGE", "a name has up to 60 letters, digits, `_` and `-`, and begins with a letter")
    _make(folder, template)
    if as_json:
        print_json({"application": folder.name, "folder": str(folder)})
    note(f"made {folder}; now:\n")
    for line in (f"cd {shlex.quote(str(folder))}", "riffdb check", "riffdb deploy . --db sqlite:work.db"):
        note(f"  {line}")
    return 0


def template_folder(template: str) -> Path:
    """Where a template lies: inside the installed package, or in the repository that the package was installed from."""
    package = Path(riffdb.__file__).parent
    packaged = package / "templates" / template
    return packaged if packaged.is_dir() else package.parents[1] / "examples" / template


def _make(folder: Path, template: str) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise RiffError("RDB-E-USAGE", f"`{folder}` is there already; choose another name") from None
    except (OSError, ValueError) as error:
        raise _refusal(folder, error) from None
    try:
        _copy(template_folder(template), folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _refusal(folder, error) from None


def _copy(template: Path, folder: Path) -> None:
    """Copy what belongs to the application; contents alone, since an installed template may be read-only."""
    for source in sorted(path for kind in _KINDS for path in template.rglob(kind)):
        text = source.read_text(encoding="utf-8")
        if source.name == CONFIGURATION_FILE:
            text = re.sub(r'(?m)^name = ".*"$', f'name = "{folder.name}"', text, count=1)
        place = folder / source.relative_to(template)
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _refusal(folder: Path, error: Exception) -> RiffError:
    reason = error.strerror if isinstance(error, OSError) else "no file system has such a name"
    return RiffError("RDB-E-USAGE", f"`{folder}` cannot be made: {reason}")
