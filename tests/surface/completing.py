"""Work of the queue that is completed, so that the stream `WorkActivity` has events: one `WorkCompleted` each.

The three commands of one item have keys of their own that never change, so whoever lost an answer asks again.
"""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import riffdb
from tests.surface.http_server import HttpClient

ASKING_MAX = 2_000
Command = Callable[[str, Mapping[str, object]], str]


def complete(command: Command, organization: str) -> str:
    """Make an item and complete it; its id. `command` gives the outcome of a command."""
    work, owner = str(uuid4()), str(uuid4())
    row = {"organization_id": organization, "work_id": work}
    held = row | {"owner_id": owner}
    steps: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("CreateWork", "Created", {**row, "due_at": "2026-01-01T00:00:00Z"}),
        ("ClaimWork", "Claimed", {**held, "duration": 900, "expected_revision": 1}),
        ("CompleteWork", "Completed", {**held, "token": 1, "expected_revision": 2}),
    )
    for name, outcome, inputs in steps:
        assert command(name, {"request_key": f"{name}-{work}", **inputs}) == outcome
    return work


def completed(client: HttpClient, organization: str) -> str:
    """An item that is complete, over HTTP; its id."""

    def command(name: str, inputs: Mapping[str, object]) -> str:
        return str(client.command(name, inputs).json["outcome"])

    return complete(command, organization)


def completed_in_the_end(client: riffdb.Client, organization: str) -> str:
    """An item that is complete, however often the server dies meanwhile; its id."""

    def command(name: str, inputs: Mapping[str, object]) -> str:
        return patiently(lambda: client.command(name, **inputs)).outcome  # type: ignore[no-any-return]  # an answer's

    return complete(command, organization)


def patiently(call: Callable[[], Any]) -> Any:
    """What a call gives once a server answers it."""
    for _ in range(ASKING_MAX):
        try:
            return call()
        except riffdb.RiffError as error:
            if not error.facts.retryable:
                raise
    raise AssertionError("the server did not come back")
