"""The part of a plan that one role may see: what a client of that role is given.

Its commands, queries and streams, the schedules that they can drive, and the entities, enums, records, events and
workflows that these speak of; declarations themselves stay whole, so that their identities do. Absent: authority, which
the database checks at every operation, whatever a client was told.
"""

from collections.abc import Iterator

import msgspec

from riffdb.core.types import Type
from riffdb.plan.commands import BindStep, EmitStep, PayloadField
from riffdb.plan.expressions import Row
from riffdb.plan.parts import parts_of
from riffdb.plan.plan import Plan
from riffdb.plan.queries import BindingPlan, SchedulePlan, StreamEventPlan


def narrowed(plan: Plan, role_name: str) -> Plan:
    """The plan as the role may see it; for a role that the contract no longer has, nothing of it."""
    roles = tuple(role for role in plan.roles if role.name == role_name)
    granted_commands = {name for role in roles for name in role.commands}
    granted_queries = {name for role in roles for name in role.queries}
    granted_streams = {name for role in roles for name in role.streams}
    commands = tuple(command for command in plan.commands if command.name in granted_commands)
    queries = tuple(query for query in plan.queries if query.name in granted_queries)
    streams = tuple(stream for stream in plan.streams if stream.name in granted_streams)
    sources = {"query": granted_queries, "stream": granted_streams}
    schedules = tuple(
        schedule
        for schedule in plan.schedules
        if schedule.source_name in sources[schedule.source] and commands_of(schedule) <= granted_commands
    )
    used = (commands, queries, streams)
    event_names = set(_events_in(used))
    events = tuple(event for event in plan.events if event.name in event_names)
    entity_names = set(_entities_in(used))
    entities = tuple(entity for entity in plan.entities if entity.name in entity_names)
    record_names = {inner.name for inner in parts_of(commands) if isinstance(inner, Type) and inner.kind == "record"}
    records = tuple(record for record in plan.records if record.name in record_names)
    enum_names = set(_enums_in((used, records, entities, events)))
    return msgspec.structs.replace(
        plan,
        enums=tuple(enum for enum in plan.enums if enum.name in enum_names),
        records=records,
        entities=entities,
        events=events,
        workflows=tuple(workflow for workflow in plan.workflows if workflow.entity in entity_names),
        commands=commands,
        queries=queries,
        streams=streams,
        roles=roles,
        schedules=schedules,
    )


def commands_of(schedule: SchedulePlan) -> set[str]:
    """The names of all commands that a schedule runs."""
    uses = (schedule.claim, schedule.run, schedule.release, schedule.renew, schedule.fail)
    return {use.command for use in uses if use is not None}


def _entities_in(part: object) -> Iterator[str]:
    for inner in parts_of(part):
        if isinstance(inner, BindStep | BindingPlan | PayloadField | Row):
            yield inner.entity


def _events_in(part: object) -> Iterator[str]:
    for inner in parts_of(part):
        if isinstance(inner, EmitStep | StreamEventPlan):
            yield inner.event


def _enums_in(part: object) -> Iterator[str]:
    for inner in parts_of(part):
        if isinstance(inner, Type) and inner.kind == "enum":
            yield inner.name
