"""The calls of a consumer: deliveries with a long poll, what is done with them, how it stands, and operators' acts.

A wait holds no transaction and writes nothing. Who waits is woken by commits with an event of the stream, by what gives
back a delivery of the same consumer, and by its own deadline, which the end of the nearest lease or delay comes before.
Absent: transport, and the loop of whoever handles deliveries.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from riffdb.core.values import SECOND
from riffdb.database import consumer_acts
from riffdb.database.acts import Act
from riffdb.database.callers import Caller, check_operator, check_token
from riffdb.database.codecs import json_text
from riffdb.database.consumer_granting import Delivery, NextRequest, look
from riffdb.database.consumer_requests import (
    Subject,
    admit_consumer,
    check_incarnation,
    delay_seconds,
    event_position,
    extend_seconds,
    first_position,
    hashed_token,
    lease_seconds,
    max_items,
)
from riffdb.database.consumer_settling import ConsumerRequest, SettleRequest
from riffdb.database.consumer_status import status
from riffdb.database.contracts import Contract
from riffdb.database.doors import Door
from riffdb.database.waiting import wait_limit
from riffdb.database.wakeups import Wakeups
from riffdb.storage.protocol import Store, Transaction

_SECONDS = {"nack": delay_seconds, "extend": extend_seconds}


class Consumers:
    """The consumers of one database."""

    def __init__(self, store: Store, contract: Callable[[], Contract], door: Door, wakeups: Wakeups) -> None:
        self._store, self._contract, self._door, self._wakeups = store, contract, door, wakeups

    async def next(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        *,
        consumer: object,
        items: object,
        lease: object,
        wait: object,
        start: object,
    ) -> bytes:
        """`{"incarnation","deliveries"}`, as soon as there is one, or after the wait."""

        def admitted() -> Subject:
            return admit_consumer(self._contract(), caller, stream, params, consumer)

        subject = admitted()
        wanted, seconds, first, limit = max_items(items), lease_seconds(lease), first_position(start), wait_limit(wait)
        deadline = time.monotonic() + limit
        while True:
            with self._wakeups.waiter(subject.partition, subject.stream.topics | {subject.topic}) as waiter:
                while True:
                    async with self._store.snapshot() as reader:
                        seen = await look(reader, subject, wanted)
                    left = deadline - time.monotonic()
                    if seen.is_due or left <= 0 or self._wakeups.has_ended():
                        break
                    await waiter.wait(left if seen.next_in is None else min(left, seen.next_in / SECOND))
                    if subject.contract is not self._contract():
                        break
            if subject.contract is not self._contract():
                subject = admitted()
                continue
            if not seen.is_due:
                return self._deliveries([])
            request = NextRequest(subject, wanted, seconds, first, seen)
            await self._submit(request)
            if request.granted:
                return self._deliveries(request.granted)

    async def settle(
        self,
        caller: Caller,
        stream: str,
        params: Mapping[str, object],
        kind: Literal["ack", "nack", "extend"],
        named: tuple[object, object, object, object],
        seconds: object = 0,
    ) -> bytes:
        """`{"disposition"}`: `Applied`, or `StateChanged` if the token does not hold the event any more.

        A delivery is `named` by its consumer, event id, token and incarnation.
        """
        consumer, event_id, token, incarnation = named
        subject = admit_consumer(self._contract(), caller, stream, params, consumer)
        position, hashed = event_position(event_id), hashed_token(token)
        check_incarnation(incarnation, self._store.incarnation)
        whole = 0 if kind == "ack" else _SECONDS[kind](seconds)
        while True:
            request = SettleRequest(subject, kind, position, hashed, whole)
            await self._submit(request)
            if not request.stale_contract:
                break
            subject = admit_consumer(self._contract(), caller, stream, params, consumer)
        if kind == "nack" and request.is_applied:
            self._wakeups.bump(subject.partition, {subject.topic})
        return b'{"disposition":"Applied"}' if request.is_applied else b'{"disposition":"StateChanged"}'

    async def status(self, caller: Caller, stream: str, params: Mapping[str, object], consumer: object) -> bytes:
        """How the consumer stands."""
        subject = admit_consumer(self._contract(), caller, stream, params, consumer)
        async with self._store.snapshot() as reader:
            answer = await status(reader, subject)
        return json_text({"incarnation": self._store.incarnation, **answer}).encode()

    async def seek(
        self, caller: Caller, stream: str, params: Mapping[str, object], consumer: object, to: object
    ) -> bytes:
        """Let the consumer read on at `start`, `now`, an event or a time."""
        subject = self._operated(caller, stream, params, consumer)
        target = consumer_acts.seek_target(to)
        return await self._act(subject, lambda transaction: consumer_acts.seek(transaction, subject, target, str(to)))

    async def redrive(
        self, caller: Caller, stream: str, params: Mapping[str, object], consumer: object, event_id: object
    ) -> bytes:
        """Let one dead letter, or all of them for None, be delivered again."""
        subject = self._operated(caller, stream, params, consumer)
        position = None if event_id is None else event_position(event_id)
        return await self._act(subject, lambda transaction: consumer_acts.redrive(transaction, subject, position))

    async def retire(self, caller: Caller, stream: str, params: Mapping[str, object], consumer: object) -> bytes:
        """End the consumer."""
        subject = self._operated(caller, stream, params, consumer)
        return await self._act(subject, lambda transaction: consumer_acts.retire(transaction, subject))

    def _operated(self, caller: Caller, stream: str, params: Mapping[str, object], consumer: object) -> Subject:
        check_operator(caller)
        return admit_consumer(self._contract(), caller, stream, params, consumer)

    async def _act(self, subject: Subject, perform: Callable[[Transaction], Awaitable[dict[str, Any]]]) -> bytes:
        async def authorized(transaction: Transaction) -> dict[str, Any]:
            await check_token(transaction, subject.caller)
            return await perform(transaction)

        act = Act(authorized)
        await self._door.submit(act)
        if act.error is not None:
            raise act.error
        self._wakeups.bump(subject.partition, {subject.topic})
        return json_text(act.result).encode()

    async def _submit(self, request: ConsumerRequest) -> None:
        await self._door.submit(request)
        if request.error is not None:
            raise request.error

    def _deliveries(self, granted: list[Delivery]) -> bytes:
        texts = ",".join([delivery.text() for delivery in granted])
        return f'{{"incarnation":"{self._store.incarnation}","deliveries":[{texts}]}}'.encode()
