"""Worlds: the ways that a command can take through its steps, and what is known of its rows at the end of each.

A world keeps, for every column of a bound row, the expression over inputs and rows as they were found that the column
comes to; what has no such expression is not known. Arms of a decide part the worlds; where there would be too many they
become one, which knows what all of them know. Absent: judging anything (`breakable`).
"""

from dataclasses import dataclass, field

from riffdb.compiler.constants import constant_of
from riffdb.compiler.expressions import rebuilt
from riffdb.core.types import Type
from riffdb.plan.commands import BindStep, DecideStep, ForStep, LeaseStep, SetStep, Step, TransitionStep
from riffdb.plan.declarations import ComputedPlan, EntityPlan, LeasePlan, WorkflowPlan
from riffdb.plan.expressions import Constant, Expression, Field, Input, Item, Revision, Row, TransactionTime, leaves

WORLDS_MAX = 64

Entities = dict[str, tuple[EntityPlan, WorkflowPlan | None]]
"""Every entity with its workflow."""


@dataclass(slots=True)
class World:
    """One way: the bindings on it, those of them that are there for sure, those that begin their row on it, their
    columns (None: not known), and which of these effects wrote."""

    bound: dict[str, BindStep] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    columns: dict[tuple[str, str], Expression | None] = field(default_factory=dict)
    written: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> "World":
        """The same way, to go on from in another direction."""
        return World(dict(self.bound), set(self.certain), set(self.created), dict(self.columns), set(self.written))

    def write(self, binding: str, column: str, value: Expression | None) -> None:
        """Let an effect give the column that value."""
        self.columns[binding, column] = value
        self.written.add((binding, column))


class Ways:
    """Walks steps and gives the worlds at their end."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities

    def through(self, steps: tuple[Step, ...], worlds: list[World]) -> list[World]:
        """The worlds after the steps."""
        for step in steps:
            worlds = self._after(step, worlds)
            if len(worlds) > WORLDS_MAX:
                worlds = [_merged(worlds)]
        return worlds

    def _after(self, step: Step, worlds: list[World]) -> list[World]:
        match step:
            case BindStep():
                return [after for world in worlds for after in self._bound(step, world)]
            case SetStep(binding=binding, field=column, value=value):
                for world in worlds:
                    world.write(binding, column, None if self._is_fence(world, step) else self.value(world, value))
            case TransitionStep(binding=binding, workflow=name):
                for world in worlds:
                    self._move(step, world, binding, name)
            case LeaseStep():
                for world in worlds:
                    self._lease(step, world)
            case DecideStep(arms=arms):
                return [
                    after
                    for arm in arms
                    if arm.none is None
                    for after in self.through(arm.steps, [world.copy() for world in worlds])
                ]
            case ForStep(steps=steps):
                return worlds + [after for world in worlds for after in self._looped(steps, world)]
        return worlds

    def _looped(self, steps: tuple[Step, ...], world: World) -> list[World]:
        """The worlds after a loop that ran; into each run goes what no run changes of the rows outside it."""
        entry = world.copy()
        while True:
            after = self.through(steps, [entry.copy()])
            changed = [
                place
                for place, value in entry.columns.items()
                if value is not None and any(way.columns[place] != value for way in after)
            ]
            if not changed:
                break
            entry.columns |= dict.fromkeys(changed)
        _loosen(world, after)
        return after

    # --- what each step makes of a row ---

    def _bound(self, step: BindStep, world: World) -> list[World]:
        entity, workflow = self._entities[step.entity]
        world.bound[step.name] = step
        if step.kind != "maybe":
            world.certain.add(step.name)
        found = world if step.kind == "create" else world.copy()
        for part in (*entity.key, *entity.fields):
            found.columns[step.name, part.name] = Field(part.type, step.name, part.name)
        by = entity.storage_key
        if step.unique:
            by = next(unique.columns for unique in entity.uniques if unique.name == step.unique)
        for column, value in zip(by, step.key, strict=True):
            found.columns[step.name, column] = self.value(world, value)
        worlds = [] if step.kind == "create" else [found]
        if step.kind in ("create", "init_or_mutate"):
            created = found.copy()
            self._start(step, created, entity, workflow)
            worlds.append(created)
        return worlds

    def _start(self, step: BindStep, world: World, entity: EntityPlan, workflow: WorkflowPlan | None) -> None:
        world.created.add(step.name)
        for part in entity.key:
            world.written.add((step.name, part.name))
        for part in entity.fields:
            value: Expression | None = None
            if part.has_default or part.type.optional:
                value = Constant(part.type, part.default)
            if workflow is not None and part.name == workflow.state and workflow.initial is not None:
                value = Constant(part.type, workflow.initial)
            world.write(step.name, part.name, value)
        for item in step.initialize:
            world.write(step.name, item.name, self.value(world, item.value))

    def _is_fence(self, world: World, step: SetStep) -> bool:
        """Whether the 0 of a created row stands for the fence of its key's last life."""
        _, workflow = self._entities[world.bound[step.binding].entity]
        return workflow is not None and workflow.lease is not None and workflow.lease.fencing_token == step.field

    def _move(self, step: TransitionStep, world: World, binding: str, name: str) -> None:
        entity, workflow = self._entities[world.bound[binding].entity]
        assert workflow is not None and workflow.name == name, "a transition is of the row's own workflow"
        moved = next(part for part in workflow.transitions if part.name == step.transition)
        world.write(binding, workflow.state, Constant(entity.types[workflow.state], moved.destination))

    def _lease(self, step: LeaseStep, world: World) -> None:
        entity, workflow = self._entities[world.bound[step.binding].entity]
        lease = None if workflow is None else workflow.lease
        assert lease is not None, "a lease operation stands on a row with a lease"
        for column, value in _leased(step, lease, entity, world, self).items():
            world.write(step.binding, column, value)

    # --- what an expression comes to ---

    def value(self, world: World, expression: Expression) -> Expression | None:
        """The expression over inputs and rows as they were found; None where that is not known."""
        known = True

        def resolved(leaf: Expression) -> Expression:
            nonlocal known
            match leaf:
                case Field(binding=binding, name=name) if binding:
                    value = self.column(world, binding, name)
                    known = known and value is not None
                    return leaf if value is None else value
                case TransactionTime() | Input() | Item() | Revision() | Row():
                    return _required(leaf)
            return leaf

        result = rebuilt(expression, resolved)
        return result if known else None

    def column(self, world: World, binding: str, column: str) -> Expression | None:
        """What a stored or computed column comes to."""
        computed = self._computed(world, binding, column)
        if computed is not None and self.is_written(world, binding, column):
            return constant_of(self.of_row(world, binding, computed.expression))
        if computed is not None and (binding, column) not in world.columns:
            return Field(computed.type.required, binding, column)
        value = world.columns[binding, column]
        return None if value is None else _required(value)

    def is_written(self, world: World, binding: str, column: str) -> bool:
        """Whether an effect on this way wrote the column, or one that it is computed from."""
        computed = self._computed(world, binding, column)
        if computed is None:
            return (binding, column) in world.written
        return any(
            isinstance(leaf, Field) and (binding, leaf.name) in world.written for leaf in leaves(computed.expression)
        )

    def _computed(self, world: World, binding: str, column: str) -> ComputedPlan | None:
        """The column's declaration if it is computed. A look-up by a unique tells what such a column comes to as well,
        until an effect writes what it is computed from."""
        entity, _ = self._entities[world.bound[binding].entity]
        return next((part for part in entity.computed if part.name == column), None)

    def of_row(self, world: World, binding: str, expression: Expression) -> Expression:
        """An expression over the columns of a row itself, with every column that is a constant in its place."""

        def resolved(leaf: Expression) -> Expression:
            if not isinstance(leaf, Field):
                return leaf
            value = self.column(world, binding, leaf.name)
            return value if isinstance(value, Constant) else leaf

        return rebuilt(expression, resolved)


