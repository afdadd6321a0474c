"""Server-sent events: an answer that lasts, one event after another, until its client goes or the server stops.

An event is taken from the database only when the connection can take it, so nothing piles up for a slow reader, who is
told to `reset` when he is too far behind. A connection that takes nothing for a heartbeat is ended. An error after the
first byte is the last event, `error`, with the problem as its data. Absent: what the events say.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from riffdb.core.errors import RiffError
from riffdb.database.watching import Watch
from riffdb.http.connections import Connection
from riffdb.http.responses import EVENTS, problem_json
from riffdb.http.rsgi import HTTPProtocol, ProtocolClosed


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """An answer whose events a watch gives. `code` is that of the error that ended it, empty for none."""

    watch: Watch
    status: int = 200
    code: str = ""


async def send_events(
    protocol: HTTPProtocol, connection: Connection, watch: Watch, fault: Callable[[Exception], RiffError]
) -> str:
    """Send what the watch gives until either ends; the code of the error that ended it, or nothing.

    `fault`: what is told of an error that is ours.
    """
    transport = protocol.response_stream(200, EVENTS)
    gone = asyncio.ensure_future(protocol.client_disconnect())
    gone.add_done_callback(lambda _: watch.close())
    try:
        while await connection.writable():
            try:
                event = await watch.next()
            except Exception as error:  # noqa: BLE001  # told in the only place that is left for it
                told = error if isinstance(error, RiffError) else fault(error)
                await transport.send_bytes(_event("error", "", problem_json(told)))
                return told.code
            if event is None:
                return ""
            await transport.send_bytes(_event(event.kind, event.id, event.data))
        connection.abort()
    except ProtocolClosed:
        pass
    finally:
        gone.cancel()
        del transport  # the response ends with its last reference, and an error's traceback would hold this one
    return ""


def _event(kind: str, identity: str, data: bytes) -> bytes:
    """JSON has no line end in it, so the data is one line."""
    head = f"event: {kind}\nid: {identity}\n" if identity else f"event: {kind}\n"
    return b"%bdata: %b\n\n" % (head.encode(), data)
