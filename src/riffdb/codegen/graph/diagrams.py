"""What stands in a diagram: the states of a workflow, which command makes which move, what each does with the lease.

States are those that the workflow names, in the order of their enum; a state without any transition is terminal.
Commands stand in source order. Absent: how any of it is drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass

from riffdb.plan import Plan
from riffdb.plan.commands import BindStep, LeaseStep, TransitionStep
from riffdb.plan.declarations import WorkflowPlan
from riffdb.plan.parts import parts_of

OPERATIONS = ("claim", "renew", "release", "expire", "fence", "unheld")


@dataclass(frozen=True, slots=True)
class Move:
    """A transition from one of its sources, and the commands that make it."""

    source: str
    destination: str
    transition: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeaseNote:
    """A lease with the bounds of its duration, and the commands of each operation that some command has."""

    name: str
    seconds: tuple[int, int]
    operations: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The note as lines of text."""
        head = f"lease {self.name}, {self.seconds[0]} to {self.seconds[1]} seconds"
        return (head, *(f"{operation}: {', '.join(commands)}" for operation, commands in self.operations))


@dataclass(frozen=True, slots=True)
class Diagram:
    """One workflow as a diagram shows it."""

    workflow: str
    entity: str
    states: tuple[str, ...]
    initial: str | None
    creators: tuple[str, ...]
    terminal: tuple[str, ...]
    moves: tuple[Move, ...]
    lease: LeaseNote | None

    @property
    def title(self) -> str:
        """What the diagram is of."""
        return f"{self.workflow} of {self.entity}"


def diagrams_of(plan: Plan) -> tuple[Diagram, ...]:
    """One diagram for each workflow, in source order."""
    return tuple(_diagram(plan, workflow) for workflow in plan.workflows)


def _diagram(plan: Plan, workflow: WorkflowPlan) -> Diagram:
    variants = plan.enum_variants()[plan.entity(workflow.entity).types[workflow.state].name]
    moves = tuple(
        Move(variants[source], variants[part.destination], part.name, _movers(plan, workflow, part.name))
        for part in workflow.transitions
        for source in part.sources
    )
    initial = None if workflow.initial is None else variants[workflow.initial]
    named = {initial, *(name for move in moves for name in (move.source, move.destination))}
    states = tuple(variant for variant in variants if variant in named)
    return Diagram(
        workflow=workflow.name,
        entity=workflow.entity,
        states=states,
        initial=initial,
        creators=_creators(plan, workflow.entity),
        terminal=tuple(state for state in states if all(state != move.source for move in moves)),
        moves=moves,
        lease=_lease(plan, workflow),
    )


def _lease(plan: Plan, workflow: WorkflowPlan) -> LeaseNote | None:
    lease = workflow.lease
    if lease is None:
        return None
    named = ((word, _operators(plan, workflow, word)) for word in OPERATIONS)
    operations = tuple((word, commands) for word, commands in named if commands)
    return LeaseNote(lease.name, (lease.seconds_min, lease.seconds_max), operations)


def _movers(plan: Plan, workflow: WorkflowPlan, transition: str) -> tuple[str, ...]:
    return _commands_where(
        plan,
        lambda step: (
            isinstance(step, TransitionStep) and step.workflow == workflow.name and step.transition == transition
        ),
    )


def _operators(plan: Plan, workflow: WorkflowPlan, operation: str) -> tuple[str, ...]:
    return _commands_where(
        plan,
        lambda step: isinstance(step, LeaseStep) and step.workflow == workflow.name and step.operation == operation,
    )


def _creators(plan: Plan, entity: str) -> tuple[str, ...]:
    return _commands_where(
        plan,
        lambda step: isinstance(step, BindStep) and step.entity == entity and step.kind in ("create", "init_or_mutate"),
    )


def _commands_where(plan: Plan, is_meant: Callable[[object], bool]) -> tuple[str, ...]:
    """The commands that have such a step anywhere in their body."""
    return tuple(command.name for command in plan.commands if any(map(is_meant, parts_of(command.steps))))
