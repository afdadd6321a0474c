"""Live queries, on every store: what a watch tells and when, for whom one evaluation serves, and what ends it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from riffdb.core.limits import WATCH_RING_CHANGES_MAX, WATCHES_MAX
from riffdb.core.values import timestamp_text
from riffdb.database.callers import Caller
from riffdb.database.differing import apply_steps
from riffdb.database.horizons import horizon_seconds
from riffdb.database.reading import admit_query
from riffdb.database.watching import Watch, WatchEvent
from tests.conformance.databases import (
    LOCAL,
    ORGANIZATION,
    OTHER,
    SECOND,
    START,
    Place,
    account,
    changed_ledger,
    plan_of,
    work,
)

HANG_SECONDS = 30


class Reading:
    """One reader of `Accounts`, who keeps the answer that the events make."""

    def __init__(self, place: Place, caller: Caller, name: str, values: dict[str, Any], last: str | None) -> None:
        self.place = place
        self.watch: Watch = place.database.watch(caller, name, values, last, heartbeat_seconds=HANG_SECONDS)
        self.payload: dict[str, Any] = {}
        self.last = last
        self.kinds: list[str] = []

    def take(self) -> dict[str, Any]:
        """The next event's document, waited for."""
        return self.place.run(self.next())

    async def next(self) -> dict[str, Any]:
        """The next event's document."""
        async with asyncio.timeout(HANG_SECONDS):
            event = await self.watch.next()
        assert event is not None
        self.kinds.append(event.kind)
        document: dict[str, Any] = json.loads(event.data)
        if event.kind == "ping":
            assert event.id == ""
            return document
        self.last = event.id
        if event.kind == "change":
            assert "payload" not in document
            self.payload = apply_steps(self.payload, document["changes"])
        else:
            self.payload = document["payload"]
        return document

    def take_outcome(self) -> dict[str, Any]:
        """The next event's document, a change to another outcome."""
        event = self.place.run(self.watch.next())
        assert event is not None
        assert event.kind == "change"
        document: dict[str, Any] = json.loads(event.data)
        assert "changes" not in document
        self.payload = document["payload"]
        return document

    def is_silent(self) -> bool:
        """Whether there is nothing more to tell just now."""

        async def look() -> bool:
            task = asyncio.ensure_future(self.watch.next())
            for _ in range(20):
                await asyncio.sleep(0)
            is_silent = not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return is_silent

        return self.place.run(look())


@contextmanager
def reading(
    place: Place,
    caller: Caller = LOCAL,
    name: str = "Accounts",
    last: str | None = None,
    **values: Any,
) -> Iterator[Reading]:
    """A reader for a block."""
    found = Reading(place, caller, name, {"owner": ORGANIZATION} | values, last)
    try:
        yield found
    finally:
        found.watch.close()


def answer(place: Place) -> Any:
    """What the query itself gives."""
    return json.loads(place.run(place.database.query(LOCAL, "Accounts", {"owner": ORGANIZATION})))


def open_accounts(place: Place, *numbers: int) -> None:
    """Commit that many accounts, one after the other."""
    for number in numbers:
        place.command("OpenAccount", **account(f"open {number}", number, balance=number))


def test_a_snapshot_and_then_what_changes(ledger: Place) -> None:
    open_accounts(ledger, 2)
    with reading(ledger) as reader:
        assert reader.take() == answer(ledger)
        assert reader.is_silent()
        open_accounts(ledger, 1)
        told = reader.take()
        assert (told["outcome"], told["as_of"]["sequence"]) == ("Listed", "2")
        assert [(step["path"], step["op"], step["index"]) for step in told["changes"]] == [("accounts", "insert", 0)]
        ledger.command("Deposit", **account("d", 2, amount=5))
        (step,) = reader.take()["changes"]
        assert (step["op"], step["index"], step["value"]["balance"]) == ("replace", 1, "7")
        ledger.command("CloseAccount", **account("c", 1))
        (step,) = reader.take()["changes"]
        assert (step["op"], step["index"], step["value"]["number"]) == ("remove", 0, "1")
        assert reader.kinds == ["snapshot", "change", "change", "change"]
        assert reader.payload == answer(ledger)["payload"]
        assert reader.is_silent()


