"""A stream ready to read: which events of the log it selects, and the fields that it shows of them.

Events are read by the names that stand in the log, whatever contract wrote them: a field that an older one did not have
is its default or null, a field that is gone is passed over. `Position` is (commit sequence, ordinal from 1); one that
stands for "read up to here" may have the ordinal 0. Absent: consumers.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.keys import partition_encoder
from riffdb.core.records import EventRecord
from riffdb.core.values import Decoder, Enums, decoder, encoder
from riffdb.database.codecs import InputCodec
from riffdb.engine import CompiledStream, compile_stream
from riffdb.plan import Plan
from riffdb.plan.expressions import inside_value
from riffdb.plan.queries import StreamPlan
from riffdb.storage.protocol import Reader

RECORDS_READ = 64
"""Commit records that are read at once."""


class Position(NamedTuple):
    """A place in the order of a partition's events."""

    sequence: int
    ordinal: int

    def __str__(self) -> str:
        return f"{self.sequence}:{self.ordinal}"


START = Position(0, 0)


def before(sequence: int) -> Position:
    """The position before everything that the commit of this sequence emitted."""
    return Position(sequence, 0)


class StreamEvent(NamedTuple):
    """An event that a stream selects: its place, its commit's time (µs), and the selected fields in wire form."""

    position: Position
    time: int
    event: str
    fields: dict[str, Any]


class _StoredEvent(msgspec.Struct):
    event: str
    fields: dict[str, Any]


_decode_events = msgspec.json.Decoder(list[_StoredEvent]).decode


@dataclass(frozen=True)
class _Selection:
    """How one event of the stream is shown: each field with what stands for it where an older event lacks it."""

    shown: tuple[tuple[str, Any], ...]
    reads: tuple[tuple[str, Decoder, Any], ...]


class PreparedStream:
    """A stream of a contract ready to read."""

    def __init__(self, plan: Plan, name: str, enums: Enums) -> None:
        self.plan: StreamPlan = plan.stream(name)
        self.params = InputCodec(self.plan.params, enums, "parameter")
        self._compiled: CompiledStream = compile_stream(plan, name)
        self._partition_bytes = partition_encoder(self.plan.partition.type)
        self._selections = {
            part.event: self._selection(plan, enums, part.event, part.fields) for part in self.plan.events
        }
        self.topics = frozenset(f"event:{part.event}" for part in self.plan.events)

    def partition(self, params: tuple[Any, ...]) -> bytes:
        """The byte form of the partition that the parameters name."""
        return self._partition_bytes(self._compiled.partition(params))

    def select(self, record: EventRecord, params: tuple[Any, ...]) -> list[StreamEvent]:
        """The events of a commit that the stream selects, in their order."""
        found = []
        for ordinal, stored in enumerate(_decode_events(record.events), start=1):
            selection = self._selections.get(stored.event)
            if selection is not None and self._passes(stored, selection, params):
                fields = {name: stored.fields.get(name, missing) for name, missing in selection.shown}
                found.append(StreamEvent(Position(record.sequence, ordinal), record.time, stored.event, fields))
        return found

    def _selection(self, plan: Plan, enums: Enums, event: str, fields: tuple[str, ...]) -> _Selection:
        declared = {part.name: part for part in plan.event(event).fields}
        missing = {
            name: inside_value(part.type, part.default) if part.has_default else None for name, part in declared.items()
        }

        def wire(name: str) -> Any:
            return None if missing[name] is None else encoder(declared[name].type, enums)(missing[name])

        reads = self._compiled.reads.get(event, ())
        return _Selection(
            tuple((name, wire(name)) for name in fields),
            tuple((name, decoder(declared[name].type.nullable, enums), missing[name]) for name in reads),
        )

    def _passes(self, stored: _StoredEvent, selection: _Selection, params: tuple[Any, ...]) -> bool:
        condition = self._compiled.conditions.get(stored.event)
        if condition is None:
            return True
        try:
            values = tuple(
                decode(stored.fields[name], name) if name in stored.fields else missing
                for name, decode, missing in selection.reads
            )
            return condition(params, values)
        except RiffError:
            # Arithmetic of the condition left its range: nobody can say that the event is not wanted.
            return True


@dataclass(slots=True)
class Passed:
    """What a bounded look found: events in order, and how far it has looked, all before it selected or dropped."""

    events: list[StreamEvent]
    until: Position
    is_whole: bool
    """Whether there is nothing behind `until` yet."""


async def events_after(
    reader: Reader,
    stream: PreparedStream,
    params: tuple[Any, ...],
    partition: bytes,
    position: Position,
    *,
    wanted: int,
    records: int,
) -> Passed:
    """At most `wanted` events behind the position, of at most `records` commits."""
    head = (await reader.heads({partition})).get(partition)
    newest = 0 if head is None else head.sequence
    found: list[StreamEvent] = []
    until = position
    looked = 0
    while until.sequence <= newest and looked < records:
        after = max(until.sequence - 1, 0)
        limit = min(RECORDS_READ, records - looked)
        for record in await reader.events(partition, after, limit):
            for event in stream.select(record, params):
                if event.position <= position:
                    continue
                found.append(event)
                if len(found) == wanted:
                    return Passed(found, event.position, False)
        looked += limit
        until = max(until, before(min(after + limit, newest) + 1))
    return Passed(found, until, until.sequence > newest)


async def event_at(
    reader: Reader, stream: PreparedStream, params: tuple[Any, ...], partition: bytes, position: Position
) -> StreamEvent | None:
    """The event of that place; None if the stream does not select it (any more)."""
    for record in await reader.events(partition, position.sequence - 1, 1):
        for event in stream.select(record, params):
            if event.position == position:
                return event
    return None
