"""What users hold: `Client` and `AsyncClient`, one interface from one source.

`Calls` has every operation once, as a coroutine; `AsyncClient` shows them as they are, `Client` shows them stepped,
over transports that never suspend. Inputs are native Python values or wire forms; a request key that is left out is
made.
"""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from uuid_utils import uuid7

from riffdb.client.answers import Answer, AnswerReader, Convert, QueryAnswer
from riffdb.client.consuming import WAIT_SECONDS, AsyncConsumer, Consumer, ConsumerCalls, Taking
from riffdb.client.transport import ConsumerName, Transport
from riffdb.client.watching import AsyncUpdates, Updates
from riffdb.core.errors import RiffError
from riffdb.core.stepping import stepped
from riffdb.plan import Plan
from riffdb.plan.changes import Deployment

AnyConsumer = TypeVar("AnyConsumer", bound=ConsumerCalls[Any])


class Calls(Generic[AnyConsumer]):
    """The operations of a client, over any transport."""

    _consumer: ClassVar[Callable[..., Any]]

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._reader: AnswerReader | None = None

    async def _plan(self) -> Plan:
        """The deployed contract, as far as the caller may use it."""
        return await self._transport.plan(renew=True)

    async def _command(self, name: str, /, **inputs: object) -> Answer:
        """Run a command durably. Declared failures are answers; what could not be done is a `RiffError`."""
        answers = self._reader or await self._answers()
        if name not in answers.request_keys:
            answers = await self._renewed()
        key = answers.request_keys.get(name)
        if key is not None and key not in inputs:
            inputs[key] = str(uuid7())
        raw = await self._transport.command(name, inputs, key)
        return answers.command(name, raw) or (await self._renewed()).known_command(name, raw)

    async def _resolve(self, name: str, /, **inputs: object) -> Answer:
        """The stored answer under a key (with the partition's inputs); `RDB-E-ABSENT` if nothing is recorded now."""
        raw = await self._transport.resolve(name, inputs)
        return (await self._answers()).command(name, raw) or (await self._renewed()).known_command(name, raw)

    async def _query(self, name: str, /, **params: object) -> QueryAnswer:
        """Run a query on one snapshot."""
        return await self._query_answer(name, await self._transport.query(name, params))

    async def _batch(
        self, steps: Sequence[Mapping[str, Any]], /, *, ordered: bool = False
    ) -> list[Answer | QueryAnswer | RiffError]:
        """Run many steps in one request, each its own transaction; what each came to, errors not raised but in place.

        A step is `{"command": name, "input": {…}}`, `{"resolve": …}` alike, or `{"query": name, "params": {…}}`. Where
        they are `ordered`, each begins after the one before, and an input may be `{"$successor": [step, binding]}`.
        """
        keyed = [await self._keyed(step) for step in steps]
        parts = msgspec.json.decode(await self._transport.batch(keyed, ordered), type=list[msgspec.Raw])
        return [await self._told(step, bytes(part)) for step, part in zip(keyed, parts, strict=True)]

    async def _keyed(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """The step, with a request key where it lacks one."""
        name, given = step.get("command"), step.get("input")
        if not isinstance(name, str) or not isinstance(given, Mapping):
            return dict(step)
        key = (await self._answers()).request_keys.get(name) or (await self._renewed()).request_keys.get(name)
        return {**step, "input": {key: str(uuid7()), **given}} if key is not None else dict(step)

    async def _told(self, step: Mapping[str, Any], raw: bytes) -> Answer | QueryAnswer | RiffError:
        told = msgspec.json.decode(raw)
        if "outcome" not in told:
            return RiffError.from_json(told)
        if "query" in step:
            return await self._query_answer(step["query"], raw)
        name = step.get("command") or step["resolve"]
        return (await self._answers()).command(name, raw) or (await self._renewed()).known_command(name, raw)

    def consumer(
        self,
        stream: str,
        /,
        *,
        name: str,
        max_items: int = 1,
        delivery_lease_seconds: int = 30,
        wait_seconds: int = WAIT_SECONDS,
        start: str = "start",
        params: Mapping[str, object] | None = None,
        **more_params: object,
    ) -> AnyConsumer:
        """The consumer of that name of a stream; its first delivery makes it. Nothing is asked before that.

        The stream's parameters are given by name, or as `params` where a name is taken. `max_items` is how many
        deliveries an iteration takes at once, `wait_seconds` how long it waits in one request.
        """
        consumer_name = ConsumerName(stream, {**(params or {}), **more_params}, name)
        taking = Taking(max_items, delivery_lease_seconds, wait_seconds, start)
        made: AnyConsumer = self._consumer(self._transport, consumer_name, taking, self._fields_of)
        return made

    async def _explain(self, name: str, params: Mapping[str, object] | None = None, /) -> dict[str, Any]:
        """How a query finds its rows: with parameters in their case, without in all of its filters; operators only."""
        return await self._transport.explain(name, params)

    async def _history(self, entity: str, /, *key: object) -> list[dict[str, Any]]:
        """The commits that wrote a row, oldest first, in wire form; operators only."""
        return await self._lines("history", entity=entity, key=key)

    async def _get(self, entity: str, /, *key: object, at: object = None) -> dict[str, Any]:
        """A row in wire form, now or as it stood at a commit sequence or a time; operators only."""
        return await self._facts("row", entity=entity, key=key, at=at)

    async def _log(
        self,
        *,
        partition: object = None,
        command: str | None = None,
        outcome: str | None = None,
        principal: str | None = None,
        key: str | None = None,
        since: object = None,
        until: object = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """The newest commits that pass the filters, oldest first, in wire form; operators only."""
        return await self._lines(
            "log",
            partition=partition,
            command=command,
            outcome=outcome,
            principal=principal,
            key=key,
            since=since,
            until=until,
            before=before,
            limit=limit,
        )

    async def _why(self, partition: object, sequence: int | str, /) -> dict[str, Any]:
        """One commit with the checks that it passed and the one that ended it, in wire form; operators only."""
        return await self._facts("why", partition=partition, sequence=sequence)

    async def _verify(self) -> dict[str, Any]:
        """Whether everything that is kept agrees: `{"ok","commits","rows","first_difference"}`; operators only."""
        return await self._facts("verify")

    async def _backup(self, name: str, /) -> dict[str, Any]:
        """Have the server write a backup under this name: `{"path","manifest"}`; of a database in this process, `name`
        is a new folder. Operators only."""
        return await self._transport.backup(name)

    async def _retention(
        self, *, older_than_seconds: int | None = None, keys_seconds: int | None = None, apply: bool = False
    ) -> dict[str, Any]:
        """What of the log is older than that, or than request keys are remembered, and may go; with `apply` it does.

        With `keys_seconds`, request keys are remembered so long from now on. Operators only.
        """
        return await self._facts(
            "retention", older_than_seconds=older_than_seconds, keys_seconds=keys_seconds, apply=apply
        )

    async def _deploy(self, plan: Plan, /) -> Deployment:
        """Put a contract on the database: `created`, `updated` or `unchanged`, with the changes; operators only."""
        deployment = await self._transport.deploy(plan)
        self._reader = None
        return deployment

    async def _create_capability(
        self,
        *,
        role: str = "",
        principal: str | None = None,
        partition: object = None,
        lifetime_seconds: int | None = None,
    ) -> dict[str, Any]:
        """A new capability with its token, shown this once; without a role, an operator's. Operators only."""
        wanted: dict[str, object] = {"role": role} if role else {"operator": True}
        return await self._facts(
            "create", **wanted, principal=principal, partition=partition, expires_seconds=lifetime_seconds
        )

    async def _derive_capability(
        self,
        *,
        role: str | None = None,
        commands: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        streams: Sequence[str] | None = None,
        principal: str | None = None,
        partition: object = None,
        lifetime_seconds: int | None = None,
    ) -> dict[str, Any]:
        """A capability that may do less than one's own, with its token, shown this once; whoever has one may.

        Names keep it to some of what the role grants. `role` is for operators.
        """
        return await self._facts(
            "derive",
            role=role,
            commands=commands,
            queries=queries,
            streams=streams,
            principal=principal,
            partition=partition,
            expires_seconds=lifetime_seconds,
        )

    async def _capabilities(self) -> list[dict[str, Any]]:
        """The facts of all capabilities, oldest first, never their tokens; operators only."""
        return await self._lines("capabilities")

    async def _capability(self, identity: str, /) -> dict[str, Any]:
        """The facts of a capability; operators only."""
        return await self._facts("capability", identity=identity)

    async def _revoke_capability(self, identity: str, /) -> dict[str, Any]:
        """End a capability and what was derived from it; operators only."""
        return await self._facts("revoke", identity=identity)

    async def _facts(self, operation: str, **arguments: object) -> dict[str, Any]:
        facts: dict[str, Any] = await self._transport.operate(operation, arguments)
        return facts

    async def _lines(self, operation: str, **arguments: object) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = await self._transport.operate(operation, arguments)
        return lines

    async def _close(self) -> None:
        """Let go of the database."""
        await self._transport.close()

    async def _fields_of(self, event: str) -> Convert:
        return (await self._answers()).event(event) or (await self._renewed()).known_event(event)

    async def _query_answer(self, name: str, raw: bytes) -> QueryAnswer:
        return (await self._answers()).query(name, raw) or (await self._renewed()).known_query(name, raw)

    async def _answers(self) -> AnswerReader:
        if self._reader is None:
            self._reader = AnswerReader(await self._transport.plan())
        return self._reader

    async def _renewed(self) -> AnswerReader:
        """The answers of the contract that is deployed now, which may have grown since it was asked for."""
        self._reader = AnswerReader(await self._transport.plan(renew=True))
        return self._reader


class AsyncClient(Calls[AsyncConsumer]):
    """A database as coroutines see it."""

    _consumer = AsyncConsumer

    def watch(self, name: str, /, **params: object) -> AsyncUpdates:
        """A live query: its answer now, and again whenever it changes."""
        return AsyncUpdates(self._transport.watch(name, params), name, self._query_answer)

    plan = Calls._plan
    command = Calls._command
    resolve = Calls._resolve
    query = Calls._query
    batch = Calls._batch
    explain = Calls._explain
    history = Calls._history
    backup = Calls._backup
    get = Calls._get
    log = Calls._log
    why = Calls._why
    retention = Calls._retention
    verify = Calls._verify
    derive_capability = Calls._derive_capability
    capabilities = Calls._capabilities
    capability = Calls._capability
    deploy = Calls._deploy
    create_capability = Calls._create_capability
    revoke_capability = Calls._revoke_capability
    close = Calls._close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()


class Client(Calls[Consumer]):
    """A database as plain calls see it; usable from many threads."""

    _consumer = Consumer

    def watch(self, name: str, /, **params: object) -> Updates:
        """A live query: its answer now, and again whenever it changes."""
        return Updates(self._transport.watch(name, params), name, self._query_answer)

    plan = stepped(Calls._plan)
    command = stepped(Calls._command)
    resolve = stepped(Calls._resolve)
    query = stepped(Calls._query)
    batch = stepped(Calls._batch)
    explain = stepped(Calls._explain)
    history = stepped(Calls._history)
    backup = stepped(Calls._backup)
    get = stepped(Calls._get)
    log = stepped(Calls._log)
    why = stepped(Calls._why)
    retention = stepped(Calls._retention)
    verify = stepped(Calls._verify)
    derive_capability = stepped(Calls._derive_capability)
    capabilities = stepped(Calls._capabilities)
    capability = stepped(Calls._capability)
    deploy = stepped(Calls._deploy)
    create_capability = stepped(Calls._create_capability)
    revoke_capability = stepped(Calls._revoke_capability)
    close = stepped(Calls._close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
