"""Rows that are put back as they were, over every store: by operators alone, whole, and never behind a key's past."""

from typing import Any
from uuid import UUID

import pytest

from riffdb.core.limits import U64_MAX
from tests.conformance.databases import LOCAL, ORGANIZATION, Place, plan_of
from tests.conformance.test_database_lives import ANN, JOBS

RESTORING = (
    JOBS.rstrip()
    .removesuffix("}")
    .replace("computed doubled", "unique by_size (owner, size)\n    invariant small: size < 100\n    computed doubled")
    .replace(
        "else Exists { job: job }", "else Exists { job: job } conflict by_size SizeTaken {} violates small TooBig {}"
    )
    + """
  reimport command Restore {
    input request_key: string<64>
    input job: Job
    idempotency_key request_key
    reconstitute Job from job else InTheWay {}
    return Restored { job: job, revision: job.revision }
  }
}
role Worker { command Begin, Claim }
"""
)
ROW = {
    "owner": str(ORGANIZATION),
    "number": "1",
    "state": "Done",
    "size": "7",
    "lease_owner": ANN,
    "lease_expires_at": "2027-01-15T09:00:00.000000Z",
    "lease_fence": "12",
    "lease_attempts": "3",
    "revision": "40",
}


@pytest.fixture
def jobs(empty: Place) -> Place:
    """A place whose jobs can be put back."""
    empty.deploy(plan_of(RESTORING, "jobs"))
    return empty


def restore(jobs: Place, key: str, **changed: Any) -> Any:
    return jobs.command("Restore", request_key=key, job={**ROW, **changed})


def test_a_row_is_put_back_as_it_was(jobs: Place) -> None:
    answer = restore(jobs, "a")
    assert answer["outcome"] == "Restored"
    assert answer["payload"] == {"job": {**ROW, "doubled": "14"}, "revision": "40"}
    assert answer["workflow_revisions"] == [{"binding": "job", "revision": "40"}]
    assert restore(jobs, "a")["replayed"]
    jobs.reopen()
    held = {"worker": ANN, "token": 12, "expected": 40}
    ended = jobs.command("End", request_key="b", owner=ORGANIZATION, number=1, **held)
    assert ended["payload"]["revision"] == "41"
    jobs.check_log()
    history = jobs.run(jobs.database.operations.history(LOCAL, entity="Job", key=[str(ORGANIZATION), "1"]))
    assert [(entry["command"], entry["revision"]) for entry in history] == [("Restore", "40"), ("End", None)]


def test_what_is_there_stays(jobs: Place) -> None:
    jobs.command("Begin", request_key="a", owner=ORGANIZATION, number=1, size=5)
    assert restore(jobs, "b")["outcome"] == "InTheWay"
    jobs.command("Begin", request_key="c", owner=ORGANIZATION, number=2, size=7)
    assert restore(jobs, "d", number="3")["outcome"] == "InTheWay"
    assert restore(jobs, "e", number="3", size="100")["outcome"] == "InTheWay"
    assert restore(jobs, "f", number="3", size="99")["outcome"] == "Restored"


def test_a_row_is_never_behind_the_last_life_of_its_key(jobs: Place) -> None:
    restore(jobs, "a")
    held = {"worker": ANN, "token": 12, "expected": 40}
    jobs.command("End", request_key="b", owner=ORGANIZATION, number=1, **held)
    assert restore(jobs, "c", revision="40")["outcome"] == "InTheWay"
    assert restore(jobs, "d", revision="41", lease_fence="11")["outcome"] == "InTheWay"
    again = restore(jobs, "e", revision="41")
    assert (again["outcome"], again["payload"]["revision"]) == ("Restored", "41")
    begun = jobs.run(jobs.database.operations.history(LOCAL, entity="Job", key=[str(ORGANIZATION), "1"]))
    assert [entry["command"] for entry in begun] == ["Restore", "End", "Restore"]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"revision": "0"}, "job.revision"),
        ({"lease_owner": None}, "job.lease_owner"),
        ({"lease_expires_at": None}, "job.lease_owner"),
        ({"state": "Gone"}, "job.state"),
        ({"doubled": "14"}, "job.doubled"),
        ({"revision": str(U64_MAX + 1)}, "job.revision"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_field(jobs: Place, changed: dict[str, Any], path: str) -> None:
    error = jobs.refused("Restore", request_key="a", job={**ROW, **changed})
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert jobs.log() == []


def test_an_operator_alone_puts_rows_back(jobs: Place) -> None:
    worker = jobs.caller("Worker")
    assert jobs.refused("Restore", worker, request_key="a", job=ROW).code == "RDB-E-FORBIDDEN"
    assert jobs.command("Restore", jobs.caller(), request_key="a", job=ROW)["outcome"] == "Restored"


def test_a_free_row_at_the_last_revision_can_be_put_back(jobs: Place) -> None:
    free = {"lease_owner": None, "lease_expires_at": None, "revision": str(U64_MAX)}
    assert restore(jobs, "a", **free)["payload"]["revision"] == str(U64_MAX)
    claim = {"worker": str(UUID(int=5)), "seconds": 5, "expected": U64_MAX}
    error = jobs.refused("Claim", request_key="b", owner=ORGANIZATION, number=1, **claim)
    assert error.code == "RDB-E-REVISION-EXHAUSTED"
