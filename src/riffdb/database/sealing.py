"""Service values: what the database makes for a command when it is sealed, once, from the store's time and chance.

They stand behind the inputs from then on, so evaluation reads them as it reads those, and may run again with the same.
Absent: everything that the caller gives.
"""

from riffdb.core.types import Type
from riffdb.core.values import encoder
from riffdb.database.admission import CommandRequest
from riffdb.database.codecs import json_text
from riffdb.storage.protocol import Transaction

_UUID_TEXT = encoder(Type("uuid"), {})


async def seal_services(transaction: Transaction, request: CommandRequest, time: int) -> None:
    """Give a request its service values, unless it has them; `time` is the store's, in microseconds."""
    services = request.command.plan.services
    if not services or request.sealed:
        return
    made = [uuid_v7(time, await transaction.entropy(10)) for _ in services]
    request.inputs = (*request.inputs, *made)
    names = sorted(zip([service.name for service in services], made, strict=True))
    request.sealed = json_text({name: _UUID_TEXT(value) for name, value in names})


def uuid_v7(time: int, chance: bytes) -> bytes:
    """The UUID (RFC 9562, version 7) of a time in microseconds and ten bytes of chance."""
    low = int.from_bytes(chance, "big")
    value = (time // 1_000) << 80 | 7 << 76 | (low >> 62 & 0xFFF) << 64 | 2 << 62 | (low & (1 << 62) - 1)
    return value.to_bytes(16, "big")
