"""The table of routes: method, address, who may ask, what answers.

A route's `authorize` runs before the body is read, so a name that is not granted is refused before its input is looked
at; the database checks again in the transaction. What a route needs stands in `Request`, and it gives a `Response`.
"""

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import BATCH_BODY_BYTES_MAX, PLAN_BYTES_MAX
from riffdb.database.callers import Caller, check_command, check_operator, check_query, check_stream, visible_plan
from riffdb.database.database import Database
from riffdb.http import streams
from riffdb.http.administration import deploy, explain_query
from riffdb.http.bodies import check_members, json_object, only_member
from riffdb.http.live import LiveAnswer
from riffdb.http.operations import operation
from riffdb.http.requests import Request
from riffdb.http.responses import Response, answer, json_answer
from riffdb.plan.plan import to_json

Authorize = Callable[[Database, Caller, tuple[str, ...]], None]
Answer = Callable[[Request], Coroutine[Any, Any, Response | LiveAnswer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One address. `authorize` None: open to everybody, without a token. `body_bytes_max` None: the server's limit.

    One that `waits` is given up when its client goes away; what one that `commits` answers is durable.
    """

    method: str
    address: str
    authorize: Authorize | None
    answer: Answer
    body_bytes_max: int | None = None
    waits: bool = False
    commits: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """What a path must match; `{Name}` is one part of it, `{key…}` all that is left."""
        parts = re.split(r"(\{[^}]*\})", self.address)
        patterns = (re.escape(part) if not part.startswith("{") else _PARAMETERS["…" in part] for part in parts)
        return re.compile("".join(patterns), re.DOTALL)


_PARAMETERS = {False: "([^/]+)", True: "(.*)"}


async def run_command(request: Request) -> Response:
    """Run a command; the database's bytes, unchanged."""
    values = only_member(request.body, "input")
    return answer(await request.database.command(request.caller, request.parts[0], values, deadline=request.deadline))


async def resolve_command(request: Request) -> Response:
    """The stored answer under a key."""
    values = only_member(request.body, "input")
    return answer(await request.database.resolve(request.caller, request.parts[0], values))


async def run_query(request: Request) -> Response:
    """Run a query."""
    values = only_member(request.body, "params")
    return answer(await request.database.query(request.caller, request.parts[0], values, deadline=request.deadline))


async def run_batch(request: Request) -> Response:
    """Run many steps; the array of their answers and problems."""
    document = json_object(request.body)
    check_members(document, ("steps", "ordered"))
    if "steps" not in document:
        raise input_error("steps", "is missing; name the steps to run")
    steps, ordered = document["steps"], document.get("ordered", False)
    return answer(await request.database.batch(request.caller, steps, ordered=ordered, deadline=request.deadline))


async def watch_query(request: Request) -> LiveAnswer:
    """Watch a query: its answer, and what changes of it, as server-sent events."""
    values = only_member(request.body, "params")
    return LiveAnswer(
        request.database.watch(
            request.caller,
            request.parts[0],
            values,
            request.last_event_id,
            heartbeat_seconds=request.heartbeat_seconds,
        )
    )


async def wakeup(request: Request) -> Response:
    """The generation of a partition, once it has grown or the wait is over."""
    document = json_object(request.body)
    check_members(document, ("partition", "after", "wait_seconds"))
    if document.get("partition") is None:
        raise input_error("partition", "is missing; name the partition whose growth is waited for")
    partition, after, seconds = document["partition"], document.get("after"), document.get("wait_seconds", 0)
    return answer(await request.database.wakeup(request.caller, partition, after, seconds))


async def contract(request: Request) -> Response:
    """The deployed plan, narrowed to the caller's role, and the hash of the whole."""
    deployed, caller = request.database.contract, request.caller
    plan = visible_plan(deployed.plan, caller)
    return answer(f'{{"plan":{to_json(plan)},"hash":"{deployed.hash.hex()}"}}'.encode())


async def health(request: Request) -> Response:
    """The process answers."""
    return json_answer({"status": "alive"})


async def readiness(request: Request) -> Response:
    """The store serves, and a contract is deployed on it."""
    if request.database.failure is not None:
        raise request.database.failure
    if not request.database.has_contract:
        raise RiffError("RDB-E-UNAVAILABLE", "no contract is deployed here yet; run `riffdb deploy` first")
    return json_answer({"status": "ready"})


def _holder(database: Database, caller: Caller, parts: tuple[str, ...]) -> None:
    """Any capability will do."""


def _command_grant(database: Database, caller: Caller, parts: tuple[str, ...]) -> None:
    check_command(database.contract.plan, caller, parts[0])


def _query_grant(database: Database, caller: Caller, parts: tuple[str, ...]) -> None:
    check_query(database.contract.plan, caller, parts[0])


def _stream_grant(database: Database, caller: Caller, parts: tuple[str, ...]) -> None:
    check_stream(database.contract.plan, caller, parts[0])


def _operator(database: Database, caller: Caller, parts: tuple[str, ...]) -> None:
    check_operator(caller)


_ROW = ("entity", "key")
_WANTED = ("role", "operator", "partition", "expires_seconds", "principal")
_NARROWER = ("role", "commands", "queries", "streams", "partition", "expires_seconds", "principal")
_KEPT = ("older_than_seconds", "keys_seconds", "apply")
_FILTERS = ("partition", "command", "outcome", "principal", "key", "since", "until", "before", "limit")

ROUTES = (
    Route("POST", "/v1/commands/{Name}", _command_grant, run_command, commits=True),
    Route("POST", "/v1/commands/{Name}/resolve", _command_grant, resolve_command),
    Route("POST", "/v1/batch", _holder, run_batch, BATCH_BODY_BYTES_MAX, commits=True),
    Route("POST", "/v1/queries/{Name}", _query_grant, run_query),
    Route("POST", "/v1/queries/{Name}/watch", _query_grant, watch_query),
    Route("POST", "/v1/streams/{Name}/next", _stream_grant, streams.take, waits=True, commits=True),
    Route("POST", "/v1/streams/{Name}/ack", _stream_grant, streams.ack, commits=True),
    Route("POST", "/v1/streams/{Name}/nack", _stream_grant, streams.nack, commits=True),
    Route("POST", "/v1/streams/{Name}/extend", _stream_grant, streams.extend, commits=True),
    Route("POST", "/v1/streams/{Name}/status", _stream_grant, streams.status),
    Route("POST", "/v1/wakeup", _holder, wakeup, waits=True),
    Route("GET", "/v1/contract", _holder, contract),
    Route("POST", "/v1/capabilities/derive", _holder, operation("derive", *_NARROWER, status=201)),
    Route("GET", "/v1/history/{Entity}/{key…}", _operator, operation("history", parts=_ROW)),
    Route("GET", "/v1/rows/{Entity}/{key…}", _operator, operation("row", "at", parts=_ROW)),
    Route("GET", "/v1/log", _operator, operation("log", *_FILTERS)),
    Route("GET", "/v1/why/{partition}/{sequence}", _operator, operation("why", parts=("partition", "sequence"))),
    Route("POST", "/v1/admin/deploy", _operator, deploy, PLAN_BYTES_MAX),
    Route("POST", "/v1/admin/queries/{Name}/explain", _operator, explain_query),
    Route("POST", "/v1/admin/capabilities", _operator, operation("create", *_WANTED, status=201)),
    Route("GET", "/v1/admin/capabilities", _operator, operation("capabilities")),
    Route("GET", "/v1/admin/capabilities/{id}", _operator, operation("capability", parts=("identity",))),
    Route("POST", "/v1/admin/capabilities/{id}/revoke", _operator, operation("revoke", parts=("identity",))),
    Route("POST", "/v1/admin/backup", _operator, operation("backup_here", "name")),
    Route("POST", "/v1/admin/retention", _operator, operation("retention", *_KEPT)),
    Route("POST", "/v1/admin/verify", _operator, operation("verify")),
    Route("POST", "/v1/admin/streams/{Name}/seek", _operator, streams.seek, commits=True),
    Route("POST", "/v1/admin/streams/{Name}/redrive", _operator, streams.redrive, commits=True),
    Route("POST", "/v1/admin/streams/{Name}/retire", _operator, streams.retire, commits=True),
    Route("GET", "/healthz", None, health),
    Route("GET", "/readyz", None, readiness),
)


class RouteTable:
    """Finds the route of a request."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._patterns = tuple((route.pattern.fullmatch, route) for route in routes)

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        """The route and the parts of its address, percent-decoded; `RDB-E-NOT-FOUND` or `RDB-E-METHOD` otherwise."""
        allowed: list[str] = []
        for match, route in self._patterns:
            found = match(path)
            if found is not None:
                if method == route.method or (method == "HEAD" and route.method == "GET"):
                    return route, found.groups()
                allowed += ["GET", "HEAD"] if route.method == "GET" else [route.method]
        if allowed:
            raise _wrong_method(", ".join(allowed))
        raise RiffError("RDB-E-NOT-FOUND", "there is nothing at this address")


def _wrong_method(allowed: str) -> RiffError:
    return RiffError("RDB-E-METHOD", f"this address takes {allowed}", detail={"allow": allowed})
