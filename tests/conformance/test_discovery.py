"""Discovery stays flat: `DueWork` does the same work however many rows are finished, leased or have run out.

Not time is counted but what SQLite does: the steps of its virtual machine, in which every entry that it looks at shows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from riffdb.storage.sqlite import SqliteStore
from tests.conformance.databases import LOCAL, ORGANIZATION, SECOND, START, Place, queue_plan
from tests.model.boards import put_rows


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Place]:
    """A file with the queue."""
    place = Place("sqlite", tmp_path)
    place.deploy(queue_plan())
    yield place
    place.close()


def item(place: Place, number: int, state: str, *, lease_seconds: int = 0) -> tuple[Any, ...]:
    due = START - 7_200 * SECOND + number
    expires = START + lease_seconds * SECOND + number if lease_seconds else None
    contract = place.database.contract
    values = {
        "organization_id": ORGANIZATION.bytes,
        "work_id": number.to_bytes(16, "big"),
        "state": contract.enums["WorkState"].index(state),
        "due_at": due,
        "lease_owner": None if expires is None else ORGANIZATION.bytes,
        "lease_expires_at": expires,
        "lease_fence": 1,
        "lease_attempts": 1,
        "available_at": due if expires is None else max(due, expires),
    }
    return (*(values[column] for column in contract.plan.entity("WorkItem").columns), 1, 1)


def put(place: Place, rows: list[tuple[Any, ...]]) -> None:
    place.run(put_rows(place.store, place.database.contract, "WorkItem", rows))


def steps(place: Place) -> tuple[int, int, int]:
    """The machine's steps, rows passed over by a full scan, and sorts, of one `DueWork` that finds 32 items."""
    store = place.store
    assert isinstance(store, SqliteStore)
    cursor = store._file.readers.borrow()
    counted: list[dict[str, int]] = []

    def ended(event: dict[str, Any]) -> None:
        if "work_item" in event["sql"]:
            counted.append(event["stmt_status"])

    cursor.connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ended)
    store._file.readers.give_back(cursor)
    answer = place.run(place.database.query(LOCAL, "DueWork", {"organization_id": ORGANIZATION}))
    assert answer.count(b'"work_id"') == 32
    assert len(counted) == 1
    wanted = ("SQLITE_STMTSTATUS_VM_STEP", "SQLITE_STMTSTATUS_FULLSCAN_STEP", "SQLITE_STMTSTATUS_SORT")
    return counted[0][wanted[0]], counted[0][wanted[1]], counted[0][wanted[2]]


def test_finished_leased_and_expired_rows_cost_a_query_nothing(queue: Place) -> None:
    put(queue, [item(queue, number, "Queued") for number in range(1_000)])
    few = steps(queue)
    assert few[1:] == (0, 0)
    put(queue, [item(queue, number, "Failed" if number % 10 == 0 else "Complete") for number in range(2_000, 12_000)])
    assert steps(queue) == few
    for lease_seconds in (3_600, -60):
        for count in (100, 900):
            put(queue, [item(queue, number, "Queued", lease_seconds=lease_seconds) for number in range(count)])
            assert steps(queue) == few


def test_what_would_look_at_leased_rows_is_seen_to_do_so(queue: Place) -> None:
    """The measure itself: rows that are skipped one by one are steps."""
    put(queue, [item(queue, number, "Queued") for number in range(100)])
    store = queue.store
    assert isinstance(store, SqliteStore)
    connection = store._file.readers.borrow().connection
    counted: list[int] = []
    connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE,
        lambda event: counted.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
    )
    for _ in range(2):
        connection.execute("SELECT * FROM work_item WHERE lease_expires_at IS NULL ORDER BY due_at LIMIT 5").fetchall()
        put(queue, [item(queue, number, "Queued", lease_seconds=9) for number in range(100, 1_000)])
    assert counted[1] > 2 * counted[0]
    connection.close(True)
