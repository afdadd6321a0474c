"""Rows that end and begin again, over every store: a key goes on from its last life, whoever ends and begins it."""

import json
from typing import Any
from uuid import UUID

import pytest

from riffdb.core.limits import U64_MAX
from tests.conformance.databases import LOCAL, ORGANIZATION, SECOND, Place, plan_of

JOBS = """
contract Jobs version 1 {
  enum State { Waiting, Done }
  entity Job {
    key (owner: uuid, number: u64)
    field state: State
    field size: u64
    field lease_owner: optional<uuid>
    field lease_expires_at: optional<timestamp>
    field lease_fence: u64
    field lease_attempts: u64
    computed doubled: u64 = size + size
  }
  entity Tag {
    key (owner: uuid, number: u64)
    field text: string<20>
  }
  workflow Life {
    entity Job
    state state
    initial Waiting
    transition Finish from (Waiting) to Done
    lease work {
      owner lease_owner  expires_at lease_expires_at  fencing_token lease_fence  attempts lease_attempts
      duration_seconds (1, 60)
    }
  }
  command Begin {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input size: u64
    idempotency_key request_key
    create Job(owner, number) as job else Exists { job: job }
    set job.size = size
    set job.lease_attempts = 0
    set job.lease_fence = 0
    return Begun { job: job, fence: job.lease_fence, revision: job.revision }
  }
  command Claim {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input worker: uuid
    input expected: u64
    input seconds: u64
    idempotency_key request_key
    mutate Job(owner, number) as job else Missing {}
    lease claim work on job owner worker duration_seconds seconds revision expected
      stale Stale { revision: job.revision } unavailable Held {} invalid Invalid {} exhausted Exhausted {}
    return Claimed { fence: job.lease_fence, attempts: job.lease_attempts }
  }
  command Finish {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input worker: uuid
    input token: u64
    input expected: u64
    idempotency_key request_key
    mutate Job(owner, number) as job else Missing {}
    lease fence work on job owner worker fencing_token token revision expected
      stale Stale { revision: job.revision } invalid Foreign {} expired Late {}
    transition Finish on job revision expected stale Stale { revision: job.revision } illegal Over {}
    return Finished {}
  }
  command End {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input worker: uuid
    input token: u64
    input expected: u64
    idempotency_key request_key
    delete Job(owner, number) as job else Missing {}
    lease release work on job owner worker fencing_token token revision expected
      stale Stale { revision: job.revision } invalid Foreign {}
    return Ended { job: job, revision: job.revision }
  }
  entity Counter {
    key (owner: uuid, number: u64)
    field state: State
    field total: u64
    field label: string<20> = "none"
    field last: optional<u64>
    computed next: u64 = total + 1
  }
  workflow Counting {
    entity Counter
    state state
    initial Waiting
  }
  event Counted { partition_by (owner) owner: uuid total: u64 revision: u64 }
  command Count {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input by: u64
    input label: string<20>
    idempotency_key request_key
    init_or_mutate Counter(owner, number) as counter initialize { total: by * 10, label: label }
    require small: counter.total < 1000 else TooMuch { by: by }
    set counter.total = counter.total + by
    set counter.last = by
    emit Counted { owner: owner, total: counter.total, revision: counter.revision }
    return Counted { counter: counter, next: counter.next }
  }
  command Touch {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input hard: bool
    idempotency_key request_key
    init_or_mutate Counter(owner, number) as counter initialize { total: 0 }
    decide counter {
      when hard apply { set counter.last = 0 }
      otherwise apply {}
    }
    return Touched { counter: counter }
  }
  command TouchOne {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input other: u64
    idempotency_key request_key
    read Tag(owner, 7) as tag else NoTag {}
    decide tag {
      when number == other apply {}
      otherwise apply {
        init_or_mutate Counter(owner, number) as counter initialize { total: 5 }
        return Touched { counter: counter, next: counter.next }
      }
    }
    return Left {}
  }
  command Uncount {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    delete Counter(owner, number) as counter else Missing {}
    return Uncounted {}
  }
  command Tagged {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input text: string<20>
    idempotency_key request_key
    create Tag(owner, number) as tag else Exists {}
    set tag.text = text
    return Made { tag: tag }
  }
  command Untag {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    delete Tag(owner, number) as tag else Missing {}
    return Gone { tag: tag }
  }
}
"""
ANN, BEN = str(UUID(int=1)), str(UUID(int=2))


@pytest.fixture
def jobs(empty: Place) -> Place:
    """A place with `JOBS`."""
    empty.deploy(plan_of(JOBS, "jobs"))
    return empty


def job(key: str, **values: Any) -> dict[str, Any]:
    return {"request_key": key, "owner": ORGANIZATION, "number": 1, **values}


