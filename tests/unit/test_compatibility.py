"""Classes of changes: each kind has a reason on its page and a case, and nothing that a plan says can change untold.

Units, for what no source of a case can vary by itself.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.core.types import BOOL, U64, UUID, Type, string
from riffdb.plan import Plan
from riffdb.plan.changes import RULES
from riffdb.plan.commands import CommandPlan, InputPlan, OutcomePlan
from riffdb.plan.compatibility import contract_changes
from riffdb.plan.declarations import (
    EntityPlan,
    EnumPlan,
    EventPlan,
    FieldPlan,
    InvariantPlan,
    LeasePlan,
    RecordPlan,
    ReferencePlan,
    UniquePlan,
    WorkflowPlan,
)
from riffdb.plan.expressions import Constant
from riffdb.plan.identity import declaration_hashes
from riffdb.plan.queries import QueryPlan, RolePlan, SchedulePlan, StreamPlan
from riffdb.plan.widening import type_step

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases" / "compatibility"
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
TEXT = (ROOT / "examples" / "queue" / "work.riff").read_text("utf-8")


def plan_of(text: str) -> Plan:
    compilation = compile("queue", (Source("work.riff", text),))
    assert compilation.plan is not None
    return compilation.plan


QUEUE = plan_of(TEXT)
RECORD = RecordPlan("Line", (FieldPlan("article", UUID), FieldPlan("amount", string(4))))
ENTITY, COMMAND = QUEUE.entity("WorkItem"), QUEUE.command("CreateWork")


def replaced(part: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(part, **fields)


def with_entity(**fields: Any) -> Plan:
    return msgspec.structs.replace(QUEUE, entities=(replaced(ENTITY, **fields),))


def with_record(*fields: FieldPlan) -> Plan:
    return msgspec.structs.replace(QUEUE, records=(RecordPlan("Line", fields),))


def with_command(**fields: Any) -> Plan:
    others = tuple(command for command in QUEUE.commands if command.name != COMMAND.name)
    return msgspec.structs.replace(QUEUE, commands=(*others, replaced(COMMAND, **fields)))


ARTICLE, AMOUNT = RECORD.fields
UNIQUE = UniquePlan("by_due", ("organization_id", "due_at"))
REFERENCE = ReferencePlan("parent", ("organization_id", "lease_owner"), "WorkItem", ("organization_id", "work_id"))
INVARIANT = InvariantPlan("sane", Constant(BOOL, True))
WITH_RECORD = with_record(ARTICLE, AMOUNT)
PLANS: dict[str, tuple[Plan, Plan]] = {
    "record-added": (QUEUE, WITH_RECORD),
    "record-removed": (WITH_RECORD, QUEUE),
    "record-field-added": (WITH_RECORD, with_record(ARTICLE, FieldPlan("note", U64.nullable), AMOUNT)),
    "record-field-required": (WITH_RECORD, with_record(ARTICLE, AMOUNT, FieldPlan("note", U64))),
    "record-field-removed": (WITH_RECORD, with_record(AMOUNT)),
    "record-field-widened": (WITH_RECORD, with_record(ARTICLE, FieldPlan("amount", string(5)))),
    "record-field-retyped": (WITH_RECORD, with_record(ARTICLE, FieldPlan("amount", string(3)))),
    "unique-added": (QUEUE, with_entity(uniques=(UNIQUE,))),
    "unique-changed": (with_entity(uniques=(UNIQUE,)), with_entity(uniques=(replaced(UNIQUE, columns=("due_at",)),))),
    "unique-removed": (with_entity(uniques=(UNIQUE,)), QUEUE),
    "reference-added": (QUEUE, with_entity(references=(REFERENCE,))),
    "reference-changed": (
        with_entity(references=(REFERENCE,)),
        with_entity(references=(replaced(REFERENCE, unique="by_due"),)),
    ),
    "reference-removed": (with_entity(references=(REFERENCE,)), QUEUE),
    "invariant-added": (QUEUE, with_entity(invariants=(INVARIANT,))),
    "invariant-changed": (
        with_entity(invariants=(INVARIANT,)),
        with_entity(invariants=(replaced(INVARIANT, condition=Constant(BOOL, False)),)),
    ),
    "invariant-removed": (with_entity(invariants=(INVARIANT,)), QUEUE),
    "command-kind": (QUEUE, with_command(kind="reimport")),
}
"""Kinds of which the plans are made here."""


@pytest.mark.parametrize("kind", PLANS)
def test_a_kind_is_told_and_no_other(kind: str) -> None:
    old, new = PLANS[kind]
    [change] = contract_changes(old, new)
    assert (change.kind, change.verdict) == (kind, RULES[kind].verdict)
    assert change.entity == ("WorkItem" if RULES[kind].lifted_by else "")


def test_every_kind_has_a_case() -> None:
    assert {folder.name for folder in CASES.iterdir()} | PLANS.keys() == RULES.keys()


def test_the_page_says_every_kind_with_its_class_and_reason(request: pytest.FixtureRequest) -> None:
    rows = [
        f"| `{kind}` | {rule.words} | {rule.verdict}{f', but for {rule.lifted_by}' if rule.lifted_by else ''} "
        f"| {rule.reason} |\n"
        for kind, rule in RULES.items()
    ]
    text = PAGE.read_text("utf-8")
    table, count = re.subn(r"(?:^\| `.*\n)+", lambda _: "".join(rows), text, flags=re.MULTILINE)
    assert count == 1
    if request.config.getoption("--update"):
        PAGE.write_text(table, encoding="utf-8")
    assert table == PAGE.read_text("utf-8"), "write the table with --update"


# A field that one of these gets is compared in `plan`, or it changes untold: decide its rule, then name it here.
COMPARED: dict[type[Any], str] = {
    EnumPlan: "name variants doc",
    RecordPlan: "name fields doc",
    FieldPlan: "name type secret has_default default doc was",
    EntityPlan: "name key partition fields computed indexes uniques references invariants doc",
    EventPlan: "name partition fields doc",
    WorkflowPlan: "name entity state initial transitions lease doc",
    LeasePlan: "name owner expires_at fencing_token attempts seconds_min seconds_max",
    CommandPlan: "name inputs idempotency_key partition steps answer outcomes services kind doc",
    InputPlan: "name type secret has_default default doc",
    OutcomePlan: "name success evidence payload",
    QueryPlan: "name params partition bindings outcome payload reveals doc",
    StreamPlan: "name params partition events doc",
    RolePlan: "name queries commands streams doc",
    SchedulePlan: "name source source_name items due revision entity workflow claim run release renew fail doc event",
    Plan: "application contract version "
    "enums records entities events workflows commands queries streams roles schedules",
}


@pytest.mark.parametrize("part", COMPARED, ids=lambda part: part.__name__)
def test_all_that_a_declaration_holds_is_compared(part: type[Any]) -> None:
    assert " ".join(part.__struct_fields__) == COMPARED[part]


def test_every_changed_declaration_is_told_and_no_other() -> None:
    """Every other line left out in turn, where a contract is left."""
    lines = TEXT.splitlines(keepends=True)
    compared = 0
    for number in range(0, len(lines), 2):
        compilation = compile("queue", (Source("work.riff", "".join(lines[:number] + lines[number + 1 :])),))
        if compilation.plan is not None:
            compared += 1
            for old, new in ((QUEUE, compilation.plan), (compilation.plan, QUEUE)):
                before, after = declaration_hashes(old), declaration_hashes(new)
                differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
                told = {f"{change.family}.{change.declaration}" for change in contract_changes(old, new)}
                assert told >= differing, lines[number]
                assert {name for name in told - differing if not name.startswith("schedules.")} == set(), lines[number]
    assert compared > 20


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [
        (U64, U64, "same"),
        (U64, U64.nullable, "nullable"),
        (U64.nullable, U64, "other"),
        (U64, Type("i64"), "other"),
        (string(4), string(5), "wider"),
        (string(4), string(5).nullable, "nullable"),
        (string(5), string(4), "other"),
        (string(5).nullable, string(9).nullable, "wider"),
        (Type("decimal", bound=9, scale=2), Type("decimal", bound=10, scale=2), "wider"),
        (Type("decimal", bound=9, scale=2), Type("decimal", bound=10, scale=3), "other"),
        (Type("enum", name="A"), Type("enum", name="B"), "other"),
        (Type("list", bound=4, scale=1, element=string(4)), Type("list", bound=5, scale=0, element=string(5)), "wider"),
        (Type("list", bound=4, scale=1, element=U64), Type("list", bound=4, scale=2, element=U64), "other"),
        (Type("list", bound=4, scale=0, element=U64), Type("list", bound=4, scale=0, element=UUID), "other"),
    ],
)
def test_how_a_type_follows_another(old: Type, new: Type, step: str) -> None:
    assert type_step(old, new) == step
