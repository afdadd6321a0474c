"""The Transport protocol: how a client reaches a database, in the same process or over HTTP.

Values go in as Python holds them or in their wire form; answers come back as the JSON bytes that every edge gives. A
transport made for the sync interface never suspends, so one source of client code serves sync and async.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from riffdb.core.errors import RiffError
from riffdb.plan import Plan
from riffdb.plan.changes import Deployment


@dataclass(frozen=True, slots=True)
class ConsumerName:
    """What names a consumer: its stream, the stream's parameters, and a name of its own."""

    stream: str
    params: Mapping[str, object]
    name: str


class Event(Protocol):
    """One event of a live query: `snapshot`, `change`, `reset` or `ping`, its id and its JSON."""

    @property
    def kind(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def data(self) -> bytes: ...


class EventSource(Protocol):
    """The events of one live query."""

    async def next(self) -> Event | None:
        """The next event, waited for; None once it was closed."""
        ...

    def close(self) -> None:
        """End it; a `next` that waits, on another thread or task, ends too."""
        ...


class Transport(Protocol):
    """One way to a database; errors are `RiffError`."""

    async def plan(self, *, renew: bool = False) -> Plan:
        """The deployed plan, narrowed to what the caller may use; with `renew`, not one that was kept."""
        ...

    async def command(self, name: str, values: Mapping[str, object], key_name: str | None) -> bytes:
        """Run a command; an unknown outcome has been settled, or is `RDB-E-OUTCOME-UNKNOWN` with the key.

        `key_name`: which of the values is the request key, if any is.
        """
        ...

    async def resolve(self, name: str, values: Mapping[str, object]) -> bytes:
        """The stored answer under a key, or `RDB-E-ABSENT`."""
        ...

    async def query(self, name: str, values: Mapping[str, object]) -> bytes:
        """Run a query."""
        ...

    async def batch(self, steps: Sequence[Mapping[str, object]], ordered: bool) -> bytes:
        """The JSON array of the steps' answers and problems; may be repeated, since commands have keys."""
        ...

    async def explain(self, name: str, values: Mapping[str, object] | None) -> dict[str, Any]:
        """How a query finds its rows, in the case of these parameters or in all; operators only."""
        ...

    async def stream(self, verb: str, consumer: ConsumerName, arguments: Mapping[str, object]) -> bytes:
        """What a consumer does: `next`, `ack`, `nack`, `extend`, `status`; operators also `seek`, `redrive`, `retire`.

        Each may be repeated: an answer to `next` that was lost costs one attempt, the others one answer.
        """
        ...

    def is_passing(self, error: RiffError) -> bool:
        """Whether the same call may be answered here later."""
        ...

    def watch(self, name: str, values: Mapping[str, object]) -> EventSource:
        """The events of a live query; whatever is wrong with it, its first event is refused."""
        ...

    async def operate(self, name: str, arguments: Mapping[str, object]) -> Any:
        """The JSON value that an operation of `client.operations` answers with."""
        ...

    async def backup(self, name: str) -> dict[str, Any]:
        """Write a backup; operators only."""
        ...

    async def deploy(self, plan: Plan) -> Deployment:
        """Put a contract on the database; operators only."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...
