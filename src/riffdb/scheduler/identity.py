"""Attempt identity v1: the request key under which each command of a turn is sent.

`"sched_" + hex(SHA-256(b))`. b is the text `riffdb/schedule-attempt/v1` and NUL, then in this order, numbers
big-endian, *text* being its length in 4 bytes and its UTF-8: text schedule; 1 byte source kind (1 query, 2 stream);
32 bytes hash of the source's declaration; text source name; 8 bytes due (µs, two's complement); 1 byte number of
target components; each as 1 byte tag and value (1: uuid, 16 bytes; 2: text; 3: u64, 8 bytes); 1 byte purpose; then
for business (2) 1 byte generation, text command, and for claim (1), release (3), fail (4), renew (5) 8 bytes
ordinal, 8 bytes presented revision. `tests/conformance/attempt_identity.json` fixes it for every language.
Values of users never stand in a message here.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from typing import Literal, TypeAlias
from uuid import UUID

from riffdb.core.limits import I64_MAX, I64_MIN, U64_MAX

DOMAIN = b"riffdb/schedule-attempt/v1\0"
COMPONENTS_MAX = 8
TEXT_BYTES_MAX = 256
TARGET_BYTES_MAX = 1_024
GENERATIONS_MAX = 255

Component: TypeAlias = UUID | str | int
Target: TypeAlias = tuple[Component, ...]
"""Partition first, then the rest of the key; an int is a u64."""


class Purpose(IntEnum):
    """What an identity is for; the number is its byte."""

    CLAIM = 1
    BUSINESS = 2
    RELEASE = 3
    FAIL = 4
    RENEW = 5


@dataclass(frozen=True, slots=True)
class Source:
    """What a schedule selects from: a query or a stream, the 32-byte hash of its declaration, its name."""

    kind: Literal["query", "stream"]
    declaration_hash: bytes = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What all attempts at one piece of work share; `ValueError` where a part is outside its bounds."""

    schedule: str
    source: Source
    due: int
    target: Target = field(repr=False)
    prefix: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", _prefix(self))


def attempt_identity(subject: Subject, purpose: Purpose, ordinal: int, revision: int) -> str:
    """The request key of a claim, release, fail or renewal that presents `revision`; `ValueError` out of bounds."""
    if purpose is Purpose.BUSINESS:
        raise ValueError("a business identity is made by business_identity, from a generation")
    if not 1 <= ordinal <= U64_MAX:
        raise ValueError("the ordinal must be a u64 and not zero")
    if not 0 <= revision <= U64_MAX:
        raise ValueError("the presented revision must be a u64")
    return _digest(subject, bytes([purpose]) + ordinal.to_bytes(8, "big") + revision.to_bytes(8, "big"))


def business_identity(subject: Subject, command: str, generation: int) -> str:
    """The request key of the business command, the same for every delivery; `ValueError` out of bounds."""
    if not 1 <= generation <= GENERATIONS_MAX:
        raise ValueError(f"the generation must lie between 1 and {GENERATIONS_MAX}")
    return _digest(subject, bytes([Purpose.BUSINESS, generation]) + _name(command, "the name of the command"))


def _digest(subject: Subject, purpose: bytes) -> str:
    return "sched_" + sha256(subject.prefix + purpose).hexdigest()


def _prefix(subject: Subject) -> bytes:
    source, target = subject.source, subject.target
    if source.kind not in ("query", "stream"):
        raise ValueError("the source must be a query or a stream")
    if len(source.declaration_hash) != 32:
        raise ValueError("the hash of the source's declaration must have 32 bytes")
    if not I64_MIN <= subject.due <= I64_MAX:
        raise ValueError("the due time must fit 64 bits of microseconds")
    if not 1 <= len(target) <= COMPONENTS_MAX:
        raise ValueError(f"a target has between 1 and {COMPONENTS_MAX} components, the partition first")
    components = b"".join(_component(value, f"target component {index}") for index, value in enumerate(target))
    if len(components) > TARGET_BYTES_MAX:
        raise ValueError(f"the components of a target have at most {TARGET_BYTES_MAX} bytes, with tags and lengths")
    return b"".join(
        (
            DOMAIN,
            _name(subject.schedule, "the name of the schedule"),
            b"\x01" if source.kind == "query" else b"\x02",
            source.declaration_hash,
            _name(source.name, "the name of the source"),
            subject.due.to_bytes(8, "big", signed=True),
            bytes([len(target)]),
            components,
        )
    )


def _component(value: Component, place: str) -> bytes:
    if isinstance(value, UUID):
        return b"\x01" + value.bytes
    if isinstance(value, str):
        return b"\x02" + _text(value, place)
    if type(value) is not int or not 0 <= value <= U64_MAX:
        raise ValueError(f"{place}: must be a uuid, a text or a u64")
    return b"\x03" + value.to_bytes(8, "big")


def _name(name: str, place: str) -> bytes:
    if not name:
        raise ValueError(f"{place}: must not be empty")
    return _text(name, place)


def _text(text: str, place: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{place}: must be valid Unicode, without lone surrogates") from None
    if len(encoded) > TEXT_BYTES_MAX:
        raise ValueError(f"{place}: must have at most {TEXT_BYTES_MAX} bytes of UTF-8")
    return len(encoded).to_bytes(4, "big") + encoded
