"""What is known to be not null, on every kind of way to know it, and what ends the knowledge.

A table of bodies that compile beside bodies that must not is easier to compare than two dozen folders of cases.
"""

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source

CONTRACT = """
contract Case version 1 {{
  enum State {{ Ready, Done }}
  entity Job {{
    key (tenant: uuid, id: uuid)
    field state: State
    field owner: optional<uuid>
    field until: optional<timestamp>
    field fence: u64
    field due: optional<timestamp>
    field other: optional<uuid>
    field at: timestamp
    computed later: optional<timestamp> = due
  }}
  entity Note {{ key (tenant: uuid, id: uuid) field at: timestamp field due: optional<timestamp> }}
  event Seen {{ partition_by (tenant) tenant: uuid at: timestamp }}
  workflow Life {{
    entity Job state state initial Ready
    transition Finish from (Ready) to Done
    lease hold {{ owner owner expires_at until fencing_token fence duration_seconds (5, 900) }}
  }}
  command Work {{
    input request_key: string<64>
    input tenant: uuid
    input id: uuid
    input other_id: uuid
    input owner_id: uuid
    input token: u64
    input seconds: u64
    input rev: u64
    input when_due: optional<timestamp>
    idempotency_key request_key
    mutate Note(tenant, id) as note else Missing {{}}
    mutate Job(tenant, id) as job else Missing {{}}
    maybe Note(tenant, other_id) as other
    {body}
  }}
}}
"""
FENCE = "lease fence hold on job owner owner_id fencing_token token revision rev stale S {} invalid I {} expired E {} "
CLAIM = (
    "lease claim hold on job owner owner_id duration_seconds seconds revision rev "
    "stale S {} invalid I {} unavailable U {} exhausted X {} "
)
RELEASE = "lease release hold on job owner owner_id fencing_token token revision rev stale S {} invalid I {} "
USE = "set note.at = job.due "
END = " return Done {}"

KNOWN = [
    "require r: job.due is null || job.due > tx.time else No {} " + FENCE,
    "require r: job.due is not null && job.due > tx.time else No {} " + FENCE,
    "require r: !(job.due is null) else No {} " + FENCE + USE,
    "require r: job.due is not null else No {} " + FENCE + USE,
    "require r: job.due is not null && job.state == State.Ready else No {} " + FENCE + USE,
    "require r: job.due is null else No { due: coalesce(job.due, tx.time), exact: job.due - seconds(1) } " + FENCE,
    FENCE + "set note.at = (if job.due is null then tx.time else job.due)",
    FENCE + "set note.at = coalesce(job.due, when_due, tx.time)",
    FENCE + "set job.due = tx.time " + USE,
    "require r: job.due is not null else No {} " + FENCE + "set job.other = null " + USE,
    "require r: when_due is not null else No {} " + FENCE + "set note.at = when_due",
    "require r: other is not null else No {} " + FENCE + "set note.at = other.at",
    "require r: other is null || other.at > tx.time else No { at: other.at } " + FENCE,
    CLAIM + "set note.at = job.until",
    FENCE + "set note.at = job.until",
    FENCE + "decide note { when job.due is not null apply { set note.at = job.due } otherwise apply {} }",
    FENCE + "decide note { when job.due is null none No {} otherwise apply { " + USE + "} }",
    FENCE + "decide note { when job.due is null none No {} otherwise apply {} } " + USE,
    FENCE + "decide note { when job.due is null apply { set job.due = tx.time } otherwise apply {} } " + USE,
    FENCE + "set job.due = tx.time emit Seen { tenant: tenant, at: job.due }",
    FENCE + "emit Seen { tenant: tenant, at: job.due } set job.due = tx.time",
]
UNKNOWN = [
    FENCE + USE,
    "require r: job.due is null else No {} " + FENCE + USE,
    "require r: job.due is not null || job.state == State.Ready else No {} " + FENCE + USE,
    "require r: job.due is not null && job.due > tx.time else No { exact: job.due - seconds(1) } " + FENCE,
    FENCE + "set note.at = (if job.due is null then job.due else tx.time)",
    FENCE + "set note.at = coalesce(job.due, when_due)",
    "require r: job.due is not null else No {} " + FENCE + "set job.due = null " + USE,
    "require r: job.due is not null else No {} " + FENCE + "set job.due = when_due " + USE,
    "require r: job.later is not null else No {} " + FENCE + "set job.due = null set note.at = job.later",
    "require r: other is null else No {} " + FENCE + "set note.at = other.at",
    FENCE + "set note.at = other.at",
    RELEASE + "set note.at = job.until",
    "require r: job.until is not null else No {} " + RELEASE + "set note.at = job.until",
    FENCE + "decide note { when job.due is not null apply {} otherwise apply {} } " + USE,
    FENCE + "decide note { when job.due is not null apply {} otherwise apply { " + USE + "} }",
    FENCE + "set job.due = tx.time require r: job.due > tx.time else No { due: job.due - seconds(1) }",
    "require a: job.due is not null else No {} "
    + FENCE
    + "set job.due = when_due require b: job.due is not null else Not {} require c: tx.time > job.at else Late {} "
    + "set job.other = null emit Seen { tenant: tenant, at: job.due } set job.due = null",
    FENCE + "set job.due = when_due require b: job.due is not null else Not {} "
    "require c: tx.time > job.at else Late { due: job.due - seconds(1) }",
    FENCE + "set job.due = tx.time decide note { otherwise apply { emit Seen { tenant: tenant, at: job.due } } } "
    "set job.due = when_due",
    FENCE + "set job.due = tx.time decide note { otherwise apply { return Early { due: job.due - seconds(1) } } } "
    "set job.due = when_due",
]


def codes(body: str) -> list[str]:
    """What the compiler says to a body."""
    source = Source("case.riff", CONTRACT.format(body=body + END))
    found = compile("case", [source]).diagnostics
    return [diagnostic.code for diagnostic in found if not diagnostic.lint]


@pytest.mark.parametrize("body", KNOWN)
def test_known(body: str) -> None:
    assert codes(body) == []


@pytest.mark.parametrize("body", UNKNOWN)
def test_not_known(body: str) -> None:
    assert codes(body) == ["RDB-C209"]


def test_a_broken_condition_could_have_proven_anything() -> None:
    assert codes("require r: job.due is not nul else No {} " + FENCE + USE)[0].startswith("RDB-C0")
    assert codes("require r: job.due is not null && nothing else No {} " + FENCE + USE) == ["RDB-C205"]
    assert codes("require r: other is not null && nothing else No {} " + FENCE + "set note.at = other.at") == [
        "RDB-C205"
    ]


def test_the_row_before_the_command_keeps_what_was_known_of_it() -> None:
    body = "require a: job.due is not null else No {} " + FENCE + "set job.due = null "
    assert codes(body + "require b: tx.time > job.at else Late { due: job.due - seconds(1) }") == []
