"""The routes of consumers: `next`, `ack`, `nack`, `extend`, `status`; and of operators: `seek`, `redrive`, `retire`.

A body names the consumer by `params` and `consumer` and holds what its route takes, each member under the name that the
database knows it by, but for `from`. Whether a value fits is the database's question, so that every edge refuses alike.
Absent: waiting, which the database does, and giving a wait up, which the edge does.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from riffdb.core.errors import input_error
from riffdb.database.database import Database
from riffdb.http.bodies import check_members, json_object
from riffdb.http.requests import Request
from riffdb.http.responses import Response, answer

Answer = Callable[[Request], Coroutine[Any, Any, Response]]
Act = Callable[..., Coroutine[Any, Any, bytes]]
_NAMES = ("params", "consumer")
_DELIVERY = (*_NAMES, "event_id", "token", "incarnation")
_ARGUMENTS = {"from": "start"}
"""What the database calls a member otherwise; `from` is a word of Python."""


def _route(act: Act, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> Answer:
    """What answers at a route whose body has the required members and may have the optional ones."""

    async def respond(request: Request) -> Response:
        body = json_object(request.body)
        check_members(body, (*required, *optional))
        for name in required:
            if name not in body:
                raise input_error(name, "is missing")
        params, consumer = body.pop("params"), body.pop("consumer")
        if type(params) is not dict:
            raise input_error("params", "must be a JSON object")
        arguments: dict[str, Any] = {_ARGUMENTS.get(name, name): value for name, value in body.items()}
        stream = request.parts[0]
        return answer(await act(request.database, request.caller, stream, params, consumer=consumer, **arguments))

    return respond


take = _route(Database.stream_next, _NAMES, ("max_items", "delivery_lease_seconds", "wait_seconds", "from"))
ack = _route(Database.stream_ack, _DELIVERY)
nack = _route(Database.stream_nack, _DELIVERY, ("delay_seconds",))
extend = _route(Database.stream_extend, (*_DELIVERY, "seconds"))
status = _route(Database.stream_status, _NAMES)
seek = _route(Database.stream_seek, (*_NAMES, "to"))
redrive = _route(Database.stream_redrive, _NAMES, ("event_id",))
retire = _route(Database.stream_retire, _NAMES)
