"""Consumers and deliveries as a Python caller holds them, sync and async from one source.

`ConsumerCalls` and `DeliveryCalls` have every operation once, as coroutines; `AsyncConsumer` shows them as they are,
`Consumer` stepped. A consumer iterates over its deliveries in long polls. Whoever closes it takes no more: what was
handed out may still be settled, what was not goes back at once. Nothing here acknowledges by itself but `run`, after
the handler; `repr` and log lines never hold a field's value or a token. One object is for one thread or task; several
of one name share the events.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from inspect import isawaitable, iscoroutinefunction
from time import monotonic, sleep
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from riffdb.client.answers import Convert, native_time
from riffdb.client.transport import ConsumerName, Transport
from riffdb.core.errors import RiffError
from riffdb.core.incidents import described
from riffdb.core.stepping import step, stepped

logger = logging.getLogger(__name__)

WAIT_SECONDS = 20
"""How long a long poll of an iteration waits, unless the caller says otherwise."""

RETRY_SECONDS_MAX = 3_600
PAUSE_SECONDS_MAX = 30.0
_APPLIED = "Applied"


@dataclass(frozen=True, slots=True)
class Taking:
    """How a consumer takes deliveries."""

    max_items: int
    delivery_lease_seconds: int
    wait_seconds: int
    start: str


class DeliveryCalls:
    """One delivery of an event, in any interface: what it is, and how it is settled.

    `attempt` counts from 1 and never goes back; `event_id` is the same at every attempt.
    """

    def __init__(
        self, consumer: "ConsumerCalls[Any]", incarnation: str, facts: Mapping[str, Any], convert: Convert
    ) -> None:
        self.event_id: str = facts["event_id"]
        self.event: str = facts["event"]
        self.attempt: int = facts["attempt"]
        self.token: str = facts["token"]
        self.incarnation = incarnation
        self._consumer = consumer
        self._facts = facts
        self._convert = convert
        self._received_at = monotonic()

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The selected fields in native values, by name."""
        return self._convert(self._facts["fields"])

    @cached_property
    def time(self) -> datetime:
        """When the event was committed."""
        committed: datetime = native_time(self._facts["time"])
        return committed

    async def _ack(self) -> bool:
        """The event is dealt with. False if the delivery was no longer this one's: nothing has changed then."""
        return await self._settle("ack")

    async def _nack(self, *, delay_seconds: int = 0) -> bool:
        """Put the event back, to be delivered again after the delay. False if it was no longer this one's."""
        return await self._settle("nack", delay_seconds=delay_seconds)

    async def _extend(self, seconds: int) -> bool:
        """Hold the event for so many seconds from now. False if it was no longer this one's."""
        return await self._settle("extend", seconds=seconds)

    async def _settle(self, verb: str, **more: object) -> bool:
        return await self._consumer._settle(verb, self.event_id, self.token, self.incarnation, **more)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.event} {self.event_id}, attempt {self.attempt})"


class AsyncDelivery(DeliveryCalls):
    """A delivery as coroutines see it."""

    ack = DeliveryCalls._ack
    nack = DeliveryCalls._nack
    extend = DeliveryCalls._extend


class Delivery(DeliveryCalls):
    """A delivery as plain calls see it."""

    ack = stepped(DeliveryCalls._ack)
    nack = stepped(DeliveryCalls._nack)
    extend = stepped(DeliveryCalls._extend)


AnyDelivery = TypeVar("AnyDelivery", bound=DeliveryCalls)
FieldsOf = Callable[[str], Awaitable[Convert]]


