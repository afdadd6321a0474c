"""Batches through every way to a database: each step by itself, in its place, and successors that steps hand on."""

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from riffdb.core.errors import RiffError
from tests.conformance.ways import KINDS, Way, opened
from tests.surface.processes import QUEUE

DUE = "2026-01-01T00:00:00Z"


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with opened(request.param, f"sqlite:{tmp_path / 'work.db'}", QUEUE) as found:
        yield found


def create(organization: UUID, work: UUID, **more: object) -> dict[str, object]:
    return {"command": "CreateWork", "input": {"organization_id": organization, "work_id": work, "due_at": DUE} | more}


def claim(organization: UUID, work: UUID, revision: object) -> dict[str, object]:
    given = {"organization_id": organization, "work_id": work, "owner_id": UUID(int=7), "duration": 60}
    return {"command": "ClaimWork", "input": given | {"expected_revision": revision}}


def told(found: list[Any]) -> list[str]:
    return [one.code if isinstance(one, RiffError) else one.outcome for one in found]


def test_each_step_has_its_answer_or_problem_in_its_place(way: Way) -> None:
    organization, work = uuid4(), uuid4()
    steps = [
        create(organization, work, request_key="k"),
        {"query": "DueWork", "params": {"organization_id": organization}},
        {"command": "NoSuch", "input": {}},
        create(organization, work),
        {"resolve": "CreateWork", "input": {"organization_id": organization, "request_key": "k"}},
        {"resolve": "CreateWork", "input": {"organization_id": organization, "request_key": "none"}},
        create(organization, uuid4(), due_at="soon"),
        claim(organization, work, {"$successor": [0, "work"]}),
    ]
    found = way.call("batch", steps)
    assert told(found) == [
        "Created",
        "Due",
        "RDB-E-NOT-FOUND",
        "AlreadyExists",
        "Created",
        "RDB-E-ABSENT",
        "RDB-E-INPUT",
        "RDB-E-INPUT",
    ]
    assert (found[6].path, found[7].path) == ("due_at", "expected_revision")
    assert [one.replayed for one in (found[0], found[4])] == [False, True]
    assert len(found[1].payload["items"]) == 1
    assert told(way.call("batch", steps[:1])) == ["Created"] and way.call("batch", steps[:1])[0].replayed


def test_ordered_steps_hand_on_the_exact_revision(way: Way) -> None:
    organization, work = uuid4(), uuid4()
    steps = [
        create(organization, work),
        claim(organization, work, {"$successor": [0, "work"]}),
        {
            "command": "ReleaseWork",
            "input": {
                "organization_id": organization,
                "work_id": work,
                "owner_id": UUID(int=7),
                "token": 1,
                "expected_revision": {"$successor": [1, "work"]},
            },
        },
        create(organization, work),
        claim(organization, work, {"$successor": [3, "work"]}),
        claim(organization, work, {"$successor": [4, "work"]}),
    ]
    found = way.call("batch", steps, ordered=True)
    assert told(found) == ["Created", "Claimed", "Released", "AlreadyExists", "RDB-E-SKIPPED", "RDB-E-SKIPPED"]
    assert [one.workflow_revisions[0].revision for one in found[:3]] == [1, 2, 3]


@pytest.mark.parametrize("reference", [[1, "work"], [-1, "work"], [0], "0", [0, 1], ["0", "work"]])
def test_a_reference_that_cannot_be_is_refused_with_its_step(way: Way, reference: object) -> None:
    organization, work = uuid4(), uuid4()
    steps = [create(organization, work), claim(organization, work, {"$successor": reference})]
    found = way.call("batch", steps, ordered=True)
    assert (found[1].code, found[1].path) == ("RDB-E-INPUT", "expected_revision")
    assert told(found)[0] == "Created"


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ([{}], "steps[0]"),
        ([create(UUID(int=1), UUID(int=2)), {"command": "A", "query": "B", "input": {}}], "steps[1]"),
        ([{"command": "CreateWork"}], "steps[0].input"),
        ([{"command": 7, "input": {}}], "steps[0].command"),
        ([{"query": "DueWork", "input": {}}], "steps[0].input"),
        ([{"command": "CreateWork", "input": {}, "key": 1}], "steps[0].key"),
    ],
)
def test_a_batch_that_is_none_runs_nothing(way: Way, steps: list[dict[str, object]], path: str) -> None:
    error = way.refusal("batch", steps)
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert told(way.call("batch", [{"query": "DueWork", "params": {"organization_id": UUID(int=1)}}])) == ["Due"]


def test_a_batch_is_bounded(way: Way) -> None:
    organization = uuid4()
    found = way.call("batch", [create(organization, uuid4()) for _ in range(256)])
    assert told(found) == ["Created"] * 256
    assert len({one.commit.sequence for one in found}) == 256
    error = way.refusal("batch", [create(organization, uuid4()) for _ in range(257)])
    assert (error.code, error.path) == ("RDB-E-TOO-LARGE", "steps")
    assert way.call("batch", []) == []
