"""SIGKILL of the server and of consumers while events are written and consumed: each event is handled at least once.

Among first deliveries in order, commit sequences without a gap, the checkpoint never above an event that nobody has
handled, and nothing comes again once its acknowledgement was answered. `RIFFDB_KILLS` is how often each label is tried
(`make kills`: twenty times).
"""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any
from uuid import uuid4

import pytest

import riffdb
from tests.surface.completing import completed_in_the_end, patiently
from tests.surface.processes import PATIENCE_SECONDS, Deployment, deployed

KILLS = range(int(os.environ.get("RIFFDB_KILLS", "2")))
ITEMS = 8
"""Of each organization; each takes three commits, so that the server dies long before the last."""

LOOKS_MAX = 20_000
Position = tuple[int, int]


def position(event_id: str | None) -> Position:
    """An event id as it is ordered; before everything if there is none."""
    if event_id is None:
        return (0, 0)
    sequence, _, ordinal = event_id.partition(":")
    return int(sequence), int(ordinal or 0)


class Journal:
    """What the consumers of one organization did, in the order in which it was seen."""

    def __init__(self, organization: str) -> None:
        self.organization = organization
        self.handled: list[tuple[str, int]] = []
        self.acknowledged: set[str] = set()
        self.checkpoints: list[tuple[Position, set[str]]] = []
        self._mutex = Lock()

    def handle(self, delivery: riffdb.Delivery) -> None:
        """Handle a delivery, which must not come after its acknowledgement was answered."""
        with self._mutex:
            assert delivery.event_id not in self.acknowledged
            self.handled.append((delivery.event_id, delivery.attempt))

    def look(self, consumer: riffdb.Consumer) -> bool:
        """Note where the checkpoint is, and what was handled by then; whether nothing is left to do."""
        status = patiently(consumer.status)
        with self._mutex:
            self.checkpoints.append((position(status["checkpoint"]), {event_id for event_id, _ in self.handled}))
        oldest = status["oldest_unsettled"]
        assert oldest is None or position(status["checkpoint"]) < position(oldest["event_id"])
        return oldest is None and status["lag_events"] == 0

    def check(self, events: list[str]) -> None:
        """All of the events were handled, and everything else that is promised holds."""
        assert {event_id for event_id, _ in self.handled} == set(events)
        assert len(set(self.handled)) == len(self.handled), "an attempt is delivered once"
        first = [position(event_id) for event_id, attempt in self.handled if attempt == 1]
        assert first == sorted(first)
        for event_id in events:
            attempts = [attempt for handled, attempt in self.handled if handled == event_id]
            assert attempts == sorted(attempts)
        checkpoints = [checkpoint for checkpoint, _ in self.checkpoints]
        assert checkpoints == sorted(checkpoints)
        for checkpoint, handled in self.checkpoints:
            assert {event_id for event_id in events if position(event_id) <= checkpoint} <= handled


def consume(consumer: riffdb.Consumer, journal: Journal, stopping: Event) -> None:
    """Handle and acknowledge until told to stop, through every death of the server."""
    while not stopping.is_set():
        for delivery in patiently(lambda: consumer.next(wait_seconds=1)):
            journal.handle(delivery)
            if patiently(delivery.ack):
                journal.acknowledged.add(delivery.event_id)


def events_of(deployment: Deployment, organization: str) -> list[str]:
    """The ids of the events in the file's log, whose ordinals are those of one event a commit."""
    rows = deployment.rows(
        "SELECT sequence FROM riffdb_commit"
        " WHERE json_extract(input, '$.organization_id') = ? AND outcome = 'Completed' ORDER BY sequence",
        organization,
    )
    return [str(sequence) for (sequence,) in rows]


