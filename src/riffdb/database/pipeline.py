"""Seal, evaluate, commit, answer: what happens to a batch of admitted requests inside one transaction.

The clock is read once; each further command of a partition gets one microsecond more. All rows that the inputs name are
read at once, the commands are evaluated in order over the overlay of what the ones before changed, and everything is
written and flushed together. Each command is all or nothing, and one command's failure never harms its neighbours.
Nothing is answered before it is durable.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import hit
from riffdb.core.incidents import new_incident
from riffdb.core.layout import Key, Row, Table
from riffdb.core.records import Batch, Capability, CommitRecord, Head, Identity, SecretPart
from riffdb.database.admission import CommandRequest
from riffdb.database.callers import check_capability
from riffdb.database.contracts import Contract, PreparedCommand
from riffdb.database.guards import found_by, held
from riffdb.database.overlay import Overlay
from riffdb.database.records import EMPTY_CHAIN, commit_record, unrecorded_text
from riffdb.database.sealing import seal_services
from riffdb.database.secrets import is_same_input, secret_hash, secret_part
from riffdb.database.settings import Settings
from riffdb.database.wakeups import Wakeups
from riffdb.engine import Evaluation, Guarded, Rows
from riffdb.storage.protocol import Store, Transaction

logger = logging.getLogger(__name__)

Committed = tuple[bytes, PreparedCommand, Evaluation]
"""What a command of the batch came to, and in which partition."""


@dataclass(slots=True)
class BatchState:
    """What the batch knows: the store's time, the heads and answers so far, the callers' capabilities, the overlay.

    The head of a partition is the record of its newest commit, where the batch has made one."""

    settings: Settings
    now: int
    heads: dict[bytes, Head | CommitRecord]
    answered: dict[Identity, CommitRecord]
    capabilities: dict[bytes, Capability]
    overlay: Overlay = field(default_factory=Overlay)
    records: list[CommitRecord] = field(default_factory=list)
    commits: list[Committed] = field(default_factory=list)
    secrets: dict[tuple[bytes, int], SecretPart] = field(default_factory=dict)

    def head(self, partition: bytes) -> Head | CommitRecord:
        """The newest commit of a partition, or the state before its first."""
        return self.heads.get(partition) or Head(partition, 0, 0, EMPTY_CHAIN)


async def run_commands(
    store: Store, contract: Contract, settings: Settings, requests: Sequence[CommandRequest], wakeups: Wakeups
) -> None:
    """Settle all requests, and wake those whom the commits concern.

    An error of one is kept in it; a failure of the store is raised and concerns them all.
    """
    current = [request for request in requests if request.contract is contract]
    for request in requests:
        request.stale_contract = request.contract is not contract
    commits: list[Committed] = []
    try:
        await _run(store, settings, current, commits)
    finally:  # also when it is not known whether they are durable: a wakeup in vain harms nobody
        for partition, topics in _topics(wakeups, commits).items():
            wakeups.bump(partition, topics)


def _topics(wakeups: Wakeups, commits: Sequence[Committed]) -> dict[bytes, set[str]]:
    """What was changed and emitted in each of the partitions that anybody waits for."""
    topics: dict[bytes, set[str]] = {}
    for partition, command, evaluation in commits:
        if wakeups.is_awaited(partition):
            of_partition = topics.setdefault(partition, set())
            entities = command.compiled.slots
            of_partition.update(
                f"entity:{entities[change[0]]}" for change in evaluation.changes if change[0] < len(entities)
            )
            of_partition.update(f"event:{name}" for name, _ in evaluation.events)
    return topics


async def _run(store: Store, settings: Settings, requests: Sequence[CommandRequest], commits: list[Committed]) -> None:
    async with store.transaction() as transaction:
        state = await _observe(transaction, settings, requests)
        state.commits = commits
        begun = time.monotonic()
        for request in requests:
            try:
                check_deadline(request.deadline, begun)
                await _settle(transaction, state, request)
            except RiffError as error:
                request.error = error
            except Exception as error:  # noqa: BLE001  # logged with an incident id; the neighbours go on
                request.error = incident(error, f"command {request.command.plan.name}")
        if state.records:
            newest = {record.partition: record for record in state.records}
            await transaction.write(
                Batch(
                    heads=[record.head for record in newest.values()],
                    records=state.records,
                    secrets=list(state.secrets.values()),
                    mutations=state.overlay.mutations(),
                )
            )


async def _observe(transaction: Transaction, settings: Settings, requests: Sequence[CommandRequest]) -> BatchState:
    state = BatchState(
        settings,
        now=await transaction.time(),
        heads={**await transaction.heads({request.partition for request in requests})},
        answered=await transaction.answered([request.identity for request in requests if request.identity is not None]),
        capabilities=await transaction.capabilities(
            {request.caller.token_hash for request in requests if request.caller.token_hash is not None}
        ),
    )
    wanted: dict[str, tuple[Table, list[Key]]] = {}
    for request in requests:
        if request.identity not in state.answered:
            if request.command.plan.services:
                await seal_services(transaction, request, state.now)
            try:
                pairs = request.command.compiled.stages[0](request.inputs, ())
            except Exception:  # noqa: BLE001, S112  # raised again when it is evaluated, where it harms no neighbour
                continue
            for slot, key in pairs:
                if slot in request.command.finders:
                    continue
                table = request.command.tables[slot]
                wanted.setdefault(table.name, (table, []))[1].append(key)
    for table, keys in wanted.values():
        await state.overlay.load(transaction, table, keys)
    return state


async def _settle(transaction: Transaction, state: BatchState, request: CommandRequest) -> None:
    head = state.head(request.partition)
    sealed, sequence = max(state.now, head.time + 1), head.sequence + 1
    if request.caller.token_hash is not None:
        check_capability(state.capabilities.get(request.caller.token_hash), sealed)
    stored = None if request.identity is None else state.answered.get(request.identity)
    if stored is not None and not state.settings.is_forgotten(stored, sealed):
        await _replay(transaction, state, request, stored)
        return
    hit("command.sealed")
    fetch = _looped_rows if request.command.compiled.looped else _rows
    rows = await fetch(transaction, state.overlay, request)
    evaluation = request.command.compiled.evaluate(request.inputs, rows, sealed, sequence)
    if isinstance(evaluation, Guarded):
        evaluation = await held(transaction, state.overlay, request, evaluation)
    hit("command.evaluated")
    if request.identity is None:
        request.answer = unrecorded_text(request, evaluation)
        return
    secret = None
    if request.command.has_secrets:
        secret = await secret_part(transaction, request, evaluation, sequence)
    record = commit_record(request, evaluation, head, sequence, sealed, secret_hash(secret))
    for slot, key, _, after in evaluation.changes:
        state.overlay.change(request.command.tables[slot], key, after)
    state.records.append(record)
    state.commits.append((request.partition, request.command, evaluation))
    if secret is not None:
        state.secrets[record.partition, sequence] = secret
    state.answered[request.identity] = record
    state.heads[request.partition] = record
    request.answer = record.answer


async def _rows(transaction: Transaction, overlay: Overlay, request: CommandRequest) -> list[Rows]:
    """The rows of every slot, as the commands before left them."""
    command = request.command
    rows: list[Rows] = [None] * len(command.tables)
    for stage in command.compiled.stages:
        for slot, key in stage(request.inputs, rows):
            if command.finders and slot in command.finders:
                rows[slot] = await found_by(transaction, overlay, command.tables[slot], command.finders[slot], key)
                continue
            known = overlay.of(command.tables[slot])
            if key not in known:
                await overlay.load(transaction, command.tables[slot], [key])
            rows[slot] = known[key]
    return rows


async def _looped_rows(transaction: Transaction, overlay: Overlay, request: CommandRequest) -> list[Rows]:
    """The rows of every slot of a bulk command: a slot of its loop is given what is known of its table, by key, or
    what its unique found, by the values of that."""
    command, looped = request.command, request.command.compiled.looped
    rows: list[Rows] = [None] * len(command.tables)
    found: dict[int, dict[Key, Row | None]] = {slot: {} for slot in command.finders}
    for slot in looped:
        rows[slot] = found[slot] if slot in found else overlay.of(command.tables[slot])
    for stage in command.compiled.stages:
        pairs = stage(request.inputs, rows)
        wanted: dict[int, list[Key]] = {}
        for slot, key in pairs:
            wanted.setdefault(slot, []).append(key)
        for slot, keys in wanted.items():
            table, known = command.tables[slot], overlay.of(command.tables[slot])
            if slot in found:
                known = found[slot]
                for values in keys:
                    known[values] = await found_by(transaction, overlay, table, command.finders[slot], values)
            else:
                await overlay.load(transaction, table, keys)
            if slot not in looped:
                rows[slot] = known[keys[0]]
    return rows


async def _replay(transaction: Transaction, state: BatchState, request: CommandRequest, stored: CommitRecord) -> None:
    pending = state.secrets.get((stored.partition, stored.sequence))
    is_same = await is_same_input(transaction, request, stored, pending)
    if not is_same:
        raise RiffError(
            "RDB-E-IDEMPOTENCY-REUSED",
            "the request key was used with another input; use a new key for a new request",
            key=stored.key,
        )
    request.answer, request.replayed = stored.answer, True


def check_deadline(deadline: float | None, now: float | None = None) -> None:
    """Refuse to begin what nobody waits for any more; both times are the monotonic clock's."""
    if deadline is not None and deadline <= (time.monotonic() if now is None else now):
        raise RiffError("RDB-E-DEADLINE", "the time given for this was over before it was begun; nothing was done")


def incident(error: Exception, place: str, *, is_undone: bool = True) -> RiffError:
    """What the caller is told of a fault of ours; the log tells its type and place under the same id.

    Unless it `is_undone` for sure, the outcome is unknown.
    """
    identity, text = new_incident(error, place)
    logger.error("%s", text)
    code, what = (
        ("RDB-E-INTERNAL", "nothing was changed")
        if is_undone
        else ("RDB-E-OUTCOME-UNKNOWN", "it is not known whether anything was")
    )
    return RiffError(code, f"RiffDB failed; {what} (incident {identity})", detail={"incident": identity})
