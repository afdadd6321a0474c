"""Events are read apart from their records, within a bounded number of these, by every store."""

from pathlib import Path

import pytest

from riffdb.core.limits import I64_MAX
from riffdb.core.records import Batch, EventRecord
from riffdb.storage.protocol import Reader
from tests.conformance.stores import KINDS, Place, place_of, record

P, Q = b"\x01" + b"p" * 16, b"\x01" + b"q" * 16
TOLD = {2: '[{"event":"A","fields":{}}]', 3: '[{"event":"Ä","fields":{"n":"1"}}]', 7: '[{"event":"B","fields":{}}]'}
EVENTS = [EventRecord(number, 1_000_000 + number, text) for number, text in TOLD.items()]
WITHIN = {
    (0, 9): EVENTS,
    (0, 100): EVENTS,
    (0, I64_MAX): EVENTS,
    (0, 2): EVENTS[:1],
    (1, 1): EVENTS[:1],
    (2, 4): EVENTS[1:2],
    (2, 5): EVENTS[1:],
    (3, 3): [],
    (7, 100): [],
    (0, 0): [],
    (9, 9): [],
}


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    found = place_of(request.param, tmp_path)
    records = [record(P, number)._replace(events=TOLD.get(number, "[]")) for number in range(1, 10)]
    found.write(Batch(records=[*records[:5], record(Q, 1)._replace(events="[1]")]))
    found.write(Batch(records=records[5:]))
    return found


@pytest.mark.parametrize(("after", "limit"), WITHIN)
def test_events_are_read_within_so_many_records(place: Place, after: int, limit: int) -> None:
    async def read(reader: Reader) -> list[EventRecord]:
        return await reader.events(P, after, limit)

    assert place.read(read) == WITHIN[after, limit]


def test_a_partition_without_records_has_no_events(place: Place) -> None:
    async def read(reader: Reader) -> list[EventRecord]:
        return await reader.events(b"none", 0, 9)

    assert place.read(read) == []
