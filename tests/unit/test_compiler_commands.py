"""How commands are lowered, and which ways around a lease there are not.

Cases show each refusal once with its text; here stand the many bodies that one rule must tell apart, and the parts of a
plan that the engine relies on.
"""

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.core.types import UUID, Type, string
from riffdb.plan import Plan
from riffdb.plan.commands import BindStep, CommandPlan, DecideStep, EmitStep, LeaseStep
from riffdb.plan.expressions import Constant, Field, Input, Row
from riffdb.plan.plan import from_json, to_json

CONTRACT = """
contract Case version 1 {{
  enum State {{ Ready, Done }}
  entity Job {{
    key (number: u64, tenant: string<40>, id: uuid)
    partition_by (tenant)
    field state: State
    field owner: optional<uuid>
    field until: optional<timestamp>
    field fence: u64
    field tries: u64
    field count: i64 = -5
    index by_count (tenant, count desc, id)
  }}
  entity Note {{ key (tenant: string<40>, id: uuid) field ref: uuid field text: string<20> = "none" }}
  event Seen {{ partition_by (tenant) tenant: string<40> at: timestamp who: optional<uuid> }}
  workflow Life {{
    entity Job state state initial Ready
    transition Finish from (Ready) to Done
    lease hold {{ owner owner expires_at until fencing_token fence attempts tries duration_seconds (5, 900) }}
  }}
  command Work {{
    input request_key: string<64>
    input tenant: string<20>
    input number: u64
    input id: uuid
    input new_id: uuid
    input owner_id: uuid
    input token: u64
    input rev: u64
    idempotency_key request_key
    {body}
  }}
}}
"""
JOB = "mutate Job(number, tenant, id) as job else Missing {} "
FENCE = "lease fence hold on job owner owner_id fencing_token token revision rev stale S {} invalid I {} expired E {} "
UNHELD = "lease unheld hold on job revision rev stale S {} unavailable U {} "
FINISH = "transition Finish on job revision rev stale S {} illegal Closed {} "
NEW = "create Job(number, tenant, new_id) as made else Exists {} "
COUNTERS = "set made.fence = 0 set made.tries = 0 "
DONE = "return Done {}"


def compiled(body: str) -> tuple[Plan | None, list[str]]:
    """The plan of a body, and what the compiler says to it."""
    compilation = compile("case", [Source("case.riff", CONTRACT.format(body=body))])
    return compilation.plan, [diagnostic.code for diagnostic in compilation.diagnostics if not diagnostic.lint]


def command(body: str) -> CommandPlan:
    """The command of a body that compiles; its plan survives its JSON form."""
    plan, codes = compiled(body)
    assert plan is not None, codes
    assert from_json(to_json(plan)) == plan
    return plan.command("Work")


