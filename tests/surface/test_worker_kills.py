"""A worker that dies of SIGKILL at any step of a turn: another one finishes its work, and nothing is done twice.

For each label one organization with three items and one victim, which dies at its second one: the first is done, the
second is cut off, the third untouched. All victims run at once, then all successors, so that the wait for the end of
the dead ones' leases happens once. The facts are read from the file and its log.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from tests.surface.http_server import new_work
from tests.surface.processes import COMPLETE, Deployment, Process, Server, deployed

LABELS = [f"turn.{step}.{side}" for step in ("claim", "business", "release") for side in ("before", "after")]
TAKEN_OVER = {"turn.claim.after", "turn.business.before"}
"""Where the second item was held and not yet completed, so that its lease had to run out."""
COMPLETED_BY_VICTIM = {"turn.business.after", "turn.release.before", "turn.release.after"}

CREATED, CLAIMED = ("CreateWork", "Created"), ("ClaimWork", "Claimed")
COMPLETED, RELEASED = ("CompleteWork", "Completed"), ("ReleaseWork", "Released")
AT_DEATH = {
    "turn.claim.before": [CREATED],
    "turn.claim.after": [CREATED, CLAIMED],
    "turn.business.before": [CREATED, CLAIMED],
    "turn.business.after": [CREATED, CLAIMED, COMPLETED],
    "turn.release.before": [CREATED, CLAIMED, COMPLETED],
    "turn.release.after": [CREATED, CLAIMED, COMPLETED, RELEASED],
}
"""What the log says of the second item when the victim is dead."""


@dataclass
class Case:
    """One label, its organization and items in the order of their due times, and who worked there."""

    label: str
    organization: str
    items: list[str]
    victim: str
    successor: str
    at_death: list[tuple[str, str]]
    stderr: str
    exit: int

    @property
    def second(self) -> str:
        """The item at which the victim died."""
        return self.items[1]


def commits(deployment: Deployment, item: str) -> list[tuple[str, str]]:
    """The commands that were committed for an item, with their outcomes, in the order of the log; no late ones."""
    return deployment.rows(
        "SELECT command, outcome FROM riffdb_commit WHERE json_extract(input, '$.work_id') = ?"
        " AND key NOT LIKE 'late %' ORDER BY position",
        item,
    )


def fences(deployment: Deployment, item: str) -> list[int]:
    """The fences that the claims of an item were given, in the order of the log."""
    found = deployment.rows(
        "SELECT json_extract(changes, '$[0].fields.lease_fence') FROM riffdb_commit WHERE command = 'ClaimWork'"
        " AND outcome = 'Claimed' AND json_extract(input, '$.work_id') = ? ORDER BY position",
        item,
    )
    return [int(fence) for (fence,) in found]


def enqueue(deployment: Deployment, server: Server) -> list[Case]:
    cases = []
    with server.client(deployment.producer) as client:
        for label in LABELS:
            organization = str(uuid4())
            items = []
            for number in range(3):
                work = new_work(organization_id=organization, due_at=f"2026-01-01T00:00:0{number}Z")
                assert client.command("CreateWork", work).json["outcome"] == "Created"
                items.append(str(work["work_id"]))
            cases.append(Case(label, organization, items, str(uuid4()), str(uuid4()), [], "", 0))
    return cases


def kill(deployment: Deployment, server: Server, cases: list[Case]) -> None:
    victims = [
        deployment.worker(server, case.organization, owner=case.victim, failpoint=f"{case.label}:kill:2")
        for case in cases
    ]
    for case, victim in zip(cases, victims, strict=True):
        case.exit = victim.ended()
        case.stderr = victim.stderr
        case.at_death = commits(deployment, case.second)


def take_over(deployment: Deployment, server: Server, cases: list[Case]) -> None:
    """Run a healthy worker in each organization until it has completed what was left there."""
    successors = [deployment.worker(server, case.organization, owner=case.successor) for case in cases]
    for case, successor in zip(cases, successors, strict=True):
        left = 1 if case.label in COMPLETED_BY_VICTIM else 2
        completed = [completed_item(successor) for _ in range(left)]
        assert sorted(completed) == sorted(case.items[3 - left :])
    for successor in successors:
        assert successor.stop() == 0, successor.stderr


def completed_item(worker: Process) -> str:
    """The item of the worker's next turn, which must end well."""
    turn = json.loads(worker.line() or "{}")
    assert turn.get("result") == "Completed", (turn, worker.stderr)
    return str(turn["key"]).rpartition("/")[2]


