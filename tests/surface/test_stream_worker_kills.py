"""A worker of a schedule from a stream that dies of SIGKILL at any step of a turn: the event comes again, another one
finishes what it stands for, and nothing is done twice.

For each label one repository with three pipelines and one victim, which dies at its second one. All victims run at
once, then all successors, so that the wait for the end of the dead ones' leases and deliveries happens once.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from tests.surface.processes import PIPELINES, Deployment, Process, Server, deployed

STEPS = ("selection", "resolve", "claim", "business", "event", "release", "checkpoint")
LABELS = [f"turn.{step}.{side}" for step in STEPS for side in ("before", "after")]

QUEUED, CLAIMED, FINISHED, RELEASED = "Queued", "Claimed", "Finished", "Released"
AT_DEATH = {
    "turn.claim.after": [QUEUED, CLAIMED],
    "turn.business.before": [QUEUED, CLAIMED],
    "turn.business.after": [QUEUED, CLAIMED, FINISHED],
    "turn.event.before": [QUEUED, CLAIMED, FINISHED],
    "turn.event.after": [QUEUED, CLAIMED, FINISHED],
    "turn.release.before": [QUEUED, CLAIMED, FINISHED],
    "turn.release.after": [QUEUED, CLAIMED, FINISHED, RELEASED],
    "turn.checkpoint.before": [QUEUED, CLAIMED, FINISHED, RELEASED],
    "turn.checkpoint.after": [QUEUED, CLAIMED, FINISHED, RELEASED],
}
"""What was done with the second pipeline when the victim is dead; where nothing stands, it was only queued."""

SUCCEEDED = 1
"""The ordinal of `PipelineState.Succeeded` in the file."""


@dataclass
class Case:
    """One label, its repository and pipelines in the order of their events, and who worked there."""

    label: str
    partition: str
    pipelines: list[str]
    victim: str
    successor: str
    at_death: list[str]
    stderr: str
    exit: int

    @property
    def left(self) -> int:
        """How many events the successor has to settle."""
        return 1 if self.label == "turn.checkpoint.after" else 2


def successes(deployment: Deployment, pipeline: str) -> list[str]:
    """The successes that were committed for a pipeline, in the order of the log."""
    found = deployment.rows(
        "SELECT outcome FROM riffdb_commit WHERE json_extract(input, '$.pipeline_id') = ? ORDER BY position", pipeline
    )
    return [outcome for (outcome,) in found if outcome in (QUEUED, CLAIMED, FINISHED, RELEASED)]


def queue(deployment: Deployment, server: Server) -> list[Case]:
    cases = []
    with server.client(deployment.producer) as client:
        for label in LABELS:
            partition, pipelines = str(uuid4()), [str(uuid4()) for _ in range(3)]
            for pipeline in pipelines:
                inputs = {"request_key": pipeline, "repository_id": partition, "pipeline_id": pipeline}
                answer = client.command("QueuePipeline", inputs | {"revision_hash": "cafe"})
                assert answer.json["outcome"] == QUEUED
            cases.append(Case(label, partition, pipelines, str(uuid4()), str(uuid4()), [], "", 0))
    return cases


def kill(deployment: Deployment, server: Server, cases: list[Case]) -> None:
    victims = [
        deployment.worker(server, case.partition, owner=case.victim, failpoint=f"{case.label}:kill:2") for case in cases
    ]
    for case, victim in zip(cases, victims, strict=True):
        case.exit = victim.ended()
        case.stderr = victim.stderr
        case.at_death = successes(deployment, case.pipelines[1])


def take_over(deployment: Deployment, server: Server, cases: list[Case]) -> None:
    """Run a healthy worker in each repository until every event is settled."""
    successors = [deployment.worker(server, case.partition, owner=case.successor) for case in cases]
    for case, successor in zip(cases, successors, strict=True):
        settled: set[str] = set()
        while len(settled) < case.left:
            settled |= settled_pipeline(successor)
        assert settled == set(case.pipelines[3 - case.left :])
    for successor in successors:
        assert successor.stop() == 0, successor.stderr


def settled_pipeline(worker: Process) -> set[str]:
    """The pipeline of the worker's next turn if that settled it; a lease that still runs puts it off."""
    turn = json.loads(worker.line() or "{}")
    assert turn.get("result") in ("Completed", "Recovered", "Deferred"), (turn, worker.stderr)
    return set() if turn["result"] == "Deferred" else {str(turn["key"]).rpartition("/")[2]}


@dataclass(frozen=True)
class Aftermath:
    """What is there once everything has been done."""

    deployment: Deployment
    server: Server
    cases: dict[str, Case]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    with deployed(tmp_path_factory.mktemp("kills"), PIPELINES, lease_seconds=5, in_flight=1) as deployment:
        server = deployment.serve()
        cases = queue(deployment, server)
        kill(deployment, server, cases)
        take_over(deployment, server, cases)
        yield Aftermath(deployment, server, {case.label: case for case in cases})


@pytest.fixture(params=LABELS)
def case(request: pytest.FixtureRequest, aftermath: Aftermath) -> Case:
    return aftermath.cases[request.param]


def test_the_victim_died_of_the_kill_at_its_label(case: Case) -> None:
    assert case.exit == -signal.SIGKILL
    assert case.stderr.endswith(f"\nfailpoint {case.label}: kill at hit 2\n")
    assert case.at_death == AT_DEATH.get(case.label, [QUEUED])


def test_every_pipeline_was_finished_once(aftermath: Aftermath, case: Case) -> None:
    whole = [QUEUED, CLAIMED, FINISHED, RELEASED]
    first, second, third = (successes(aftermath.deployment, pipeline) for pipeline in case.pipelines)
    if case.label == "turn.checkpoint.after":
        rest = []
    elif FINISHED in case.at_death:
        rest = [CLAIMED, RELEASED]
    else:
        rest = [CLAIMED, FINISHED, RELEASED]
    assert (first, second, third) == (whole, case.at_death + rest, whole)
    events = aftermath.deployment.rows(
        "SELECT json_extract(input, '$.pipeline_id') FROM riffdb_commit, json_each(events)"
        " WHERE json_extract(value, '$.event') = 'PipelineFinished' AND json_extract(input, '$.repository_id') = ?",
        case.partition,
    )
    assert sorted(pipeline for (pipeline,) in events) == sorted(case.pipelines)


def test_nothing_is_held_and_every_event_is_settled(aftermath: Aftermath, case: Case) -> None:
    rows = aftermath.deployment.rows(
        "SELECT state, lease_owner FROM pipeline WHERE repository_id = ?", UUID(case.partition).bytes
    )
    assert rows == [(SUCCEEDED, None)] * 3
    with aftermath.server.client(aftermath.deployment.scheduler) as client:
        body = {"params": {"repository_id": case.partition}, "consumer": "RunPipelines"}
        status = client.call("POST", "/v1/streams/QueuedPipelines/status", body).json
    assert (status["unsettled"], status["dead_letters"], status["lag_events"]) == (0, 0, 0)


def test_every_claim_raised_the_fence(aftermath: Aftermath, case: Case) -> None:
    found = aftermath.deployment.rows(
        "SELECT json_extract(changes, '$[0].fields.lease_fence') FROM riffdb_commit WHERE outcome = 'Claimed'"
        " AND json_extract(input, '$.pipeline_id') = ? ORDER BY position",
        case.pipelines[1],
    )
    assert [int(fence) for (fence,) in found] == list(range(1, len(found) + 1))
