"""Outcomes that can never happen: every statement that would answer one is beyond what can be reached.

Followed are the ways through a command's body: a condition that is always true or always false, an arm that the arms
before it leave nothing for, a decide that ends the command in every arm. What a statement must name by the grammar is
no finding where nothing can be left out instead, such as the `illegal` of a transition from every state.
Absent: the worth of conditions over rows, which nobody knows here; `truth` tells what is known of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.truth import Covered, truth
from riffdb.compiler.places import outcome_places, step_place
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import ArmPlan, CommandPlan, DecideStep, ForStep, OutcomeUse, RequireStep, Step
from riffdb.plan.parts import parts_of
from riffdb.syntax.tree import CommandDecl, ReimportDecl


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is not reached, the statement that makes it so, and what to do where that is known."""

    words: str
    step: Step
    help: str | None = None


@dataclass(slots=True)
class Reached:
    """The outcomes that a way through the body may answer, and why others were passed over, by name."""

    outcomes: set[str] = field(default_factory=set)
    reasons: dict[str, Reason] = field(default_factory=dict)

    def miss(self, part: object, reason: Reason) -> None:
        """Nothing in this part is ever answered."""
        for use in parts_of(part):
            if isinstance(use, OutcomeUse):
                self.reasons.setdefault(use.name, reason)


def find_impossible_outcomes(draft: Draft, collector: Collector) -> None:
    """Report the outcomes of each command that no way through it answers."""
    for name, command in draft.commands.items():
        reached = Reached()
        _follow_command(draft, command, reached)
        impossible: dict[Reason, list[str]] = {}
        for outcome in command.outcomes:
            if outcome.name in reached.reasons and outcome.name not in reached.outcomes:
                impossible.setdefault(reached.reasons[outcome.name], []).append(outcome.name)
        for reason, names in impossible.items():
            _report(draft.declared.commands[name], reason, names, collector)


def _report(decl: CommandDecl | ReimportDecl, reason: Reason, names: Sequence[str], collector: Collector) -> None:
    places = [place for name in names for place in outcome_places(decl, name)]
    if places:
        named = " and ".join(f"`{name}`" for name in names)
        cause = step_place(decl, reason.step)
        is_beside = cause.span.start <= places[0].span.start < cause.span.end
        related = (*(() if is_beside else (cause,)), *(Related("nor this one", place.span) for place in places[1:]))
        message = f"{named} can never happen: {reason.words}"
        collector.lint("impossible-outcome", message, places[0].span, related=related, help=reason.help)


def _follow_command(draft: Draft, command: CommandPlan, reached: Reached) -> None:
    reason = _follow(draft, command.steps, reached)
    ended = reason or _answered_in_arms(command.steps)
    if ended is not None:
        reached.miss(command.answer, ended)
    else:
        reached.outcomes.add(command.answer.name)


def _follow(draft: Draft, steps: Sequence[Step], reached: Reached) -> Reason | None:
    """Follow the steps; why nothing after them is reached, if nothing is."""
    for position, step in enumerate(steps):
        ended = None
        match step:
            case RequireStep():
                ended = _require(step, reached)
            case DecideStep():
                ended = _decide(draft, step, reached)
            case ForStep():
                _follow(draft, step.steps, reached)  # the list may be empty, so what follows is reached
            case _:
                reached.outcomes.update(use.name for use in parts_of(step) if isinstance(use, OutcomeUse))
        if ended is not None:
            reached.miss(steps[position + 1 :], ended)
            return ended
    return None


def _require(step: RequireStep, reached: Reached) -> Reason | None:
    known = truth(step.condition)
    if known is True:
        reached.miss(step.otherwise, Reason(f"the condition of `{step.name}` always holds", step))
        return None
    reached.outcomes.add(step.otherwise.name)
    return None if known is None else Reason(f"the condition of `{step.name}` never holds", step)


def _decide(draft: Draft, step: DecideStep, reached: Reached) -> Reason | None:
    covered = Covered(draft.enums)
    goes_on = False
    for arm in step.arms:
        known = True if arm.condition is None else truth(arm.condition)
        if covered.is_everything:
            reached.miss(arm, Reason("the arms above leave nothing over", step, "make the last `when` the `otherwise`"))
        elif known is False or (arm.condition is not None and covered.holds(arm.condition)):
            words = (
                "the condition of its arm never holds"
                if known is False
                else "the arms above take all that its arm asks"
            )
            reached.miss(arm, Reason(words, step))
        else:
            goes_on = _arm(draft, arm, reached) or goes_on
            if arm.condition is not None:
                covered.add(arm.condition)
    return None if goes_on else Reason(f"every arm of `decide {step.binding}` refuses", step)


def _arm(draft: Draft, arm: ArmPlan, reached: Reached) -> bool:
    """Follow an arm that is taken; whether the statements after the decide are reached through it."""
    if arm.none is not None:
        reached.outcomes.add(arm.none.name)
        return False
    ended = _follow(draft, arm.steps, reached)
    if arm.answer is not None and ended is not None:
        reached.miss(arm.answer, ended)
    elif arm.answer is not None:
        reached.outcomes.add(arm.answer.name)
    return ended is None


def _answered_in_arms(steps: Sequence[Step]) -> Reason | None:
    """Why the command's own `return` is never answered: a decide of which each arm that goes on has one."""
    for step in steps:
        if isinstance(step, DecideStep) and all(arm.none is not None or arm.answer is not None for arm in step.arms):
            words = f"every arm of `decide {step.binding}` has an answer of its own"
            return Reason(words, step, "leave one arm without `return`")
    return None
