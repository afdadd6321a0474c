"""Lease operations, and the proof that no command changes a leased row around its lease.

`LEASES` is the closed family: what each operation takes and how it can end, in the order of its checks. The proof:
every leased row that a command changes has exactly one lease operation on every path through the body.
"""

from dataclasses import dataclass
from typing import Literal

from riffdb.compiler.operands import arm_head, changed_row, direct_inputs, outcome_clauses
from riffdb.compiler.path import Bound, CommandDraft, Path
from riffdb.core.diagnostics import Related
from riffdb.core.types import U64, UUID, Type
from riffdb.plan.commands import LeaseStep
from riffdb.plan.declarations import LeasePlan
from riffdb.syntax.tree import Arm, DecideStmt, LeaseStmt

OWNER: dict[str, Type] = {"owner": UUID}
TOKEN: dict[str, Type] = {"fencing_token": U64}
DURATION: dict[str, Type] = {"duration_seconds": U64}
REVISION: dict[str, Type] = {"revision": U64}


Word = Literal["claim", "renew", "release", "expire", "fence", "unheld"]


@dataclass(frozen=True, slots=True)
class LeaseOperation:
    """What an operation takes and how it can end."""

    word: Word
    operands: dict[str, Type]
    outcomes: tuple[str, ...]


LEASES: dict[str, LeaseOperation] = {
    operation.word: operation
    for operation in (
        LeaseOperation("claim", OWNER | DURATION | REVISION, ("stale", "invalid", "unavailable", "exhausted")),
        LeaseOperation("renew", OWNER | TOKEN | DURATION | REVISION, ("stale", "invalid", "expired", "exhausted")),
        LeaseOperation("release", OWNER | TOKEN | REVISION, ("stale", "invalid")),
        LeaseOperation("expire", REVISION, ("stale", "active")),
        LeaseOperation("fence", OWNER | TOKEN | REVISION, ("stale", "invalid", "expired")),
        LeaseOperation("unheld", REVISION, ("stale", "unavailable")),
    )
}


def lower_lease(command: CommandDraft, path: Path, statement: LeaseStmt, arm: DecideStmt | None) -> LeaseStep | None:
    """A lease operation on a row, on the evidence that the caller gives."""
    place = statement.operation
    operation = LEASES[place.text]
    bound = changed_row(command, path, statement, arm)
    lease = None if bound is None else _lease_of(command, bound, statement)
    title = f"lease {operation.word}"
    operands = direct_inputs(command, title, statement.operands, operation.operands, place)
    outcomes = outcome_clauses(command, path, title, statement.outcomes, operation.outcomes, place)
    if bound is None or bound.workflow is None or lease is None or operands is None or outcomes is None:
        return None
    _note(path, bound, lease, operation.word)
    owner, token = operands.get("owner"), operands.get("fencing_token")
    return LeaseStep(
        operation.word,
        bound.workflow.name,
        bound.name,
        operands["revision"],
        owner,
        token,
        operands.get("duration_seconds"),
        **outcomes,
    )


def _lease_of(command: CommandDraft, bound: Bound, statement: LeaseStmt) -> LeasePlan | None:
    workflow, name = bound.workflow, statement.lease
    if workflow is None or workflow.lease is None:
        if not bound.workflow_broken:
            message = f"`{bound.entity.plan.name}` has no lease"
            help_text = "declare a `lease` in a workflow of the entity"
            command.collector.error("RDB-C432", message, name.span, help=help_text)
        return None
    if name.text == workflow.lease.name:
        return workflow.lease
    message = f"the workflow `{workflow.name}` has no lease `{name.text}`"
    command.collector.unknown("RDB-C432", message, name, [workflow.lease.name])
    return None


def _note(path: Path, bound: Bound, lease: LeasePlan, word: Word) -> None:
    """Take in what the operation, once it has succeeded, has changed and tells."""
    counters = {lease.fencing_token: True} | ({} if lease.attempts is None else {lease.attempts: True})
    match word:
        case "claim":
            path.change(bound, {lease.owner: True, lease.expires_at: True} | counters)
        case "renew":
            path.know(frozenset({("field", bound.name, lease.owner)}))
            path.change(bound, {lease.expires_at: True})
        case "release" | "expire":
            path.change(bound, {lease.owner: False, lease.expires_at: False})
        case "fence":
            path.know(frozenset(("field", bound.name, name) for name in (lease.owner, lease.expires_at)))
        case "unheld":
            pass