COVERED = [
    JOB + FENCE + FINISH,
    "delete Job(number, tenant, id) as job else Missing {} " + FENCE,
    JOB + FINISH + FENCE,
    JOB + UNHELD,
    JOB + FENCE.replace("revision rev", "revision (rev)"),
    # What stands above the operation commits only if it succeeds, and so does an arm's own answer.
    JOB + "set job.count = 1 " + FENCE,
    JOB + "decide job { when job.count > 3 apply { set job.count = 1 return Early {} } otherwise apply {} } " + FENCE,
    JOB + "decide job { when job.count > 3 apply { " + FENCE + "} otherwise apply { " + UNHELD + "} } ",
    JOB + "decide job { when job.count > 3 apply { " + FENCE + "} otherwise none Few {} } " + FINISH,
    JOB + FENCE + "decide job { when job.count > 3 apply { " + FINISH + "} otherwise apply {} } ",
    JOB + FENCE + "read Note(tenant, id) as note else No {} decide note { otherwise apply { " + FINISH + "} } ",
    "read Job(number, tenant, id) as job else Missing {} " + NEW + COUNTERS,
    NEW + "decide made { otherwise apply { " + COUNTERS + "} } ",
    "read Note(tenant, id) as note else No {} decide note { otherwise apply { " + NEW + COUNTERS + "} } ",
]
UNCOVERED = [
    (JOB, ["RDB-C426"]),
    ("delete Job(number, tenant, id) as job else Missing {} ", ["RDB-C426"]),
    (JOB + FINISH, ["RDB-C426"]),
    (JOB + "decide job { otherwise apply {} } ", ["RDB-C426"]),
    (JOB + "decide job { when job.count > 3 apply { " + FENCE + "} otherwise apply {} } ", ["RDB-C427"]),
    (
        JOB
        + "decide job { when job.count > 3 apply {} when job.count > 2 none No {} otherwise apply { "
        + FENCE
        + "} } ",
        ["RDB-C427"],
    ),
    (JOB + FENCE + FENCE, ["RDB-C428"]),
    (JOB + FENCE + "decide job { otherwise apply { " + UNHELD + "} } ", ["RDB-C428"]),
    (JOB + "decide job { otherwise apply { " + UNHELD + "} } " + FENCE, ["RDB-C428"]),
    (JOB + "decide job { otherwise apply { " + UNHELD + FENCE + "} } ", ["RDB-C428"]),
    (JOB + ("decide job { otherwise apply { " + UNHELD + "} } ") * 2, ["RDB-C428"]),
    (
        JOB + "read Note(tenant, id) as note else No {} decide note { otherwise apply { " + FENCE + "} } ",
        ["RDB-C437"],
    ),
    (
        JOB + "read Note(tenant, id) as note else No {} decide note { otherwise apply { set job.count = 1 } } ",
        ["RDB-C437"],
    ),
    (
        JOB
        + "read Note(tenant, id) as note else No {} "
        + "decide note { when job.count > 3 apply { "
        + FENCE
        + "} otherwise apply { "
        + UNHELD
        + "} } ",
        ["RDB-C437"],
    ),
    (
        JOB + "decide job { when job.count > 3 apply { decide job { otherwise apply { " + FENCE + "} } } "
        "otherwise apply { " + FENCE + "} } ",
        ["RDB-C521"],
    ),
    (
        JOB + FENCE + "decide job { when job.count > 3 apply { read Note(tenant, id) as row else No {} } "
        "otherwise apply { mutate Job(number, tenant, new_id) as row else Missing {} set row.count = 1 } } ",
        ["RDB-C103"],
    ),
    (NEW + "lease unheld hold on made revision rev stale S {} unavailable U {} " + COUNTERS, ["RDB-C429"]),
    (NEW, ["RDB-C419"]),
    (NEW + "set made.fence = 0 ", ["RDB-C419"]),
    (NEW + "decide made { when made.count > 0 apply { " + COUNTERS + "} otherwise apply {} } ", ["RDB-C419"]),
    (NEW + COUNTERS + "set made.tries = rev ", ["RDB-C420"]),
    (NEW + COUNTERS + "set made.owner = null ", ["RDB-C418"]),
    (NEW + COUNTERS + "set made.state = State.Ready ", ["RDB-C417"]),
    (JOB + FENCE + "set job.fence = 0 ", ["RDB-C418"]),
]


@pytest.mark.parametrize("body", COVERED)
def test_a_lease_is_kept(body: str) -> None:
    assert compiled(body + DONE)[1] == []


@pytest.mark.parametrize(("body", "expected"), UNCOVERED)
def test_no_way_around_a_lease(body: str, expected: list[str]) -> None:
    assert compiled(body + DONE)[1] == expected


@pytest.mark.parametrize(
    ("word", "operands", "outcomes"),
    [
        ("claim", "owner duration_seconds revision", "stale invalid unavailable exhausted"),
        ("renew", "owner fencing_token duration_seconds revision", "stale invalid expired exhausted"),
        ("release", "owner fencing_token revision", "stale invalid"),
        ("expire", "revision", "stale active"),
        ("fence", "owner fencing_token revision", "stale invalid expired"),
        ("unheld", "revision", "stale unavailable"),
    ],
)
def test_each_operation_takes_exactly_its_clauses(word: str, operands: str, outcomes: str) -> None:
    inputs = {"owner": "owner_id", "fencing_token": "token", "duration_seconds": "number", "revision": "rev"}
    words = ("stale", "unavailable", "invalid", "exhausted", "expired", "active")

    def codes(given: set[str]) -> list[str]:
        clauses = [f"{name} {value}" for name, value in inputs.items() if name in given]
        clauses += [f"{name} {name.capitalize()} {{}}" for name in words if name in given]
        return compiled(JOB + f"lease {word} hold on job {' '.join(clauses)} " + DONE)[1]

    takes = {*operands.split(), *outcomes.split()}
    assert codes(takes) == []
    for name in (*inputs, *words):
        missing, extra = ("RDB-C433", "RDB-C434") if name in inputs else ("RDB-C435", "RDB-C436")
        assert codes(takes ^ {name}) == [missing if name in takes else extra]


def test_keys_stand_in_storage_order_and_rest_on_inputs_where_they_can() -> None:
    plan = command(
        "read Note(tenant, id) as note else No {} read Note(note.tenant, note.ref) as other else No {} "
        "read Job(number, other.tenant, note.id) as job else No {} maybe Note(tenant, other.ref) as last " + DONE
    )
    tenant = Input(string(20), "tenant")
    binds = [step for step in plan.steps if isinstance(step, BindStep)]
    assert plan.partition == tenant
    assert [(step.stage, step.key) for step in binds] == [
        (0, (tenant, Input(UUID, "id"))),
        (1, (tenant, Field(UUID, "note", "ref"))),
        (0, (tenant, Input(Type("u64"), "number"), Input(UUID, "id"))),
        (2, (tenant, Field(UUID, "other", "ref"))),
    ]


