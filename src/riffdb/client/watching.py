"""A live query as a Python caller holds it: updates, each with the answer as it is then.

    for update in db.watch("DueWork", organization_id=organization):
        show(update.answer.payload["items"])

`Updates` blocks and `AsyncUpdates` suspends, from one source. The steps of a change are applied here, so `answer` is
whole whatever was told. Leaving the loop, `close` or the end of a `with` block ends the watch. Absent: connections,
and coming back after they broke.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from riffdb.client.answers import QueryAnswer
from riffdb.client.transport import Event, EventSource
from riffdb.core.errors import RiffError
from riffdb.core.stepping import step
from riffdb.database.differing import apply_steps

_read = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Change:
    """One step from the answer before to this one: `insert`, `remove` or `replace` of an item, or `set` of a value.

    `path` names the value of the payload, `index` the place in it when the step is applied (None for `set`).
    """

    path: str
    op: str
    index: int | None
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    """What a live query told, and the answer since then.

    `kind` is `snapshot` at the beginning, `change`, or `reset` where the changes between were not kept, so that
    whatever was made of them is to be made anew. `data` is what was told, as it came.
    """

    kind: str
    answer: QueryAnswer
    changes: tuple[Change, ...]
    data: bytes = field(repr=False)


class WatchCalls:
    """What both kinds of updates rest on."""

    def __init__(
        self, source: EventSource, name: str, read_answer: Callable[[str, bytes], Awaitable[QueryAnswer]]
    ) -> None:
        self._source = source
        self._name = name
        self._read_answer = read_answer
        self._document: dict[str, Any] = {}

    def close(self) -> None:
        """End the watch; whoever waits for an update, on another thread or task, has the end of the loop."""
        self._source.close()

    async def _next(self, *, with_pings: bool = False) -> Update | None:
        """The next update, waited for; None once the watch was closed. A ping is an update of nothing.

        An error ends the watch.
        """
        try:
            while (event := await self._source.next()) is not None:
                if event.kind != "ping":
                    return await self._update(event)
                if with_pings and self._document:
                    return Update("ping", await self._answer(), (), event.data)
        except RiffError:
            self.close()
            raise
        return None

    async def _update(self, event: Event) -> Update:
        told = _read(event.data)
        steps = told.get("changes", [])
        payload = told["payload"] if "payload" in told else apply_steps(self._document["payload"], steps)
        self._document = {"outcome": told["outcome"], "payload": payload, "as_of": told["as_of"]}
        answer = await self._answer()
        return Update(event.kind, answer, tuple(_native(answer, step) for step in steps), event.data)

    async def _answer(self) -> QueryAnswer:
        return await self._read_answer(self._name, msgspec.json.encode(self._document))


def _native(answer: QueryAnswer, told: dict[str, Any]) -> Change:
    path, op, index = told["path"], told["op"], told.get("index")
    if index is None:
        return Change(path, op, None, answer.convert({path: told["value"]}).get(path))
    converted = answer.convert({path: [told["value"]]}).get(path)
    return Change(path, op, index, None if converted is None else converted[0])


class Updates(WatchCalls):
    """The updates of a live query, as plain calls see them."""

    def next(self, *, with_pings: bool = False) -> Update | None:
        """The next update, waited for; None once the watch was closed."""
        return step(self._next(with_pings=with_pings))

    def __iter__(self) -> Iterator[Update]:
        try:
            while (update := self.next()) is not None:
                yield update
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncUpdates(WatchCalls):
    """The updates of a live query, as coroutines see them."""

    next = WatchCalls._next

    async def __aiter__(self) -> AsyncIterator[Update]:
        try:
            while (update := await self._next()) is not None:
                yield update
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
