"""Chance drives writers of two partitions and consumers that crash, answer late, give back and race each other.

After every step the oracle, which knows the log and what was answered alone, asks: attempts of an event grow, first
deliveries come in order, a token holds as long as it should and no longer, the checkpoint is below the lowest event
that is not settled. At the end every event was seen and the log has no gap. Each test is one seed.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import arm
from riffdb.core.records import Batch, Head
from riffdb.database import consumer_granting, consumer_settling
from tests.conformance.databases import ORGANIZATION, OTHER, SECOND, Place
from tests.conformance.streams import Consumer, order, shop_plan

Id = tuple[int, int]
STEPS = 250
TRIES = 3
"""Attempts until an event is a dead letter, few so that many are."""


def parsed(text: str) -> Id:
    """An event id, or a position, as numbers."""
    sequence, ordinal = text.split(":")
    return int(sequence), int(ordinal)


@dataclass(slots=True)
class Held:
    """A delivery that was given to somebody, who may have forgotten it."""

    delivery: dict[str, Any]
    id: Id
    ends: int


@dataclass(slots=True)
class Watched:
    """A consumer with all that the oracle knows of it. `began`: where the last seek let it read on."""

    consumer: Consumer
    attempts: dict[Id, int] = field(default_factory=dict)
    tries: dict[Id, int] = field(default_factory=dict)
    newest: dict[Id, Held] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    settled: set[Id] = field(default_factory=set)
    dead: set[Id] = field(default_factory=set)
    redriven: set[Id] = field(default_factory=set)
    began: Id = (0, 0)
    first: Id = (0, 0)

    @property
    def shop(self) -> UUID:
        """The partition."""
        shop = self.consumer.params["shop"]
        assert isinstance(shop, UUID)
        return shop

    def selected(self) -> list[Id]:
        """The events of the log that the stream selects, told by the log alone."""
        found = []
        for record in self.consumer.place.log(self.shop):
            for ordinal, event in enumerate(json.loads(record.events), start=1):
                fields = event["fields"]
                large = event["event"] == "Placed" and fields["size"] == "Large" and int(fields["amount"]) >= 3
                if large or (self.consumer.stream == "Orders" and event["event"] != "Looked"):
                    found.append((record.sequence, ordinal))
        return found


class World:
    """A place with its writers and consumers, all driven by one seed."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.random = place, random.Random(seed)
        self.made = 0
        self.watched = [
            Watched(Consumer(place, "a")),
            Watched(Consumer(place, "b")),
            Watched(Consumer(place, "a", shop=OTHER)),
            Watched(Consumer(place, "a", "Large", least=3)),
        ]

    def time(self, shop: UUID) -> int:
        """The time by which a lease is judged."""
        key = b"\x01" + shop.bytes
        head = self.place.read(lambda reader: reader.heads([key])).get(key)
        return self.place.now if head is None else max(self.place.now, head.time)

    def command(self) -> tuple[str, dict[str, object]]:
        """A command that emits something, nothing, or fails."""
        self.made += 1
        shop = self.random.choice((ORGANIZATION, ORGANIZATION, OTHER))
        number = self.random.randint(1, self.made)
        key = {"request_key": f"k{self.made}", "shop": shop}
        match self.random.randrange(4):
            case 0:
                return "Look", key
            case 1:
                return "Change", key | {"number": number, "amount": self.made}
        size = self.random.choice(("Small", "Large"))
        return "Place", order(number, shop, size=size, amount=self.random.randint(1, 5)) | key

    def next(self, watched: Watched, seconds: int) -> Any:
        """A call for deliveries."""
        return watched.consumer.next_call(self.random.randint(1, 8), delivery_lease_seconds=seconds)

    def taken(self, watched: Watched, answers: list[dict[str, Any]], seconds: int) -> None:
        """What the oracle learns from deliveries, some of which nobody keeps."""
        ends = self.time(watched.shop) + seconds * SECOND
        for found in self.maybe_dead(watched):  # whoever asks buries them
            del watched.newest[found]
            watched.dead.add(found)
            watched.redriven.discard(found)
        first = []
        for answer in answers:
            ids = [parsed(delivery["event_id"]) for delivery in answer["deliveries"]]
            assert ids == sorted(set(ids))
            for found, delivery in zip(ids, answer["deliveries"], strict=True):
                assert delivery["attempt"] > watched.attempts.get(found, 0)
                assert found not in watched.settled, "what is settled is not delivered"
                if found not in watched.tries:
                    first.append(found)
                    watched.dead.discard(found)
                watched.attempts[found] = delivery["attempt"]
                watched.tries[found] = watched.tries.get(found, 0) + 1
                assert watched.tries[found] <= TRIES
                watched.newest[found] = held = Held(delivery, found, ends)
                if self.random.random() < 0.8:
                    watched.held.append(held)
        assert all(found > watched.first for found in first), "first deliveries come in order"
        watched.first = max([watched.first, *first])

    def holds(self, watched: Watched, held: Held) -> bool:
        """Whether the token of a delivery should hold now."""
        return watched.newest.get(held.id) is held and held.ends > self.time(watched.shop)

    def settled(self, watched: Watched, held: Held, verb: str, delay: int, disposition: str, expected: bool) -> None:
        """What the oracle learns from a disposition."""
        assert disposition == ("Applied" if expected else "StateChanged"), verb
        if not expected:
            return
        if verb == "extend":
            held.ends = self.time(watched.shop) + delay * SECOND
            return
        del watched.newest[held.id]
        if verb == "ack":
            watched.settled.add(held.id)
            watched.redriven.discard(held.id)
        elif watched.tries[held.id] == TRIES:
            watched.dead.add(held.id)
            watched.redriven.discard(held.id)

    def maybe_dead(self, watched: Watched) -> set[Id]:
        """Events whose last lease has ended, which the next call buries."""
        time = self.time(watched.shop)
        return {held.id for held in watched.newest.values() if watched.tries[held.id] >= TRIES and held.ends <= time}

    def check(self, watched: Watched) -> None:
        """What holds at every moment."""
        status = watched.consumer.status()
        lost = self.maybe_dead(watched)
        gone = watched.settled | lost | {found for found in watched.dead if found <= watched.first}
        open_events = [found for found in watched.selected() if found > watched.began and found not in gone]
        counted = [found for found in open_events if found not in watched.redriven]
        if counted:
            assert parsed(status["checkpoint"]) < counted[0]
        if not lost:
            assert status["lag_events"] == len(counted)
            assert status["dead_letters"] == len(watched.dead)

    def step(self) -> None:
        """One thing that happens, and what holds after it."""
        watched = self.random.choice(self.watched)
        self.happen(watched)
        self.check(watched)

    def happen(self, watched: Watched) -> None:
        """One thing, to a consumer if it concerns one."""
        match self.random.choices(range(8), (3, 10, 10, 4, 1, 2, 2, 1))[0]:
            case 0:
                self.place.together(*(self.command() for _ in range(self.random.randint(1, 4))))
            case 1:
                seconds = self.random.choice((5, 30, 100))
                self.taken(watched, [json.loads(self.place.run(self.next(watched, seconds)))], seconds)
            case 2 if watched.held:
                held = self.random.choice(watched.held[-12:])
                verb = self.random.choice(("ack", "nack", "nack", "extend"))
                delay = self.random.randint(5, 40) if verb == "extend" else self.random.choice((0, 0, 20))
                options = {"ack": {}, "nack": {"delay_seconds": delay}, "extend": {"seconds": delay}}[verb]
                expected = self.holds(watched, held)
                disposition = watched.consumer.settle(verb, held.delivery, **options)
                self.settled(watched, held, verb, delay, disposition, expected)
            case 3:
                self.place.now += self.random.randint(1, 40 * SECOND)
            case 4 if watched.attempts:
                self.seek(watched)
            case 5 if watched.attempts:
                self.redrive(watched)
            case 6:
                self.race(watched)
            case 7:
                self.fail()

    def seek(self, watched: Watched) -> None:
        """Back to the start, or to an event that was seen."""
        if watched.redriven:
            return
        target = self.random.choice([(0, 0), *watched.attempts])
        text = "start" if target == (0, 0) else f"{target[0]}:{target[1]}"
        watched.consumer.operate("seek", to=text)
        watched.began = watched.first = (target[0], max(target[1] - 1, 0))
        # A last attempt that had ended and was not buried yet is let go of as the others are.
        watched.newest, watched.tries = {}, {}
        watched.settled = {found for found in watched.settled if found <= watched.began}

    def redrive(self, watched: Watched) -> None:
        """Every dead letter again; what a seek lets be read again is left to the reading here."""
        if self.maybe_dead(watched) or any(found > watched.first for found in watched.dead):
            return
        answer = watched.consumer.operate("redrive")
        assert answer == {"redriven": len(watched.dead), "dead_letters": 0}
        for found in watched.dead:
            watched.tries[found] = 0
        watched.redriven |= watched.dead
        watched.dead = set()

    def race(self, watched: Watched) -> None:
        """Calls that share a batch: several ask at once, and one delivery is settled twice."""
        calls = [self.next(watched, 30) for _ in range(3)]
        held = self.random.choice(watched.held) if watched.held else None
        expected = held is not None and self.holds(watched, held)
        if held is not None:
            calls += [watched.consumer.call("ack", held.delivery) for _ in range(2)]
        answers = self.place.all_of(calls)
        if held is not None:
            assert sorted(answer["disposition"] for answer in answers[3:]) == sorted(
                ["Applied" if expected else "StateChanged", "StateChanged"]
            )
        self.taken(watched, answers[:3], 30)
        if held is not None and expected:
            self.settled(watched, held, "ack", 0, "Applied", True)

    def fail(self) -> None:
        """A batch is rolled back right before it would have been durable."""
        arm("commit.before:raise")
        found = self.place.together(*(self.command() for _ in range(2)))
        arm(None)
        assert all(isinstance(answer, RiffError) for answer in found)

    def finish(self) -> None:
        """Everybody comes back and takes what is left."""
        for watched in self.watched:
            self.place.now += 1_000 * SECOND
            seen = {*watched.attempts, *map(parsed, watched.consumer.drain())}
            assert seen >= set(watched.selected()), "every event is seen at least once"
            status = watched.consumer.status()
            assert (status["lag_events"], status["unsettled"]) == (0, 0)
            newest = len(self.place.check_log(watched.shop))
            assert parsed(status["checkpoint"]) == (newest + 1, 0)


