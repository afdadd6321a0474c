"""How long what was answered is remembered: an operator's act sets it, and the log tells so.

Nothing of the log is trimmed that is younger. Absent: what a forgotten key means, which the pipeline decides at each
command; trimming.
"""

from riffdb.core.errors import input_error
from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.limits import KEYS_SECONDS_MAX, KEYS_SECONDS_MIN
from riffdb.core.records import Batch, Mutation
from riffdb.database.acts import system_commit
from riffdb.database.callers import Caller
from riffdb.database.contracts import Contract
from riffdb.database.settings import KEYS, SETTINGS, Settings, keys_row
from riffdb.storage.protocol import Transaction


def decode_keys_seconds(value: object) -> int:
    """How long keys are to be remembered; `RDB-E-INPUT` for what is no such time."""
    return _seconds(value, KEYS, KEYS_SECONDS_MIN)


def trimmed_age(settings: Settings, value: object) -> int:
    """From which age on commits may be trimmed (s): as long as keys are remembered, or longer if that is given."""
    return settings.keys_seconds if value is None else _seconds(value, "older_than_seconds", settings.keys_seconds)


def _seconds(value: object, name: str, least: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= KEYS_SECONDS_MAX:
        return value
    raise input_error(name, f"must be whole seconds from {least:,} to {KEYS_SECONDS_MAX:,}")


async def set_keys_seconds(transaction: Transaction, contract: Contract, caller: Caller, seconds: int) -> None:
    """Let request keys be remembered so long from now on."""
    key = (SYSTEM_PARTITION, KEYS)
    before = (await transaction.rows(SETTINGS, [key])).get(key)
    head, record = await system_commit(transaction, contract, caller, "retention.keys", {KEYS: seconds}, "done")
    revision = 1 if before is None else before[-2] + 1
    row = keys_row(seconds, revision, record.sequence)
    put = Mutation(SETTINGS.name, key, row, existed=before is not None)
    await transaction.write(Batch(heads=[head], records=[record], mutations=[put]))