def test_an_index_ends_in_the_rest_of_the_key() -> None:
    plan, _ = compiled(JOB + FENCE + DONE)
    assert plan is not None
    index = plan.entity("Job").indexes[0]
    assert index.columns == ("tenant", "count", "id", "number")
    assert index.descending == (False, True, False, False)


def test_evidence_is_told_from_refusals() -> None:
    plan = command(
        "read Note(tenant, id) as note else NoNote {} "
        + JOB
        + "require few: job.count < 3 else Many {} "
        + FENCE
        + FINISH
        + "require calm: job.count < 9 else S {} "
        + "decide job { when job.count > 9 none Tired {} otherwise apply { return Early { job: job } } } return Done {}"
    )
    assert [(outcome.name, outcome.success, outcome.evidence) for outcome in plan.outcomes] == [
        ("NoNote", False, False),
        ("Missing", False, True),
        ("Many", False, False),
        ("S", False, True),
        ("I", False, True),
        ("E", False, True),
        ("Closed", False, False),
        ("Tired", False, False),
        ("Early", True, False),
        ("Done", True, False),
    ]
    assert plan.outcome("Early").payload[0].entity == "Job"
    decide = next(step for step in plan.steps if isinstance(step, DecideStep))
    assert decide.arms[1].answer is not None
    assert decide.arms[1].answer.payload[0].value == Row(Type("record", name="Job"), "job", "Job")


def test_a_shared_outcome_takes_the_wider_type() -> None:
    plan = command(
        'read Note(tenant, id) as note else No { text: "none", who: id } '
        + JOB
        + "require a: job.count > 1 else No { who: job.owner, text: note.text } "
        + FENCE
        + DONE
    )
    assert [(item.name, str(item.type)) for item in plan.outcome("No").payload] == [
        ("text", "string<20>"),
        ("who", "optional<uuid>"),
    ]


def test_an_event_gives_every_field_in_declared_order() -> None:
    plan = command(JOB + FENCE + "emit Seen { at: tx.time, tenant: job.tenant } " + DONE)
    emit = next(step for step in plan.steps if isinstance(step, EmitStep))
    assert [item.name for item in emit.payload] == ["tenant", "at", "who"]
    assert emit.payload[2].value == Constant(UUID.nullable, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("id", []), ("note.ref", ["RDB-C206"]), ("(if note.text == note.text then id else note.ref)", ["RDB-C206"])],
)
def test_a_new_row_has_no_value_before_it_is_set(value: str, expected: list[str]) -> None:
    body = "create Note(tenant, new_id) as note else Exists {} set note.ref = " + value
    assert compiled(f"{body} set note.ref = note.ref {DONE}")[1] == expected


def test_evidence_is_direct_inputs() -> None:
    plan = command(JOB + FENCE + DONE)
    step = next(step for step in plan.steps if isinstance(step, LeaseStep))
    assert (step.owner, step.fencing_token, step.revision, step.duration_seconds) == (
        Input(UUID, "owner_id"),
        Input(Type("u64"), "token"),
        Input(Type("u64"), "rev"),
        None,
    )


VALUES = [
    # what stands in `set job.count = …` (i64), and whether it may
    ("9223372036854775807", []),
    ("-9223372036854775808", []),
    ("9223372036854775808", ["RDB-C210"]),
    ("-9223372036854775809", ["RDB-C210"]),
    ("job.count + 1 - 2 * 3", []),
    ("-job.count % 7", []),
    ("rev", ["RDB-C208"]),
    ("job.count + rev", ["RDB-C213"]),
    ("job.count + 1.5", ["RDB-C213"]),
    ("job.count + -rev", ["RDB-C213"]),
    ("min(job.count, -3, 4)", []),
    ("max(job.count, rev)", ["RDB-C213"]),
    ("seconds_between(tx.time, coalesce(job.until, tx.time))", []),
    ("(if job.state == State.Done then 1 else -1)", []),
    ("(if job.state in (State.Done, State.Ready) then job.count else 0)", []),
    ('(if job.state == State.Done then 1 else "x")', ["RDB-C208"]),
    ("(if job.count then 1 else 0)", ["RDB-C208"]),
    ('length("abc")', ["RDB-C208"]),
    ("true", ["RDB-C208"]),
    ("null", ["RDB-C209"]),
    ("job", ["RDB-C215"]),
    ("State", ["RDB-C205"]),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values_have_exact_types(value: str, expected: list[str]) -> None:
    assert compiled(JOB + FENCE + f"set job.count = {value} " + DONE)[1] == expected
