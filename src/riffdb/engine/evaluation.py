"""What goes in and out of generated functions, as plain values.

Rows and keys are tuples of inside values (`core.values`); a row is in the order of `EntityPlan.columns`, then revision
and commit sequence. Absent: JSON forms; `database` makes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from riffdb.core.errors import RiffError
from riffdb.core.layout import Key, Row
from riffdb.plan.queries import BindingPlan

Rows: TypeAlias = Row | Mapping[Key, Row | None] | None
"""What a slot is given: its row, or None; a slot of a loop the rows by key."""


class Change(NamedTuple):
    """A mutated row of one slot: None before it was created, None after it was deleted.

    A tombstone is a row of a slot of its own: written right after the deletion that leaves it, taken away right before
    the creation that goes on from it.
    """

    slot: int
    key: Key
    before: Row | None
    after: Row | None


class Guard(NamedTuple):
    """A rule of an entity that only the store can tell, with the failure that the command has when it is broken.

    `unique`: no row but that with `key` has the values in the unique `rule`. `target`: the row that the reference
    `rule` names by these values is there. `left`: if rows still name these values by the reference `rule`, then so is
    a row that has them. Values are in the order of the unique, or of the reference's target. The failure is formed when
    the rule is broken and not before, since its payload may leave a range.
    """

    kind: Literal["unique", "target", "left"]
    entity: str
    rule: str
    values: tuple[Any, ...]
    key: Key
    failure: Callable[[], "Evaluation"]


class Guarded(NamedTuple):
    """What counts if all guards hold, looked at in order over the rows as the `changes` leave them: a success, the
    failure of an invariant that forbids these changes, or the error of an event or answer that cannot be formed."""

    evaluation: "Evaluation | RiffError"
    guards: tuple[Guard, ...]
    changes: tuple[Change, ...]


class Evaluation(NamedTuple):
    """What a command came to. `changes`, `events` and `revisions` stand in source order and are empty on failure.

    `payload` is in the order of `OutcomePlan.payload` and holds an entity as its whole row; an event is its name and
    its fields in declared order; a revision is a binding of a workflow entity and its successor revision.
    """

    outcome: str
    payload: tuple[Any, ...]
    changes: tuple[Change, ...]
    events: tuple[tuple[str, tuple[Any, ...]], ...]
    revisions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CompiledCommand:
    """A command as functions. `slots` names the entity of every binding in source order, into the arms of a decide, and
    `tombstones` those of the slots behind them, which hold what is left of the last life of a key.

    Stage n is given the inputs and the rows that the stages before it asked for, and gives the (slot, storage key)
    pairs to read next; a pair is left out where the key cannot be computed, and the row of its slot stays None. A slot
    of `finders` asks by the values of that unique of its entity instead.
    `evaluate` is given inputs, rows by slot, transaction time (µs) and commit sequence; it raises `RDB-E-ARITHMETIC`,
    `RDB-E-ALIASED` and `RDB-E-REVISION-EXHAUSTED`. `source` is the generated text. Service values follow the inputs.
    The slots of a loop are `looped`: each stands for one row an item, stages give a pair for each item, and in the
    place of its row stand rows of its entity by key, all that were asked for among them.
    """

    name: str
    slots: tuple[str, ...]
    tombstones: tuple[str, ...]
    finders: Mapping[int, str]
    stages: tuple[Callable[[tuple[Any, ...], Sequence[Rows]], Sequence[tuple[int, Key]]], ...]
    partition: Callable[[tuple[Any, ...]], Any]
    evaluate: Callable[[tuple[Any, ...], Sequence[Rows], int, int], Evaluation | Guarded]
    source: str
    looped: tuple[int, ...] = ()


class Ranges(NamedTuple):
    """The ranges of one path: values of its prefix columns, each different from the others, and the bounds of the
    column after them as (value, inclusive)."""

    prefixes: tuple[tuple[Any, ...], ...]
    lower: tuple[Any, bool] | None
    upper: tuple[Any, bool] | None


@dataclass(frozen=True, slots=True)
class CompiledPath:
    """One way to the rows of a binding: ranges of `index` (empty: the key) by parameters and observed time.

    `residual` is given the same and makes the test that a row must pass; None where the ranges answer everything.
    `order` has the places in a row by which the rows of all ranges follow each other, and whether they go down there;
    no two rows are equal in it. `prefix` has the places that the ranges hold equal. `is_led`: the ranges begin with the
    greatest, or least, value that the binding asks for.
    """

    index: str
    prefix: tuple[int, ...]
    order: tuple[tuple[int, bool], ...]
    reverse: bool
    ranges: Callable[[tuple[Any, ...], int], Ranges]
    residual: Callable[[tuple[Any, ...], int], Callable[[Row], bool]] | None
    is_led: bool = False


@dataclass(frozen=True, slots=True)
class CompiledBinding:
    """A binding as functions: parameters to the path of their case, and to the number of rows or entries to take.

    `cursor` is the place of the parameter with the cursor, `column` that in a row of what an aggregate is of.
    `missing` gives the payload of the outcome without a row, from parameters, time and what was found before.
    """

    plan: BindingPlan
    path: Callable[[tuple[Any, ...]], CompiledPath]
    take: Callable[[tuple[Any, ...]], int]
    cursor: int | None
    column: int | None
    missing: "Select | None"


Select: TypeAlias = Callable[[tuple[Any, ...], int, Sequence[Any], Sequence[str | None]], tuple[Any, ...]]
"""From parameters, observed time, what every binding found and the cursors behind it, to the values of an outcome.

Rows are shown as tuples of the selected fields, `many` as a tuple of them.
"""


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query as functions: parameters to partition, its bindings, and the values that it answers. `source` is the
    generated text."""

    name: str
    partition: Callable[[tuple[Any, ...]], Any]
    bindings: tuple[CompiledBinding, ...]
    select: Select
    source: str


@dataclass(frozen=True, slots=True)
class CompiledStream:
    """A stream as functions: parameters to partition; for each event that has a condition, parameters and the values of
    the fields that it `reads` to whether the event passes. `source` is the generated text."""

    name: str
    partition: Callable[[tuple[Any, ...]], Any]
    reads: Mapping[str, tuple[str, ...]]
    conditions: Mapping[str, Callable[[tuple[Any, ...], tuple[Any, ...]], bool]]
    source: str
