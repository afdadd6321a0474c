"""The order of checks of transitions and lease operations, and what each writes.

This is the table of the language page, one line a check, first failing check first. At `now == expires_at` a lease is
expired. Revisions compare with the revision before the command, whatever the steps above did.
"""

from typing import NamedTuple

from riffdb.engine.expressions import Scope, expression_text
from riffdb.engine.slots import Slot
from riffdb.plan.commands import LeaseStep, OutcomeUse, TransitionStep
from riffdb.plan.declarations import WorkflowPlan
from riffdb.plan.expressions import Expression


class Check(NamedTuple):
    """A condition under which the operation fails, and the outcome that it then has."""

    condition: str
    outcome: OutcomeUse


class Operation(NamedTuple):
    """Checks in order, then assignments of local names."""

    checks: tuple[Check, ...]
    assignments: tuple[tuple[str, str], ...]


def transition_operation(step: TransitionStep, workflow: WorkflowPlan, slot: Slot, scope: Scope) -> Operation:
    """A transition on the row of a slot."""
    transition = next(part for part in workflow.transitions if part.name == step.transition)
    state, sources = slot.now(workflow.state), transition.sources
    stale = f"{expression_text(step.revision, scope)} != {slot.revision_found}"
    illegal = f"{state} != {sources[0]}" if len(sources) == 1 else f"{state} not in {sources!r}"
    return Operation(
        (Check(stale, step.stale), Check(illegal, step.illegal)),
        ((state, str(transition.destination)),),
    )


def lease_operation(step: LeaseStep, slot: Slot, scope: Scope) -> Operation:
    """A lease operation on the row of a slot."""
    parts = _Parts(step, slot, scope)
    stale = (step.stale, parts.is_stale)
    match step.operation:
        case "claim":
            return _operation(
                [
                    stale,
                    (step.invalid, parts.is_outside_bounds),
                    (step.unavailable, parts.is_held),
                    (step.exhausted, f"{parts.expiry_overflows} or {parts.counters_overflow}"),
                ],
                [(parts.owner, parts.new_owner), (parts.expires_at, parts.expiry), *parts.counted],
            )
        case "renew":
            return _operation(
                [
                    stale,
                    (step.invalid, f"{parts.is_outside_bounds} or {parts.is_foreign}"),
                    (step.expired, parts.is_expired),
                    (step.exhausted, parts.expiry_overflows),
                ],
                [(parts.expires_at, parts.expiry)],
            )
        case "release":
            return _operation([stale, (step.invalid, parts.is_foreign)], parts.cleared)
        case "expire":
            return _operation([stale, (step.active, parts.is_active_or_unowned)], parts.cleared)
        case "fence":
            return _operation([stale, (step.invalid, parts.is_foreign), (step.expired, parts.is_expired)], [])
        case "unheld":
            return _operation([stale, (step.unavailable, parts.is_held)], [])


def _operation(checks: list[tuple[OutcomeUse | None, str]], assignments: list[tuple[str, str]]) -> Operation:
    made = []
    for outcome, condition in checks:
        assert outcome is not None, "a lease operation names an outcome for each of its checks"
        made.append(Check(condition, outcome))
    return Operation(tuple(made), tuple(assignments))


class _Parts:
    """The texts that lease operations are made of."""

    def __init__(self, step: LeaseStep, slot: Slot, scope: Scope) -> None:
        lease = slot.lease
        assert lease is not None, "a lease operation stands on a binding of a leased entity"
        self._step, self._slot, self._lease, self._scope = step, slot, lease, scope
        self.owner, self.expires_at, self.fence = (
            slot.now(column) for column in (lease.owner, lease.expires_at, lease.fencing_token)
        )
        self.cleared = [(self.owner, "None"), (self.expires_at, "None")]
        self.expiry = scope.temporary() if step.duration_seconds is not None else ""

    @property
    def new_owner(self) -> str:
        return self._operand(self._step.owner)

    @property
    def is_stale(self) -> str:
        return f"{self._operand(self._step.revision)} != {self._slot.revision_found}"

    @property
    def is_outside_bounds(self) -> str:
        duration = self._operand(self._step.duration_seconds)
        return f"not {self._lease.seconds_min} <= {duration} <= {self._lease.seconds_max}"

    @property
    def is_held(self) -> str:
        return f"{self.owner} is not None and {self.expires_at} > now"

    @property
    def is_active_or_unowned(self) -> str:
        return f"{self.owner} is None or {self.expires_at} > now"

    @property
    def is_expired(self) -> str:
        return f"{self.expires_at} <= now"

    @property
    def is_foreign(self) -> str:
        """Another owner or token, or none: null differs from every owner."""
        token = self._operand(self._step.fencing_token)
        return f"{self.owner} != {self._operand(self._step.owner)} or {self.fence} != {token}"

    @property
    def expiry_overflows(self) -> str:
        duration = self._operand(self._step.duration_seconds)
        return f"({self.expiry} := now + {duration} * 1000000) > TIMESTAMP_MAX"

    @property
    def counters_overflow(self) -> str:
        return " or ".join(f"{counter} == U64_MAX" for counter in self._counters())

    @property
    def counted(self) -> list[tuple[str, str]]:
        return [(counter, f"{counter} + 1") for counter in self._counters()]

    def _counters(self) -> list[str]:
        attempts = [] if self._lease.attempts is None else [self._slot.now(self._lease.attempts)]
        return [self.fence, *attempts]

    def _operand(self, expression: Expression | None) -> str:
        assert expression is not None, f"lease {self._step.operation} has all its operands"
        return expression_text(expression, self._scope)
