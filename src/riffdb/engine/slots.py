"""The bindings of a command as numbered slots, in source order, and what the steps do to each.

One walk over the steps finds, before any text is written, which columns of a row are written on any path, in which arms
it is mutated, and which other bindings might name the same row. An `Arm` is where a step stands inside a decide; None
is the top level, which every success passes. A slot of a loop stands for one row an item, and its arms for those of one
item; a row above the loop that an effect in it changes is mutated only if an item came to that effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from riffdb.plan import Plan
from riffdb.plan.commands import BindStep, CommandPlan, DecideStep, ForStep, LeaseStep, SetStep, Step, TransitionStep
from riffdb.plan.declarations import EntityPlan, LeasePlan, WorkflowPlan


class Arm(NamedTuple):
    """An arm by the number of its decide and its own number in it."""

    decide: int
    arm: int

    @property
    def taken(self) -> str:
        """The condition under which it was taken."""
        return f"m{self.arm}" if self.decide == LOOPED else f"d{self.decide} == {self.arm}"


LOOPED = -1
"""In the place of a decide: an effect of the loop on the row of the slot that stands in the place of the arm."""


@dataclass(slots=True, eq=False)
class Slot:
    """A binding: its number, its plan, and the names under which generated text holds its parts.

    `above` are the bindings above it, `written` the columns that the text keeps in local names, `mutated_in` the places
    with an effect on it, and `rivals` the slots above it that might name the same row. `grave` is the number of the
    slot of its tombstone, where the binding may end or begin a life.
    """

    number: int
    bind: BindStep
    entity: EntityPlan
    workflow: WorkflowPlan | None
    arm: Arm | None
    in_loop: bool
    above: Mapping[str, "Slot"]
    written: set[str] = field(default_factory=set)
    mutated_in: set[Arm | None] = field(default_factory=set)
    rivals: tuple["Slot", ...] = ()
    grave: int | None = None

    @property
    def name(self) -> str:
        """The name of the binding in the contract."""
        return self.bind.name

    @property
    def row(self) -> str:
        """The row as it was found."""
        return f"r{self.number}"

    @property
    def looked_up(self) -> str:
        """The rows by key, of a slot of a loop."""
        return f"q{self.number}"

    @property
    def looked_up_tombstone(self) -> str:
        """The tombstones by key, of a slot of a loop."""
        return f"h{self.number}"

    @property
    def changed(self) -> str:
        """Whether a loop has changed the row, which is bound above it."""
        return f"m{self.number}"

    @property
    def key(self) -> str:
        """The storage key."""
        return f"k{self.number}"

    @property
    def committed(self) -> str:
        """The row as it is committed."""
        return f"n{self.number}" if self.is_changed else self.row

    @property
    def revision_found(self) -> str:
        """The revision before the command."""
        return f"{self.row}[{len(self.entity.columns)}]"

    @property
    def revision_committed(self) -> str:
        """The revision as it is committed."""
        if not self.is_changed:
            return self.revision_found
        return f"v{self.number}"

    @property
    def tombstone(self) -> str:
        """The tombstone of the key's last life, None if it has none."""
        return f"g{self.number}"

    @property
    def reads_tombstone(self) -> bool:
        """Whether the row may begin here, and so must go on from the tombstone."""
        return self.bind.kind in ("create", "init_or_mutate")

    @property
    def is_changed(self) -> bool:
        """Whether the command may mutate the row at all."""
        return bool(self.mutated_in) or self.bind.kind == "init_or_mutate"

    @property
    def computed(self) -> frozenset[str]:
        """The names of the computed columns."""
        return frozenset(part.name for part in self.entity.computed)

    def found(self, column: str) -> str:
        """A column as it was found."""
        return f"{self.row}[{self.entity.columns.index(column)}]"

    def local(self, column: str) -> str:
        """The local name of a column that is written."""
        return f"{self.row}_{self.entity.columns.index(column)}"

    def now(self, column: str) -> str:
        """A stored column as the effects so far left it."""
        return self.local(column) if column in self.written else self.found(column)

    @property
    def lease(self) -> LeasePlan | None:
        """The lease of its workflow, if it has both."""
        return self.workflow.lease if self.workflow else None


def lay_out(plan: Plan, command: CommandPlan) -> tuple[Slot, ...]:
    """The slots of a command, in source order."""
    walk = _Walk(plan)
    walk.steps(command.steps, None, {})
    ending = [slot for slot in walk.slots if slot.reads_tombstone or slot.bind.kind == "delete"]
    for number, slot in enumerate(ending, start=len(walk.slots)):
        slot.grave = number
    return tuple(walk.slots)


class _Walk:
    def __init__(self, plan: Plan) -> None:
        self.slots: list[Slot] = []
        self._plan = plan
        self._decides = count()
        self._in_loop = False

    def steps(self, steps: tuple[Step, ...], arm: Arm | None, bound: dict[str, Slot]) -> None:
        for step in steps:
            match step:
                case BindStep():
                    bound[step.name] = self._bind(step, arm, dict(bound))
                case SetStep(binding=binding, field=column):
                    self._effect(bound[binding], arm, (column,))
                case TransitionStep(binding=binding, workflow=workflow):
                    self._effect(bound[binding], arm, (self._plan.workflow(workflow).state,))
                case LeaseStep(binding=binding):
                    self._effect(bound[binding], arm, lease_columns(step, bound[binding]))
                case DecideStep(arms=arms):
                    decide = next(self._decides)
                    for number, branch in enumerate(arms):
                        self.steps(branch.steps, Arm(decide, number), dict(bound))
                case ForStep(steps=inner):
                    self._in_loop = True
                    self.steps(inner, None, dict(bound))
                    self._in_loop = False

    def _bind(self, step: BindStep, arm: Arm | None, above: dict[str, Slot]) -> Slot:
        entity = self._plan.entity(step.entity)
        workflow = self._plan.workflow_of(step.entity)
        slot = Slot(len(self.slots), step, entity, workflow, arm, self._in_loop, above)
        slot.rivals = tuple(
            other for other in self.slots if other.entity.name == entity.name and _may_both_run(other.arm, arm)
        )
        if step.kind in ("create", "delete"):
            slot.mutated_in.add(arm)
        if slot.reads_tombstone:
            slot.written.update(part.name for part in (*entity.key, *entity.fields))
        self.slots.append(slot)
        return slot

    def _effect(self, slot: Slot, arm: Arm | None, columns: tuple[str, ...]) -> None:
        from_loop = self._in_loop and not slot.in_loop
        slot.mutated_in.add(Arm(LOOPED, slot.number) if from_loop else arm)
        slot.written.update(columns)


def lease_columns(step: LeaseStep, slot: Slot) -> tuple[str, ...]:
    """The columns that a lease operation writes."""
    lease = slot.lease
    assert lease is not None, "a lease operation stands on a binding of a leased entity"
    match step.operation:
        case "claim":
            counters = (lease.fencing_token,) if lease.attempts is None else (lease.fencing_token, lease.attempts)
            return (lease.owner, lease.expires_at, *counters)
        case "renew":
            return (lease.expires_at,)
        case "release" | "expire":
            return (lease.owner, lease.expires_at)
        case "fence" | "unheld":
            return ()


def _may_both_run(first: Arm | None, second: Arm | None) -> bool:
    return first is None or second is None or first.decide != second.decide or first.arm == second.arm
