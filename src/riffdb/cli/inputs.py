"""JSON that a user gives: on the line, from a file as `@FILE`, from stdin as `-`; and lines of `name=value`.

What cannot be read is `RDB-E-USAGE` with the option it stands in, and never a traceback. Whether the values fit is the
database's question.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.json_depth import check_depth


def read_object(text: str | None, option: str) -> dict[str, Any]:
    """The JSON object that an option names; `RDB-E-USAGE` if it cannot be read or is none."""
    if text is None:
        return {}
    if text == "-":
        raw = sys.stdin.buffer.read()
    elif text.startswith("@"):
        try:
            raw = Path(text[1:]).read_bytes()
        except OSError as error:
            raise RiffError("RDB-E-USAGE", f"{option}: `{text[1:]}` cannot be read: {error.strerror}") from error
    else:
        raw = text.encode(errors="surrogateescape")
    return parse_object(raw, option)


def parse_object(raw: bytes, place: str) -> dict[str, Any]:
    """The JSON object in these bytes; `RDB-E-USAGE` with the place otherwise."""
    try:
        check_depth(raw)
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise RiffError("RDB-E-USAGE", f"{place}: this is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise RiffError("RDB-E-USAGE", f'{place}: give a JSON object, such as {{"name": "value"}}')
    return found


def parse_params(lines: tuple[str, ...]) -> dict[str, str]:
    """The values of `--param name=value`."""
    params = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise RiffError("RDB-E-USAGE", "--param takes name=value, such as --param organization_id=…")
        if name in params:
            raise input_error(name, "is given twice")
        params[name] = value
    return params
