"""Consumers of the client against scripted answers: what is asked, what is sent again, what goes back and when.

Units, since a server of ours loses no answers on purpose; with one they are in `tests/conformance`.
Every test runs over both exchanges, blocking and suspending.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

import riffdb
import riffdb.aio
from riffdb.client.calls import AsyncClient, Client
from riffdb.client.exchanges import RetryBudget
from riffdb.core.errors import RiffError
from riffdb.database.tokens import new_token
from tests.conformance.databases import ORGANIZATION, queue_plan
from tests.unit.scripted_server import DROP, GARBAGE, ScriptedServer, Step, problem, reply, scripted

WORK = UUID(int=7)
ATTEMPTS = 3
BUDGET = RetryBudget(attempts=ATTEMPTS, base_seconds=0)
NEXT = "/v1/streams/WorkActivity/next"
INCARNATION = "the-incarnation"


def deliveries(*event_ids: str, attempt: int = 1) -> Step:
    """An answer to `next`."""
    found = [
        {
            "event_id": event_id,
            "event": "WorkCompleted",
            "attempt": attempt,
            "token": f"token-{event_id}",
            "time": "2027-01-15T08:00:00.000001Z",
            "fields": {"organization_id": str(ORGANIZATION), "work_id": str(WORK), "revision": "3"},
        }
        for event_id in event_ids
    ]
    return reply(200, json.dumps({"incarnation": INCARNATION, "deliveries": found}).encode())


APPLIED = reply(200, b'{"disposition":"Applied"}')
CHANGED = reply(200, b'{"disposition":"StateChanged"}')
NOTHING = deliveries()


class Consuming:
    """A consumer of one kind, of a scripted server; calls wait for their end."""

    def __init__(self, kind: str, server: ScriptedServer) -> None:
        self.runner = asyncio.Runner()
        connect: Callable[..., Client | AsyncClient] = riffdb.connect if kind == "blocking" else riffdb.aio.connect
        self.client = connect(server.url, new_token(), budget=BUDGET)
        self.is_async = kind != "blocking"
        self.server = server

    def consumer(self, **taking: Any) -> Any:
        """The consumer."""
        return self.client.consumer("WorkActivity", name="mailer", organization_id=ORGANIZATION, **taking)

    def call(self, function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Call what may be a coroutine function."""

        async def calling() -> Any:
            called = function(*args, **kwargs)
            return await called if isinstance(called, Awaitable) else called

        return self.runner.run(calling())

    def advance(self, consumer: Any) -> Any:
        """The next delivery of the iteration; None at its end."""
        return self.call(anext if self.is_async else next, consumer, None)

    @property
    def sent(self) -> list[tuple[str, dict[str, Any]]]:
        """The last part of each address with its body."""
        return [(request.path.rsplit("/", 1)[1], json.loads(request.body)) for request in self.server.received]

    def verbs(self) -> list[str]:
        """What was asked."""
        return [verb for verb, _ in self.sent]


@pytest.fixture(params=["blocking", "suspending"])
def consuming(request: pytest.FixtureRequest) -> Iterator[Consuming]:
    with scripted(queue_plan()) as server:
        consuming = Consuming(request.param, server)
        yield consuming
        consuming.call(consuming.client.close)
        consuming.runner.close()


def test_next_asks_for_what_the_consumer_takes(consuming: Consuming) -> None:
    consuming.server.play(deliveries("3:1", attempt=2))
    consumer = consuming.consumer(max_items=8, delivery_lease_seconds=60, start="now")
    assert consuming.server.received == [], "nothing is asked before"
    (delivery,) = consuming.call(consumer.next, wait_seconds=5)
    assert [request.path for request in consuming.server.received] == [NEXT]
    assert consuming.sent[0][1] == {
        "params": {"organization_id": str(ORGANIZATION)},
        "consumer": "mailer",
        "max_items": 8,
        "delivery_lease_seconds": 60,
        "wait_seconds": 5,
        "from": "now",
    }
    assert (delivery.event_id, delivery.event, delivery.attempt) == ("3:1", "WorkCompleted", 2)
    assert (delivery.token, delivery.incarnation) == ("token-3:1", INCARNATION)
    assert delivery.time == datetime(2027, 1, 15, 8, 0, 0, 1, tzinfo=UTC)
    assert delivery.fields == {"organization_id": ORGANIZATION, "work_id": WORK, "revision": 3}


