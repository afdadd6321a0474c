"""Wait until a partition has grown. The generation is its commit sequence: durable, and growing with each commit.

Any capability whose restriction allows the partition may ask; whether it still holds is looked at before the wait and
after it, with the generation. Absent: what was committed, which queries and streams tell.
"""

from riffdb.core.errors import input_error
from riffdb.core.limits import WAIT_SECONDS_MAX
from riffdb.core.types import U64
from riffdb.core.values import decoder
from riffdb.database.callers import Caller, check_partition, check_token
from riffdb.database.contracts import Contract
from riffdb.database.wakeups import Wakeups
from riffdb.storage.protocol import Store

_GENERATION = decoder(U64, {})


async def wait_for_growth(
    store: Store,
    contract: Contract,
    wakeups: Wakeups,
    caller: Caller,
    partition: object,
    after: object,
    wait_seconds: object,
) -> bytes:
    """The JSON answer: the generation as soon as it is above `after` (None: at once), or what it is after the wait."""
    where = contract.decode_partition(partition)
    check_partition(caller, where)
    known = None if after is None else _GENERATION(after, "after")
    seconds = wait_limit(wait_seconds)
    with wakeups.waiter(where) as waiter:
        generation = await _generation(store, caller, where)
        if known is not None and generation <= known and seconds:
            await waiter.wait(seconds)
            generation = await _generation(store, caller, where)
    return f'{{"generation":"{generation}"}}'.encode()


def wait_limit(value: object) -> float:
    """The seconds of a wait; `RDB-E-INPUT` unless they are a number from 0 to `WAIT_SECONDS_MAX`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= WAIT_SECONDS_MAX:
        raise input_error("wait_seconds", f"must be a number of seconds from 0 to {WAIT_SECONDS_MAX}")
    return value


async def _generation(store: Store, caller: Caller, partition: bytes) -> int:
    async with store.snapshot() as reader:
        await check_token(reader, caller)
        head = (await reader.heads({partition})).get(partition)
    return 0 if head is None else head.sequence