def live(jobs: Place, life: str) -> None:
    """One life of job 1 that Ann holds to its end: three revisions, one claim."""
    begun = jobs.command("Begin", **job(f"begin {life}", size=1))["payload"]
    revision, fence = int(begun["revision"]), int(begun["fence"])
    claimed = jobs.command("Claim", seconds=60, **job(f"claim {life}", worker=ANN, expected=revision))
    assert claimed["outcome"] == "Claimed"
    held = {"worker": ANN, "token": fence + 1, "expected": revision + 1}
    ended = jobs.command("End", **job(f"end {life}", **held))
    assert ended["payload"]["revision"] == str(revision + 2)


def test_a_key_goes_on_from_its_last_life(jobs: Place) -> None:
    live(jobs, "1")
    begun = jobs.command("Begin", **job("again", size=5))
    assert begun["payload"]["revision"] == begun["payload"]["job"]["revision"] == "4"
    assert begun["payload"]["fence"] == begun["payload"]["job"]["lease_fence"] == "1"
    assert begun["payload"]["job"]["lease_attempts"] == "0"
    assert begun["payload"]["job"]["lease_owner"] is None
    assert begun["payload"]["job"]["state"] == "Waiting"
    assert begun["workflow_revisions"] == [{"binding": "job", "revision": "4"}]


def test_many_lives_never_go_back(jobs: Place) -> None:
    for life in range(1, 6):
        live(jobs, str(life))
    jobs.reopen()
    begun = jobs.command("Begin", **job("last", size=1))["payload"]
    assert (begun["revision"], begun["fence"]) == ("16", "5")


def test_a_zombie_of_an_earlier_life_changes_nothing(jobs: Place) -> None:
    jobs.command("Begin", **job("begin", size=1))
    jobs.command("Claim", seconds=60, **job("claim", worker=ANN, expected=1))
    jobs.command("End", **job("end", worker=ANN, token=1, expected=2))
    jobs.command("Begin", **job("again", size=2))
    jobs.command("Claim", seconds=60, **job("ben", worker=ANN, expected=4))
    for expected, outcome in ((2, "Stale"), (5, "Foreign")):
        late = jobs.command("Finish", **job(f"late {expected}", worker=ANN, token=1, expected=expected))
        assert late["outcome"] == outcome
    assert jobs.command("Finish", **job("done", worker=ANN, token=2, expected=5))["outcome"] == "Finished"


def test_lives_within_one_batch(jobs: Place) -> None:
    answers = jobs.together(
        ("Begin", job("a", size=1)),
        ("Claim", job("b", worker=ANN, expected=1, seconds=60)),
        ("End", job("c", worker=ANN, token=1, expected=2)),
        ("Begin", job("d", size=2)),
        ("Claim", job("e", worker=BEN, expected=4, seconds=60)),
        ("End", job("f", worker=BEN, token=2, expected=5)),
        ("Claim", job("g", worker=BEN, expected=6, seconds=60)),
        ("Begin", job("h", size=3)),
    )
    assert [answer["outcome"] for answer in answers] == [
        *("Begun", "Claimed", "Ended", "Begun", "Claimed", "Ended", "Missing", "Begun")
    ]
    assert jobs.batches[-1] == 8
    assert (answers[-1]["payload"]["revision"], answers[-1]["payload"]["fence"]) == ("7", "2")
    jobs.reopen()
    assert jobs.command("Begin", **job("i", size=3))["payload"]["job"]["revision"] == "7"


def test_the_history_of_a_key_goes_through_its_lives(jobs: Place) -> None:
    live(jobs, "1")
    ended = jobs.run(jobs.database.operations.history(LOCAL, entity="Job", key=[str(ORGANIZATION), "1"]))
    assert [entry["command"] for entry in ended] == ["Begin", "Claim", "End"]
    assert [entry["revision"] for entry in ended] == ["1", "2", None]
    jobs.now += SECOND
    jobs.command("Begin", **job("again", size=2))
    begun = jobs.run(jobs.database.operations.history(LOCAL, entity="Job", key=[str(ORGANIZATION), "1"]))
    assert begun[:3] == ended
    assert (begun[3]["command"], begun[3]["revision"]) == ("Begin", "4")
    jobs.check_log()


def test_a_row_without_a_lease_goes_on_too(jobs: Place) -> None:
    tag = {"owner": ORGANIZATION, "number": 7}
    assert jobs.command("Tagged", request_key="a", text="x", **tag)["payload"]["tag"]["revision"] == "1"
    assert jobs.command("Untag", request_key="b", **tag)["payload"]["tag"]["revision"] == "2"
    assert jobs.command("Untag", request_key="c", **tag)["outcome"] == "Missing"
    assert jobs.command("Tagged", request_key="d", text="y", **tag)["payload"]["tag"]["revision"] == "3"
    assert jobs.command("Tagged", request_key="e", text="y", **tag)["outcome"] == "Exists"


