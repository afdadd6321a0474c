"""One turn of a worker: select, resolve, claim, execute, release, acknowledge.

`_run` reads like these six steps; all conditions of the protocol stand in this module. The turn survives a crash, a
pause or a lost answer between any two operations: business runs once for each piece of work, and none is passed over.
Cancellation is looked at between operations only: nothing new is begun, what was claimed or committed is cleaned up.
A failure of the port ends the turn where it stands, as a crash would; the next turn on the item picks it up.
"""

import asyncio
from dataclasses import dataclass

from riffdb.core.failpoints import hit
from riffdb.scheduler.failures import Cancelled, HandlerError, Permanent, SchedulerFailure
from riffdb.scheduler.handler import Inputs, Raised
from riffdb.scheduler.identity import GENERATIONS_MAX, Purpose
from riffdb.scheduler.policy import RETRY_SECONDS_MAX
from riffdb.scheduler.port import Absent, Answer, Evidence, Item, KeyReused, Lease, Port, Refusal, Selection, Success
from riffdb.scheduler.renewal import handle
from riffdb.scheduler.results import (
    Completed,
    Deferred,
    DeliveryLost,
    Failed,
    Gone,
    Idle,
    LeaseLost,
    Recovered,
    Refused,
    Resolved,
    TurnResult,
)
from riffdb.scheduler.worker import Cancellation, Held, Turn, Worker, begin, successor


@dataclass(frozen=True, slots=True)
class _Open:
    """The business identity of this generation holds nothing yet: it is the one to execute under."""

    generation: int


async def run_once(worker: Worker, cancellation: Cancellation) -> TurnResult:
    """Select one item, waiting as long as the policy says, and run its turn; a failure of the port is a result."""
    if cancellation.is_set():
        return Failed(None, Cancelled())
    selection = Selection(
        wait_seconds=worker.policy.wait_seconds,
        passes_over=lambda target: worker.backoff.passes_over(target, worker.timer.monotonic()),
    )
    try:
        items = await select(worker.port, selection)
    except SchedulerFailure as failure:
        return Failed(None, failure, worker.policy.retry_delay(1))
    return await run_item(worker, items[0], cancellation) if items else Idle()


def run_once_sync(worker: Worker, cancellation: Cancellation) -> TurnResult:
    """`run_once` for a caller without an event loop."""
    return asyncio.run(run_once(worker, cancellation))


async def select(port: Port, selection: Selection) -> tuple[Item, ...]:
    """Step 1."""
    hit("turn.selection.before")
    items = await port.next(selection)
    hit("turn.selection.after")
    return items


async def run_item(worker: Worker, item: Item, cancellation: Cancellation) -> TurnResult:
    """Steps 2 to 6 on a selected item; the worker remembers the end, and a failure of the port is a result."""
    try:
        result = await _run(begin(worker, item, cancellation))
    except SchedulerFailure as failure:
        result = Failed(item, failure, worker.policy.retry_delay(worker.backoff.tries(item)))
    worker.backoff.note(result, worker.policy, worker.timer.monotonic())
    return result


async def _run(turn: Turn) -> TurnResult:
    if turn.cancellation.is_set():
        return await _settle(turn, Failed(turn.item, Cancelled()))
    resolution = await _resolve(turn, 1)
    if isinstance(resolution, _Open) and _attempts_are_used_up(turn):
        failure = Permanent(reason="the delivery attempts of the policy are used up")
        return await _settle(turn, Failed(turn.item, failure, turn.worker.policy.max_retry_seconds))
    if turn.cancellation.is_set():
        return await _settle(turn, Failed(turn.item, Cancelled()))
    held = await _claim(turn)
    if not isinstance(held, Held):
        return await _settle(turn, held)
    if isinstance(resolution, _Open):
        result, held = await _execute(turn, resolution.generation, held)
    else:
        result = resolution
    await _give_back(turn, result, held)
    return await _settle(turn, result)


def _attempts_are_used_up(turn: Turn) -> bool:
    return turn.item.schedule.source.kind == "stream" and turn.item.ordinal > turn.worker.policy.attempts


async def _resolve(turn: Turn, generation: int) -> _Open | Resolved:
    """Step 2, from a generation on; an evidence failure is final for its key and had no effect: the next generation."""
    hit("turn.resolve.before")
    found: _Open | Resolved | None = None
    outcome = ""
    while found is None and generation <= GENERATIONS_MAX:
        stored = await turn.worker.port.resolve(turn.item, turn.business_key(generation))
        match stored:
            case Absent():
                found = _Open(generation)
            case Success():
                found = Recovered(turn.item, stored.outcome)
            case Refusal():
                found = Refused(turn.item, stored.outcome)
            case Evidence():
                outcome = stored.outcome
                generation += 1
    hit("turn.resolve.after")
    return found or Refused(turn.item, outcome)


async def _claim(turn: Turn) -> Held | Gone | Deferred | DeliveryLost | Failed:
    """Step 3. Only a stream's claim may take the newer revision that a stale one shows, and only once."""
    hit("turn.claim.before")
    presented, since = turn.item.expected_revision, turn.now()
    answer = await _send_claim(turn, presented)
    newer = _newer_revision(turn, answer)
    if newer is not None:
        presented = newer
        answer = await _send_claim(turn, presented)
    hit("turn.claim.after")
    if not isinstance(answer, Success):
        return _unclaimed(turn, answer)
    if answer.fencing_token is None:
        raise Permanent(reason="invalid evidence: the claim's success shows no fencing token")
    lease = Lease(turn.worker.owner, answer.fencing_token, successor(presented, answer))
    held = Held(lease, since, turn.worker.policy.lease_seconds, answer)
    if answer.delivery_kept:
        return held
    await _release(turn, held)
    return DeliveryLost(turn.item)


