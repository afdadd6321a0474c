"""What a command shows: data on stdout, in UTF-8 whatever the locale; all else on stderr.

Data that cannot be written is `OutputLostError`, so that nobody takes half an answer for a whole one; a note that
cannot be written changes nothing. Control characters of foreign texts are shown, never sent to a terminal. Absent:
colours.
"""

import errno
import json
import sys
from contextlib import suppress

import click

from riffdb.core.errors import RiffError
from riffdb.core.incidents import new_incident

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_VISIBLE = {code: f"\\x{code:02x}" for code in _CONTROLS if chr(code) not in "\n\t"}


class OutputLostError(Exception):
    """Stdout took no data; `reason` is empty when whoever read it had enough."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def print_text(text: str) -> None:
    """Print data for people."""
    _write(text.translate(_VISIBLE).encode(errors="backslashreplace"))


def print_json(document: object) -> None:
    """Print one JSON document on one line, in ASCII, so that nothing in it can be taken for the end of the line."""
    _write(json.dumps(document).encode())


def note(text: str) -> None:
    """Tell people something that is no data."""
    with suppress(OSError, ValueError):  # a closed stderr keeps no command from its work
        click.echo(text.translate(_VISIBLE), err=True)


def show_answer(outcome: str, raw: bytes, *, as_json: bool) -> None:
    """Print an answer: as it came with `json`, else the outcome, its payload and the successor revisions."""
    if as_json:
        _write(raw)
        return
    body = json.loads(raw)
    lines = [
        f"{outcome}{' (replayed)' if body.get('replayed') else ''}",
        json.dumps(body["payload"], indent=2, ensure_ascii=False),
        *(f"revision of {item['binding']}: {item['revision']}" for item in body.get("workflow_revisions", ())),
    ]
    print_text("\n".join(lines))


def report(error: RiffError, *, as_json: bool, remedy: str = "") -> int:
    """Show an error, on stderr for people and as a problem document on stdout with `--json`; its exit code."""
    if as_json:
        with suppress(OutputLostError):  # the error stands, and stderr and the exit code tell of it
            print_json(error.to_json())
    note(f"error[{error.code}]: {error.message}")
    if remedy:
        note(f"  {remedy}")
    if error.key is not None and error.facts.retryable:
        note(f"  ask again with the same key: {error.key}")
    return error.facts.exit


def report_fault(fault: BaseException, *, as_json: bool) -> int:
    """Show a fault of RiffDB itself by its kind and place."""
    incident, text = new_incident(fault, "the command line")
    note(text)
    error = RiffError(
        "RDB-E-INTERNAL",
        f"RiffDB failed (incident {incident}); this is a fault of RiffDB, please report the lines above",
        detail={"incident": incident},
    )
    return report(error, as_json=as_json)


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise OutputLostError("it is closed")
    try:
        click.echo(data if hasattr(sys.stdout, "buffer") else data.decode())  # a text stream of a caller has none
    except OSError as error:
        raise OutputLostError("" if error.errno == errno.EPIPE else error.strerror or "it failed") from error
