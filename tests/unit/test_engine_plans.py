"""The plans that the engine's tests share, built by hand, so that no fault of the compiler can hide one of the engine.

`work_plan` has an entity with a workflow, a lease and a computed column, and takes the commands that a test is about;
the short constructors below make their parts. What the shared parts are is checked at the end.
"""

from typing import Any

from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, UUID, Type, string
from riffdb.engine import CompiledCommand, Evaluation, compile_command
from riffdb.plan import Plan
from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    DecideStep,
    EmitStep,
    InputPlan,
    LeaseStep,
    OutcomePlan,
    OutcomeUse,
    PayloadField,
    PayloadPlan,
    RequireStep,
    Step,
    TransitionStep,
)
from riffdb.plan.declarations import (
    ComputedPlan,
    EntityPlan,
    EnumPlan,
    EventPlan,
    FieldPlan,
    IndexPlan,
    LeasePlan,
    TransitionPlan,
    WorkflowPlan,
)
from riffdb.plan.expressions import Binary, BinaryOperator, Call, Constant, Expression, Field, Input, Revision, Row
from riffdb.plan.plan import from_json, to_json

STATE = Type("enum", name="WorkState")
QUEUED, RUNNING, COMPLETE, FAILED = range(4)

INPUTS = (
    InputPlan("request_key", string(128)),
    InputPlan("organization_id", UUID),
    InputPlan("work_id", UUID),
    InputPlan("owner_id", UUID),
    InputPlan("token", U64),
    InputPlan("duration", U64),
    InputPlan("expected_revision", U64),
    InputPlan("other_id", UUID),
    InputPlan("due_at", TIMESTAMP),
)
INPUT_TYPES = {part.name: part.type for part in INPUTS}

DUE, EXPIRES = Field(TIMESTAMP, "", "due_at"), Field(TIMESTAMP.nullable, "", "lease_expires_at")
WORK_ITEM = EntityPlan(
    "WorkItem",
    key=(FieldPlan("organization_id", UUID), FieldPlan("work_id", UUID)),
    partition="organization_id",
    fields=(
        FieldPlan("state", STATE),
        FieldPlan("due_at", TIMESTAMP),
        FieldPlan("lease_owner", UUID.nullable),
        FieldPlan("lease_expires_at", TIMESTAMP.nullable),
        FieldPlan("lease_fence", U64),
        FieldPlan("lease_attempts", U64),
    ),
    computed=(
        ComputedPlan(
            "available_at", TIMESTAMP, Call(TIMESTAMP, "max", (DUE, Call(TIMESTAMP, "coalesce", (EXPIRES, DUE))))
        ),
    ),
    indexes=(
        IndexPlan(
            "by_available", ("organization_id", "state", "available_at", "work_id"), (False, False, False, False)
        ),
    ),
)
NOTE = EntityPlan(
    "Note",
    # The partition stands second on purpose: storage keys put it first, rows do not.
    key=(FieldPlan("note_id", UUID), FieldPlan("organization_id", UUID)),
    partition="organization_id",
    fields=(
        FieldPlan("count", U64, has_default=True, default=7),
        FieldPlan("next_id", UUID.nullable),
        FieldPlan("delta", I64, has_default=True, default=-1),
        FieldPlan("is_open", BOOL, has_default=True, default=True),
    ),
)
COMPLETED = EventPlan(
    "WorkCompleted",
    "organization_id",
    (FieldPlan("organization_id", UUID), FieldPlan("work_id", UUID), FieldPlan("revision", U64)),
)
LIFECYCLE = WorkflowPlan(
    "WorkLifecycle",
    "WorkItem",
    "state",
    QUEUED,
    (
        TransitionPlan("Start", (QUEUED,), RUNNING),
        TransitionPlan("Finish", (QUEUED, RUNNING), COMPLETE),
        TransitionPlan("Retry", (QUEUED, RUNNING), QUEUED),
        TransitionPlan("Bury", (QUEUED, RUNNING), FAILED),
    ),
    LeasePlan("execution", "lease_owner", "lease_expires_at", "lease_fence", "lease_attempts", 5, 900),
)