def test_only_commits_that_can_affect_the_query_cause_work(ledger: Place) -> None:
    watches, wakeups = ledger.database.watches, ledger.database.wakeups
    with reading(ledger) as reader:
        reader.take()
        assert watches.evaluations == 1
        ledger.command("OpenAccount", **account("other", 1, balance=1) | {"owner": OTHER})
        ledger.command("Look", owner=ORGANIZATION, number=1)
        ledger.command("Deposit", **account("none", 1, amount=1))
        assert reader.is_silent()
        assert (watches.evaluations, wakeups.woken) == (1, 0)
        open_accounts(ledger, 1)
        reader.take()
        assert (watches.evaluations, wakeups.woken) == (2, 1)


def test_a_commit_that_leaves_the_answer_as_it_is_tells_nothing(ledger: Place) -> None:
    open_accounts(ledger, 1, 2)
    with reading(ledger, limit=1) as reader:
        reader.take()
        ledger.command("Deposit", **account("d", 2, amount=5))
        assert reader.is_silent()
        assert ledger.database.watches.evaluations == 2


def test_what_comes_together_is_one_change(ledger: Place) -> None:
    with reading(ledger) as reader:
        reader.take()
        open_accounts(ledger, 1, 2, 3)
        assert [step["op"] for step in reader.take()["changes"]] == ["insert"] * 3
        assert reader.is_silent()


def test_one_evaluation_serves_all_who_ask_the_same(ledger: Place) -> None:
    watches = ledger.database.watches
    readers = [Reading(ledger, LOCAL, "Accounts", {"owner": ORGANIZATION}, None) for _ in range(50)]
    readers += [Reading(ledger, LOCAL, "Accounts", {"owner": str(ORGANIZATION), "limit": 50}, None)]

    async def take_all() -> None:
        await asyncio.gather(*(reader.next() for reader in readers))

    ledger.run(take_all())
    assert watches.evaluations == 1
    open_accounts(ledger, 1)
    ledger.run(take_all())
    assert (watches.evaluations, ledger.database.wakeups.woken, watches.open) == (2, 1, 51)
    assert {json.dumps(reader.payload) for reader in readers} == {json.dumps(answer(ledger)["payload"])}
    for reader in readers:
        reader.watch.close()
        reader.watch.close()
    assert (watches.open, ledger.database.wakeups.waiting) == (0, 0)


def test_a_reader_comes_back_with_the_id_of_what_it_had(ledger: Place) -> None:
    open_accounts(ledger, 1)
    with reading(ledger) as reader:
        reader.take()
    open_accounts(ledger, 2)
    with reading(ledger, last=reader.last) as resumed:
        resumed.payload = reader.payload
        resumed.take()
        assert resumed.kinds == ["change"]
        assert resumed.payload == answer(ledger)["payload"]
        assert resumed.is_silent()
    with reading(ledger, last=resumed.last) as nothing_new:
        assert nothing_new.is_silent()
    with reading(ledger, last=reader.last) as from_before:
        from_before.payload = reader.payload
        from_before.take()
        assert from_before.payload == answer(ledger)["payload"]


@pytest.mark.parametrize("last", ["", "x", "0123456789ab-1", "-1", "{token}-0", "{token}-99", "{token}-x", "{token}-²"])
def test_an_id_that_is_not_known_begins_with_a_reset(ledger: Place, last: str) -> None:
    with reading(ledger) as reader:
        reader.take()
        assert reader.last is not None
        with reading(ledger, last=last.format(token=reader.last.partition("-")[0])) as other:
            assert other.take() == answer(ledger)
            assert other.kinds == ["reset"]


