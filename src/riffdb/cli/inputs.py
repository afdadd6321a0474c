"""What a user gives: JSON on the line, from a file as `@FILE`, from stdin as `-`; `name=value`; lengths of time.

What cannot be read is `RDB-E-USAGE` with the option it stands in, and never a traceback. Whether the values fit is the
database's question.
"""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.json_depth import check_depth
from riffdb.core.limits import BODY_DRAIN_BYTES_MAX

INPUT_BYTES_MAX = BODY_DRAIN_BYTES_MAX
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LENGTH = re.compile(r"([1-9][0-9]{0,8})([smhd])")


def read_object(text: str | None, option: str) -> dict[str, Any]:
    """The JSON object that an option names; `RDB-E-USAGE` if it cannot be read or is none."""
    if text is None:
        return {}
    if text == "-":
        raw = _read(option, "stdin")
    elif text.startswith("@"):
        raw = _read(option, f"`{text[1:]}`", Path(text[1:]))
    else:
        try:
            raw = text.encode(errors="surrogateescape")  # the bytes as they were given, for the decoder to judge
        except UnicodeEncodeError:
            raise RiffError("RDB-E-USAGE", f"{option}: this is no valid Unicode") from None
    if len(raw) > INPUT_BYTES_MAX:
        raise RiffError("RDB-E-TOO-LARGE", f"{option}: at most {INPUT_BYTES_MAX} bytes can be given")
    return parse_object(raw, option)


def _read(option: str, name: str, path: Path | None = None) -> bytes:
    """One byte more than is allowed at most, so that an endless source ends here."""
    try:
        if path is not None:
            with path.open("rb") as file:
                return file.read(INPUT_BYTES_MAX + 1)
        if sys.stdin is None:
            raise RiffError("RDB-E-USAGE", f"{option}: stdin is closed; give the JSON on the line, or as @FILE")
        return sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
    except OSError as error:
        raise RiffError("RDB-E-USAGE", f"{option}: {name} cannot be read: {error.strerror}") from None


def parse_object(raw: bytes, place: str) -> dict[str, Any]:
    """The JSON object in these bytes; `RDB-E-USAGE` with the place otherwise."""
    if not raw.strip():
        raise RiffError("RDB-E-USAGE", f"{place}: there is nothing in it; an object without values is {{}}")
    try:
        check_depth(raw)
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise RiffError("RDB-E-USAGE", f"{place}: this is no JSON: {_reason(error)}") from None
    if not isinstance(found, dict):
        raise RiffError("RDB-E-USAGE", f'{place}: give a JSON object, such as {{"name": "value"}}')
    return found


def _reason(error: Exception) -> str:
    text = str(error).partition(" - at `")[0].removeprefix("JSON is malformed: ")  # the names there are hidden anyway
    return text[:1].lower() + text[1:]


def parse_params(lines: tuple[str, ...]) -> dict[str, str]:
    """The values of `--param name=value`."""
    params = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise RiffError("RDB-E-USAGE", "--param takes name=value, such as --param organization_id=…")
        if name in params:
            raise RiffError("RDB-E-USAGE", f"--param gives `{name}` twice")
        params[name] = value
    return params


def parse_seconds(text: str | None, option: str) -> int | None:
    """The seconds of a length of time such as 15m; None for None."""
    if text is None:
        return None
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise RiffError("RDB-E-USAGE", f"{option} takes a number and a unit: 15m, 12h, 30d")
    return int(match[1]) * _SECONDS[match[2]]


def parse_commit(text: str) -> tuple[str, int]:
    """The partition, in its wire form, and the sequence of a commit."""
    partition, colon, sequence = text.rpartition(":")
    if not (colon and partition and sequence.isascii() and sequence.isdecimal()):
        raise RiffError("RDB-E-USAGE", "a commit is named PARTITION:SEQUENCE, as `riffdb log` shows it")
    return partition, int(sequence)
