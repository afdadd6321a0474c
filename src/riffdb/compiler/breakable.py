"""Which uniques, references and invariants the effects on a binding may break.

What names a field that an effect writes may break; a create writes every field, a delete takes its row from under the
references to it. Not so where no way through the command can end so: a unique or reference with a constant null in it,
a reference whose target is bound by the same key expressions, an invariant that constants alone make true.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from riffdb.compiler.constants import constant_of
from riffdb.compiler.worlds import Entities, Ways, World
from riffdb.plan.commands import BindStep, Step
from riffdb.plan.declarations import EntityPlan, InvariantPlan, ReferencePlan, UniquePlan
from riffdb.plan.expressions import Constant, Field, leaves


@dataclass(frozen=True, slots=True)
class Break:
    """A rule of `entity` that may break; `incoming`: the reference of a row that names this one."""

    kind: Literal["conflict", "violates"]
    entity: str
    name: str
    incoming: bool = False


def incoming(entities: Iterable[EntityPlan], target: str) -> list[tuple[EntityPlan, ReferencePlan]]:
    """The references that lead to an entity, with the entities that have them."""
    return [(entity, reference) for entity in entities for reference in entity.references if reference.entity == target]


def breakable(steps: tuple[Step, ...], entities: Entities) -> Mapping[str, list[Break]]:
    """What the effects on each binding may break: uniques, references, those of other rows, invariants, as declared."""
    ways = Ways(entities)
    worlds = ways.through(steps, [World()])
    bound = {name: step for world in worlds for name, step in world.bound.items()}
    return {
        name: _Judge(step, ways, [world for world in worlds if name in world.bound], entities).breaks()
        for name, step in bound.items()
        if step.kind in CHANGING
    }


CHANGING = ("create", "mutate", "delete", "init_or_mutate")


class _Judge:
    """Judges one binding over all worlds in which it is bound."""

    def __init__(self, step: BindStep, ways: Ways, worlds: list[World], entities: Entities) -> None:
        self._step, self._ways, self._worlds = step, ways, worlds
        self._name, self._entity = step.name, entities[step.entity][0]
        self._incoming = incoming((entity for entity, _ in entities.values()), step.entity)

    def breaks(self) -> list[Break]:
        """Everything that may break."""
        left = [
            Break("conflict", entity.name, reference.name, incoming=True)
            for entity, reference in self._incoming
            if self._leaves(reference)
        ]
        if self._step.kind == "delete":
            return left
        entity = self._entity
        return [
            *(Break("conflict", entity.name, rule.name) for rule in entity.uniques if self._moves(rule)),
            *(Break("conflict", entity.name, rule.name) for rule in entity.references if self._points(rule)),
            *left,
            *(Break("violates", entity.name, rule.name) for rule in entity.invariants if self._bends(rule)),
        ]

    def _leaves(self, reference: ReferencePlan) -> bool:
        """Whether the row may stop being what the reference names; a key never changes, a unique may."""
        if self._step.kind == "delete":
            return True
        there = [world for world in self._worlds if self._name not in world.created]
        return bool(reference.unique) and any(self._writes(world, reference.target) for world in there)

    def _moves(self, unique: UniquePlan) -> bool:
        return any(
            self._writes(world, unique.columns) and not self._has_null(world, unique.columns) for world in self._worlds
        )

    def _points(self, reference: ReferencePlan) -> bool:
        return any(
            self._writes(world, reference.columns)
            and not self._has_null(world, reference.columns)
            and not self._is_bound(world, reference)
            for world in self._worlds
        )

    def _bends(self, invariant: InvariantPlan) -> bool:
        read = {leaf.name for leaf in leaves(invariant.condition) if isinstance(leaf, Field)}
        return any(self._writes(world, read) and not self._is_true(world, invariant) for world in self._worlds)

    def _writes(self, world: World, columns: Iterable[str]) -> bool:
        return any(self._ways.is_written(world, self._name, column) for column in columns)

    def _has_null(self, world: World, columns: Iterable[str]) -> bool:
        values = (self._ways.column(world, self._name, column) for column in columns)
        return any(isinstance(value, Constant) and value.value is None for value in values)

    def _is_true(self, world: World, invariant: InvariantPlan) -> bool:
        constant = constant_of(self._ways.of_row(world, self._name, invariant.condition))
        return constant is not None and constant.value is True

    def _is_bound(self, world: World, reference: ReferencePlan) -> bool:
        """Whether the command has a row in its hands that the reference names, and leaves it there."""
        values = [self._ways.column(world, self._name, column) for column in reference.columns]
        return None not in values and any(
            step.entity == reference.entity
            and step.kind != "delete"
            and name in world.certain
            and [self._ways.column(world, name, column) for column in reference.target] == values
            for name, step in world.bound.items()
        )
