"""The places of the database's suite: each test of it runs over every store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from riffdb.core.stepping import step
from tests.conformance import stores
from tests.conformance.databases import KINDS, Place, ledger_plan, queue_plan


@pytest.fixture(params=stores.KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[stores.Place]:
    """A place with an empty store, no database over it."""
    found = stores.place_of(request.param, tmp_path)
    yield found
    step(found.store.close())


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place with nothing deployed."""
    place = Place(request.param, tmp_path)
    try:
        yield place
        if not (place.is_tampered or place.is_closed):
            place.verify()
    finally:
        place.close()


@pytest.fixture
def queue(empty: Place) -> Place:
    """A place with the queue."""
    empty.deploy(queue_plan())
    return empty


@pytest.fixture
def ledger(empty: Place) -> Place:
    """A place with the ledger."""
    empty.deploy(ledger_plan())
    return empty
