"""`riffdb lock`: write the identities of a contract's declarations beside it, or compare it with them.

The file is put in its place whole or not at all. With `--check` nothing is written, and exit 1 says that the contract
is not the one that was locked. Absent: what an identity is, and what the file holds.
"""

from pathlib import Path

import click

from riffdb.cli.files import replace_file
from riffdb.cli.output import note, print_json
from riffdb.client.application import compiled_plan
from riffdb.core.errors import RiffError
from riffdb.plan.lock import LOCK_FILE, Difference, differences, lock_text

_WORDS = {"changed": "changed", "missing": "is gone", "new": "is new"}


@click.command("lock", short_help="keep the identities of a contract, or check them")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--check", "is_check", is_flag=True, help="Write nothing; exit 1 if the contract is not as locked.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, is_check: bool, as_json: bool) -> int:
    """Write riffdb.lock for the application in DIR, or check the application against it."""
    plan = compiled_plan(folder)
    path = folder / LOCK_FILE
    locked = _read(path, must_exist=is_check)
    if not is_check:
        text = lock_text(plan)
        if locked != text:
            replace_file(path, text)
        if as_json:
            print_json({"file": str(path), "changed": locked != text})
        note(f"{path}: {'unchanged' if locked == text else 'written'}")
        return 0
    found = differences(locked, str(path), plan)
    if as_json:
        print_json({"ok": not found, "differences": [_json(difference) for difference in found]})
    for difference in found:
        note(f"{difference.name} {_WORDS[difference.kind]}")
    note(f"{path}: {'the contract is not as locked' if found else 'the contract is as locked'}")
    return 1 if found else 0


def _json(difference: Difference) -> dict[str, str]:
    return {"declaration": difference.name, "difference": difference.kind}


def _read(path: Path, *, must_exist: bool) -> str:
    try:
        return path.read_bytes().decode(errors="replace")  # what is not UTF-8 is no lock, and told as such
    except FileNotFoundError:
        if must_exist:
            raise RiffError("RDB-E-NOT-FOUND", f"there is no {path}; `riffdb lock` writes it") from None
        return ""
    except OSError as error:
        raise RiffError("RDB-E-USAGE", f"{path} cannot be read: {error.strerror}") from None
