"""Workflows that do not work out: transitions that no command uses, states that rows never come to or never leave,
leases that nobody takes or gives back.

A state without any transition out of it is terminal by declaration. One with transitions has no way out if no command
uses any that leads elsewhere; these transitions are then told with the state and not by themselves. What deletes or
restores rows is a way of its own, so where there is such a command, silence. Absent: an entity that nothing uses.
"""

from dataclasses import dataclass, field

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.uses import Uses
from riffdb.compiler.steps import all_steps
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import BindStep, LeaseStep, ReconstituteStep, TransitionStep
from riffdb.plan.declarations import WorkflowPlan
from riffdb.syntax.tree import Name, WorkflowDecl


@dataclass(slots=True)
class Performed:
    """What the commands of a contract do to the rows of workflows."""

    transitions: set[tuple[str, str]] = field(default_factory=set)
    operations: set[tuple[str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    restored: set[str] = field(default_factory=set)


def find_lints_of_workflows(draft: Draft, uses: Uses, collector: Collector) -> None:
    """Report what a workflow declares and no row ever does."""
    performed = _performed(draft)
    unreachable: set[Name] = set()
    for name, workflow in draft.workflows.items():
        if workflow.entity in uses.entities:
            decl = draft.declared.workflows[name]
            told = _find_states_without_way_out(draft, workflow, decl, performed, collector)
            _find_unused_transitions(workflow, decl, performed, told, collector)
            if workflow.initial is not None and workflow.entity not in performed.restored:
                _find_unreachable_states(draft, workflow, decl, unreachable, collector)
            _find_lints_of_lease(workflow, decl, performed, collector)


def _performed(draft: Draft) -> Performed:
    performed = Performed()
    for command in draft.commands.values():
        for part in all_steps(command.steps):
            match part:
                case TransitionStep():
                    performed.transitions.add((part.workflow, part.transition))
                case LeaseStep():
                    performed.operations.add((part.workflow, part.operation))
                case BindStep(kind="delete"):
                    performed.deleted.add(part.entity)
                case ReconstituteStep():
                    performed.restored.add(part.entity)
    return performed


def _variants(draft: Draft, workflow: WorkflowPlan) -> tuple[Name, ...]:
    """Where the states are declared, by ordinal."""
    return draft.declared.enums[draft.entities[workflow.entity].types[workflow.state].name].variants


# --- transitions and states ---------------------------------------------------------------------------------------


def _find_unused_transitions(
    workflow: WorkflowPlan, decl: WorkflowDecl, performed: Performed, told: set[str], collector: Collector
) -> None:
    for transition in decl.transitions:
        name = transition.name.text
        if (workflow.name, name) not in performed.transitions and name not in told:
            help_text = f"add a command with `transition {name} on …`, or take it out"
            collector.lint(
                "unused-transition", f"no command uses the transition `{name}`", transition.name.span, help=help_text
            )


def _find_states_without_way_out(
    draft: Draft, workflow: WorkflowPlan, decl: WorkflowDecl, performed: Performed, collector: Collector
) -> set[str]:
    """Report states that rows never leave; the names of the transitions that are told with them."""
    told: set[str] = set()
    if workflow.entity in performed.deleted or collector.level("no-way-out") == "allow":
        return told
    mentioned = {state for part in workflow.transitions for state in (*part.sources, part.destination)}
    if len(mentioned | {workflow.initial} - {None}) < 2:
        return told  # a single state has nowhere to go: its transitions only prove the revision
    reachable = _reachable(workflow, workflow.initial)
    places = {part.name.text: part.name.span for part in decl.transitions}
    for ordinal, variant in enumerate(_variants(draft, workflow)):
        out = [part for part in workflow.transitions if ordinal in part.sources]
        leaving = [part for part in out if part.destination != ordinal]
        used = any((workflow.name, part.name) in performed.transitions for part in leaving)
        if not out or used or (workflow.initial is not None and ordinal not in reachable):
            continue
        told |= {part.name for part in leaving}
        reason = "no command uses any that leads elsewhere" if leaving else "all of them lead back to it"
        message = f"no row leaves the state `{variant.text}`: it has transitions, and {reason}"
        related = tuple(Related("leads from it", places[part.name]) for part in leaving or out)
        help_text = (
            "add a command that uses one"
            if leaving
            else "add one that leads on, or take them out: a state without any is terminal"
        )
        collector.lint("no-way-out", message, variant.span, related=related, help=help_text)
    return told


def _reachable(workflow: WorkflowPlan, initial: int | None) -> set[int]:
    """The states that declared transitions lead to from this one."""
    found: set[int] = set()
    ahead = [] if initial is None else [initial]
    while ahead:
        state = ahead.pop()
        if state not in found:
            found.add(state)
            ahead.extend(part.destination for part in workflow.transitions if state in part.sources)
    return found


def _find_unreachable_states(
    draft: Draft, workflow: WorkflowPlan, decl: WorkflowDecl, told: set[Name], collector: Collector
) -> None:
    """Report states that no workflow over the same enum comes to, each with the first of these workflows."""
    variants = _variants(draft, workflow)
    shared = [
        other for other in draft.workflows.values() if other is not workflow and _variants(draft, other) is variants
    ]
    reachable = _reachable(workflow, workflow.initial).union(*(_reachable(other, other.initial) for other in shared))
    for ordinal in _beginnings(workflow, [state for state in range(len(variants)) if state not in reachable]):
        variant = variants[ordinal]
        if variant in told:
            continue
        told.add(variant)
        message = f"no row of `{workflow.entity}` comes to the state `{variant.text}`"
        related = (Related("new rows begin here", decl.initial.span),) if decl.initial is not None else ()
        help_text = f"add a transition of `{workflow.name}` that leads there"
        collector.lint("unreachable-state", message, variant.span, related=related, help=help_text)


def _beginnings(workflow: WorkflowPlan, states: list[int]) -> list[int]:
    """The fewest of the states from which transitions lead to all others, so that each gap is told once."""
    led_to = {part.destination for part in workflow.transitions for state in part.sources if state != part.destination}
    found: list[int] = []
    covered: set[int] = set()
    for state in [*(state for state in states if state not in led_to), *states]:
        if state not in covered:
            found.append(state)
            covered |= _reachable(workflow, state)
    return sorted(found)


# --- the lease ----------------------------------------------------------------------------------------------------


def _find_lints_of_lease(
    workflow: WorkflowPlan, decl: WorkflowDecl, performed: Performed, collector: Collector
) -> None:
    if decl.lease is None:
        return
    name = decl.lease.name
    operations = {operation for of, operation in performed.operations if of == workflow.name}
    if "claim" not in operations:
        if workflow.entity not in performed.restored:
            message = f"no command claims the lease `{name.text}`, so nobody ever holds a row of `{workflow.entity}`"
            help_text = f"add a command with `lease claim {name.text} on …`, or take the lease out"
            collector.lint("unclaimed-lease", message, name.span, help=help_text)
    elif not operations & {"release", "expire"} and workflow.entity not in performed.deleted:
        message = f"no command releases or expires the lease `{name.text}`, so a row once held keeps its owner"
        help_text = f"add a command with `lease release {name.text} on …`, and one with `lease expire {name.text} on …`"
        collector.lint("unreleased-lease", message, name.span, help=help_text)