@dataclass(frozen=True)
class Aftermath:
    """What is there once everything has been done."""

    deployment: Deployment
    server: Server
    cases: dict[str, Case]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    with deployed(tmp_path_factory.mktemp("kills"), lease_seconds=5, in_flight=1) as deployment:
        server = deployment.serve()
        cases = enqueue(deployment, server)
        kill(deployment, server, cases)
        take_over(deployment, server, cases)
        yield Aftermath(deployment, server, {case.label: case for case in cases})


@pytest.fixture(params=LABELS)
def case(request: pytest.FixtureRequest, aftermath: Aftermath) -> Case:
    return aftermath.cases[request.param]


def test_the_victim_died_of_the_kill_at_its_label(case: Case) -> None:
    assert case.exit == -signal.SIGKILL
    assert case.stderr.endswith(f"\nfailpoint {case.label}: kill at hit 2\n")
    assert case.at_death == AT_DEATH[case.label]


def test_every_item_was_completed_once_and_by_the_right_worker(aftermath: Aftermath, case: Case) -> None:
    rest = [] if case.label in COMPLETED_BY_VICTIM else [CLAIMED, COMPLETED, RELEASED]
    whole = [CREATED, CLAIMED, COMPLETED, RELEASED]
    assert [commits(aftermath.deployment, item) for item in case.items] == [whole, case.at_death + rest, whole]
    completions = aftermath.deployment.rows(
        "SELECT json_extract(input, '$.work_id'), json_extract(input, '$.owner_id'), json_array_length(events)"
        " FROM riffdb_commit WHERE command = 'CompleteWork' AND outcome = 'Completed'"
        " AND json_extract(input, '$.organization_id') = ? ORDER BY json_extract(input, '$.work_id')",
        case.organization,
    )
    owners = [case.victim, case.victim if not rest else case.successor, case.successor]
    assert completions == sorted((item, owner, 1) for item, owner in zip(case.items, owners, strict=True))


def test_nothing_is_left_to_do(aftermath: Aftermath, case: Case) -> None:
    states = aftermath.deployment.rows(
        "SELECT state FROM work_item WHERE organization_id = ?", UUID(case.organization).bytes
    )
    assert states == [(COMPLETE,)] * 3
    with aftermath.server.client(aftermath.deployment.scheduler) as client:
        due = client.call("POST", "/v1/queries/DueWork", {"params": {"organization_id": case.organization}})
    assert due.json["payload"] == {"items": []}


def test_every_takeover_raised_the_fence(aftermath: Aftermath, case: Case) -> None:
    given = [fences(aftermath.deployment, item) for item in case.items]
    assert given == [[1], [1, 2] if case.label in TAKEN_OVER else [1], [1]]
    kept = [
        aftermath.deployment.figure("SELECT lease_fence FROM work_item WHERE work_id = ?", UUID(item).bytes)
        for item in case.items
    ]
    assert kept == [fences_of_item[-1] for fences_of_item in given]


def test_what_the_dead_worker_would_still_write_is_refused(aftermath: Aftermath, case: Case) -> None:
    row = ("SELECT * FROM work_item WHERE work_id = ?", UUID(case.second).bytes)
    before = aftermath.deployment.rows(*row)
    newest = aftermath.deployment.figure("SELECT revision FROM work_item WHERE work_id = ?", UUID(case.second).bytes)
    held = {"organization_id": case.organization, "work_id": case.second, "owner_id": case.victim}
    claim = held | {"request_key": "late claim", "duration": 5, "expected_revision": 1}
    old, new = (
        held | {"request_key": f"late complete at {revision}", "token": 1, "expected_revision": revision}
        for revision in (2, newest)
    )
    with aftermath.server.client(aftermath.deployment.scheduler) as client:
        outcomes = [client.command("ClaimWork", claim).json["outcome"]]
        outcomes += [client.command("CompleteWork", complete).json["outcome"] for complete in (old, new)]
    assert outcomes[:2] == ["StaleRevision", "WorkStale"]
    is_unreleased = case.at_death == [CREATED, CLAIMED, COMPLETED]
    assert outcomes[2] in (("LeaseExpired", "AlreadyClosed") if is_unreleased else ("WrongHolder",))
    assert aftermath.deployment.rows(*row) == before
