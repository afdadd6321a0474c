"""`Plan`: one application's contract with its queries, streams, roles and schedules, ready to run.

Declarations stand in source order and are found by name. Two texts exist: `to_json`, the whole, which a database keeps
and a client is given; and the canonical form of `identity`, from which hashes are made.
"""

from functools import cache
from typing import TypeVar

import msgspec

from riffdb.core.types import U64, Type
from riffdb.plan.commands import CommandPlan, ReconstituteStep
from riffdb.plan.declarations import EntityPlan, EnumPlan, EventPlan, RecordPlan, WorkflowPlan
from riffdb.plan.queries import QueryPlan, RolePlan, SchedulePlan, StreamPlan


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that a compiled application says."""

    application: str
    contract: str
    version: int
    enums: tuple[EnumPlan, ...] = ()
    records: tuple[RecordPlan, ...] = ()
    entities: tuple[EntityPlan, ...] = ()
    events: tuple[EventPlan, ...] = ()
    workflows: tuple[WorkflowPlan, ...] = ()
    commands: tuple[CommandPlan, ...] = ()
    queries: tuple[QueryPlan, ...] = ()
    streams: tuple[StreamPlan, ...] = ()
    roles: tuple[RolePlan, ...] = ()
    schedules: tuple[SchedulePlan, ...] = ()

    def enum_variants(self) -> dict[str, tuple[str, ...]]:
        """The variants of every enum, as the codecs of `core.values` take them."""
        return {enum.name: enum.variants for enum in self.enums}

    def record_fields(self) -> dict[str, list[tuple[str, Type]]]:
        """The fields of every record, as the codecs of `core.values` take them."""
        fields = {record.name: [(part.name, part.type) for part in record.fields] for record in self.records}
        return fields | {name: self.restored_fields(name) for name in self._restored}

    @property
    def _restored(self) -> set[str]:
        """The entities of which a command puts rows back."""
        steps = [step for command in self.commands for step in command.steps if command.kind == "reimport"]
        return {step.entity for step in steps if isinstance(step, ReconstituteStep)}

    def restored_fields(self, entity: str) -> list[tuple[str, Type]]:
        """What a row of the entity is put back from, in order: key, stored fields, and the revision."""
        plan = self.entity(entity)
        return [*((part.name, part.type) for part in (*plan.key, *plan.fields)), ("revision", U64)]

    def record(self, name: str) -> RecordPlan:
        """The record of that name; `KeyError` if there is none."""
        return _named(self.records, name)

    def entity(self, name: str) -> EntityPlan:
        """The entity of that name; `KeyError` if there is none."""
        return _named(self.entities, name)

    def event(self, name: str) -> EventPlan:
        """The event of that name; `KeyError` if there is none."""
        return _named(self.events, name)

    def workflow(self, name: str) -> WorkflowPlan:
        """The workflow of that name; `KeyError` if there is none."""
        return _named(self.workflows, name)

    def workflow_of(self, entity: str) -> WorkflowPlan | None:
        """The workflow of an entity, if it has one."""
        return next((workflow for workflow in self.workflows if workflow.entity == entity), None)

    def command(self, name: str) -> CommandPlan:
        """The command of that name; `KeyError` if there is none."""
        return _named(self.commands, name)

    def query(self, name: str) -> QueryPlan:
        """The query of that name; `KeyError` if there is none."""
        return _named(self.queries, name)

    def stream(self, name: str) -> StreamPlan:
        """The stream of that name; `KeyError` if there is none."""
        return _named(self.streams, name)

    def role(self, name: str) -> RolePlan:
        """The role of that name; `KeyError` if there is none."""
        return _named(self.roles, name)

    def schedule(self, name: str) -> SchedulePlan:
        """The schedule of that name; `KeyError` if there is none."""
        return _named(self.schedules, name)


Part = TypeVar(
    "Part",
    RecordPlan,
    EntityPlan,
    EventPlan,
    WorkflowPlan,
    CommandPlan,
    QueryPlan,
    StreamPlan,
    RolePlan,
    SchedulePlan,
)


def _named(parts: tuple[Part, ...], name: str) -> Part:
    for part in parts:
        if part.name == name:
            return part
    raise KeyError(name)


def to_json(plan: Plan) -> str:
    """The whole plan as JSON text, with sorted names."""
    return msgspec.json.encode(plan, order="sorted").decode()


def from_json(text: str | bytes) -> Plan:
    """The plan of a text that `to_json` wrote; `msgspec.ValidationError` for anything else."""
    return _decoder().decode(text)


@cache
def _decoder() -> msgspec.json.Decoder[Plan]:
    return msgspec.json.Decoder(Plan)
