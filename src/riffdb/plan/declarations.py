"""The data half of a plan: enums, entities, events, workflows with their lease.

Names are as declared; `doc` is the declaration's doc comment and no part of its identity.
"""

from collections.abc import Collection

import msgspec

from riffdb.core.types import U64, Type
from riffdb.plan.expressions import Expression, Kept


class EnumPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An enum; the ordinal of a variant is its position."""

    name: str
    variants: tuple[str, ...]
    doc: str = ""


class FieldPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored field. `default` stands when `has_default`; `was` is its former name, and no part of its identity."""

    name: str
    type: Type
    secret: bool = False
    has_default: bool = False
    default: Kept = None
    doc: str = ""
    was: str = ""


class ComputedPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that the engine keeps at every mutation, from stored fields of the row."""

    name: str
    type: Type
    expression: Expression
    doc: str = ""


class IndexPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An index: its columns (the rest of the key already appended, partition first) and which of them descend."""

    name: str
    columns: tuple[str, ...]
    descending: tuple[bool, ...]


class UniquePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Columns (partition first) whose values no two rows share; a row with a null among them is not held to it."""

    name: str
    columns: tuple[str, ...]


class ReferencePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Columns (partition first) whose values are those of a row of `entity`, by its unique of that name (empty: by its
    key); a row with a null among them is not held to it. `columns` correspond to `target`, the key in storage order."""

    name: str
    columns: tuple[str, ...]
    entity: str
    target: tuple[str, ...]
    unique: str = ""


class InvariantPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition over the row's own columns that holds in every committed row."""

    name: str
    condition: Expression


class RecordPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The element of a list input: fields by name, in declared order."""

    name: str
    fields: tuple[FieldPlan, ...]
    doc: str = ""


class EntityPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entity. `key` is in declared order; `partition` names the key component that confines every command."""

    name: str
    key: tuple[FieldPlan, ...]
    partition: str
    fields: tuple[FieldPlan, ...]
    computed: tuple[ComputedPlan, ...] = ()
    indexes: tuple[IndexPlan, ...] = ()
    uniques: tuple[UniquePlan, ...] = ()
    references: tuple[ReferencePlan, ...] = ()
    invariants: tuple[InvariantPlan, ...] = ()
    doc: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names in row order: key, fields, computed; the revision and the commit's sequence follow them in a row."""
        return (*(part.name for part in (*self.key, *self.fields)), *(part.name for part in self.computed))

    @property
    def types(self) -> dict[str, Type]:
        """The type of every column, and of `revision`."""
        stored = {part.name: part.type for part in (*self.key, *self.fields)}
        return stored | {part.name: part.type for part in self.computed} | {"revision": U64}

    @property
    def storage_key(self) -> tuple[str, ...]:
        """Key names with the partition first, the rest in declared order."""
        return (self.partition, *(part.name for part in self.key if part.name != self.partition))

    def way_in(self, columns: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
        """The index or unique (empty name: the key) whose first columns these are, and they in its order."""
        wanted, count = frozenset(columns), len(columns)
        ways = [
            ("", self.storage_key),
            *((unique.name, unique.columns) for unique in self.uniques),
            *((index.name, index.columns) for index in self.indexes),
        ]
        return next(((name, order[:count]) for name, order in ways if frozenset(order[:count]) == wanted), None)

    @property
    def visible(self) -> tuple[str, ...]:
        """Columns that a payload of the whole row shows: all but secrets."""
        hidden = {part.name for part in self.fields if part.secret}
        return tuple(name for name in self.columns if name not in hidden)


class EventPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event; its `partition` field equals the partition of the command that emits it."""

    name: str
    partition: str
    fields: tuple[FieldPlan, ...]
    doc: str = ""


class TransitionPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A legal move of the state: from any of the source ordinals to the destination ordinal."""

    name: str
    sources: tuple[int, ...]
    destination: int


class LeasePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lease of a workflow: the fields that keep it and the inclusive bounds of its duration in seconds."""

    name: str
    owner: str
    expires_at: str
    fencing_token: str
    attempts: str | None
    seconds_min: int
    seconds_max: int


class WorkflowPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state machine of one entity; `initial` is an ordinal."""

    name: str
    entity: str
    state: str
    initial: int | None
    transitions: tuple[TransitionPlan, ...]
    lease: LeasePlan | None = None
    doc: str = ""
