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


def partition_encoder(value_type: Type) -> Callable[[Any], bytes]:
    """The function from an inside value of a key type to its partition bytes."""
    match value_type.kind:
        case "uuid":
            return lambda value: b"\x01" + value
        case "string":
            return lambda value: b"\x02" + value.encode()
        case "u64":
            return lambda value: b"\x03" + value.to_bytes(8, "big")
        case "i64":
            return lambda value: b"\x04" + (value + _OFFSET).to_bytes(8, "big")
        case "date":
            return lambda value: b"\x05" + (value + _OFFSET).to_bytes(8, "big")
        case "timestamp":
            return lambda value: b"\x06" + (value + _OFFSET).to_bytes(8, "big")
        case "enum":
            return lambda value: b"\x07" + value.to_bytes(8, "big")
    raise AssertionError(f"{value_type} is no key type")


_TAGS = {"uuid": 1, "string": 2, "u64": 3, "i64": 4, "date": 5, "timestamp": 6, "enum": 7}


def partition_value(value_type: Type, partition: bytes) -> Any:
    """The inside value of a key type that has these partition bytes; None where they are of another type."""
    tag, body = partition[0], partition[1:]
    if _TAGS[value_type.kind] != tag:
        return None
    if tag == 1:
        return body
    if tag == 2:
        return body.decode()
    number = int.from_bytes(body, "big")
    return number - _OFFSET if tag in (4, 5, 6) else number


@lru_cache(4_096)
def partition_text(partition: bytes) -> str:
    """A readable form of partition bytes for people and for answers; the system partition is `system`."""
    if not partition:
        return "system"
    tag, body = partition[0], partition[1:]
    if tag == 1:
        text = body.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    if tag == 2:
        return body.decode()
    number = int.from_bytes(body, "big")
    return str(number - _OFFSET if tag in (4, 5, 6) else number)