class ConsumerCalls(Generic[AnyDelivery]):
    """The operations of one consumer, over any transport."""

    _delivery: ClassVar[type[DeliveryCalls]]

    def __init__(self, transport: Transport, name: ConsumerName, taking: Taking, fields_of: FieldsOf) -> None:
        self.stream = name.stream
        self.name = name.name
        self._transport = transport
        self._consumer = name
        self._taking = taking
        self._fields_of = fields_of
        self._held: deque[AnyDelivery] = deque()
        self._is_closing = False

    async def _next(self, *, max_items: int | None = None, wait_seconds: int = 0) -> list[AnyDelivery]:
        """Deliveries in event order, at most `max_items`; none if there is nothing within the wait."""
        taking = self._taking
        answer = await self._call(
            "next",
            max_items=taking.max_items if max_items is None else max_items,
            delivery_lease_seconds=taking.delivery_lease_seconds,
            wait_seconds=wait_seconds,
            start=taking.start,
        )
        incarnation = answer["incarnation"]
        found: list[Any] = [
            self._delivery(self, incarnation, facts, await self._fields_of(facts["event"]))
            for facts in answer["deliveries"]
        ]
        return found

    async def _call(self, verb: str, /, **arguments: object) -> dict[str, Any]:
        """One call in its wire form, as HTTP has it: `next`, `ack`, `nack`, `extend`, `status`, `seek`, …"""
        answer: dict[str, Any] = msgspec.json.decode(await self._transport.stream(verb, self._consumer, arguments))
        return answer

    async def _status(self) -> dict[str, Any]:
        """Where the consumer stands, in wire form: checkpoint, lag, what is unsettled, dead letters."""
        return await self._call("status")

    async def _seek(self, to: object) -> dict[str, Any]:
        """Go on from `"start"`, `"now"`, an event id or a time; operators only."""
        return await self._call("seek", to=to)

    async def _redrive(self, event_id: str | None = None) -> dict[str, Any]:
        """Deliver a dead letter again, or all of them; operators only."""
        return await self._call("redrive", event_id=event_id)

    async def _retire(self) -> dict[str, Any]:
        """End the consumer; operators only."""
        return await self._call("retire")

    async def _close(self) -> None:
        """Take no more: the iteration ends, and what it did not hand out yet goes back at once."""
        self._is_closing = True
        await self._put_back()

    async def _run(
        self,
        handler: Callable[[AnyDelivery], object],
        *,
        retry_seconds: int = 1,
        retry_seconds_max: int = RETRY_SECONDS_MAX,
    ) -> None:
        """Hand each delivery to the handler until the consumer is closed: acknowledge it when the handler returns, and
        put it back when it raises, for `retry_seconds` that double with every attempt. A server that is away is waited
        for."""
        tries = 0
        while not self._is_closing:
            try:
                delivery = await self._take()
                tries = 0
                if delivery is not None:
                    await self._handle(delivery, handler, retry_seconds, retry_seconds_max)
            except RiffError as error:
                if not self._transport.is_passing(error):
                    raise
                tries += 1
                logger.warning("%s: %s; the consumer goes on asking", self._label, error.code)
                await self._pause(min(2 ** min(tries, 9) / 10, PAUSE_SECONDS_MAX))

    async def _handle(
        self, delivery: AnyDelivery, handler: Callable[[AnyDelivery], object], base: int, longest: int
    ) -> None:
        try:
            result = handler(delivery)
            if isawaitable(result):
                await result
        except Exception as error:  # noqa: BLE001  # told by kind and place, and the event comes again
            delay = min(base * 2 ** (delivery.attempt - 1), longest)
            told = f"the handler raised {described(error)}"
            kept = await delivery._nack(delay_seconds=delay)
            fate = f"it comes again in {delay} s or more" if kept else "it was another's already"
            logger.warning("%s: event %s, attempt %d: %s; %s", *self._place_of(delivery), told, fate)
        else:
            if not await delivery._ack():
                logger.warning("%s: event %s, attempt %d: its lease had ended", *self._place_of(delivery))

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _take(self) -> AnyDelivery | None:
        """The next delivery, waited for; None once the consumer is closed."""
        while not self._is_closing:
            if not self._held:
                self._held.extend(await self._poll())
                continue
            delivery = self._held.popleft()
            if await self._is_fresh(delivery):
                return delivery
        await self._put_back()
        return None

    async def _poll(self) -> list[AnyDelivery]:
        return await self._next(wait_seconds=self._taking.wait_seconds)

    async def _is_fresh(self, delivery: AnyDelivery) -> bool:
        """Whether half of the lease is left; one that waited here for longer is extended, unless it is gone."""
        lease_seconds = self._taking.delivery_lease_seconds
        if monotonic() - delivery._received_at < lease_seconds / 2:
            return True
        return await delivery._extend(lease_seconds)

    async def _put_back(self) -> None:
        while self._held:
            with suppress(IndexError):
                delivery = self._held.popleft()
                try:
                    await delivery._nack()
                except RiffError as error:
                    said = "could not be put back; it comes again when its lease ends"
                    logger.warning("%s: event %s, attempt %d: %s (%s)", *self._place_of(delivery), said, error.code)

    async def _settle(self, verb: str, event_id: str, token: str, incarnation: str, **more: object) -> bool:
        answer = await self._call(verb, event_id=event_id, token=token, incarnation=incarnation, **more)
        return bool(answer["disposition"] == _APPLIED)

    @property
    def _label(self) -> str:
        return f"consumer {self.name} of {self.stream}"

    def _place_of(self, delivery: AnyDelivery) -> tuple[str, str, int]:
        return self._label, delivery.event_id, delivery.attempt

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stream}, {self.name})"