async def _send_claim(turn: Turn, revision: int) -> Answer:
    worker, key = turn.worker, turn.key(Purpose.CLAIM, revision)
    return await worker.port.claim(turn.item, key, worker.owner, worker.policy.lease_seconds, revision)


def _newer_revision(turn: Turn, answer: Answer) -> int | None:
    match answer:
        case Evidence(kind="stale", revision=int() as revision) if turn.item.schedule.source.kind == "stream":
            return revision if revision > turn.item.expected_revision else None
    return None


def _unclaimed(turn: Turn, answer: Evidence | Refusal | KeyReused) -> Gone | Deferred | Failed:
    match answer:
        case Evidence(kind="missing"):
            return Gone(turn.item)
        case Evidence(kind="invalid" | "exhausted"):
            return Failed(turn.item, Permanent(reason="the claim was refused as invalid or exhausted"), turn.delay)
        case Evidence(remaining_microseconds=int() as remaining):
            return Deferred(turn.item, max(turn.delay, -(-remaining // 1_000_000)))
    return Deferred(turn.item, turn.delay)


async def _execute(turn: Turn, generation: int, held: Held) -> tuple[Completed | Resolved | LeaseLost | Failed, Held]:
    """Step 4: the handler, then the business command while the lease lasts, with the newest revision."""
    item, port = turn.item, turn.worker.port
    inputs: Inputs = {}
    if turn.worker.handler is not None:
        if turn.cancellation.is_set():
            return Failed(item, Cancelled()), held
        handled = await handle(turn, turn.worker.handler, held)
        if handled is None:
            return LeaseLost(item, turn.delay), held
        end, held = handled
        if isinstance(end, Raised):
            return Failed(item, HandlerError(end.error), turn.delay), held
        inputs = end.inputs
    while True:
        if turn.cancellation.is_set():
            return Failed(item, Cancelled()), held
        if turn.now() >= held.ends:
            return LeaseLost(item, turn.delay), held
        hit("turn.business.before")
        try:
            answer = await port.execute(item, turn.business_key(generation), held.lease, inputs)
        except Permanent as failure:
            return Failed(item, failure, turn.delay), held
        hit("turn.business.after")
        match answer:
            case Success():
                hit("turn.event.before")
                hit("turn.event.after")
                return Completed(item, answer.outcome), _after_business(turn, held, answer)
            case Refusal():
                return Refused(item, answer.outcome), held
            case Evidence():
                return LeaseLost(item, turn.delay), held
        # The key is taken with another input: a predecessor's late command landed after the resolution.
        found = await _resolve(turn, generation)
        if not isinstance(found, _Open):
            return found, held
        if found.generation == generation:
            raise Permanent(reason="invalid evidence: a request key is both taken and absent")
        generation = found.generation


def _after_business(turn: Turn, held: Held, answer: Success) -> Held:
    if answer.revision is None and turn.item.schedule.run_ends_lease:
        return held
    return held.advanced(answer)


async def _give_back(turn: Turn, result: Completed | Resolved | LeaseLost | Failed, held: Held) -> None:
    """Step 5: `fail` after a handler's error or a refusal, else release; a lease gone already is no failure here."""
    schedule = turn.item.schedule
    match result:
        case LeaseLost():
            return
        case Completed() if schedule.run_ends_lease:
            return
        case Refused() | Failed() if schedule.fails and not _is_cancelled(result):
            is_settled = await _fail(turn, held)
            if is_settled:
                return
    await _release(turn, held)


def _is_cancelled(result: TurnResult) -> bool:
    return isinstance(result, Failed) and isinstance(result.failure, Cancelled)


async def _fail(turn: Turn, held: Held) -> bool:
    """Whether `fail` settled the lease: it succeeded, or the lease was gone already."""
    hit("turn.release.before")
    key = turn.key(Purpose.FAIL, held.lease.revision)
    answer = await turn.worker.port.fail(turn.item, key, held.lease, turn.delay)
    hit("turn.release.after")
    return isinstance(answer, Success | Evidence)


async def _release(turn: Turn, held: Held) -> None:
    hit("turn.release.before")
    await turn.worker.port.release(turn.item, turn.key(Purpose.RELEASE, held.lease.revision), held.lease)
    hit("turn.release.after")


async def _settle(turn: Turn, result: TurnResult) -> TurnResult:
    """Step 6: acknowledge what is resolved, put back what is not."""
    hit("turn.checkpoint.before")
    match result:
        case Completed() | Recovered() | Refused() | Gone():
            await turn.worker.port.acknowledge(turn.item)
        case Deferred() | LeaseLost() | Failed():
            delay = min(result.delay_seconds, RETRY_SECONDS_MAX)
            await turn.worker.port.negative_acknowledge(turn.item, delay)
        case Idle() | DeliveryLost():
            # Nothing is ours to settle: the delivery is another worker's by now.
            pass
    hit("turn.checkpoint.after")
    return result