def test_a_delivery_is_settled_by_its_id_token_and_incarnation(consuming: Consuming) -> None:
    consuming.server.play(deliveries("3:1"), APPLIED, CHANGED, APPLIED)
    (delivery,) = consuming.call(consuming.consumer().next)
    assert consuming.call(delivery.extend, 90) is True
    assert consuming.call(delivery.nack, delay_seconds=4) is False
    assert consuming.call(delivery.ack) is True
    named = {
        "params": {"organization_id": str(ORGANIZATION)},
        "consumer": "mailer",
        "event_id": "3:1",
        "token": "token-3:1",
        "incarnation": INCARNATION,
    }
    assert consuming.sent[1:] == [
        ("extend", named | {"seconds": 90}),
        ("nack", named | {"delay_seconds": 4}),
        ("ack", named),
    ]


def test_a_name_that_is_taken_is_given_among_the_params(consuming: Consuming) -> None:
    consuming.server.play(NOTHING)
    consumer = consuming.client.consumer("WorkActivity", name="a", params={"name": "b", "start": 5}, other="c")
    consuming.call(consumer.next)
    assert consuming.sent[0][1]["params"] == {"name": "b", "start": 5, "other": "c"}


@pytest.mark.parametrize("lost", [DROP, GARBAGE, reply(200, b"{}"), problem("RDB-E-OVERLOADED", 503)])
def test_a_lost_answer_is_asked_for_again(consuming: Consuming, lost: Step) -> None:
    consuming.server.play(lost, deliveries("1:1"))
    (delivery,) = consuming.call(consuming.consumer().next)
    for settle, more in (("ack", {}), ("nack", {}), ("extend", {"seconds": 5})):
        consuming.server.play(lost, APPLIED)
        assert consuming.call(getattr(delivery, settle), **more)
    sent = consuming.sent
    assert [verb for verb, _ in sent] == ["next", "next", "ack", "ack", "nack", "nack", "extend", "extend"]
    assert sent[0::2] == sent[1::2], "the very same"


def test_a_server_that_stays_away_is_told(consuming: Consuming) -> None:
    consuming.server.play(*[DROP] * ATTEMPTS)
    with pytest.raises(RiffError) as caught:
        consuming.advance(consuming.consumer())
    assert caught.value.code == "RDB-E-UNAVAILABLE"
    assert len(consuming.server.received) == ATTEMPTS


def test_an_iteration_goes_on_until_it_is_closed(consuming: Consuming) -> None:
    consuming.server.play(deliveries("1:1", "2:1"), NOTHING, NOTHING, deliveries("5:1"))
    consumer = consuming.consumer(wait_seconds=7)
    assert [consuming.advance(consumer).event_id for _ in range(3)] == ["1:1", "2:1", "5:1"]
    assert consuming.verbs() == ["next"] * 4
    assert {body["wait_seconds"] for _, body in consuming.sent} == {7}
    consuming.call(consumer.close)
    assert consuming.advance(consumer) is None
    assert consuming.verbs() == ["next"] * 4, "a closed one asks nothing more"


def test_what_was_not_handed_out_goes_back_at_the_close(consuming: Consuming) -> None:
    consuming.server.play(deliveries("1:1", "2:1", "3:1"), APPLIED, problem("RDB-E-FORBIDDEN", 403), APPLIED)
    consumer = consuming.consumer(max_items=3)
    handed_out = consuming.advance(consumer)
    consuming.call(consumer.close)
    put_back = [(verb, body["event_id"], body["delay_seconds"]) for verb, body in consuming.sent[1:]]
    assert put_back == [("nack", "2:1", 0), ("nack", "3:1", 0)], "also when one of them is refused"
    assert consuming.call(handed_out.ack), "what was handed out is still settled"


