"""Live queries: a watch gives a snapshot, and then a change whenever a commit made the answer another one.

Watches of one query with the same parameters form a group: one evaluation serves all, and a ring of the last changes
lets a reader that is behind, or that comes back with the id of what it had, go on exactly; who is further behind is
told to `reset`. A watch is pulled and never pushed, so a slow reader holds up nobody. Whoever of a group is awake
first evaluates for all. Only commits of the partition that touch an entity of the query wake it. Each watch checks its
own authority before each event. Absent: transports; what differs between answers (`differing`).
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, Literal
from uuid import uuid4

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.limits import (
    HEARTBEAT_SECONDS,
    WATCH_GROUPS_KEPT_MAX,
    WATCH_KEEP_SECONDS,
    WATCH_RING_BYTES_MAX,
    WATCH_RING_CHANGES_MAX,
    WATCHES_MAX,
)
from riffdb.core.types import TIMESTAMP
from riffdb.core.values import decoder
from riffdb.database.callers import Caller, check_query, check_token
from riffdb.database.contracts import Contract
from riffdb.database.differing import steps_between
from riffdb.database.horizons import horizon_seconds
from riffdb.database.reading import Asked, admit_query, read_answer
from riffdb.database.wakeups import Signal, Wakeups
from riffdb.storage.protocol import Store

Kind = Literal["snapshot", "change", "reset", "ping"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """What a watch tells; `id` is empty for a ping, which has nothing to go on from."""

    kind: Kind
    id: str
    data: bytes


CONTENTION_SECONDS = 0.05
"""How long a watch waits when a deployment was in its way."""

_TIME = decoder(TIMESTAMP, {})
_PING = WatchEvent("ping", "", b"{}")


class Group:
    """Watches of one query with the same parameters; its state number counts the answers that differed."""

    def __init__(self, asked: Asked, wakeups: Wakeups) -> None:
        self.asked = asked
        self.partition = asked.partition
        self.topics: frozenset[str] | None = frozenset(
            f"entity:{binding.entity}" for binding in asked.query.plan.bindings
        )
        self._wakeups = wakeups
        self.token = uuid4().hex[:12]
        self.number = 0
        self.raw = b""
        self.left_at = 0.0
        self._due: float | None = None
        """When it must be evaluated again although nothing was committed (monotonic)."""
        self.signals: tuple[Signal, ...] = ()
        self._answer: dict[str, Any] = {}
        self._ring: deque[tuple[int, bytes]] = deque()
        self._ring_bytes = 0
        self._is_stale = True
        self._is_claimed = False
        self._mutex = Lock()

    def set(self) -> bool:
        """A commit concerns the group; whether that is news."""
        was_fresh, self._is_stale = not self._is_stale, True
        self.rouse()
        return was_fresh

    def rouse(self) -> None:
        """Let every watch look."""
        for signal in self.signals:
            signal.set()

    def add(self, signal: Signal) -> None:
        """One more watch; the first one has the group hear of commits, of which it missed some."""
        if not self.signals:
            self._wakeups.add(self)
            self._is_stale = True
        self.signals = (*self.signals, signal)

    def remove(self, signal: Signal) -> None:
        """One watch less."""
        self.signals = tuple(other for other in self.signals if other is not signal)
        if not self.signals:
            self._wakeups.remove(self)
            self.left_at = monotonic()

    def due(self, deadline: float) -> float:
        """When a watch has to look again by itself, at the latest at the deadline (monotonic)."""
        return deadline if self._due is None or self._is_claimed else min(self._due, deadline)

    def claim(self) -> bool:
        """Whether the caller is to evaluate, for all; then `evaluate` must follow."""
        with self._mutex:
            is_due = self._due is not None and self._due <= monotonic()
            if self._is_claimed or not (self._is_stale or is_due):
                return False
            self._is_claimed, self._is_stale = True, False
            return True

    async def evaluate(self, store: Store) -> None:
        """Read the answer, and keep what changed; if that fails, the next of the group has to."""
        is_done = False
        try:
            asked = self.asked
            async with store.snapshot() as reader:
                raw = await read_answer(reader, asked, None)
                answer = msgspec.json.decode(raw)
                seconds = await horizon_seconds(reader, asked, _TIME(answer["as_of"]["time"], "time"))
            self._take(raw, answer)
            self._due = None if seconds is None else monotonic() + seconds
            is_done = True
        finally:
            if not is_done:
                self._is_stale = True
            self._is_claimed = False
            self.rouse()

    def event(self, number: int | None, *, is_new: bool) -> tuple[WatchEvent, int] | None:
        """What comes after state `number` (None: none is known), and the state after it; None if there is nothing.

        `is_new`: the watch has told nothing yet, so that its first is a `snapshot`.
        """
        with self._mutex:
            if self.number == (number or 0):
                return None
            if number is not None:
                for state, data in self._ring:
                    if state == number + 1:
                        return WatchEvent("change", self._id(state), data), state
            kind: Kind = "snapshot" if is_new else "reset"
            return WatchEvent(kind, self._id(self.number), self.raw), self.number

    def known(self, event_id: str | None) -> int | None:
        """The state that an event's id names; None if it is of no group, or of another."""
        token, _, number = (event_id or "").partition("-")
        if token == self.token and number.isascii() and number.isdecimal() and 0 < int(number) <= self.number:
            return int(number)
        return None

    def _id(self, number: int) -> str:
        return f"{self.token}-{number}"

    def _take(self, raw: bytes, answer: dict[str, Any]) -> None:
        before = self._answer
        if before and (before["outcome"], before["payload"]) == (answer["outcome"], answer["payload"]):
            with self._mutex:
                self.raw, self._answer = raw, answer
            return
        data = _change(before, answer) if before else b""
        with self._mutex:
            self.number += 1
            self.raw, self._answer = raw, answer
            if before:
                self._ring.append((self.number, data))
                self._ring_bytes += len(data)
                while len(self._ring) > WATCH_RING_CHANGES_MAX or self._ring_bytes > WATCH_RING_BYTES_MAX:
                    self._ring_bytes -= len(self._ring.popleft()[1])


