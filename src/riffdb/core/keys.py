"""Byte forms of partitions: one tag byte and the value, so that values of different types never meet.

The tags are those of the scheduler's target components: 1 uuid (16 bytes), 2 text (UTF-8), 3 u64 (8 bytes,
big-endian); 4 i64 (8 bytes, offset so that it sorts), 5 date and 6 timestamp (as 4), 7 enum (as 3).
The empty form is the system partition, in which operators' acts are recorded.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from riffdb.core.types import Type

SYSTEM_PARTITION = b""

_OFFSET = 1 << 63


_TAGS = {"uuid": 1, "string": 2, "u64": 3, "i64": 4, "date": 5, "timestamp": 6, "enum": 7}


def partition_encoder(value_type: Type) -> Callable[[Any], bytes]:
    """The function from an inside value of a key type to its partition bytes."""
    assert value_type.kind in _TAGS, f"{value_type} is no key type"
    tag = bytes((_TAGS[value_type.kind],))
    match value_type.kind:
        case "uuid":
            return lambda value: tag + value
        case "string":
            return lambda value: tag + value.encode()
        case "u64" | "enum":
            return lambda value: tag + value.to_bytes(8, "big")
    return lambda value: tag + (value + _OFFSET).to_bytes(8, "big")


def partition_value(value_type: Type, partition: bytes) -> Any:
    """The inside value of a key type that has these partition bytes; None where they are of another type."""
    return _inside(partition) if _TAGS[value_type.kind] == partition[0] else None


@lru_cache(4_096)
def partition_text(partition: bytes) -> str:
    """A readable form of partition bytes for people and for answers; the system partition is `system`."""
    if not partition:
        return "system"
    value = _inside(partition)
    if isinstance(value, bytes):
        text = value.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return str(value)


def _inside(partition: bytes) -> bytes | str | int:
    """The value whose bytes these are."""
    tag, body = partition[0], partition[1:]
    if tag == _TAGS["uuid"]:
        return body
    if tag == _TAGS["string"]:
        return body.decode()
    number = int.from_bytes(body, "big")
    return number if tag in (_TAGS["u64"], _TAGS["enum"]) else number - _OFFSET
