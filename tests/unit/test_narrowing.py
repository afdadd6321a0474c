"""Narrowing a plan, in corners that the queue served over HTTP does not have."""

from pathlib import Path

import msgspec

from riffdb.client.application import compiled_plan
from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.commands import InputPlan
from riffdb.plan.declarations import EnumPlan, FieldPlan, RecordPlan
from riffdb.plan.identity import declaration_hashes
from riffdb.plan.narrowing import narrowed

QUEUE = Path(__file__).parent.parent.parent / "examples" / "queue"


def plan_with_role(**granted: tuple[str, ...]) -> Plan:
    """The queue's plan whose one role grants just these names."""
    plan = compiled_plan(QUEUE)
    nothing: dict[str, tuple[str, ...]] = {"commands": (), "queries": (), "streams": ()}
    role = msgspec.structs.replace(plan.roles[0], name="Some", **(nothing | granted))
    return msgspec.structs.replace(plan, roles=(role, *plan.roles))


def names(plan: Plan, family: str) -> list[str]:
    """The names of a family's declarations."""
    return [part.name for part in getattr(plan, family)]


def test_a_role_that_is_not_there_sees_nothing() -> None:
    plan = narrowed(compiled_plan(QUEUE), "NoSuchRole")
    assert plan == Plan(plan.application, plan.contract, plan.version)


def test_a_query_alone_brings_its_entity_with_enums_and_workflow() -> None:
    plan = narrowed(plan_with_role(queries=("DueWork",)), "Some")
    assert names(plan, "queries") == ["DueWork"]
    assert names(plan, "entities") == ["WorkItem"]
    assert names(plan, "enums") == ["WorkState"]
    assert names(plan, "workflows") == ["WorkLifecycle"]
    assert names(plan, "roles") == ["Some"]
    assert names(plan, "commands") == names(plan, "events") == names(plan, "schedules") == []


def test_a_stream_alone_brings_its_event_and_no_entity() -> None:
    plan = narrowed(plan_with_role(streams=("WorkActivity",)), "Some")
    assert names(plan, "streams") == ["WorkActivity"]
    assert names(plan, "events") == ["WorkCompleted"]
    assert names(plan, "entities") == names(plan, "enums") == []


def test_a_schedule_needs_its_source_and_every_one_of_its_commands() -> None:
    commands = ("ClaimWork", "RenewWork", "CompleteWork", "ReleaseWork", "FailWork")
    whole = narrowed(plan_with_role(commands=commands, queries=("DueWork",)), "Some")
    assert names(whole, "schedules") == ["DueWorkItems"]
    for missing in range(len(commands)):
        some = commands[:missing] + commands[missing + 1 :]
        assert names(narrowed(plan_with_role(commands=some, queries=("DueWork",)), "Some"), "schedules") == []
    assert names(narrowed(plan_with_role(commands=commands), "Some"), "schedules") == []


def test_a_command_brings_the_records_of_its_lists_and_the_enums_in_them() -> None:
    plan = plan_with_role(commands=("CreateWork",))
    used, other = (RecordPlan(name, (FieldPlan("size", Type("enum", name=name)),)) for name in ("Used", "Other"))
    enums = (*plan.enums, EnumPlan("Used", ("Small",)), EnumPlan("Other", ("Large",)))
    lines = InputPlan("lines", Type("list", bound=4, element=Type("record", name="Used")))
    commands = tuple(msgspec.structs.replace(command, inputs=(*command.inputs, lines)) for command in plan.commands)
    plan = msgspec.structs.replace(plan, records=(used, other), enums=enums, commands=commands)
    found = narrowed(plan, "Some")
    assert names(found, "records") == ["Used"]
    assert names(found, "enums") == ["WorkState", "Used"]


def test_declarations_keep_their_identity() -> None:
    plan = compiled_plan(QUEUE)
    whole, narrow = declaration_hashes(plan), declaration_hashes(narrowed(plan, "WorkScheduler"))
    assert narrow.items() <= whole.items()
    assert "queries.DueWork" in narrow
