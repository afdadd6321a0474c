"""Holding the lease while the handler runs.

The invariant: when `handle` is done, no renewal is outstanding, and the lease that it gives back has the newest
revision. A renewal without an answer is sent again with its own key until it has one or the lease is over. A lost lease
ends an async handler by cancelling it, and waits for a sync one, whose thread nobody can stop; its result is dropped.
"""

import asyncio

from riffdb.scheduler.failures import Retryable
from riffdb.scheduler.handler import Handler, Produced, Raised, Work, call, is_async
from riffdb.scheduler.identity import Purpose
from riffdb.scheduler.port import Answer, Success
from riffdb.scheduler.worker import Held, Timer, Turn

PAUSE_SECONDS = 1.0
"""Between two tries to settle a renewal whose answer was lost."""

Handling = asyncio.Task[Produced | Raised]


async def handle(turn: Turn, handler: Handler, held: Held) -> tuple[Produced | Raised, Held] | None:
    """Run the handler under the lease: its end and the newest lease, or None if the lease was lost meanwhile."""
    handling = asyncio.ensure_future(call(handler, _work(turn, held)))
    try:
        newest = await _hold(turn, held, handling)
        if newest is not None:
            return (_end(handling), newest)
        if is_async(handler):
            handling.cancel()
        await asyncio.wait({handling})
        return None
    finally:
        # A turn that ends on a failure of the port leaves no handler behind on the loop.
        handling.cancel()
        await asyncio.wait({handling})


def _work(turn: Turn, held: Held) -> Work:
    item = turn.item
    return Work(
        schedule=item.schedule.name,
        due=item.due,
        target=item.target,
        tries=turn.tries,
        key=turn.business_key(1),
        fencing_token=held.lease.fencing_token,
        fields=item.fields,
        claimed=held.claimed.payload,
    )


def _end(handling: Handling) -> Produced | Raised:
    return Raised(asyncio.CancelledError()) if handling.cancelled() else handling.result()


async def _hold(turn: Turn, held: Held, handling: Handling) -> Held | None:
    """Renew until the handler is done; None once the lease is lost."""
    while True:
        moment = held.renew_at if turn.item.schedule.renews else held.ends
        await _wait(turn.worker.timer, moment, handling)
        if handling.done():
            return held
        if not turn.item.schedule.renews or turn.now() >= held.ends:
            return None
        renewed = await _renew(turn, held)
        if renewed is None:
            return None
        held = renewed


async def _wait(timer: Timer, moment: float, handling: Handling) -> None:
    sleeping = asyncio.ensure_future(timer.sleep(max(0.0, moment - timer.monotonic())))
    try:
        await asyncio.wait({handling, sleeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()


async def _renew(turn: Turn, held: Held) -> Held | None:
    """One renewal, settled; None if it was refused, or not settled before the lease was over."""
    worker, since = turn.worker, turn.now()
    key = turn.key(Purpose.RENEW, held.lease.revision)
    answer: Answer | None = None
    while answer is None:
        try:
            answer = await worker.port.renew(turn.item, key, held.lease, worker.policy.lease_seconds)
        except Retryable:
            if turn.now() >= held.ends:
                return None
            await worker.timer.sleep(PAUSE_SECONDS)
    return held.renewed(answer, since) if isinstance(answer, Success) else None