@pytest.mark.parametrize("seed", range(8))
def test_chance(empty: Place, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (consumer_granting, consumer_settling):
        monkeypatch.setattr(module, "DELIVERY_ATTEMPTS_MAX", TRIES)
    empty.deploy(shop_plan())
    world = World(empty, seed)
    for watched in world.watched:
        assert watched.consumer.next() == []
    for _ in range(STEPS):
        world.step()
    world.finish()


def test_a_position_that_is_taken_early_and_committed_late_is_not_skipped(empty: Place) -> None:
    """A writer has taken the next sequence and not committed: nobody reads past it, and it comes when it is there."""
    empty.deploy(shop_plan())
    consumer, other = Consumer(empty), Consumer(empty, shop=OTHER)
    for shop in (ORGANIZATION, OTHER):
        empty.command("Place", **order(1, shop))
    assert (consumer.drain(), other.drain()) == (["1:1"], ["1:1"])
    newest = empty.log()[-1]
    empty.is_tampered = True

    async def late() -> list[bytes]:
        async with empty.store.transaction() as transaction:
            record = newest._replace(sequence=2, key="late", chain=bytes(32))
            await transaction.write(Batch(heads=[Head(record.partition, 2, record.time, bytes(32))], records=[record]))
            return [await part for part in (consumer.next_call(), consumer.status_call(), other.next_call())]

    given, status, of_other = map(json.loads, empty.run(late()))
    assert (given["deliveries"], of_other["deliveries"]) == ([], [])
    assert (status["checkpoint"], status["lag_events"]) == ("2:0", 0)
    assert consumer.status()["lag_events"] == 1
    assert consumer.drain() == ["2:1"]
