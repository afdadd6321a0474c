"""The one way that every HTTP request goes: route, authenticate, authorize, read, answer; an error becomes a problem.

Nothing of a caller's doing ends as a 500: what does is a fault of ours, logged once under the incident id that the
problem shows, without the values that were at hand. Logs never hold an input, a token or a path as it was sent.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from time import monotonic, perf_counter
from typing import Any, TypeVar

from riffdb.core.errors import RiffError, input_error
from riffdb.core.failpoints import hit
from riffdb.core.incidents import new_incident
from riffdb.core.limits import IDENTIFIER_BYTES_MAX, TIMEOUT_MS_MAX
from riffdb.database.callers import Caller
from riffdb.database.database import Database
from riffdb.http.bodies import Body
from riffdb.http.connections import Connection, connection_from
from riffdb.http.live import LiveAnswer, send_events
from riffdb.http.requests import Request
from riffdb.http.responses import Response, problem
from riffdb.http.routes import ROUTES, Route, RouteTable
from riffdb.http.rsgi import Headers, HTTPProtocol, Scope

logger = logging.getLogger(__name__)

INGRESS = "http"
TIMEOUT_HEADER = "riffdb-timeout-ms"
_NOBODY = Caller("nobody", "(nobody)", INGRESS)
Received = TypeVar("Received")


class Edge:
    """The RSGI application of one database. It sets `stop` once the store serves nothing more."""

    def __init__(
        self,
        database: Database,
        stop: asyncio.Event,
        *,
        port: int,
        body_bytes_max: int,
        body_wait_seconds_max: int,
        heartbeat_seconds: float,
    ) -> None:
        self._stop = stop
        self._database = database
        self._table = RouteTable(ROUTES)
        self._body_bytes_max = body_bytes_max
        self._body_wait_seconds_max = body_wait_seconds_max
        self._port = port
        self._heartbeat_seconds = heartbeat_seconds
        self._lasting: set[Connection] = set()
        self._receiving: dict[asyncio.Task[Any], float] = {}
        self._under_way = 0
        self._is_stopping = False
        self._is_idle = asyncio.Event()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answer one request."""
        self._under_way += 1
        try:
            started = perf_counter()
            route, response = await self._respond(scope, protocol)
            if response is None:
                return
            if isinstance(response, LiveAnswer):
                response = await self._send_live(scope, protocol, route, response)
            else:
                protocol.response_bytes(response.status, response.headers, response.body)
            if route is not None and route.commits and response.status == 200:
                hit("answer.sent")
            if logger.isEnabledFor(logging.INFO):
                _log(scope, route, response, perf_counter() - started)
        finally:
            self._under_way -= 1
            if self._database.failure is not None:
                self._stop.set()
            if self._is_stopping and self._under_way == 0:
                self._is_idle.set()

    async def finish(self) -> None:
        """Take no further body, end every wait, and return when every request under way has been answered."""
        self._is_stopping = True
        self._database.wakeups.finish()
        for connection in self._lasting:
            connection.give_up()
        for task in self._receiving:
            task.cancel()
        if self._under_way:
            await self._is_idle.wait()

    async def watch(self) -> None:
        """Give up bodies that do not arrive; runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._body_wait_seconds_max / 4)
            oldest = loop.time() - self._body_wait_seconds_max
            for task in [task for task, since in self._receiving.items() if since < oldest]:
                task.cancel()

    async def _respond(self, scope: Scope, protocol: HTTPProtocol) -> tuple[Route | None, Response | LiveAnswer | None]:
        """The route, and the response; None where nobody is there any more to take it."""
        route: Route | None = None
        response: Response | LiveAnswer
        body = Body(scope.headers, protocol)
        try:
            deadline = _deadline(scope.headers)
            route, parts = self._table.find(scope.method, scope.path)
            caller = _NOBODY
            if route.authorize is not None:
                caller = await self._database.authenticate(_bearer_token(scope.headers), INGRESS)
                route.authorize(self._database, caller, parts)
            content = b""
            if not body.is_done:
                content = await self._receive(body, body.read(route.body_bytes_max or self._body_bytes_max))
            last_event_id = scope.headers.get("last-event-id")
            answering = route.answer(
                Request(
                    self._database,
                    caller,
                    parts,
                    content,
                    scope.query_string,
                    deadline,
                    last_event_id,
                    self._heartbeat_seconds,
                )
            )
            response = await (_while_there(protocol, answering) if route.waits else answering)
        except _GoneError:
            return route, None
        except RiffError as error:
            response = problem(error)
        except Exception as error:  # noqa: BLE001  # told and logged as our fault, by its incident id
            response = problem(_incident(error, route))
        if not body.is_done:
            with suppress(RiffError):  # the answer stands, whatever becomes of the rest of the body
                await self._receive(body, body.drain())
        return route, response

    async def _send_live(
        self, scope: Scope, protocol: HTTPProtocol, route: Route | None, live: LiveAnswer
    ) -> LiveAnswer:
        """Send until the watch, the connection or the server ends."""
        connection = None
        try:
            connection = connection_from(scope.client, self._port, self._heartbeat_seconds)
            if connection is None:  # it has ended already
                return live
            self._lasting.add(connection)
            code = await send_events(protocol, connection, live.watch, lambda error: _incident(error, route))
            return replace(live, code=code)
        finally:
            live.watch.close()
            if connection is not None:
                self._lasting.discard(connection)
                connection.close()

    async def _receive(self, body: Body, receiving: Coroutine[Any, Any, Received]) -> Received:
        """What is received, unless it takes too long or the server stops; the body is left as it is then."""
        task = asyncio.current_task()
        assert task is not None
        self._receiving[task] = asyncio.get_running_loop().time()
        try:
            if self._is_stopping:
                raise asyncio.CancelledError
            return await receiving
        except asyncio.CancelledError:
            task.uncancel()
            receiving.close()
            body.is_done = True
            if self._is_stopping:
                raise RiffError("RDB-E-UNAVAILABLE", "the server is stopping; nothing was done") from None
            seconds = self._body_wait_seconds_max
            raise RiffError("RDB-E-INPUT", f"the body did not arrive within {seconds} s", path="body") from None
        finally:
            del self._receiving[task]


class _GoneError(Exception):
    """The client went away before there was an answer."""


async def _while_there(protocol: HTTPProtocol, answering: Coroutine[Any, Any, Received]) -> Received:
    """The response, given up as soon as the client goes away."""
    task = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(protocol.client_disconnect())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _GoneError
        return task.result()
    finally:
        for ended in (task, gone):
            ended.cancel()


def _deadline(headers: Headers) -> float | None:
    """When the client stops waiting, by the monotonic clock; None if it does not say."""
    text = headers.get(TIMEOUT_HEADER)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= TIMEOUT_MS_MAX):
        raise input_error(TIMEOUT_HEADER, f"must be milliseconds, a number from 1 to {TIMEOUT_MS_MAX:,}")
    return monotonic() + int(text) / 1_000


def _bearer_token(headers: Headers) -> str:
    values = headers.get_all("authorization")
    if len(values) != 1:
        raise RiffError("RDB-E-UNAUTHENTICATED", "send one header `Authorization: Bearer rdb_…`")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer":
        raise RiffError("RDB-E-UNAUTHENTICATED", "the header must be `Authorization: Bearer rdb_…`")
    return token.strip(" ")


def _incident(error: Exception, route: Route | None) -> RiffError:
    identity, text = new_incident(error, "no route" if route is None else route.address)
    logger.error("%s", text)
    return RiffError("RDB-E-INTERNAL", f"RiffDB failed (incident {identity})", detail={"incident": identity})


def _log(scope: Scope, route: Route | None, response: Response | LiveAnswer, seconds: float) -> None:
    address = "-" if route is None else route.address
    method, milliseconds = scope.method[:IDENTIFIER_BYTES_MAX], seconds * 1000
    logger.info("%s %s %d %s %.1f ms", method, address, response.status, response.code, milliseconds)