def test_a_life_at_the_last_revision_is_the_last(jobs: Place) -> None:
    tag = {"owner": ORGANIZATION, "number": 7}
    jobs.command("Tagged", request_key="a", text="x", **tag)
    jobs.command("Untag", request_key="b", **tag)
    jobs.put_revision("Tag", (ORGANIZATION.bytes, 7), U64_MAX)
    error = jobs.refused("Tagged", request_key="c", text="x", **tag)
    assert error.code == "RDB-E-REVISION-EXHAUSTED"
    jobs.put_revision("Tag", (ORGANIZATION.bytes, 7), U64_MAX - 1)
    assert jobs.command("Tagged", request_key="c", text="x", **tag)["payload"]["tag"]["revision"] == str(U64_MAX)


# --- rows that begin when they are missing ---------------------------------------------------------------------------


def counted(jobs: Place, key: str, command: str = "Count", **values: Any) -> Any:
    """The answer of a command on counter 3."""
    return jobs.command(command, request_key=key, owner=ORGANIZATION, number=3, **values)


def test_a_row_that_is_missing_is_created_and_then_changed_in_one_revision(jobs: Place) -> None:
    first = counted(jobs, "a", by=2, label="first")
    assert first["payload"]["counter"] == {
        "owner": str(ORGANIZATION),
        "number": "3",
        "state": "Waiting",
        "total": "22",
        "label": "first",
        "last": "2",
        "next": "23",
        "revision": "1",
    }
    assert first["payload"]["next"] == "23"
    assert first["workflow_revisions"] == [{"binding": "counter", "revision": "1"}]
    second = counted(jobs, "b", by=5, label="second")["payload"]["counter"]
    assert (second["total"], second["label"], second["last"], second["revision"]) == ("27", "first", "5", "2")


def test_a_failure_creates_nothing(jobs: Place) -> None:
    assert counted(jobs, "a", by=100, label="x")["outcome"] == "TooMuch"
    assert counted(jobs, "b", "Uncount")["outcome"] == "Missing"


def test_without_an_effect_only_a_missing_row_is_mutated(jobs: Place) -> None:
    created = counted(jobs, "a", "Touch", hard=False)
    assert created["payload"]["counter"]["revision"] == "1"
    assert created["payload"]["counter"]["label"] == "none"
    left = counted(jobs, "b", "Touch", hard=False)
    assert (left["payload"]["counter"], left["workflow_revisions"]) == (created["payload"]["counter"], [])
    changed = counted(jobs, "c", "Touch", hard=True)
    assert changed["payload"]["counter"] == created["payload"]["counter"] | {"last": "0", "revision": "2"}
    assert changed["workflow_revisions"] == [{"binding": "counter", "revision": "2"}]


def test_a_row_that_an_arm_finds_and_leaves_alone_stays_as_it_is(jobs: Place) -> None:
    jobs.command("Tagged", request_key="tag", owner=ORGANIZATION, number=7, text="x")
    created = counted(jobs, "a", "TouchOne", other=1)
    assert created["workflow_revisions"] == [{"binding": "counter", "revision": "1"}]
    left = counted(jobs, "b", "TouchOne", other=1)
    assert (left["payload"], left["workflow_revisions"]) == (created["payload"], [])
    assert counted(jobs, "c", "TouchOne", other=3)["outcome"] == "Left"


def test_a_row_that_begins_again_goes_on_from_its_last_life(jobs: Place) -> None:
    counted(jobs, "a", by=1, label="x")
    counted(jobs, "b", "Uncount")
    assert counted(jobs, "c", by=1, label="y")["payload"]["counter"]["revision"] == "3"
    history = jobs.run(jobs.database.operations.history(LOCAL, entity="Counter", key=[str(ORGANIZATION), "3"]))
    assert [entry["command"] for entry in history] == ["Count", "Uncount", "Count"]


def test_beginning_and_changing_within_one_batch(jobs: Place) -> None:
    number = {"owner": ORGANIZATION, "number": 3, "by": 1, "label": "x"}
    answers = jobs.together(*(("Count", {"request_key": f"k{place}", **number}) for place in range(4)))
    assert [answer["payload"]["counter"]["total"] for answer in answers] == ["11", "12", "13", "14"]
    events = [event for record in jobs.check_log() for event in json.loads(record.events)]
    assert [event["fields"]["revision"] for event in events] == ["1", "2", "3", "4"]