# --- no way around the lease -------------------------------------------------------------------------------------


def check_leases(command: CommandDraft, rows: list[Bound]) -> None:
    """Report every leased row that some path through the body changes without a lease operation, or with two."""
    for bound in rows:
        if bound.is_leased and bound.loop is None and command.decl.kind == "bulk":
            _report_outside(command, bound)
        elif bound.is_leased and bound.arm is None:
            _check_row(command, bound)


def _check_row(command: CommandDraft, bound: Bound) -> None:
    level = command.level(bound)
    top = [part for part in level if isinstance(part, LeaseStmt) and part.binding.text == bound.name]
    decides = [part for part in level if isinstance(part, DecideStmt)]
    if len(top) > 1:
        _report_second(command, bound, top[0], top[1])
        return
    first = top[0] if top else None
    for decide in decides:
        inner = [operation for arm in decide.arms for operation in _operations(arm, bound)]
        for arm in decide.arms:
            operations = _operations(arm, bound)
            earlier = first or (operations[0] if len(operations) > 1 else None)
            if operations and earlier is not None:
                _report_second(command, bound, earlier, operations[-1])
                return
        if inner and decide.binding.text == bound.name:
            _check_arms(command, bound, decide)
        first = first or (inner[0] if inner else None)
    if first is None and bound.name not in command.bypassed and not _is_doubtful(command):
        _report_bypass(command, bound)


def _operations(arm: Arm, bound: Bound) -> list[LeaseStmt]:
    return [part for part in arm.body if isinstance(part, LeaseStmt) and part.binding.text == bound.name]


def _is_doubtful(command: CommandDraft) -> bool:
    """Whether a lease operation names a row that is not bound at all, and may be the one that is missed elsewhere."""
    names = {bound.name for bound in command.rows}
    bodies = [command.decl.body, () if command.decl.loop is None else command.decl.loop.body]
    bodies += [arm.body for body in tuple(bodies) for part in body if isinstance(part, DecideStmt) for arm in part.arms]
    return any(isinstance(part, LeaseStmt) and part.binding.text not in names for body in bodies for part in body)


def _check_arms(command: CommandDraft, bound: Bound, decide: DecideStmt) -> None:
    for arm in decide.arms:
        is_nested = any(isinstance(part, DecideStmt) for part in arm.body)  # which is a mistake of its own
        if arm.none is None and not is_nested and not _operations(arm, bound):
            message = f"this arm changes `{bound.name}` without a lease operation"
            help_text = "every `apply` arm has one, also an empty arm; an arm that changes nothing is `none Outcome {}`"
            command.collector.error("RDB-C427", message, arm_head(arm), help=help_text)


def _report_second(command: CommandDraft, bound: Bound, first: LeaseStmt, second: LeaseStmt) -> None:
    message = f"a second lease operation on `{bound.name}` on one path through the command"
    related = (Related("the first one", first.operation.span),)
    help_text = "keep one of the two"
    command.collector.error("RDB-C428", message, second.operation.span, related=related, help=help_text)


def _report_outside(command: CommandDraft, bound: Bound) -> None:
    loop, name = command.decl.loop, bound.entity.plan.name
    related = () if loop is None else (Related("the loop", loop.item.span),)
    message = f"`{name}` has a lease, and a lease operation on `{bound.name}` would run once for each item or never"
    help_text = f"bind it inside the loop by a field of the item, or change `{name}` in a command of its own"
    command.collector.error("RDB-C552", message, bound.statement.name.span, related=related, help=help_text)


def _report_bypass(command: CommandDraft, bound: Bound) -> None:
    workflow = bound.workflow
    if workflow is None or workflow.lease is None:
        return
    message = f"`{command.decl.name.text}` changes `{bound.name}` around the lease of `{workflow.entity}`"
    help_text = (
        f"add a lease operation on `{bound.name}`, such as `lease fence {workflow.lease.name} on {bound.name} …`, "
        f"or `lease unheld …` for a row that nobody holds; or one in every arm of `decide {bound.name}`"
    )
    command.collector.error("RDB-C426", message, bound.statement.name.span, help=help_text)
