"""The transport over HTTP, without I/O of its own: what to send, when to send it again, what an answer means.

An exchange that broke after the request may have left, or that brought anything but an answer of ours, is *unknown*; it
is settled by sending the same key and input again, within the budget of attempts, and only then reported, as
`RDB-E-OUTCOME-UNKNOWN` with the key. A refusal of a later attempt settles nothing of an earlier one. The bytes go
through an `Exchange`: `blocking` for the sync client, `suspending` for the async one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from riffdb.client.events import RemoteEvents
from riffdb.client.exchanges import (
    BrokenError,
    Exchange,
    NotSentError,
    PassingError,
    Request,
    Response,
    RetryBudget,
    asked_seconds,
)
from riffdb.client.operations import OPERATIONS, address_and_body, segment
from riffdb.client.transport import ConsumerName
from riffdb.client.wire import wire_value, wire_values
from riffdb.core.codes import CODES
from riffdb.core.errors import RiffError
from riffdb.core.limits import WAIT_SECONDS_MAX
from riffdb.plan import Plan
from riffdb.plan.changes import Deployment
from riffdb.plan.plan import to_json

Result = TypeVar("Result")


_OPERATORS = frozenset(["seek", "redrive", "retire"])
_MEMBERS = {"start": "from"}  # a word of Python
_TRANSIENT = frozenset(
    ["RDB-E-OVERLOADED", "RDB-E-UNAVAILABLE", "RDB-E-CONTENTION", "RDB-E-OUTCOME-UNKNOWN", "RDB-E-WATCHES"]
)


class _CommandAnswer(msgspec.Struct):
    """What an answer to a command has at least."""

    outcome: str
    payload: dict[str, msgspec.Raw]
    workflow_revisions: list[msgspec.Raw]
    commit: msgspec.Raw
    replayed: bool


class _QueryAnswer(msgspec.Struct):
    """What an answer to a query has at least."""

    outcome: str
    payload: dict[str, msgspec.Raw]
    as_of: dict[str, msgspec.Raw]


class _Deliveries(msgspec.Struct):
    """What an answer to `next` has at least."""

    incarnation: str
    deliveries: list[dict[str, msgspec.Raw]]


class _Disposition(msgspec.Struct):
    """What an answer to `ack`, `nack` and `extend` has at least."""

    disposition: str


class _Described(msgspec.Struct):
    plan: Plan


_check_command = msgspec.json.Decoder(_CommandAnswer).decode
_check_query = msgspec.json.Decoder(_QueryAnswer).decode
_check_array = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_check_deliveries = msgspec.json.Decoder(_Deliveries).decode
_check_disposition = msgspec.json.Decoder(_Disposition).decode
_read_deployed = msgspec.json.Decoder(Deployment).decode
_read_described = msgspec.json.Decoder(_Described).decode
_read_facts = msgspec.json.Decoder(dict[str, Any]).decode


class RemoteTransport:
    """Speaks to one server on behalf of one token."""

    def __init__(self, exchange: Exchange, budget: RetryBudget) -> None:
        self._exchange = exchange
        self._budget = budget
        self._plan: Plan | None = None

    async def plan(self, *, renew: bool = False) -> Plan:
        """The deployed plan, asked for once."""
        if self._plan is None or renew:
            self._plan = (await self._call(Request("GET", "/v1/contract", None), _read_described)).plan
        return self._plan

    async def command(self, name: str, values: Mapping[str, object], key_name: str | None) -> bytes:
        """Run a command, and run it again with the same key until its outcome is known."""
        wire = wire_values(values)
        key = None if key_name is None or wire.get(key_name) is None else str(wire[key_name])
        return await self._call(_post(f"/v1/commands/{segment(name)}", {"input": wire}), _command_answer, key)

    async def resolve(self, name: str, values: Mapping[str, object]) -> bytes:
        """The stored answer under a key."""
        request = _post(f"/v1/commands/{segment(name)}/resolve", {"input": wire_values(values)})
        return await self._call(request, _command_answer)

    async def query(self, name: str, values: Mapping[str, object]) -> bytes:
        """Run a query."""
        request = _post(f"/v1/queries/{segment(name)}", {"params": wire_values(values)})
        return await self._call(request, _query_answer)

    async def batch(self, steps: Sequence[Mapping[str, object]], ordered: bool) -> bytes:
        """Run many steps, and again with the same keys until there is an answer."""
        wire = [wire_values(step) for step in steps]
        return await self._call(_post("/v1/batch", {"steps": wire, "ordered": ordered}), _array_answer)

    async def stream(self, verb: str, consumer: ConsumerName, arguments: Mapping[str, object]) -> bytes:
        """What a consumer does, sent again until there is an answer."""
        rights = "admin/" if verb in _OPERATORS else ""
        body: dict[str, object] = {"params": wire_values(consumer.params), "consumer": consumer.name}
        for name, value in arguments.items():
            if value is not None:
                body[_MEMBERS.get(name, name)] = wire_value(value, name)
        wait = arguments.get("wait_seconds")
        request = _post(f"/v1/{rights}streams/{segment(consumer.stream)}/{verb}", body)
        if isinstance(wait, int):
            request = replace(request, wait_seconds=max(0, min(wait, WAIT_SECONDS_MAX)))
        return await self._call(request, _STREAM_ANSWERS.get(verb, _object_answer))

    def is_passing(self, error: RiffError) -> bool:
        """A server may come back, and a busy one is free again."""
        return error.facts.retryable

    def watch(self, name: str, values: Mapping[str, object]) -> RemoteEvents:
        """The events of a live query, from one connection after another."""
        request = _post(f"/v1/queries/{segment(name)}/watch", {"params": wire_values(values)})
        return RemoteEvents(self._exchange, self._budget, request, _refusal)

    async def explain(self, name: str, values: Mapping[str, object] | None) -> dict[str, Any]:
        """How a query finds its rows."""
        body = {} if values is None else {"params": wire_values(values)}
        return await self._call(_post(f"/v1/admin/queries/{segment(name)}/explain", body), _read_facts)

    async def operate(self, name: str, arguments: Mapping[str, object]) -> Any:
        """What an operation answers with. One that makes something is sent once: a lost answer is an error."""
        operation = OPERATIONS[name]
        address, body = address_and_body(operation, arguments)
        request = Request(operation.method, address, body)
        read: Callable[[bytes], Any] = _read_lines if operation.has_lines else _read_facts
        if operation.repeatable:
            return await self._call(request, read)
        try:
            return _read(await self._exchange.exchange(request), read)
        except PassingError as error:
            raise error.refusal from None
        except NotSentError as error:
            raise RiffError("RDB-E-UNAVAILABLE", f"{error}; nothing was sent") from error
        except BrokenError as error:
            raise RiffError("RDB-E-OUTCOME-UNKNOWN", f"{error}; it may have been made all the same") from error

    async def backup(self, name: str) -> dict[str, Any]:
        """Have the server write a backup."""
        made: dict[str, Any] = await self.operate("backup_here", {"name": name})
        return made

    async def deploy(self, plan: Plan) -> Deployment:
        """Put a contract on the database."""
        request = _post("/v1/admin/deploy", {"plan": json.loads(to_json(plan))})
        return await self._call(request, _read_deployed)

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def _call(self, request: Request, read: Callable[[bytes], Result], key: str | None = None) -> Result:
        """Send until there is an answer that another attempt would not change; every request here may be repeated."""
        is_unknown = False
        last: Exception | None = None
        for attempt in range(1, self._budget.attempts + 1):
            if last is not None:
                await self._exchange.pause(self._wait_seconds(attempt - 1, last))
            try:
                return _read(await self._exchange.exchange(request), read)
            except NotSentError as error:
                last = error
            except BrokenError as error:
                last, is_unknown = error, True
            except PassingError as error:
                last, is_unknown = error, is_unknown or error.refusal.code == "RDB-E-OUTCOME-UNKNOWN"
            except RiffError as error:
                if is_unknown and key is not None and error.code != "RDB-E-IDEMPOTENCY-REUSED":
                    raise _unknown(error, key) from error
                raise
        if is_unknown and key is not None:
            raise _unknown(last, key) from last
        if isinstance(last, PassingError):
            last.refusal.key = key
            raise last.refusal from None
        raise RiffError("RDB-E-UNAVAILABLE", f"{last}; nothing is known to have been done", key=key) from last

    def _wait_seconds(self, attempt: int, last: Exception) -> float:
        wait, asked = self._budget.delay_seconds(attempt), asked_seconds(last)
        return wait if asked is None else max(wait, min(asked, self._budget.patience_seconds))


def _unknown(last: Exception | None, key: str) -> RiffError:
    return RiffError(
        "RDB-E-OUTCOME-UNKNOWN",
        f"it is not known whether the command was done ({last}); send the same key and input again to settle it",
        key=key,
    )


def _post(path: str, body: Mapping[str, object]) -> Request:
    return Request("POST", path, json.dumps(body, ensure_ascii=True).encode())


def _command_answer(body: bytes) -> bytes:
    _check_command(body)
    return body


def _query_answer(body: bytes) -> bytes:
    _check_query(body)
    return body


def _deliveries_answer(body: bytes) -> bytes:
    _check_deliveries(body)
    return body


def _disposition_answer(body: bytes) -> bytes:
    _check_disposition(body)
    return body


def _array_answer(body: bytes) -> bytes:
    _check_array(body)
    return body


def _object_answer(body: bytes) -> bytes:
    _read_facts(body)
    return body


_STREAM_ANSWERS = {
    "next": _deliveries_answer,
    "ack": _disposition_answer,
    "nack": _disposition_answer,
    "extend": _disposition_answer,
}


def _read_lines(body: bytes) -> list[dict[str, Any]]:
    return [_read_facts(line) for line in body.splitlines() if line]


def _read(response: Response, read: Callable[[bytes], Result]) -> Result:
    """What the response tells; a problem of the server is raised, and anything else is `BrokenError`."""
    if 200 <= response.status < 300:
        try:
            return read(response.body)
        except ValueError as error:
            raise BrokenError("what came back is no answer of RiffDB") from error
    raise _refusal(response)


def _refusal(response: Response) -> Exception:
    """The error that the response tells of.

    Where it is no problem of ours, a gateway spoke: its refusal of the request is final, but when it says that it
    failed, it may have passed the request on.
    """
    try:
        problem = _read_facts(response.body)
    except ValueError:
        problem = {}
    code = str(problem.get("code"))
    if not code.startswith("RDB-E-"):
        what = f"status {response.status} came back with no reason of RiffDB"
        if response.status == 429 or response.status >= 500:
            return BrokenError(what, response.retry_after)
        return RiffError("RDB-E-USAGE", f"{what}; is this the address of a server of RiffDB?")
    error = RiffError.from_json(problem)
    if response.retry_after is not None:
        error.detail.setdefault("retry_after", response.retry_after)
    is_passing = code in _TRANSIENT or (code not in CODES and problem.get("retryable") is True)
    return PassingError(error) if is_passing else error


def server_address(url: str) -> SplitResult:
    """The parts of a server's address; `RDB-E-USAGE` if it is not `http://HOST[:PORT]` or `https://…`."""
    refusal = RiffError("RDB-E-USAGE", "the server's address must be like http://127.0.0.1:7433, without more")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        raise refusal from None
    if parts.scheme not in ("http", "https") or not re.fullmatch(r"[\w.:%-]+", host, re.ASCII) or port == 0:
        raise refusal
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise refusal
    return parts


def retry_after_seconds(header: str | None) -> float | None:
    """The seconds of a `Retry-After` header, if it names seconds."""
    return float(header) if header is not None and header.isascii() and header.isdecimal() else None


def request_headers(token: str) -> dict[str, str]:
    """The headers of every request; `RDB-E-UNAUTHENTICATED` for a text that no token can be, which it does not show."""
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise RiffError(
            "RDB-E-UNAUTHENTICATED",
            "the token must be the text that `riffdb capability create` printed, without white space",
        )
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
