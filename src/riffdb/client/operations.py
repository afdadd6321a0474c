"""Where a server has each operation of operators: method, address, and what it answers with.

An embedded database has them under the same names, with the same arguments; so one table serves every edge. Absent:
what they do.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from riffdb.client.wire import wire_value
from riffdb.core.errors import RiffError


@dataclass(frozen=True, slots=True)
class Operation:
    """`{name}` in the address is an argument, `{key…}` one of several parts. The other arguments stand in the query of
    a GET and in the body of a POST. `has_lines`: one JSON document a line comes back. One that is not `repeatable`
    makes something each time."""

    method: str
    address: str
    has_lines: bool = False
    repeatable: bool = True


OPERATIONS = {
    "create": Operation("POST", "/v1/admin/capabilities", repeatable=False),
    "derive": Operation("POST", "/v1/capabilities/derive", repeatable=False),
    "capabilities": Operation("GET", "/v1/admin/capabilities", has_lines=True),
    "capability": Operation("GET", "/v1/admin/capabilities/{identity}"),
    "revoke": Operation("POST", "/v1/admin/capabilities/{identity}/revoke"),
    "history": Operation("GET", "/v1/history/{entity}/{key…}", has_lines=True),
    "row": Operation("GET", "/v1/rows/{entity}/{key…}"),
    "log": Operation("GET", "/v1/log", has_lines=True),
    "why": Operation("GET", "/v1/why/{partition}/{sequence}"),
    "backup_here": Operation("POST", "/v1/admin/backup", repeatable=False),
    "retention": Operation("POST", "/v1/admin/retention"),
    "verify": Operation("POST", "/v1/admin/verify"),
}


def address_and_body(operation: Operation, arguments: Mapping[str, object]) -> tuple[str, bytes | None]:
    """The address with its arguments, and the body of a POST; None stands for what is not given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    address = operation.address
    for name in list(given):
        if f"{{{name}}}" in address:
            address = address.replace(f"{{{name}}}", segment(_text(given.pop(name), name)))
        elif f"{{{name}…}}" in address:
            parts = given.pop(name)
            assert isinstance(parts, Sequence)
            address = address.replace(f"{{{name}…}}", "/".join(segment(_text(part, name)) for part in parts))
    wire = {name: wire_value(value, name) for name, value in given.items()}
    if operation.method == "POST":
        return address, json.dumps(wire, ensure_ascii=True).encode()
    return (f"{address}?{urlencode(wire)}" if wire else address), None


def segment(text: str) -> str:
    """One part of a path."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise RiffError("RDB-E-INPUT", "a name or key must be valid Unicode, without lone surrogates") from None


def _text(value: object, name: str) -> str:
    return str(wire_value(value, name))