def test_the_changes_of_another_query_are_no_ground_to_go_on_from(ledger: Place) -> None:
    with reading(ledger) as reader:
        reader.take()
        with reading(ledger, last=reader.last, limit=3) as other:
            other.take()
            assert other.kinds == ["reset"]


def test_a_reader_far_behind_is_told_to_forget_what_it_has(ledger: Place) -> None:
    open_accounts(ledger, 1)
    with reading(ledger) as slow, reading(ledger) as prompt, reading(ledger) as just:
        for reader in (slow, prompt, just):
            reader.take()
        for number in range(WATCH_RING_CHANGES_MAX):
            ledger.command("Deposit", **account(f"d{number}", 1, amount=5))
            prompt.take()
        for _ in range(WATCH_RING_CHANGES_MAX):
            just.take()
        assert set(just.kinds[1:]) == {"change"}
        open_accounts(ledger, 99)
        prompt.take()
        slow.take()
        assert slow.kinds == ["snapshot", "reset"]
        assert slow.payload == prompt.payload == answer(ledger)["payload"]


def test_changes_are_kept_within_a_bound_of_bytes(ledger: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riffdb.database.watching.WATCH_RING_BYTES_MAX", 100)
    with reading(ledger) as slow, reading(ledger) as prompt:
        slow.take()
        prompt.take()
        open_accounts(ledger, 1)
        prompt.take()
        assert prompt.kinds == ["snapshot", "reset"], "one change alone is more than is kept"
        slow.take()
        assert slow.payload == prompt.payload


def test_nobody_comes_back_after_a_minute(ledger: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riffdb.database.watching.WATCH_KEEP_SECONDS", -1)
    with reading(ledger) as reader:
        reader.take()
    with reading(ledger, last=reader.last) as late:
        late.take()
        assert late.kinds == ["reset"]


def test_what_is_kept_for_those_who_left_is_bounded(ledger: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riffdb.database.watching.WATCH_GROUPS_KEPT_MAX", 2)
    last = []
    for limit in (1, 2, 3):
        with reading(ledger, limit=limit) as reader:
            reader.take()
        last.append(reader.last)
    with reading(ledger, limit=1, last=last[0]) as forgotten, reading(ledger, limit=3, last=last[2]) as kept:
        forgotten.take()
        assert forgotten.kinds == ["reset"]
        assert kept.is_silent()


def test_an_idle_watch_pings(ledger: Place) -> None:
    watch = ledger.database.watch(LOCAL, "Accounts", {"owner": ORGANIZATION}, heartbeat_seconds=0.01)
    kinds = [event.kind for event in (ledger.run(watch.next()) for _ in range(3)) if event is not None]
    assert kinds == ["snapshot", "ping", "ping"]
    watch.close()
    assert ledger.run(watch.next()) is None


@pytest.mark.parametrize("in_time", [True, False])
def test_a_revocation_ends_a_watch(ledger: Place, in_time: bool) -> None:
    teller = ledger.caller("Teller")

    async def main() -> None:
        watch = ledger.database.watch(teller, "Accounts", {"owner": ORGANIZATION}, heartbeat_seconds=HANG_SECONDS)
        await watch.next()
        task = asyncio.ensure_future(watch.next()) if in_time else None
        await asyncio.sleep(0)
        await ledger.database.operations.revoke(LOCAL, identity=teller.capability)
        await ledger.database.command(LOCAL, "OpenAccount", account("k", balance=1))
        async with asyncio.timeout(HANG_SECONDS):
            await (task or watch.next())

    error = ledger.error_of(main())
    assert (error.code, "revoked" in error.message) == ("RDB-E-UNAUTHENTICATED", True)


def test_an_expiry_ends_a_watch_with_the_next_event(ledger: Place) -> None:
    teller = ledger.caller("Teller", expires_seconds=10)
    watch = ledger.database.watch(teller, "Accounts", {"owner": ORGANIZATION}, heartbeat_seconds=0.01)
    ledger.run(watch.next())
    ledger.now = START + 11 * SECOND
    assert ledger.error_of(watch.next()).code == "RDB-E-UNAUTHENTICATED"
    watch.close()


def test_who_may_watch(ledger: Place) -> None:
    def code(caller: Caller, name: str = "Accounts", **values: Any) -> str:
        async def begin() -> None:
            ledger.database.watch(caller, name, {"owner": ORGANIZATION} | values)

        return ledger.error_of(begin()).code

    assert code(ledger.caller("Auditor")) == "RDB-E-FORBIDDEN"
    assert code(ledger.caller("Teller", partition=str(OTHER))) == "RDB-E-FORBIDDEN"
    assert code(LOCAL, "Nothing") == "RDB-E-NOT-FOUND"
    assert code(LOCAL, limit=101) == "RDB-E-INPUT"
    assert code(LOCAL, other=1) == "RDB-E-INPUT"
    assert ledger.database.watches.open == 0


def test_watches_are_bounded(ledger: Place) -> None:
    assert ledger.database.watches.watches_max == WATCHES_MAX
    ledger.database.watches.watches_max = 2

    async def one_more() -> Watch:
        return ledger.database.watch(LOCAL, "Accounts", {"owner": ORGANIZATION})

    first, second = ledger.run(one_more()), ledger.run(one_more())
    error = ledger.error_of(one_more())
    assert (error.code, error.facts.status, error.detail) == ("RDB-E-WATCHES", 429, {"retry_after": 5})
    first.close()
    third = ledger.run(one_more())
    for watch in (second, third):
        watch.close()
    assert ledger.database.watches.open == 0


LISTED = "accounts: found { number balance standing note revision }"


def test_a_deployment_that_leaves_the_query_alone_tells_nothing(ledger: Place) -> None:
    open_accounts(ledger, 1)
    with reading(ledger) as reader:
        reader.take()
        ledger.deploy(changed_ledger(("role Auditor { command Audit, Look }", "role Auditor { command Audit }")))
        assert reader.is_silent()
        open_accounts(ledger, 2)
        reader.take()
        assert reader.kinds == ["snapshot", "change"]


def test_a_deployment_that_changes_the_query_is_a_reset(ledger: Place) -> None:
    open_accounts(ledger, 1)
    with reading(ledger) as reader:
        reader.take()
        ledger.deploy(changed_ledger((LISTED, LISTED.replace("note ", ""))))
        reader.take()
        assert reader.kinds == ["snapshot", "reset"]
        assert reader.payload == answer(ledger)["payload"]
        assert "note" not in reader.payload["accounts"][0]
        open_accounts(ledger, 2)
        reader.take()
        assert reader.payload == answer(ledger)["payload"]


def test_a_deployment_that_takes_the_grant_ends_the_watch(ledger: Place) -> None:
    with reading(ledger, ledger.caller("Teller")) as reader:
        reader.take()
        ledger.deploy(changed_ledger(("role Teller { query Accounts command", "role Teller { command")))
        assert ledger.error_of(reader.watch.next()).code == "RDB-E-FORBIDDEN"


async def ended_by(place: Place, end: Callable[[Watch], object]) -> WatchEvent | None:
    """What a watch that waits is told when `end` is done."""
    watch = place.database.watch(LOCAL, "Accounts", {"owner": ORGANIZATION}, heartbeat_seconds=HANG_SECONDS)
    await watch.next()
    task = asyncio.ensure_future(watch.next())
    await asyncio.sleep(0)
    end(watch)
    async with asyncio.timeout(HANG_SECONDS):
        return await task


def test_closing_a_watch_and_stopping_the_server_end_it(ledger: Place) -> None:
    assert ledger.run(ended_by(ledger, Watch.close)) is None
    assert ledger.run(ended_by(ledger, lambda watch: ledger.database.wakeups.finish())) is None


def test_closing_the_database_ends_watches_with_an_error(ledger: Place) -> None:
    error = ledger.error_of(ended_by(ledger, lambda watch: ledger.database.wakeups.close()))
    assert (error.code, error.facts.retryable) == ("RDB-E-UNAVAILABLE", True)


def test_time_alone_changes_an_answer(queue: Place) -> None:
    queue.command("CreateWork", **work("k", due_at="2027-01-15T08:00:01Z"))
    reader = Reading(queue, LOCAL, "DueWork", {"organization_id": ORGANIZATION}, None)
    reader.take()
    assert reader.payload == {"items": []}
    queue.now = START + SECOND
    (step,) = reader.take()["changes"]
    assert (step["op"], reader.kinds) == ("insert", ["snapshot", "change"])
    reader.watch.close()


TIMED = """
contract Timed version 1 {
  entity Item {
    key (owner: uuid, number: u64)
    field at: timestamp
    index by_time (owner, at)
    index by_time_down (owner, at desc)
  }
  command Put {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input at: timestamp
    idempotency_key request_key
    create Item(owner, number) as item else Exists {}
    set item.at = at
    return Done {}
  }
}
query Until($owner: uuid) {
  many items from Item where owner == $owner && at <= tx.time order by at take 10
  return Found { items: items { number } }
}
query Before($owner: uuid) {
  many items from Item where owner == $owner && at < tx.time order by at desc take 10
  return Found { items: items { number } }
}
query From($owner: uuid) {
  many items from Item where owner == $owner && at >= tx.time order by at take 10
  return Found { items: items { number } }
}
query After($owner: uuid) {
  count items from Item where owner == $owner && at > tx.time take 100
  return Found { number: items }
}
query Between($owner: uuid, $first: timestamp) {
  many items from Item where owner == $owner && at >= $first && at < tx.time order by at take 10
  return Found { items: items { number } }
}
query Told($owner: uuid) {
  many items from Item where owner == $owner order by at take 10
  return Found { items: items { number }, now: tx.time }
}
query Plain($owner: uuid) {
  many items from Item where owner == $owner order by at take 10
  return Found { items: items { number } }
}
"""
MICROSECOND = 0.000_001


def horizon(place: Place, name: str, **values: object) -> float | None:
    """After how long the query must be read again."""
    asked = admit_query(place.store, place.database.contract, LOCAL, name, {"owner": ORGANIZATION} | values)
    return place.read(lambda reader: horizon_seconds(reader, asked, place.now))


def test_the_next_instant_at_which_a_timestamp_passes_is_known(empty: Place) -> None:
    empty.deploy(plan_of(TIMED, "timed"))
    for number, seconds in enumerate((-3, 5, 7)):
        at = timestamp_text(START + seconds * SECOND)
        empty.command("Put", **account(f"k{number}", number, at=at))
    empty.now = START
    assert horizon(empty, "Plain") is None
    assert horizon(empty, "Until") == 5
    assert horizon(empty, "Before") == 5 + MICROSECOND
    assert horizon(empty, "From") == 5 + MICROSECOND
    assert horizon(empty, "After") == 5
    assert horizon(empty, "Between", first=timestamp_text(START - 9 * SECOND)) == 5 + MICROSECOND
    assert horizon(empty, "Between", first=timestamp_text(START + 6 * SECOND)) == 7 + MICROSECOND
    assert horizon(empty, "Told") == 1, "the time itself is in the answer"
    assert horizon(empty, "Until", owner=OTHER) == 60, "there is nothing to wait for, but clocks are set"
    empty.now = START + 5 * SECOND
    assert horizon(empty, "Until") == 2
    assert horizon(empty, "From") == 1, "a microsecond later, but never twice within a second"
    assert horizon(empty, "After") == 2
    empty.now = START + 8 * SECOND
    assert [horizon(empty, name) for name in ("Until", "Before", "From", "After")] == [60] * 4


FORMS = """
contract Forms version 1 {
  enum Kind { Old, New }
  entity Item {
    key (owner: uuid, number: u64)
    field kind: Kind
    field size: u64
    index by_kind (owner, kind)
  }
  entity Other { key (owner: uuid, number: u64) field size: u64 }
  command Put {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input kind: Kind = Kind.Old
    input size: u64 = 1
    idempotency_key request_key
    init_or_mutate Item(owner, number) as item initialize { kind: kind, size: size }
    set item.kind = kind
    set item.size = size
    return Done {}
  }
  command Drop {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    delete Item(owner, number) as item else Missing {}
    return Dropped {}
  }
  command PutOther {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    create Other(owner, number) as other else Exists {}
    set other.size = 1
    return Done {}
  }
}
query One($owner: uuid) {
  one item from Item where owner == $owner && number == 1 else Nothing {}
  return Found { item: item { size } }
}
query Whole($owner: uuid, $page: optional<cursor> = null) {
  maybe first from Item where owner == $owner && number == 1
  many items from Item where owner == $owner order by number take 2 after $page
  count total from Item where owner == $owner take 100
  sum size of size from Item where owner == $owner take 100
  count kinds from Item where owner == $owner by kind take 100
  return Found {
    first: first { size }, items: items { number }, next: items.next, total: total, size: size, kinds: kinds
  }
}
"""


def steps(told: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The steps of a change, in short."""
    return [(step["path"], step["op"], step.get("index"), step["value"]) for step in told["changes"]]


def test_a_row_that_comes_and_goes_is_another_outcome(empty: Place) -> None:
    empty.deploy(plan_of(FORMS, "forms"))
    with reading(empty, name="One") as reader:
        assert reader.take()["outcome"] == "Nothing"
        empty.command("Put", **account("a", 1, size=3))
        told = reader.take_outcome()
        assert (told["outcome"], told["payload"]) == ("Found", {"item": {"size": "3"}})
        empty.command("Put", **account("b", 1, size=4))
        assert steps(reader.take()) == [("item", "set", None, {"size": "4"})]
        empty.command("Drop", **account("c", 1))
        told = reader.take_outcome()
        assert (told["outcome"], told["payload"]) == ("Nothing", {})
        empty.command("PutOther", **account("d", 1))
        assert reader.is_silent()
        assert empty.database.watches.evaluations == 4


def test_every_form_of_a_value_changes_by_its_own_steps(empty: Place) -> None:
    empty.deploy(plan_of(FORMS, "forms"))

    def asked() -> Any:
        return json.loads(empty.run(empty.database.query(LOCAL, "Whole", {"owner": ORGANIZATION})))["payload"]

    with reading(empty, name="Whole") as reader:
        reader.take()
        assert reader.payload == asked()
        empty.command("Put", **account("a", 2))
        assert steps(reader.take()) == [
            ("items", "insert", 0, {"number": "2"}),
            ("total", "set", None, "1"),
            ("size", "set", None, "1"),
            ("kinds", "insert", 0, {"kind": "Old", "n": "1"}),
        ]
        empty.command("Put", **account("b", 1, size=5, kind="New"))
        told = {step[0]: step[1:] for step in steps(reader.take())}
        assert told["first"] == ("set", None, {"size": "5"})
        assert told["kinds"] == ("insert", 1, {"kind": "New", "n": "1"})
        empty.command("Put", **account("c", 3))
        told = {step[0]: step[1:] for step in steps(reader.take())}
        assert told.keys() == {"next", "total", "size", "kinds"}, "the page is the same, and something follows it now"
        assert told["kinds"] == ("replace", 0, {"kind": "Old", "n": "2"})
        assert reader.payload == asked()
        with reading(empty, name="Whole", page=reader.payload["next"]) as second:
            second.take()
            assert second.payload["items"] == [{"number": "3"}]
            empty.command("Drop", **account("d", 1))
            for each in (reader, second):
                each.take()
            assert second.payload["items"] == [{"number": "3"}]
        assert reader.payload == asked()
