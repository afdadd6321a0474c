"""`Database`: a store, the contract deployed on it, and the door through which everything goes.

`command` is the five steps, in order: admit here, then seal, evaluate, commit and answer in the pipeline. Edges and
clients use this class and nothing below it. It never opens files of applications and knows no transport.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Self, TypeVar

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import hit
from riffdb.core.limits import BATCH_BYTES_MAX, BATCH_COMMANDS_MAX, HEARTBEAT_SECONDS
from riffdb.database import acts
from riffdb.database.acts import Act
from riffdb.database.admission import CommandRequest, admit, admit_resolve
from riffdb.database.batches import Step, check_no_successors, decode_steps, problem, run_in_order
from riffdb.database.callers import (
    Caller,
    check_capability,
    check_operator,
    check_query,
    check_token,
    check_unrestricted,
)
from riffdb.database.consumer_settling import ConsumerRequest, run_consumers
from riffdb.database.consumers import Consumers
from riffdb.database.contracts import Contract, stored_plan
from riffdb.database.doors import Door, Run
from riffdb.database.explaining import explain_query
from riffdb.database.operations import Operations
from riffdb.database.pipeline import check_deadline, incident, run_commands
from riffdb.database.reading import admit_query, run_query
from riffdb.database.records import whole_answer
from riffdb.database.settings import Settings, read_settings
from riffdb.database.tokens import token_hash
from riffdb.database.waiting import wait_for_growth
from riffdb.database.wakeups import Wakeups
from riffdb.database.watching import Watch, Watches
from riffdb.plan import Plan
from riffdb.plan.changes import Deployment
from riffdb.storage.protocol import Store

Result = TypeVar("Result")
Work = CommandRequest | Act | ConsumerRequest


class Database:
    """One open database. Use `Database.open`; every method may be called while others run."""

    def __init__(
        self, store: Store, contract: Contract | None, settings: Settings, make_door: Callable[[Run], Door]
    ) -> None:
        self._store = store
        self._contract = contract
        self._settings = settings
        self._door = make_door(self._run)
        self.wakeups = Wakeups(self._door.make_signal)
        self._consumers = Consumers(store, lambda: self.contract, self._door, self.wakeups)
        self.watches = Watches(store, self.wakeups, lambda: self.contract)
        self.operations = Operations(store, lambda: self.contract, self._settings, self._door, self.watches.rouse)

    @classmethod
    async def open(cls, store: Store, make_door: Callable[[Run], Door]) -> Self:
        """The database of this store; the store may be empty, `deploy` then puts a contract on it."""
        async with store.snapshot() as reader:
            deployed = await reader.contracts()
            settings = await read_settings(reader) if deployed else Settings()
        contract = Contract(stored_plan(deployed[-1])) if deployed else None
        return cls(store, contract, settings, make_door)

    @property
    def contract(self) -> Contract:
        """The deployed contract; `RDB-E-NOT-FOUND` on an empty database."""
        if self._contract is None:
            raise RiffError("RDB-E-NOT-FOUND", "no contract is deployed here yet; run `riffdb deploy` first")
        return self._contract

    @property
    def has_contract(self) -> bool:
        """Whether a contract is deployed here."""
        return self._contract is not None

    @property
    def failure(self) -> RiffError | None:
        """Why the store serves nothing more; None while it serves."""
        return self._store.failure

    @property
    def incarnation(self) -> str:
        """The id of this history."""
        return self._store.incarnation

    async def command(
        self, caller: Caller, name: str, values: Mapping[str, object], *, deadline: float | None = None
    ) -> bytes:
        """Run a command durably; the JSON answer. What the caller did wrong is a `RiffError`, never an outcome.

        Past the `deadline`, a time of the monotonic clock, it is not begun: `RDB-E-DEADLINE`.
        """
        while True:
            request = admit(self.contract, caller, name, values)
            request.deadline = deadline
            hit("command.admitted")
            try:
                await self._door.submit(request)
            except RiffError as error:
                raise _with_key(error, request) from error
            answer = _answer_of(request)
            if answer is not None:
                return answer

    async def batch(
        self, caller: Caller, steps: object, *, ordered: object = False, deadline: float | None = None
    ) -> bytes:
        """A JSON array with the answer or the problem of each step, in the order of the steps."""
        decoded = decode_steps(steps, ordered)

        async def run(step: Step) -> bytes:
            if step.verb == "command":
                return await self.command(caller, step.name, step.values, deadline=deadline)
            check_deadline(deadline)
            if step.verb == "resolve":
                return await self.resolve(caller, step.name, step.values)
            return await self.query(caller, step.name, step.values)

        if ordered:
            answers = await run_in_order(decoded, run)
        else:
            answers = await self._together(caller, decoded, run, deadline)
        return b"[" + b",".join(answers) + b"]"

    async def _together(
        self, caller: Caller, steps: Sequence[Step], run: Callable[[Step], Awaitable[bytes]], deadline: float | None
    ) -> list[bytes]:
        """The answers of steps without an order; commands go through the door as one."""
        answers: list[bytes] = [b""] * len(steps)
        requests: dict[int, CommandRequest] = {}
        for place, step in enumerate(steps):
            try:
                check_no_successors(step)
                if step.verb == "command":
                    requests[place] = admit(self.contract, caller, step.name, step.values)
                    requests[place].deadline = deadline
            except RiffError as error:
                answers[place] = problem(error)
        if requests:
            hit("command.admitted")
            try:
                await self._door.submit(list(requests.values()))
            except RiffError as error:
                for request in requests.values():
                    request.error = request.error or _with_key(error, request)
        for place, step in enumerate(steps):
            if answers[place]:
                continue
            try:
                answers[place] = (place in requests and _answer_of(requests[place])) or await run(step)
            except RiffError as error:
                answers[place] = problem(error)
        return answers

    async def resolve(self, caller: Caller, name: str, values: Mapping[str, object]) -> bytes:
        """The stored answer under a key, executing nothing; `RDB-E-ABSENT` if nothing is recorded now."""
        identity = admit_resolve(self.contract, caller, name, values)
        async with self._store.snapshot() as reader:
            await check_token(reader, caller)
            record = (await reader.answered([identity])).get(identity)
            is_known = record is not None and not self._settings.is_forgotten(record, await reader.time())
        if record is None or not is_known:
            raise RiffError("RDB-E-ABSENT", "nothing is recorded under this key now; an earlier call may still commit")
        return whole_answer(record.answer, True)

    async def query(
        self, caller: Caller, name: str, values: Mapping[str, object], *, deadline: float | None = None
    ) -> bytes:
        """Run a query on one snapshot; the JSON answer. Past the `deadline` it is not begun."""
        check_deadline(deadline)
        return await run_query(self._store, self.contract, caller, name, values)

    def watch(
        self,
        caller: Caller,
        name: str,
        values: Mapping[str, object],
        last_event_id: str | None = None,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> Watch:
        """A live query: its answer, and what changes of it; to be closed by whoever reads it."""
        return self.watches.watch(caller, name, values, last_event_id, heartbeat_seconds)

    async def wakeup(self, caller: Caller, partition: object, after: object, wait_seconds: object) -> bytes:
        """`{"generation"}` of a partition in its wire form, once it is above `after`, or after the wait."""
        return await wait_for_growth(self._store, self.contract, self.wakeups, caller, partition, after, wait_seconds)

    async def stream_next(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        *,
        consumer: object,
        max_items: object = 1,
        delivery_lease_seconds: object = 30,
        wait_seconds: object = 0,
        start: object = "start",
    ) -> bytes:
        """Deliveries of a stream to a consumer, which the first call makes: `{"incarnation","deliveries"}`."""
        return await self._consumers.next(
            caller,
            stream,
            params,
            consumer=consumer,
            items=max_items,
            lease=delivery_lease_seconds,
            wait=wait_seconds,
            start=start,
        )

    async def stream_ack(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        *,
        consumer: object,
        event_id: object,
        token: object,
        incarnation: object,
    ) -> bytes:
        """Settle a delivery, named by `consumer`, `event_id`, `token` and `incarnation`: `{"disposition"}`."""
        named = (consumer, event_id, token, incarnation)
        return await self._consumers.settle(caller, stream, params, "ack", named)

    async def stream_nack(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        *,
        consumer: object,
        event_id: object,
        token: object,
        incarnation: object,
        delay_seconds: object = 0,
    ) -> bytes:
        """Give a delivery back, to be delivered again after the delay: `{"disposition"}`."""
        named = (consumer, event_id, token, incarnation)
        return await self._consumers.settle(caller, stream, params, "nack", named, delay_seconds)

    async def stream_extend(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        *,
        consumer: object,
        event_id: object,
        token: object,
        incarnation: object,
        seconds: object,
    ) -> bytes:
        """Let the lease of a delivery end so many seconds from now: `{"disposition"}`."""
        named = (consumer, event_id, token, incarnation)
        return await self._consumers.settle(caller, stream, params, "extend", named, seconds)

    async def stream_status(
        self, caller: Caller, stream: str, params: Mapping[str, object], *, consumer: object
    ) -> bytes:
        """How a consumer stands: checkpoint, lag, unsettled deliveries, dead letters."""
        return await self._consumers.status(caller, stream, params, consumer)

    async def stream_seek(
        self, caller: Caller, stream: str, params: Mapping[str, object], *, consumer: object, to: object
    ) -> bytes:
        """Let a consumer read on at `start`, `now`, an event or a time; `{"read"}`."""
        return await self._consumers.seek(caller, stream, params, consumer, to)

    async def stream_redrive(
        self, caller: Caller, stream: str, params: Mapping[str, object], *, consumer: object, event_id: object = None
    ) -> bytes:
        """Let one dead letter of a consumer, or all, be delivered again; `{"redriven","dead_letters"}`."""
        return await self._consumers.redrive(caller, stream, params, consumer, event_id)

    async def stream_retire(
        self, caller: Caller, stream: str, params: Mapping[str, object], *, consumer: object
    ) -> bytes:
        """End a consumer with its deliveries and dead letters."""
        return await self._consumers.retire(caller, stream, params, consumer)

    async def explain(self, caller: Caller, name: str, values: Mapping[str, object] | None) -> dict[str, Any]:
        """How a query finds its rows: with parameters in their case, without in all; operators only."""
        check_operator(caller)
        check_query(self.contract.plan, caller, name)
        contract = self.contract
        asked = None if values is None else admit_query(self._store, contract, caller, name, values)
        async with self._store.snapshot() as reader:
            await check_token(reader, caller)
            return await explain_query(reader, contract, name, asked)

    async def authenticate(self, token: str, ingress: str) -> Caller:
        """Who holds this token; `RDB-E-UNAUTHENTICATED` if it is unknown, revoked or expired."""
        hashed = token_hash(token)
        if hashed is None:
            message = "this is not a token of RiffDB, or a mistyped one: it is `rdb_` and 49 letters and digits"
            raise RiffError("RDB-E-UNAUTHENTICATED", message)
        async with self._store.snapshot() as reader:
            found = (await reader.capabilities({hashed})).get(hashed)
            capability = check_capability(found, await reader.time())
        return Caller(
            principal=capability.principal,
            role=capability.role,
            ingress=ingress,
            capability=capability.id,
            token_hash=hashed,
            partition=capability.partition,
            grants=capability.grants,
        )

    async def deploy(self, caller: Caller, plan: Plan) -> Deployment:
        """Put a contract on the database; `RDB-E-APPROVAL` with all changes if one of them cannot be made."""

        def serve(deployed: tuple[Contract, Deployment]) -> None:
            if self._contract is None or deployed[1].outcome != "unchanged":
                self._contract = deployed[0]
                self.watches.rouse(is_stale=True)

        check_unrestricted(caller)
        _, deployment = await self.operations.act(
            caller, lambda transaction: acts.deploy(transaction, plan, caller), serve
        )
        return deployment

    async def close(self) -> None:
        """End every wait, and release the store."""
        self.wakeups.close()
        await self._store.close()

    async def _run(self, given: list[Work | list[CommandRequest]]) -> None:
        works: list[Work] = []
        for work in given:
            if isinstance(work, list):
                works += work
            else:
                works.append(work)
        calls = [work for work in works if isinstance(work, ConsumerRequest)]
        for _, group in groupby([work for work in works if not isinstance(work, ConsumerRequest)], key=type):
            members = list(group)
            for act in members:
                if isinstance(act, Act):
                    await self._perform(act)
            for batch in _bounded([request for request in members if isinstance(request, CommandRequest)]):
                await self._run_commands(batch)
        if calls:
            await self._run_consumers(calls)

    async def _run_commands(self, requests: list[CommandRequest]) -> None:
        try:
            await run_commands(self._store, self.contract, self._settings, requests, self.wakeups)
        except Exception as error:  # noqa: BLE001  # kept for each caller, who raises it
            told = error if isinstance(error, RiffError) else incident(error, "a batch of commands", is_undone=False)
            for request in requests:
                request.error = request.error or _with_key(told, request)

    async def _run_consumers(self, requests: list[ConsumerRequest]) -> None:
        try:
            await run_consumers(self._store, self.contract, requests)
        except Exception as error:  # noqa: BLE001  # kept for each caller, who raises it
            told = error if isinstance(error, RiffError) else incident(error, "a batch of consumers", is_undone=False)
            for request in requests:
                request.error = request.error or told

    async def _perform(self, act: Act) -> None:
        try:
            async with self._store.transaction() as transaction:
                act.result = await act.perform(transaction)
            if act.committed is not None:
                act.committed(act.result)
        except RiffError as error:
            act.error = error
        except Exception as error:  # noqa: BLE001  # kept for the caller, who raises it
            act.error = incident(error, "an operator's act", is_undone=False)


def _bounded(requests: Sequence[CommandRequest]) -> Iterator[list[CommandRequest]]:
    """The requests in batches of at most `BATCH_COMMANDS_MAX`, whose inputs have together at most `BATCH_BYTES_MAX`; a
    single one may have more."""
    batch: list[CommandRequest] = []
    size = 0
    for request in requests:
        if batch and (size + len(request.canonical) > BATCH_BYTES_MAX or len(batch) == BATCH_COMMANDS_MAX):
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += len(request.canonical)
    if batch:
        yield batch


def _answer_of(request: CommandRequest) -> bytes | None:
    """What a request that was settled came to; None if it must be admitted again."""
    if request.error is not None:
        raise request.error
    return None if request.stale_contract else whole_answer(request.answer, request.replayed)


def _with_key(error: RiffError, request: CommandRequest) -> RiffError:
    """The failure of a whole batch as one of its callers is told: with the key to ask again with."""
    key = None if request.identity is None else request.identity[2]
    return RiffError(error.code, error.message, key=key, detail=error.detail)
