"""Admission of what is asked of a consumer: the grant of the stream, its parameters and partition, the consumer's name,
and what the call itself takes. A refusal here names the bound; nothing of the store is looked at.

A consumer is (stream, canonical parameters, name), and known by the hash of the three.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import (
    CONSUMER_NAME_BYTES_MAX,
    DELIVERIES_MAX,
    DELIVERY_SECONDS_MAX,
    DELIVERY_SECONDS_MIN,
    NACK_DELAY_SECONDS_MAX,
    U64_MAX,
)
from riffdb.core.types import string
from riffdb.core.values import decoder
from riffdb.database.callers import Caller, check_partition, check_stream
from riffdb.database.contracts import Contract
from riffdb.database.streams import Position, PreparedStream
from riffdb.plan import Plan

TOKEN_BYTES = 24
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
_EVENT_ID = re.compile(r"([1-9][0-9]{0,19}):([1-9][0-9]{0,19})")
_NAME = decoder(string(CONSUMER_NAME_BYTES_MAX), {})


@dataclass(frozen=True, slots=True)
class Subject:
    """The consumer that a call is about, and who calls; `contract` is the one that admitted it."""

    contract: Contract
    caller: Caller
    stream: PreparedStream
    params: tuple[Any, ...]
    canonical: str
    partition: bytes
    name: str
    id: bytes

    @property
    def key(self) -> tuple[bytes, bytes]:
        """The key of the consumer's row."""
        return self.partition, self.id

    @property
    def topic(self) -> str:
        """What those are woken by who wait for a delivery of this consumer."""
        return f"consumer:{self.id.hex()}"


def admit_consumer(
    contract: Contract, caller: Caller, stream: str, params: Mapping[str, object], consumer: object
) -> Subject:
    """Who is meant; `RDB-E-FORBIDDEN`, `RDB-E-NOT-FOUND` or `RDB-E-INPUT` otherwise."""
    check_stream(contract.plan, caller, stream)
    prepared = contract.stream(stream)
    values = prepared.params.decode(params)
    partition = prepared.partition(values)
    check_partition(caller, partition)
    name = _consumer_name(contract.plan, stream, consumer)
    canonical = prepared.params.canonical(values)
    identity = sha256("\0".join((stream, canonical, name)).encode()).digest()
    return Subject(contract, caller, prepared, values, canonical, partition, name, identity)


def _consumer_name(plan: Plan, stream: str, value: object) -> str:
    name: str = _NAME(value, "consumer")
    if not (name and name.isprintable()):
        raise input_error("consumer", f"must be 1 to {CONSUMER_NAME_BYTES_MAX} bytes of printable text")
    for schedule in plan.schedules:
        if schedule.name == name and (schedule.source, schedule.source_name) != ("stream", stream):
            raise input_error("consumer", f"is the name of a schedule, which is no consumer of stream `{stream}`")
    return name


def event_position(value: object) -> Position:
    """The place that an event id names."""
    match = _EVENT_ID.fullmatch(value) if isinstance(value, str) else None
    if match is None or max(int(match[1]), int(match[2])) > U64_MAX:
        raise input_error("event_id", 'must be the id of an event as a delivery has it, such as "12:1"')
    return Position(int(match[1]), int(match[2]))


def hashed_token(value: object) -> bytes:
    """The hash of a delivery token."""
    if not isinstance(value, str) or _TOKEN.fullmatch(value) is None:
        raise input_error("token", "must be the token of a delivery: 32 letters, digits, `-` and `_`")
    return sha256(value.encode()).digest()


def check_incarnation(value: object, incarnation: str) -> None:
    """Refuse a token of another history of the database."""
    if not isinstance(value, str):
        raise input_error("incarnation", "must be the text that stood beside the delivery")
    if value != incarnation:
        raise RiffError(
            "RDB-E-INCARNATION",
            "the delivery is of another history of this database, which was restored or made anew since; ask for "
            "deliveries again",
            path="incarnation",
        )


def _whole(path: str, low: int, high: int, what: str) -> Callable[[object], int]:
    def checked(value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise input_error(path, f"must be a whole number of {what} from {low} to {high}")
        return value

    return checked


max_items = _whole("max_items", 1, DELIVERIES_MAX, "deliveries")
lease_seconds = _whole("delivery_lease_seconds", DELIVERY_SECONDS_MIN, DELIVERY_SECONDS_MAX, "seconds")
extend_seconds = _whole("seconds", DELIVERY_SECONDS_MIN, DELIVERY_SECONDS_MAX, "seconds")
delay_seconds = _whole("delay_seconds", 0, NACK_DELAY_SECONDS_MAX, "seconds")


def first_position(value: object) -> str:
    """Where a new consumer begins."""
    if value not in ("start", "now"):
        raise input_error("from", 'must be "start" or "now"')
    return str(value)


def unknown_consumer() -> RiffError:
    """The refusal to do anything with a consumer that was never made, or was retired."""
    return RiffError("RDB-E-NOT-FOUND", "the stream has no consumer of that name here; its first `next` makes it")


def too_many_unsettled(limit: int) -> RiffError:
    """The refusal to give a consumer more while it has not settled what it has."""
    message = f"this consumer has {limit} deliveries that are not settled; settle some first"
    return RiffError("RDB-E-UNSETTLED", message, detail={"retry_after": 1})