class AsyncConsumer(ConsumerCalls[AsyncDelivery]):
    """A consumer as coroutines see it; `async for` gives its deliveries until it is closed."""

    _delivery = AsyncDelivery
    _polling: asyncio.Task[list[AsyncDelivery]] | None = None

    next = ConsumerCalls[AsyncDelivery]._next
    call = ConsumerCalls[AsyncDelivery]._call
    status = ConsumerCalls[AsyncDelivery]._status
    seek = ConsumerCalls[AsyncDelivery]._seek
    redrive = ConsumerCalls[AsyncDelivery]._redrive
    retire = ConsumerCalls[AsyncDelivery]._retire
    run = ConsumerCalls[AsyncDelivery]._run

    async def close(self) -> None:
        """Take no more: the iteration ends, and what it did not hand out yet goes back at once."""
        self._is_closing = True
        if self._polling is not None:
            self._polling.cancel()
        await self._put_back()

    async def _poll(self) -> list[AsyncDelivery]:
        task = self._polling = asyncio.ensure_future(super()._poll())
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._is_closing and current is not None and not current.cancelling():
                return []
            raise
        finally:
            self._polling = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncDelivery:
        delivery = await self._take()
        if delivery is None:
            raise StopAsyncIteration
        return delivery

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Consumer(ConsumerCalls[Delivery]):
    """A consumer as plain calls see it; `for` gives its deliveries until it is closed.

    `close` may be called from anywhere; a long poll that is under way then ends by itself, and its deliveries go back.
    """

    _delivery = Delivery

    next = stepped(ConsumerCalls[Delivery]._next)
    call = stepped(ConsumerCalls[Delivery]._call)
    status = stepped(ConsumerCalls[Delivery]._status)
    seek = stepped(ConsumerCalls[Delivery]._seek)
    redrive = stepped(ConsumerCalls[Delivery]._redrive)
    retire = stepped(ConsumerCalls[Delivery]._retire)
    close = stepped(ConsumerCalls[Delivery]._close)

    def run(
        self,
        handler: Callable[[Delivery], None],
        *,
        retry_seconds: int = 1,
        retry_seconds_max: int = RETRY_SECONDS_MAX,
    ) -> None:
        if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
            raise TypeError("the handler is a coroutine function; `riffdb.aio` has the consumer for it")
        step(self._run(handler, retry_seconds=retry_seconds, retry_seconds_max=retry_seconds_max))

    run.__doc__ = ConsumerCalls._run.__doc__

    async def _pause(self, seconds: float) -> None:
        sleep(seconds)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        delivery = step(self._take())
        if delivery is None:
            raise StopIteration
        return delivery

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
