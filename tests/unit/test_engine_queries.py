"""Queries: the ranges that parameters and time give, and the fields that are selected from what was read."""

import pytest
from msgspec.structs import replace

from riffdb.core.errors import RiffError
from riffdb.core.limits import TIMESTAMP_MIN
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, UUID, Type
from riffdb.engine import compile_query
from riffdb.plan.commands import InputPlan
from riffdb.plan.expressions import Binary, Call, Constant, Param, TransactionTime
from riffdb.plan.queries import BindingPlan, BoundPlan, PathPlan, PrefixPlan, QueryField, QueryPlan
from tests.unit.test_engine_plans import (
    NOW,
    ORGANIZATION,
    OTHER,
    QUEUED,
    STATE,
    WORK,
    note,
    work,
    work_plan,
)

LIMIT = Type("limit", bound=100)
ANY = Constant(BOOL, True)
ORGANIZATION_PARAM = Param(UUID, "organization_id")
AGO = Binary(TIMESTAMP, "-", TransactionTime(TIMESTAMP), Call(I64, "seconds", (Param(U64, "age"),)))

DUE = QueryPlan(
    "DueWork",
    (InputPlan("organization_id", UUID), InputPlan("limit", LIMIT), InputPlan("age", U64)),
    ORGANIZATION_PARAM,
    (
        BindingPlan(
            "due",
            "many",
            "WorkItem",
            (
                PathPlan(
                    "by_available",
                    (PrefixPlan((ORGANIZATION_PARAM,)), PrefixPlan((Constant(STATE, QUEUED),))),
                    lower=BoundPlan(AGO, False),
                    upper=BoundPlan(TransactionTime(TIMESTAMP), True),
                ),
            ),
            ANY,
            "limit",
        ),
        BindingPlan(
            "notes", "many", "Note", (PathPlan("", (PrefixPlan((ORGANIZATION_PARAM,)),), reverse=True),), ANY, 7
        ),
    ),
    "Due",
    (
        QueryField("ids", "notes", ("note_id",)),
        QueryField("items", "due", ("work_id", "due_at", "revision")),
        QueryField("fences", "due", ("lease_fence",)),
    ),
)


def test_ranges_and_selection() -> None:
    due = compile_query(replace(work_plan(), queries=(DUE,)), "DueWork")
    params = (ORGANIZATION, 32, 60)
    assert due.name == "DueWork"
    assert due.partition(params) == ORGANIZATION
    items, notes = due.bindings
    path = items.path(params)
    assert (items.plan.entity, path.index, path.reverse, items.take(params)) == ("WorkItem", "by_available", False, 32)
    assert path.ranges(params, NOW) == (
        ((ORGANIZATION, QUEUED),),
        (NOW - 60_000_000, False),
        (NOW, True),
    )
    path = notes.path(params)
    assert (notes.plan.entity, path.index, path.reverse, notes.take(params)) == ("Note", "", True, 7)
    assert path.ranges(params, NOW) == (((ORGANIZATION,),), None, None)
    rows = [[work(), work(work_id=OTHER, revision=9)], [note()]]
    assert due.select(params, NOW, rows, [None, None]) == (
        [(OTHER,)],
        [(WORK, NOW - 10, 7), (OTHER, NOW - 10, 9)],
        [(3,), (3,)],
    )
    assert due.select(params, NOW, [[], []], [None, None]) == ([], [], [])


def test_a_bound_that_leaves_its_range_is_an_error() -> None:
    due = compile_query(replace(work_plan(), queries=(DUE,)), "DueWork")
    params = (ORGANIZATION, 32, 1)
    with pytest.raises(RiffError, match="DueWork, many due: the result leaves the range of timestamp") as raised:
        due.bindings[0].path(params).ranges(params, TIMESTAMP_MIN)
    assert raised.value.code == "RDB-E-ARITHMETIC"


def test_a_query_may_have_no_parameters() -> None:
    whole = replace(DUE, params=(), partition=Constant(U64, 1), bindings=(), payload=())
    none = compile_query(replace(work_plan(), queries=(whole,)), "DueWork")
    assert (none.partition(()), none.bindings, none.select((), NOW, [], [])) == (1, (), ())
