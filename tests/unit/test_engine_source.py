"""The generated text itself: what people read when they ask what a command does, and that no name can write code."""

from typing import Any

import pytest
from msgspec.structs import replace

from riffdb.core.types import BOOL, U64
from riffdb.engine import compile_command, compile_query
from riffdb.engine.source import execute
from riffdb.plan import Plan
from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    EmitStep,
    InputPlan,
    OutcomePlan,
    OutcomeUse,
    PayloadField,
    PayloadPlan,
    RequireStep,
    SetStep,
)
from riffdb.plan.declarations import ComputedPlan, EntityPlan, EventPlan, FieldPlan, IndexPlan
from riffdb.plan.expressions import Binary, Constant, Field, Input, Param, Row
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan, QueryField, QueryPlan
from tests.unit.test_engine_plans import CLAIM, INPUTS, work_plan

CLAIM_INPUTS = ("request_key", "organization_id", "work_id", "owner_id", "duration", "expected_revision")

CLAIM_WORK = """\
def partition(inputs):
    return inputs[1]


def stage_0(inputs, rows):
    return ((0, (inputs[1], inputs[2])),)


def evaluate(inputs, rows, now, sequence):
    # inputs: 0 request_key, 1 organization_id, 2 work_id, 3 owner_id, 4 duration, 5 expected_revision
    i0, i1, i2, i3, i4, i5 = inputs
    r0, = rows
    # mutate WorkItem as work: 0 organization_id, 1 work_id, 2 state, 3 due_at, 4 lease_owner, 5 lease_expires_at, \
6 lease_fence, 7 lease_attempts, 8 available_at
    k0 = (i1, i2)
    if r0 is None:
        return failure_0  # Missing
    r0_4 = r0[4]
    r0_5 = r0[5]
    r0_6 = r0[6]
    r0_7 = r0[7]
    # lease claim on work
    if i5 != r0[9]:
        return failure_1  # Stale
    if not 5 <= i4 <= 900:
        return failure_2  # Invalid
    if r0_4 is not None and r0_5 > now:
        return failure_3  # Unavailable
    if (t0 := now + i4 * 1000000) > TIMESTAMP_MAX or r0_6 == U64_MAX or r0_7 == U64_MAX:
        return failure_4  # Exhausted
    r0_4 = i3
    r0_5 = t0
    r0_6 = r0_6 + 1
    r0_7 = r0_7 + 1
    # commit
    if r0[9] == U64_MAX:
        raise revision_exhausted('work')
    v0 = r0[9] + 1
    r0_8 = r0[3] if r0[3] >= (t1 := r0_5 if r0_5 is not None else r0[3]) else t1
    n0 = (r0[0], r0[1], r0[2], r0[3], r0_4, r0_5, r0_6, r0_7, r0_8, v0, sequence)
    changes = (new(Change, (0, k0, r0, n0)),)
    revisions = (('work', v0),)
    return new(Evaluation, ('Claimed', (n0,), changes, (), revisions))
"""


def test_the_text_of_a_claim() -> None:
    plan = work_plan(replace(CLAIM, inputs=tuple(part for part in INPUTS if part.name in CLAIM_INPUTS)))
    assert compile_command(plan, "ClaimWork").source == CLAIM_WORK


HOSTILE = [
    "x\nimport os",
    "x'); raise SystemExit  #",
    'x"""',
    "x\\",
    "x\r\x0c\u2028y",
    "\ud800",
    "{x}",
    "class",
    "now",
    "i0",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_or_text_of_a_plan_can_write_code(name: str) -> None:
    entity = EntityPlan(
        name,
        (FieldPlan(name, U64),),
        name,
        (FieldPlan(f"{name} 2", BOOL),),
        (ComputedPlan(f"{name} 3", BOOL, Field(BOOL, "", f"{name} 2")),),
        (IndexPlan(name, (name,), (False,)),),
    )
    payload = (PayloadPlan(name, Row(U64, name, name)), PayloadPlan(f"{name} 2", Constant(U64, name)))
    total = Binary(U64, "+", Input(U64, name), Constant(U64, 1))
    command = CommandPlan(
        name,
        (InputPlan(name, U64),),
        None,
        Input(U64, name),
        (
            BindStep("mutate", name, name, (Input(U64, name),), OutcomeUse(name)),
            RequireStep(name, Binary(BOOL, "==", total, Constant(U64, 2)), OutcomeUse(name)),
            SetStep(name, f"{name} 2", Constant(BOOL, True)),
            EmitStep(name, (PayloadPlan(name, Field(U64, name, name)),)),
        ),
        OutcomeUse(f"{name} 2", payload),
        (
            OutcomePlan(name, False, False),
            OutcomePlan(f"{name} 2", True, False, tuple(PayloadField(part.name, U64) for part in payload)),
        ),
    )
    query = QueryPlan(
        name,
        (InputPlan(name, U64),),
        Param(U64, name),
        (
            BindingPlan(
                name, "many", name, (PathPlan(name, (PrefixPlan((Param(U64, name),)),)),), Constant(BOOL, True), name
            ),
        ),
        name,
        (QueryField(name, name, (name, "revision")),),
    )
    event = EventPlan(name, name, (FieldPlan(name, U64),))
    plan = Plan(name, name, 1, entities=(entity,), events=(event,), commands=(command,), queries=(query,))
    assert_evaluates(plan, name)


def assert_evaluates(plan: Plan, name: str) -> None:
    compiled = compile_command(plan, name)
    after = (1, True, True, 5, 9)
    assert compiled.evaluate((1,), [(1, False, False, 4, 8)], 0, 9) == (
        f"{name} 2",
        (after, name),
        ((0, (1,), (1, False, False, 4, 8), after),),
        ((name, (1,)),),
        (),
    )
    query = compile_query(plan, name)
    (found,) = query.bindings
    path = found.path((3,))
    assert (found.plan.entity, path.index, found.take((3,))) == (name, name, 3)
    assert path.ranges((3,), 0) == (((3,),), None, None)
    assert query.select((3,), 0, [[after]], [None]) == ([(1, 5)],)


def test_a_fault_of_ours_is_not_called_the_contracts() -> None:
    with pytest.raises(SyntaxError):
        execute("Broken", "else:\n", {})


def test_generated_functions_have_no_built_ins() -> None:
    compiled: Any = compile_command(work_plan(CLAIM), "ClaimWork")
    assert compiled.evaluate.__globals__["__builtins__"] == {}