def test_a_block_closes_its_consumer_however_it_ends(consuming: Consuming) -> None:
    consumer = consuming.consumer(max_items=2)

    def block() -> None:
        with consumer:
            for _ in consumer:
                raise ValueError

    async def async_block() -> None:
        async with consumer:
            async for _ in consumer:
                raise ValueError

    consuming.server.play(deliveries("1:1", "2:1"), APPLIED)
    with pytest.raises(ValueError):  # raised above
        consuming.call(async_block if consuming.is_async else block)
    assert [(verb, body.get("event_id")) for verb, body in consuming.sent] == [("next", None), ("nack", "2:1")]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic time as the client's deliveries see it."""
    now = [0.0]
    monkeypatch.setattr("riffdb.client.consuming.monotonic", lambda: now[0])
    return now


def test_what_waited_for_half_of_its_lease_is_extended_first(consuming: Consuming, clock: list[float]) -> None:
    consuming.server.play(deliveries("1:1", "2:1", "3:1", "4:1"), APPLIED, CHANGED)
    consumer = consuming.consumer(max_items=4, delivery_lease_seconds=30)
    assert consuming.advance(consumer).event_id == "1:1"
    clock[0] += 14.9
    assert consuming.advance(consumer).event_id == "2:1"
    assert consuming.verbs() == ["next"]
    clock[0] += 0.2
    assert consuming.advance(consumer).event_id == "3:1"
    assert [(verb, body.get("event_id"), body.get("seconds")) for verb, body in consuming.sent[1:]] == [
        ("extend", "3:1", 30)
    ]
    consuming.server.play(deliveries("4:1", attempt=2))
    again = consuming.advance(consumer)
    assert (again.event_id, again.attempt) == ("4:1", 2), "its lease had ended, so it is not handed out as it was"


def run_handler(consuming: Consuming, consumer: Any, handle: Callable[[Any], None], **retry: int) -> None:
    """Run a handler of the consumer's kind until it closes the consumer."""

    async def handle_async(delivery: Any) -> None:
        handle(delivery)

    consuming.call(consumer.run, handle_async if consuming.is_async else handle, **retry)


