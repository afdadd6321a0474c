"""The draft: what the passes hand on to each other, complete parts of the plan by name beside the declarations.

A pass takes a draft and returns a new one with its own family filled in. What is declared but broken is missing in its
family and present in `declared`, so that whoever names it stays silent: its mistake has been reported already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from riffdb.core.types import Type
from riffdb.plan.commands import CommandPlan
from riffdb.plan.declarations import EntityPlan, EnumPlan, EventPlan, RecordPlan, WorkflowPlan
from riffdb.plan.queries import QueryPlan, RolePlan, SchedulePlan, StreamPlan
from riffdb.syntax.tree import (
    CommandDecl,
    ContractDecl,
    EntityDecl,
    EnumDecl,
    EventDecl,
    InvariantMember,
    Name,
    QueryDecl,
    RecordDecl,
    ReferenceMember,
    ReimportDecl,
    RoleDecl,
    ScheduleDecl,
    StreamDecl,
    Tree,
    UniqueMember,
    WorkflowDecl,
)

Rule: TypeAlias = UniqueMember | ReferenceMember | InvariantMember


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of an application by name, in source order; of a name declared twice the first."""

    contract: ContractDecl | None = None
    enums: Mapping[str, EnumDecl] = field(default_factory=dict)
    records: Mapping[str, RecordDecl] = field(default_factory=dict)
    entities: Mapping[str, EntityDecl] = field(default_factory=dict)
    events: Mapping[str, EventDecl] = field(default_factory=dict)
    workflows: Mapping[str, WorkflowDecl] = field(default_factory=dict)
    commands: Mapping[str, CommandDecl | ReimportDecl] = field(default_factory=dict)
    queries: Mapping[str, QueryDecl] = field(default_factory=dict)
    streams: Mapping[str, StreamDecl] = field(default_factory=dict)
    roles: Mapping[str, RoleDecl] = field(default_factory=dict)
    schedules: Mapping[str, ScheduleDecl] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A record with the fields whose declaration is broken."""

    plan: RecordPlan
    types: Mapping[str, Type]
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class EntityDraft:
    """An entity with what the plan does not say: columns whose declaration is broken, where each name stands, and the
    declarations of its rules, which the plan has where they compiled."""

    plan: EntityPlan
    types: Mapping[str, Type]
    secrets: frozenset[str]
    broken: frozenset[str]
    places: Mapping[str, Name]
    rules: tuple[Rule, ...] = ()

    def rule(self, name: str) -> Rule | None:
        """The declaration of a unique, reference or invariant, if there is one."""
        return next((rule for rule in self.rules if rule.name.text == name), None)


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event with the fields whose declaration is broken."""

    plan: EventPlan
    types: Mapping[str, Type]
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class Draft:
    """An application on its way from tree to plan."""

    application: str
    trees: tuple[Tree, ...]
    declared: Declared = Declared()
    enums: Mapping[str, EnumPlan] = field(default_factory=dict)
    records: Mapping[str, RecordDraft] = field(default_factory=dict)
    entities: Mapping[str, EntityDraft] = field(default_factory=dict)
    events: Mapping[str, EventDraft] = field(default_factory=dict)
    workflows: Mapping[str, WorkflowPlan] = field(default_factory=dict)
    commands: Mapping[str, CommandPlan] = field(default_factory=dict)
    queries: Mapping[str, QueryPlan] = field(default_factory=dict)
    streams: Mapping[str, StreamPlan] = field(default_factory=dict)
    roles: Mapping[str, RolePlan] = field(default_factory=dict)
    schedules: Mapping[str, SchedulePlan] = field(default_factory=dict)

    def workflow_of(self, entity: str) -> WorkflowPlan | None:
        """The workflow of an entity, if it has one that compiled."""
        return next((workflow for workflow in self.workflows.values() if workflow.entity == entity), None)

    def workflow_is_broken(self, entity: str) -> bool:
        """Whether the entity has a workflow that did not compile, or may be meant by one that names no entity."""
        meant = (decl.entity.text for decl in self.declared.workflows.values())
        return self.workflow_of(entity) is None and any(
            name == entity or name not in self.declared.entities for name in meant
        )


Part = TypeVar("Part")


def present(parts: Mapping[str, Part | None]) -> dict[str, Part]:
    """The parts that compiled."""
    return {name: part for name, part in parts.items() if part is not None}
