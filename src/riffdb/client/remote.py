"""The transport over HTTP, without I/O of its own: what to send, when to send it again, what an answer means.

An exchange that broke after the request may have left is *unknown*; it is settled by sending the same key and input
again, within the budget of attempts, and only then reported, as `RDB-E-OUTCOME-UNKNOWN` with the key. The bytes go
through an `Exchange`: `blocking` for the sync client, `suspending` for the async one.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from riffdb.client.wire import wire_value, wire_values
from riffdb.core.errors import RiffError
from riffdb.plan import Plan
from riffdb.plan.plan import from_json, to_json


class NotSentError(Exception):
    """The request did not reach the server."""


class BrokenError(Exception):
    """The request may have reached the server; no whole answer came back."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response; `retry_after` in seconds, where the server named it."""

    status: int
    body: bytes
    retry_after: float | None = None


class Exchange(Protocol):
    """Carries requests to one server. `exchange` raises `NotSentError` or `BrokenError`, nothing else."""

    async def exchange(self, request: Request) -> Response:
        """The response of the server."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How often a request is sent again and how long is waited between, doubling, with full jitter."""

    attempts: int = 6
    base_seconds: float = 0.05
    max_seconds: float = 2.0

    def delay_seconds(self, attempt: int) -> float:
        """The wait after attempt number `attempt` (from 1)."""
        ceiling = min(self.base_seconds * 2 ** (attempt - 1), self.max_seconds)
        return random.uniform(0, ceiling)


_TRANSIENT = frozenset(["RDB-E-OVERLOADED", "RDB-E-UNAVAILABLE", "RDB-E-CONTENTION", "RDB-E-OUTCOME-UNKNOWN"])


class RemoteTransport:
    """Speaks to one server on behalf of one token."""

    def __init__(self, exchange: Exchange, budget: RetryBudget) -> None:
        self._exchange = exchange
        self._budget = budget
        self._plan: Plan | None = None

    async def plan(self) -> Plan:
        """The deployed plan, asked for once."""
        if self._plan is None:
            body = await self._call(Request("GET", "/v1/contract", None))
            self._plan = from_json(json.dumps(json.loads(body)["plan"]))
        return self._plan

    async def command(self, name: str, values: Mapping[str, object]) -> bytes:
        """Run a command, and run it again with the same key until its outcome is known."""
        wire = wire_values(values)
        key_name = await self._key_name(name)
        key = None if key_name is None else str(wire.get(key_name))
        return await self._call(_post(f"/v1/commands/{quote(name, safe='')}", {"input": wire}), key)

    async def resolve(self, name: str, values: Mapping[str, object]) -> bytes:
        """The stored answer under a key."""
        return await self._call(_post(f"/v1/commands/{quote(name, safe='')}/resolve", {"input": wire_values(values)}))

    async def query(self, name: str, values: Mapping[str, object]) -> bytes:
        """Run a query."""
        return await self._call(_post(f"/v1/queries/{quote(name, safe='')}", {"params": wire_values(values)}))

    async def history(self, entity: str, key: Sequence[object]) -> list[dict[str, Any]]:
        """The commits that wrote a row."""
        parts = "/".join(quote(str(wire_value(value, "key")), safe="") for value in key)
        body = await self._call(Request("GET", f"/v1/history/{quote(entity, safe='')}/{parts}", None))
        return [json.loads(line) for line in body.splitlines() if line]

    async def deploy(self, plan: Plan) -> str:
        """Put a contract on the database."""
        body = await self._call(_post("/v1/admin/deploy", {"plan": json.loads(to_json(plan))}))
        return str(json.loads(body)["outcome"])

    async def create_capability(
        self, *, role: str, principal: str | None, partition: object, lifetime_seconds: int | None
    ) -> dict[str, Any]:
        """A new capability with its token. Sent once: a lost answer is an error, and the capability may exist."""
        wanted: dict[str, object] = {"role": role} if role else {"operator": True}
        wanted |= {"principal": principal, "partition": partition, "expires_seconds": lifetime_seconds}
        given = {name: value for name, value in wanted.items() if value is not None}
        created: dict[str, Any] = json.loads(await self._once(_post("/v1/admin/capabilities", given)))
        return created

    async def revoke_capability(self, identity: str) -> dict[str, Any]:
        """End a capability."""
        path = f"/v1/admin/capabilities/{quote(identity, safe='')}/revoke"
        revoked: dict[str, Any] = json.loads(await self._call(_post(path, {})))
        return revoked

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def _key_name(self, command: str) -> str | None:
        plan = await self.plan()
        return next((known.idempotency_key for known in plan.commands if known.name == command), None)

    async def _once(self, request: Request) -> bytes:
        try:
            return _body_of(await self._exchange.exchange(request))
        except NotSentError as error:
            raise RiffError("RDB-E-UNAVAILABLE", "the server cannot be reached") from error
        except BrokenError as error:
            raise RiffError("RDB-E-OUTCOME-UNKNOWN", "the connection broke before the answer came") from error

    async def _call(self, request: Request, key: str | None = None) -> bytes:
        """Send until there is an answer that another attempt would not change; every request here may be repeated."""
        is_unknown = False
        for attempt in range(1, self._budget.attempts + 1):
            is_last = attempt == self._budget.attempts
            wait = self._budget.delay_seconds(attempt)
            try:
                response = await self._exchange.exchange(request)
                return _body_of(response)
            except NotSentError:
                pass
            except BrokenError:
                is_unknown = True
            except RiffError as error:
                if error.code not in _TRANSIENT or (is_last and not is_unknown):
                    raise
                wait = max(wait, float(str(error.detail.get("retry_after", 0))))
            if not is_last:
                await self._exchange.pause(wait)
        if is_unknown and key is not None:
            raise RiffError(
                "RDB-E-OUTCOME-UNKNOWN",
                "no answer came within the attempts; send the same key and input again to settle it",
                key=key,
            )
        raise RiffError(
            "RDB-E-UNAVAILABLE", "the server cannot be reached; nothing is known to have been done", key=key
        )


def _post(path: str, body: Mapping[str, object]) -> Request:
    return Request("POST", path, json.dumps(body, ensure_ascii=True).encode())


def _body_of(response: Response) -> bytes:
    if 200 <= response.status < 300:
        return response.body
    try:
        problem = msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {"detail": f"the server answered with status {response.status} and no reason"}
    error = RiffError.from_json(problem)
    if response.retry_after is not None:
        error.detail.setdefault("retry_after", response.retry_after)
    raise error


def server_address(url: str) -> SplitResult:
    """The parts of a server's address; `RDB-E-USAGE` if it is not `http://HOST[:PORT]` or `https://…`."""
    refusal = RiffError("RDB-E-USAGE", "the server's address must be like http://127.0.0.1:7433, without more")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise refusal
    if parts.path.strip("/") or parts.query or parts.username:
        raise refusal
    return parts


def retry_after_seconds(header: str | None) -> float | None:
    """The seconds of a `Retry-After` header, if it names seconds."""
    return float(header) if header is not None and header.isdecimal() else None