@pytest.mark.parametrize("number", KILLS)
@pytest.mark.parametrize("label", ["commit.before", "commit.after", "answer.sent"])
def test_consumers_go_on_after_the_server_died(tmp_path: Path, label: str, number: int) -> None:
    journals = [Journal(str(uuid4())) for _ in range(2)]
    stopping = Event()
    with deployed(tmp_path) as deployment, ThreadPoolExecutor(4) as pool:
        server = deployment.serve(f"{label}:kill:{9 + 3 * number}")
        with riffdb.connect(server.url, deployment.operator) as client:
            patiently(client.plan)
            consumers = [
                client.consumer(
                    "WorkActivity",
                    name="mailer",
                    organization_id=journal.organization,
                    max_items=1 + number % 3,
                    delivery_lease_seconds=5,
                )
                for journal in journals
            ]
            try:
                consuming = [
                    pool.submit(consume, consumer, journal, stopping)
                    for consumer, journal in zip(consumers, journals, strict=True)
                ]
                writing = [pool.submit(write, client, journal.organization) for journal in journals]
                assert server.process.ended() == -signal.SIGKILL
                successor = deployment.take_over(server)
                for writer in writing:
                    writer.result()
                for consumer, journal in zip(consumers, journals, strict=True):
                    look_until_done(consumer, journal)
            finally:
                stopping.set()
            for consumption in consuming:
                consumption.result()
        assert successor.process.stop() == 0
        for journal in journals:
            events = events_of(deployment, journal.organization)
            assert len(events) == ITEMS
            seen = sorted({event_id for event_id, _ in journal.handled}, key=position)
            assert [event_id.split(":")[0] for event_id in seen] == events
            journal.check(seen)
        deployment.check_file()


def write(client: riffdb.Client, organization: str) -> None:
    """Let the items be completed."""
    for _ in range(ITEMS):
        completed_in_the_end(client, organization)


def look_until_done(consumer: riffdb.Consumer, journal: Journal) -> None:
    """Look at the consumer until everything is settled."""
    for _ in range(LOOKS_MAX):
        if journal.look(consumer):
            return
        Event().wait(0.02)
    raise AssertionError("the consumer never came to the end")


CONSUMER = """
import json, os, signal, sys
import riffdb

url, organization, until, dies, place = sys.argv[1:]
handled = 0
with riffdb.connect(url, os.environ["TOKEN"]) as db:
    consumer = db.consumer(
        "WorkActivity", name="mailer", organization_id=organization, max_items=3, delivery_lease_seconds=5
    )
    for delivery in consumer:
        handled += 1
        print(json.dumps([delivery.event_id, delivery.attempt]), flush=True)
        if str(handled) == dies and place == "handled":
            os.kill(os.getpid(), signal.SIGKILL)
        assert delivery.ack()
        if str(handled) == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if str(handled) == until:
            break
    consumer.close()
"""


def run_consumer(
    url: str, token: str, organization: str, *, until: int = 0, dies: int = 0, place: str = "handled"
) -> tuple[int, list[tuple[str, int]]]:
    """Run a consumer as a process of its own; how it ended, and what it handled."""
    done = subprocess.run(
        [sys.executable, "-c", CONSUMER, url, organization, str(until), str(dies), place],
        env=os.environ | {"TOKEN": token},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert not done.stderr, done.stderr
    lines: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [(event_id, attempt) for event_id, attempt in lines]


@pytest.mark.parametrize("number", KILLS)
@pytest.mark.parametrize("place", ["handled", "acknowledged"])
def test_what_a_dead_consumer_did_not_acknowledge_comes_again(tmp_path: Path, place: str, number: int) -> None:
    organization = str(uuid4())
    dies = 1 + number % 6
    with (
        deployed(tmp_path) as deployment,
        deployment.serving() as server,
        riffdb.connect(server.url, deployment.operator) as client,
    ):
        write(client, organization)
        code, before = run_consumer(server.url, deployment.operator, organization, dies=dies, place=place)
        assert (code, len(before)) == (-signal.SIGKILL, dies)
        assert [attempt for _, attempt in before] == [1] * dies
        settled = dies - 1 if place == "handled" else dies
        code, after = run_consumer(server.url, deployment.operator, organization, until=ITEMS - settled)
        assert code == 0
        consumer = client.consumer("WorkActivity", name="mailer", organization_id=organization)
        assert consumer.next() == [], "all are settled"
    handled = before[:settled] + after
    assert len({event_id for event_id, _ in handled}) == len(handled) == ITEMS
    if place == "handled":
        assert (before[-1][0], 2) in after, "the one that it died of comes again"
    again = (-dies % 3) + (place == "handled")
    assert sorted(attempt for _, attempt in after) == [1] * (ITEMS - settled - again) + [2] * again
    first = [position(event_id) for event_id, attempt in after if attempt == 1]
    assert first == sorted(first)