def _leased(
    step: LeaseStep, lease: LeasePlan, entity: EntityPlan, world: World, ways: Ways
) -> dict[str, Expression | None]:
    match step.operation:
        case "claim":
            owner = None if step.owner is None else ways.value(world, step.owner)
            counters = {lease.fencing_token: None} | ({} if lease.attempts is None else {lease.attempts: None})
            return {lease.owner: owner, lease.expires_at: None, **counters}
        case "renew":
            return {lease.expires_at: None}
        case "release" | "expire":
            return {name: Constant(entity.types[name], None) for name in (lease.owner, lease.expires_at)}
        case "fence" | "unheld":
            return {}


def _required(leaf: Expression) -> Expression:
    """The leaf with a type that does not depend on what was known of null at its place."""
    match leaf:
        case Input(type=kind, name=name):
            return Input(kind.required, name)
        case Item(type=kind, name=name):
            return Item(kind.required, name)
        case Field(type=kind, binding=binding, name=name):
            return Field(kind.required, binding, name)
        case Constant(type=kind, value=value) if value is not None:
            return Constant(_unbounded(kind), value)
    return leaf


def _unbounded(kind: Type) -> Type:
    """A text's constant is the same whatever bound its place gave it."""
    return Type(kind.kind, scale=kind.scale, name=kind.name)


def _loosen(before: World, after: list[World]) -> None:
    """Forget what a loop made of rows outside it, since every element may take another way."""
    for place, value in before.columns.items():
        values = [world.columns[place] for world in after]
        if any(other != value for other in values):
            shared = values[0] if all(other == values[0] for other in values) else None
            for world in after:
                world.write(*place, shared if isinstance(shared, Constant) else None)


def _merged(worlds: list[World]) -> World:
    first, *others = worlds
    merged = first.copy()
    for other in others:
        merged.bound |= other.bound
        merged.certain &= other.certain
        merged.created &= other.created
        merged.written |= other.written
        for place, value in other.columns.items():
            if merged.columns.get(place, value) != value:
                merged.columns[place] = None
            else:
                merged.columns[place] = value
    return merged
