"""Why a command ended as it did: its checks in the order in which they are made, up to the one that ended it.

A contract may give several checks one outcome; then the record does not tell which of them it was, and each is said to
be possible. Absent: evaluating anything again, and values.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from riffdb.core.values import Enums
from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    DecideStep,
    ForStep,
    LeaseStep,
    OutcomeUse,
    ReconstituteStep,
    RequireStep,
    Step,
    TransitionStep,
)
from riffdb.plan.wording import wording

_CLAUSES = {
    "stale": "the presented revision is that of the row",
    "invalid": "owner, fencing token and duration are as they must be",
    "unavailable": "nobody holds the lease",
    "active": "the lease is over, and somebody had it",
    "expired": "the lease is not over",
    "exhausted": "time and counters leave room for another lease",
}
"""What a lease operation looks at, in this order; each operation has some of them."""


class Check(NamedTuple):
    """Something that must hold, and the outcome where it does not."""

    text: str
    outcome: str


def reasons(command: CommandPlan, outcome: str, enums: Enums) -> list[dict[str, Any]]:
    """`{"check","outcome","result"}` for each check: `passed`, `refused`, `possible` (one of several with this
    outcome), or `not reached`."""
    checks = [*_checks(command.steps, enums), *_breaches(command.steps)]
    places = [place for place, check in enumerate(checks) if check.outcome == outcome]
    told = []
    for place, check in enumerate(checks):
        if not places or place < places[0]:
            result = "passed"
        elif check.outcome == outcome:
            result = "refused" if len(places) == 1 else "possible"
        else:
            result = "not reached" if place > places[-1] or len(places) == 1 else "unknown"
        told.append({"check": check.text, "outcome": check.outcome, "result": result})
    return told


def _checks(steps: tuple[Step, ...], enums: Enums) -> Iterator[Check]:
    for step in steps:
        match step:
            case BindStep(otherwise=OutcomeUse(name=outcome)):
                text = "has no row yet" if step.kind == "create" else "has a row"
                yield Check(f"`{step.name}`: the key of `{step.entity}` {text}", outcome)
            case RequireStep():
                yield Check(f"require {wording(step.condition, enums)}", step.otherwise.name)
            case TransitionStep():
                yield Check(f"`{step.binding}`: {_CLAUSES['stale']}", step.stale.name)
                yield Check(f"`{step.binding}`: its state allows `{step.transition}`", step.illegal.name)
            case LeaseStep():
                for clause, text in _CLAUSES.items():
                    use: OutcomeUse | None = getattr(step, clause)
                    if use is not None:
                        yield Check(f"`{step.binding}`: lease {step.operation}: {text}", use.name)
            case DecideStep():
                for arm in step.arms:
                    if arm.none is not None:
                        condition = "otherwise" if arm.condition is None else f"when {wording(arm.condition, enums)}"
                        yield Check(f"`{step.binding}`: not the arm {condition}", arm.none.name)
                    yield from _checks(arm.steps, enums)
            case ReconstituteStep():
                yield Check(
                    f"the key of `{step.entity}` has no row, and no past that is further on", step.otherwise.name
                )
            case ForStep():
                yield from _checks(step.steps, enums)


def _breaches(steps: tuple[Step, ...]) -> Iterator[Check]:
    """The rules of entities, which are looked at when all effects are known."""
    for step in steps:
        match step:
            case BindStep():
                for breach in step.breaches:
                    yield Check(f"`{step.name}`: `{breach.entity}.{breach.name}` holds", breach.outcome.name)
            case DecideStep():
                for arm in step.arms:
                    yield from _breaches(arm.steps)
            case ForStep():
                yield from _breaches(step.steps)