def work_plan(*commands: CommandPlan) -> Plan:
    """The plan with these commands."""
    return Plan(
        "queue",
        "WorkQueue",
        1,
        enums=(EnumPlan("WorkState", ("Queued", "Running", "Complete", "Failed")),),
        entities=(WORK_ITEM, NOTE),
        events=(COMPLETED,),
        workflows=(LIFECYCLE,),
        commands=commands,
    )


def given(name: str) -> Input:
    """An input by name."""
    return Input(INPUT_TYPES[name], name)


def number(value: int, value_type: Type = U64) -> Constant:
    """A literal number."""
    return Constant(value_type, value)


def field(name: str, binding: str = "work") -> Field:
    """A field of a bound `WorkItem` or, for the names that it alone has, `Note`."""
    types = NOTE.types | WORK_ITEM.types if binding == "work" else WORK_ITEM.types | NOTE.types
    return Field(types[name], binding, name)


def revision(binding: str = "work") -> Revision:
    """The revision of a bound row."""
    return Revision(U64, binding)


def row(binding: str = "work", entity: str = "WorkItem") -> Row:
    """A whole bound row."""
    return Row(Type("record", name=entity), binding, entity)


def binary(left: Expression, operator: BinaryOperator, right: Expression, value_type: Type = BOOL) -> Binary:
    """A binary operation, a condition unless its type is told."""
    return Binary(value_type, operator, left, right)


def use(name: str, **payload: Expression) -> OutcomeUse:
    """An outcome as a statement answers it."""
    return OutcomeUse(name, tuple(PayloadPlan(part, value) for part, value in payload.items()))


def bind(kind: Any = "mutate", name: str = "work", otherwise: str | OutcomeUse = "Missing") -> BindStep:
    """Bind the `WorkItem` of the inputs."""
    outcome = use(otherwise) if isinstance(otherwise, str) else otherwise
    key = (given("organization_id"), given("work_id"))
    return BindStep(kind, name, "WorkItem", key, None if kind == "maybe" else outcome)


def bind_note(kind: Any, name: str, note_id: Expression, stage: int = 0) -> BindStep:
    """Bind a `Note` of the inputs' organization."""
    otherwise = None if kind == "maybe" else use("NoteTaken" if kind == "create" else "NoteMissing")
    return BindStep(kind, name, "Note", (given("organization_id"), note_id), otherwise, stage)


def lease(operation: Any, binding: str = "work") -> LeaseStep:
    """A lease operation whose outcomes are called as their clauses, with a capital."""
    clauses = {
        "claim": ("stale", "unavailable", "invalid", "exhausted"),
        "renew": ("stale", "invalid", "expired", "exhausted"),
        "release": ("stale", "invalid"),
        "expire": ("stale", "active"),
        "fence": ("stale", "invalid", "expired"),
        "unheld": ("stale", "unavailable"),
    }[operation]
    has_owner, has_token = (
        operation in ("claim", "renew", "release", "fence"),
        operation in ("renew", "release", "fence"),
    )
    return LeaseStep(
        operation,
        "WorkLifecycle",
        binding,
        given("expected_revision"),
        owner=given("owner_id") if has_owner else None,
        fencing_token=given("token") if has_token else None,
        duration_seconds=given("duration") if operation in ("claim", "renew") else None,
        **{clause: use(clause.capitalize()) for clause in clauses},
    )


def transition(name: str, binding: str = "work") -> TransitionStep:
    """A transition whose outcomes are `Stale` and `Illegal`."""
    return TransitionStep("WorkLifecycle", name, binding, given("expected_revision"), use("Stale"), use("Illegal"))


def command(name: str, *steps: Step, answer: OutcomeUse | None = None) -> CommandPlan:
    """A command over the shared inputs; its outcomes are found in its steps."""
    answer = answer or use("Done")
    successes = [
        answer,
        *(arm.answer for step in steps if isinstance(step, DecideStep) for arm in step.arms if arm.answer),
    ]
    outcomes = {part.name: _outcome(part, True) for part in successes}
    outcomes |= {part.name: _outcome(part, False) for part in _failures(steps)}
    return CommandPlan(name, INPUTS, "request_key", given("organization_id"), steps, answer, tuple(outcomes.values()))


