"""Walks over the steps of a compiled command, for whoever judges it from outside: its answers, paths and failures.

No decide stands in an arm, so a path is the top level with one arm of each decide in its place; what a loop holds is
on no path for sure, since a list may be empty.
Absent: judging anything.
"""

from collections.abc import Callable, Iterator, Sequence

from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    DecideStep,
    ForStep,
    LeaseStep,
    OutcomeUse,
    RequireStep,
    Step,
    TransitionStep,
)


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those of all arms and of the loop among them."""
    for step in steps:
        yield step
        if isinstance(step, DecideStep):
            for arm in step.arms:
                yield from all_steps(arm.steps)
        elif isinstance(step, ForStep):
            yield from all_steps(step.steps)


def answers(command: CommandPlan) -> list[OutcomeUse]:
    """What the command answers on success: its own, and that of each arm that has one."""
    decides = [step for step in command.steps if isinstance(step, DecideStep)]
    return [command.answer, *(arm.answer for step in decides for arm in step.arms if arm.answer is not None)]


def is_on_every_path(steps: Sequence[Step], wanted: Callable[[Step], bool]) -> bool:
    """Whether every successful run passes a wanted step: at the top level, or in each `apply` arm of one decide."""
    for step in steps:
        if isinstance(step, DecideStep):
            arms = [arm for arm in step.arms if arm.none is None]
            if arms and all(any(wanted(part) for part in arm.steps) for arm in arms):
                return True
        elif wanted(step):
            return True
    return False


def lease_evidence(step: LeaseStep) -> list[OutcomeUse]:
    """The failures of a lease operation, all of which are evidence failures."""
    clauses = (step.stale, step.unavailable, step.invalid, step.exhausted, step.expired, step.active)
    return [outcome for outcome in clauses if outcome is not None]


def evidence_and_refusals(command: CommandPlan, binding: str) -> tuple[set[str], dict[str, Step]]:
    """The names of the evidence failures, the `else` of `binding` among them; and of all others with a step of each."""
    evidence: set[str] = set()
    refusals: dict[str, Step] = {}
    for step in all_steps(command.steps):
        match step:
            case LeaseStep():
                evidence.update(outcome.name for outcome in lease_evidence(step))
            case TransitionStep():
                evidence.add(step.stale.name)
                refusals.setdefault(step.illegal.name, step)
            case BindStep(otherwise=OutcomeUse(name=name)):
                if step.name == binding:
                    evidence.add(name)
                else:
                    refusals.setdefault(name, step)
            case RequireStep():
                refusals.setdefault(step.otherwise.name, step)
            case DecideStep():
                for arm in step.arms:
                    if arm.none is not None:
                        refusals.setdefault(arm.none.name, step)
    return evidence, refusals