def test_run_acknowledges_after_the_handler_and_puts_back_with_backoff(
    consuming: Consuming, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    consumer = consuming.consumer()

    def handle(delivery: Any) -> None:
        assert consuming.verbs()[-1] == "next", "nothing is settled before"
        seen.append(delivery.event_id)
        if delivery.event_id != "9:1":
            raise ValueError(f"cannot mail {delivery.fields['work_id']}")
        consumer._is_closing = True

    consuming.server.play(deliveries("1:1"), APPLIED, deliveries("1:1", attempt=3), APPLIED)
    consuming.server.play(deliveries("2:1", attempt=400), CHANGED, deliveries("9:1"), CHANGED)
    run_handler(consuming, consumer, handle, retry_seconds=2, retry_seconds_max=600)
    assert seen == ["1:1", "1:1", "2:1", "9:1"]
    settled = [(verb, body.get("delay_seconds")) for verb, body in consuming.sent if verb != "next"]
    assert settled == [("nack", 2), ("nack", 8), ("nack", 600), ("ack", None)]
    told = [record.getMessage() for record in caplog.records if record.name == "riffdb.client.consuming"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 4
    assert "consumer mailer of WorkActivity: event 1:1, attempt 1: the handler raised ValueError at" in told[0]
    assert "comes again in 2 s" in told[0] and "another's already" in told[2]
    assert "event 9:1, attempt 1: its lease had ended" in told[3]
    assert str(WORK) not in caplog.text and "cannot mail" not in caplog.text and "token" not in caplog.text


def test_run_waits_for_a_server_that_is_away_and_ends_on_what_stays(
    consuming: Consuming, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []

    async def pause(consumer: Any, seconds: float) -> None:
        pauses.append(seconds)
        assert len(pauses) < 20, "it never ends"

    consumer = consuming.consumer()
    monkeypatch.setattr(type(consumer), "_pause", pause)
    consuming.server.play(*[DROP] * ATTEMPTS * 12, problem("RDB-E-FORBIDDEN", 403))
    with pytest.raises(RiffError) as caught:
        run_handler(consuming, consumer, lambda delivery: None)
    assert caught.value.code == "RDB-E-FORBIDDEN"
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0, 30.0]
    assert "RDB-E-UNAVAILABLE; the consumer goes on asking" in caplog.text


def test_a_coroutine_handler_is_none_of_a_blocking_consumer() -> None:
    class Handler:
        async def __call__(self, delivery: object) -> None: ...

    with scripted(queue_plan()) as server, riffdb.connect(server.url, new_token()) as client:
        consumer = client.consumer("WorkActivity", name="mailer")
        for handler in (Handler(), Handler().__call__):
            with pytest.raises(TypeError, match="coroutine function"):
                consumer.run(handler)  # type: ignore[arg-type]  # on purpose
        assert server.received == []


def test_a_close_ends_the_long_poll_of_a_task() -> None:
    async def scenario(server: ScriptedServer) -> list[object]:
        async with riffdb.aio.connect(server.url, new_token()) as client:
            consumer = client.consumer("WorkActivity", name="mailer")
            taking = asyncio.ensure_future(_all(consumer))
            while not server.received:
                await asyncio.sleep(0)
            await consumer.close()
            cancelled = client.consumer("WorkActivity", name="mailer")
            task = asyncio.ensure_future(_all(cancelled))
            while len(server.received) < 2:
                await asyncio.sleep(0)
            task.cancel()
            return [await taking, await asyncio.wait([task]), task.cancelled()][::2]

    with scripted(queue_plan()) as server:
        server.play(*[Step(closes=False)] * 2)
        assert asyncio.run(scenario(server)) == [[], True]


async def _all(consumer: riffdb.AsyncConsumer) -> list[riffdb.AsyncDelivery]:
    return [delivery async for delivery in consumer]


def test_the_wait_of_a_long_poll_is_added_to_the_patience() -> None:
    from riffdb.client.exchanges import Request, Response
    from riffdb.client.remote import RemoteTransport
    from riffdb.client.transport import ConsumerName
    from riffdb.core.stepping import step

    sent: list[Request] = []

    class Told:
        async def exchange(self, request: Request) -> Response:
            sent.append(request)
            return Response(200, b'{"incarnation":"i","deliveries":[]}')

    transport = RemoteTransport(Told(), BUDGET)  # type: ignore[arg-type]  # it neither pauses nor closes
    for wait in (0, 30, 10**9, -5):
        step(transport.stream("next", ConsumerName("S", {}, "n"), {"wait_seconds": wait}))
    assert [request.wait_seconds for request in sent] == [0, 30, 30, 0]


@pytest.mark.parametrize("kind", ["blocking", "suspending"])
def test_a_long_poll_may_take_longer_than_any_other_answer(kind: str) -> None:
    connect: Callable[..., Client | AsyncClient] = riffdb.connect if kind == "blocking" else riffdb.aio.connect
    with scripted(queue_plan()) as server, asyncio.Runner() as runner:
        client = connect(server.url, new_token(), timeout_seconds=0.5, budget=RetryBudget(attempts=1))
        server.play(Step(NOTHING.sent, delay_seconds=1))

        async def poll() -> Any:
            found = client.consumer("WorkActivity", name="mailer").next(wait_seconds=30)
            return await found if isinstance(found, Awaitable) else found

        async def close() -> None:
            closed = client.close()
            if isinstance(closed, Awaitable):
                await closed

        assert runner.run(poll()) == []
        runner.run(close())


def test_nothing_of_a_delivery_is_shown(consuming: Consuming) -> None:
    consuming.server.play(deliveries("3:1"))
    consumer = consuming.consumer()
    (delivery,) = consuming.call(consumer.next)
    kind = "Async" if consuming.is_async else ""
    assert repr(delivery) == f"{kind}Delivery(WorkCompleted 3:1, attempt 1)"
    assert repr(consumer) == f"{kind}Consumer(WorkActivity, mailer)"