def _failures(steps: tuple[Step, ...]) -> list[OutcomeUse]:
    found: list[OutcomeUse | None] = []
    for step in steps:
        match step:
            case BindStep() | RequireStep():
                found.append(step.otherwise)
            case TransitionStep():
                found += [step.stale, step.illegal]
            case LeaseStep():
                found += [step.stale, step.unavailable, step.invalid, step.exhausted, step.expired, step.active]
            case DecideStep():
                for arm in step.arms:
                    found += [arm.none, *_failures(arm.steps)]
    return [part for part in found if part is not None]


def _outcome(part: OutcomeUse, success: bool) -> OutcomePlan:
    fields = tuple(PayloadField(value.name, value.value.type) for value in part.payload)
    return OutcomePlan(part.name, success, False, fields)


def emit(work: str = "work") -> EmitStep:
    """Emit `WorkCompleted`, its fields not in their declared order."""
    values = (
        ("revision", revision(work)),
        ("work_id", given("work_id")),
        ("organization_id", given("organization_id")),
    )
    return EmitStep("WorkCompleted", tuple(PayloadPlan(name, value) for name, value in values))


# --- values ------------------------------------------------------------------------------------------------------

ORGANIZATION, WORK, OWNER, OTHER = (bytes([letter]) * 16 for letter in b"OWHX")
NOW = 1_700_000_000_000_000
SEQUENCE = 99
KEY = (ORGANIZATION, WORK)


def inputs(**changed: Any) -> tuple[Any, ...]:
    """The inputs of a command, those that matter to the test by name."""
    values = {
        "request_key": "key",
        "organization_id": ORGANIZATION,
        "work_id": WORK,
        "owner_id": OWNER,
        "token": 3,
        "duration": 60,
        "expected_revision": 7,
        "other_id": OTHER,
        "due_at": NOW,
    }
    assert changed.keys() <= values.keys()
    return tuple((values | changed).values())


def work(**changed: Any) -> tuple[Any, ...]:
    """A row of `WorkItem`, unowned, at revision 7, written by commit 42."""
    values = {
        "organization_id": ORGANIZATION,
        "work_id": WORK,
        "state": QUEUED,
        "due_at": NOW - 10,
        "lease_owner": None,
        "lease_expires_at": None,
        "lease_fence": 3,
        "lease_attempts": 5,
        "available_at": NOW - 10,
        "revision": 7,
        "sequence": 42,
    }
    assert changed.keys() <= values.keys()
    return tuple((values | changed).values())


def note(note_id: bytes = OTHER, **changed: Any) -> tuple[Any, ...]:
    """A row of `Note` at revision 2, written by commit 41."""
    values = {
        "note_id": note_id,
        "organization_id": ORGANIZATION,
        "count": 1,
        "next_id": None,
        "delta": -3,
        "is_open": 1,
        "revision": 2,
        "sequence": 41,
    }
    assert changed.keys() <= values.keys()
    return tuple((values | changed).values())


def compiled(*steps: Step, answer: OutcomeUse | None = None) -> CompiledCommand:
    """The one command of a plan, made of these steps."""
    return compile_command(work_plan(command("Do", *steps, answer=answer)), "Do")


def evaluate(compiled: CompiledCommand, *rows: Any, now: int = NOW, **changed: Any) -> Evaluation:
    """Evaluate over rows by slot; tombstones that are not given are not there."""
    slots = len(compiled.slots) + len(compiled.tombstones)
    evaluation = compiled.evaluate(inputs(**changed), [*rows, *[None] * (slots - len(rows))], now, SEQUENCE)
    assert isinstance(evaluation, Evaluation)
    return evaluation


CLAIM = command("ClaimWork", bind(), lease("claim"), answer=use("Claimed", work=row()))


def test_a_plan_that_was_kept_as_json_gives_the_same_functions() -> None:
    plan = work_plan(CLAIM)
    kept = from_json(to_json(plan))
    assert kept == plan
    assert compile_command(kept, "ClaimWork").source == compile_command(plan, "ClaimWork").source


def test_what_a_command_needs_to_be_run() -> None:
    claim = compile_command(work_plan(CLAIM), "ClaimWork")
    assert (claim.name, claim.slots) == ("ClaimWork", ("WorkItem",))
    assert claim.partition(inputs()) == ORGANIZATION
    assert [stage(inputs(), ()) for stage in claim.stages] == [((0, KEY),)]
