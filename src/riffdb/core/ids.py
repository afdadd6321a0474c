"""Identifiers that are made, not given: UUIDv7 request keys and ids, incident ids.

A UUIDv7 (RFC 9562) begins with the time in milliseconds, so keys made in order lie beside each other in an index.
"""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """A new time-ordered UUID."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    return UUID(int=value | 0b10 << 62 | random & ((1 << 62) - 1))


def incident_id() -> str:
    """A short id that ties an error to the log line that explains it."""
    return os.urandom(6).hex()
