"""The routes of operations: each calls the method of the database that has its name, with what address and body say.

The parts of an address are arguments under the names that they have there; a POST has the others in its body, a GET in
its query, where each stands once and is text. Whether a value fits is the database's question, so that every edge
refuses alike. Absent: what the operations do.
"""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl

from riffdb.core.errors import input_error
from riffdb.http.bodies import check_members, json_object
from riffdb.http.requests import Request
from riffdb.http.responses import Response, json_answer, lines_answer
from riffdb.plan.declarations import EntityPlan

Answer = Callable[[Request], Coroutine[Any, Any, Response]]
_QUERY_FIELDS_MAX = 32


def operation(name: str, *members: str, parts: tuple[str, ...] = (), status: int = 200) -> Answer:
    """What answers at the address of an operation; `members` are those of its body or query."""

    async def respond(request: Request) -> Response:
        given = _given(request, members)
        arguments: dict[str, Any] = {member: value for member, value in given.items() if value is not None}
        arguments |= zip(parts, request.parts, strict=True)
        if parts == ("entity", "key"):
            entity = request.database.contract.entity_named(arguments["entity"])
            arguments["key"] = _key_parts(entity, arguments["key"])
        act: Callable[..., Coroutine[Any, Any, Any]] = getattr(request.database.operations, name)
        found = await act(request.caller, **arguments)
        return lines_answer(found) if isinstance(found, list) else json_answer(found, status)

    return respond


def _given(request: Request, members: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = json_object(request.body) if request.body else {}
    if request.query:
        try:
            pairs = parse_qsl(request.query, True, True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
        except ValueError:
            raise input_error("query", "must be name=value pairs in UTF-8, joined by &") from None
        for name, value in pairs:
            if name in given:
                raise input_error(name, "is given twice")
            given[name] = value
    check_members(given, members)
    return given


def _key_parts(entity: EntityPlan, path: str) -> list[str]:
    """The values of a key in a path, in which an encoded slash looks like one that separates.

    Only texts can hold a slash, so surplus parts belong to the text of the key, if it has just one.
    """
    parts = path.split("/")
    surplus = len(parts) - len(entity.key)
    texts = [position for position, part in enumerate(entity.key) if part.type.kind == "string"]
    if surplus > 0 and len(texts) == 1:
        end = texts[0] + surplus + 1
        parts[texts[0] : end] = ["/".join(parts[texts[0] : end])]
    return parts