def _change(old: dict[str, Any], new: dict[str, Any]) -> bytes:
    change = {"outcome": new["outcome"], "as_of": new["as_of"]}
    if old["outcome"] == new["outcome"]:
        change["changes"] = steps_between(old["payload"], new["payload"])
    else:
        change["payload"] = new["payload"]
    return msgspec.json.encode(change)


class Watches:
    """All watches of a database. `evaluations` counts how often a query was read for them."""

    def __init__(self, store: Store, wakeups: Wakeups, contract: Callable[[], Contract]) -> None:
        self.store = store
        self.wakeups = wakeups
        self.contract = contract
        self.evaluations = 0
        self.watches_max = WATCHES_MAX
        self._mutex = Lock()
        self._open: set[Watch] = set()
        self._groups: dict[tuple[str, str], Group] = {}

    @property
    def open(self) -> int:
        """How many watches there are."""
        return len(self._open)

    def watch(
        self,
        caller: Caller,
        name: str,
        values: Mapping[str, object],
        last_event_id: str | None,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> "Watch":
        """A new watch; `RDB-E-WATCHES` if there are too many."""
        asked = admit_query(self.store, self.contract(), caller, name, values)
        with self._mutex:
            if len(self._open) >= self.watches_max:
                message = f"{self.watches_max} watches are open, which is the most; try again later"
                raise RiffError("RDB-E-WATCHES", message, detail={"retry_after": 5})
            watch = Watch(self, caller, dict(values), heartbeat_seconds)
            self._open.add(watch)
        watch.begin(asked, last_event_id)
        return watch

    def join(self, asked: Asked, signal: Signal) -> Group:
        """The group of those who ask the same, with this watch in it."""
        key = (asked.query.plan.name, asked.canonical)
        with self._mutex:
            self._sweep()
            group = self._groups.get(key)
            if group is None or group.asked.query.plan != asked.query.plan:
                group = self._groups[key] = Group(asked, self.wakeups)
            group.asked = asked
            group.add(signal)
        return group

    def leave(self, group: Group, signal: Signal) -> None:
        """Take a watch out of its group."""
        with self._mutex:
            group.remove(signal)

    def ended(self, watch: "Watch") -> bool:
        """One watch less; False if it had ended before."""
        with self._mutex:
            was_open = watch in self._open
            self._open.discard(watch)
        return was_open

    def rouse(self, *, is_stale: bool = False) -> None:
        """Let every watch look: at its authority, and if something else than a commit changed, at its answer."""
        with self._mutex:
            groups = list(self._groups.values())
        for group in groups:
            if is_stale:
                group.set()
            else:
                group.rouse()

    def _sweep(self) -> None:
        """Forget the groups that nobody came back to, and the oldest of those left if there are too many."""
        kept = sorted((group.left_at, key) for key, group in self._groups.items() if not group.signals)
        oldest = monotonic() - WATCH_KEEP_SECONDS
        for number, (left_at, key) in enumerate(kept, start=1):
            if left_at < oldest or len(kept) - number >= WATCH_GROUPS_KEPT_MAX:
                del self._groups[key]


class Watch:
    """One reader of a live query. `next` until it is None; then, or earlier, `close`."""

    def __init__(
        self, watches: Watches, caller: Caller, values: Mapping[str, object], heartbeat_seconds: float
    ) -> None:
        self._watches = watches
        self._caller = caller
        self._values = values
        self._heartbeat_seconds = heartbeat_seconds
        self._signal = watches.wakeups.make_signal()
        self._is_unchecked = False
        self._is_open = True
        self._is_new = True
        self._number: int | None = None
        self._group: Group

    def begin(self, asked: Asked, last_event_id: str | None) -> None:
        """Join those who ask the same, and go on from where the reader was, if that is known."""
        self._group = self._watches.join(asked, self._signal)
        self._number = self._group.known(last_event_id)
        self._is_new = last_event_id is None

    async def next(self) -> WatchEvent | None:
        """The next event, waited for; a ping if there is none for a heartbeat, None once the watch has ended.

        `RDB-E-UNAUTHENTICATED`, `RDB-E-FORBIDDEN` and others when the caller may not have it any more.
        """
        deadline = monotonic() + self._heartbeat_seconds
        while self._is_open and not self._watches.wakeups.has_ended():
            self._follow()
            found = self._group.event(self._number, is_new=self._is_new)
            if found is not None:
                await self._authorize()
                event, self._number = found
                self._is_new = False
                return event
            if self._group.claim():
                await self._evaluate()
                continue
            if self._is_unchecked or monotonic() >= deadline:
                await self._authorize()
            if monotonic() >= deadline:
                return _PING
            seconds = self._group.due(deadline) - monotonic()
            self._is_unchecked = await self._signal.wait(max(0.0, seconds))
        return None

    def close(self) -> None:
        """End the watch; a `next` that waits, on another thread or task, is None then."""
        self._is_open = False
        if self._watches.ended(self):
            self._watches.leave(self._group, self._signal)
            self._signal.set()

    async def _evaluate(self) -> None:
        self._watches.evaluations += 1
        try:
            await self._group.evaluate(self._watches.store)
        except RiffError as error:
            if error.code != "RDB-E-CONTENTION":  # else another contract is just being deployed
                raise
            await self._signal.wait(0)  # lowers it: the failed evaluation raised it
            await self._signal.wait(CONTENTION_SECONDS)

    def _follow(self) -> None:
        """Go on under the contract that is deployed now, in another group if the query is another one."""
        contract, before = self._watches.contract(), self._group
        if before.asked.contract is contract:
            return
        asked = admit_query(self._watches.store, contract, self._caller, before.asked.query.plan.name, self._values)
        self._watches.leave(before, self._signal)
        self._group = self._watches.join(asked, self._signal)
        if self._group is not before:
            self._number = None

    async def _authorize(self) -> None:
        asked = self._group.asked
        check_query(asked.contract.plan, self._caller, asked.query.plan.name)
        async with self._watches.store.snapshot() as reader:
            await check_token(reader, self._caller)
        self._is_unchecked = False
