"""The body of a command: its statements in source order, the arms of a decide, and the answers at the end.

Each statement goes to the module of its family; here stands only their order and what is known between them. Payloads
of `return` and `emit` show rows as committed, so they are lowered when the effects around them are through.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from riffdb.compiler.bindings import lower_binding
from riffdb.compiler.effects import lower_emit, lower_set, lower_transition
from riffdb.compiler.expressions import lower_condition
from riffdb.compiler.initializing import lower_initialize
from riffdb.compiler.leases import lower_lease
from riffdb.compiler.operands import arm_head, bound_row
from riffdb.compiler.path import Bound, CommandDraft, Path, committed, failed, now, unset_fields
from riffdb.compiler.scope import Facts
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import ArmPlan, DecideStep, OutcomeUse, RequireStep, Step
from riffdb.syntax.tree import (
    Arm,
    BindStmt,
    DecideStmt,
    EmitStmt,
    LeaseStmt,
    Loop,
    Outcome,
    RequireStmt,
    ReturnStmt,
    SetStmt,
    Stmt,
    TransitionStmt,
)


@dataclass(slots=True)
class Block:
    """The steps of a body or of an arm; an emitted event waits, under its position, for the effects to be through."""

    steps: list[Step | None]
    emits: list[tuple[int, EmitStmt, dict[str, Bound]]]


def lower_statements(
    command: CommandDraft, path: Path, statements: Sequence[Stmt], arm: DecideStmt | None, rest: Sequence[Stmt]
) -> tuple[Step, ...]:
    """Lower a body, or an arm's; `rest` are the statements that run after it. The path is left at its end."""
    block = Block([], [])
    for position, statement in enumerate(statements):
        if isinstance(statement, EmitStmt):
            block.emits.append((position, statement, dict(path.bound)))
            block.steps.append(None)
        else:
            block.steps.append(_statement(command, path, statement, arm, (*statements[position + 1 :], *rest)))
    for position, statement, visible in block.emits:
        at_end = replace(path, bound=visible)
        scope = committed(command, at_end, lasting(path.known, rest))
        block.steps[position] = lower_emit(command, at_end, statement, scope)
    return tuple(step for step in block.steps if step is not None)


def _statement(
    command: CommandDraft, path: Path, statement: Stmt, arm: DecideStmt | None, rest: Sequence[Stmt]
) -> Step | None:
    match statement:
        case BindStmt(kind="init_or_mutate"):
            return lower_initialize(command, path, statement, lower_binding(command, path, statement, arm))
        case BindStmt():
            return lower_binding(command, path, statement, arm)
        case RequireStmt():
            return _require(command, path, statement)
        case SetStmt():
            return lower_set(command, path, statement, arm)
        case TransitionStmt():
            return lower_transition(command, path, statement, arm)
        case LeaseStmt():
            return lower_lease(command, path, statement, arm)
        case DecideStmt() if arm is None:
            return _decide(command, path, statement, rest)
        case DecideStmt():
            message = "an arm has no `decide` of its own"
            command.collector.error(
                "RDB-C521", message, statement.binding.span, help="make it further arms of the outer one"
            )
    return None


def lasting(known: Facts, rest: Sequence[Stmt]) -> Facts:
    """What is still known of the rows when the statements after this point have run."""
    touched = set()
    for statement in rest:
        if isinstance(statement, SetStmt | TransitionStmt | LeaseStmt):
            touched.add(statement.binding.text)
        elif isinstance(statement, DecideStmt):
            for arm in statement.arms:
                for part in arm.body:
                    if isinstance(part, SetStmt | TransitionStmt | LeaseStmt):
                        touched.add(part.binding.text)
    return frozenset(fact for fact in known if fact[0] != "field" or fact[1] not in touched)


def _require(command: CommandDraft, path: Path, statement: RequireStmt) -> RequireStep | None:
    named = command.requires.add(statement.name)
    condition = lower_condition(statement.condition, now(command, path), command.collector)
    scope = failed(command, path, condition=condition)
    if condition is None:
        scope = replace(scope, trusting=True)
    otherwise = command.outcomes.use(statement.otherwise, scope, success=False)
    if condition is None:
        path.trusting = True
        return None
    path.learn(condition, holds=True)
    return None if otherwise is None or not named else RequireStep(statement.name.text, condition, otherwise)


# --- decide ------------------------------------------------------------------------------------------------------


def _decide(command: CommandDraft, path: Path, statement: DecideStmt, rest: Sequence[Stmt]) -> DecideStep | None:
    bound = bound_row(command, path, statement.binding)
    _check_order(command, statement)
    arms: list[ArmPlan | None] = []
    ways: list[Path] = []
    ahead = path.copy()
    for arm in statement.arms:
        way = ahead.copy()
        arms.append(_arm(command, way, ahead, arm, statement, rest))
        if arm.none is None:
            ways.append(way)
            inner = {name for name in way.bound if name not in path.bound}
            command.hidden |= {name: f"`{name}` is bound in an arm, and is not there outside it" for name in inner}
    path.merge(ways)
    whole = tuple(arm for arm in arms if arm is not None)
    return None if bound is None or len(whole) < len(arms) else DecideStep(bound.name, whole)


def _arm(
    command: CommandDraft, way: Path, ahead: Path, arm: Arm, decide: DecideStmt, rest: Sequence[Stmt]
) -> ArmPlan | None:
    condition = None
    if arm.condition is not None:
        condition = lower_condition(arm.condition, now(command, ahead), command.collector)
        if condition is None:
            way.trusting = ahead.trusting = True
        else:
            way.learn(condition, holds=True)
            ahead.learn(condition, holds=False)
    broken = arm.condition is not None and condition is None
    if arm.none is not None:
        none = command.outcomes.use(arm.none, failed(command, way), success=False)
        return None if none is None or broken else ArmPlan(condition, none=none)
    steps = lower_statements(command, way, arm.body, decide, rest)
    check_created(command, way, [bound for name, bound in way.bound.items() if name not in ahead.bound])
    answer = None
    if arm.answer is not None:
        if command.loop is not None:
            _report_inner_answer(command, arm.answer, command.loop)
            return None
        answer = answered(command, way, arm.answer.outcome, lasting(way.known, rest))
        broken = broken or answer is None
    return None if broken else ArmPlan(condition, steps, None, answer)


def _report_inner_answer(command: CommandDraft, answer: ReturnStmt, loop: Loop) -> None:
    command.collector.error(
        "RDB-C553",
        "a bulk command has one answer, and this arm may be taken for one item and not for another",
        answer.outcome.name.span,
        related=(Related("the loop", loop.item.span),),
        help="take it out, or make it a failure with `none`",
    )


def _check_order(command: CommandDraft, statement: DecideStmt) -> None:
    for arm in statement.arms[:-1]:
        if arm.condition is None:
            message = "no arm after `otherwise` is ever reached"
            command.collector.error("RDB-C520", message, arm_head(arm), help="make it the last arm")
            return
    if not statement.arms or statement.arms[-1].condition is not None:
        message = f"the last arm of `decide {statement.binding.text}` is `otherwise`"
        help_text = "add `otherwise apply { … }` or `otherwise none Outcome {}`"
        command.collector.error("RDB-C519", message, statement.binding.span, help=help_text)


# --- answers -----------------------------------------------------------------------------------------------------


def answered(command: CommandDraft, path: Path, outcome: Outcome, known: Facts) -> OutcomeUse | None:
    """A success, whose payload shows rows as committed."""
    return command.outcomes.use(outcome, committed(command, path, known), success=True)


def check_created(command: CommandDraft, path: Path, rows: Sequence[Bound]) -> None:
    """Report every created row that some path through the body leaves without a value that it needs."""
    for bound in () if command.sets_unknown else rows:
        if bound.statement.kind != "create" or bound.workflow_broken or bound.entity.broken:
            continue
        lease = None if bound.workflow is None else bound.workflow.lease
        counters = [] if lease is None else [name for name in (lease.fencing_token, lease.attempts) if name is not None]
        assigned = path.assigned.get(bound.name, set())
        unset = [name for name in unset_fields(bound, path) if name not in counters]
        _report_unset(command, bound, unset)
        _report_counters(command, bound, [name for name in counters if name not in assigned])


def _report_unset(command: CommandDraft, bound: Bound, unset: Sequence[str]) -> None:
    if not unset:
        return
    message = f"`{bound.name}` is created without " + ", ".join(f"`{name}`" for name in unset)
    help_text = f"add `set {bound.name}.{unset[0]} = …` on every path, or give the field a default or an optional type"
    command.collector.error("RDB-C507", message, bound.statement.name.span, help=help_text)


def _report_counters(command: CommandDraft, bound: Bound, unset: Sequence[str]) -> None:
    if unset:
        named = " and ".join(f"`{name}`" for name in unset)
        message = f"`{bound.name}` is created without {named}, which its lease counts from 0"
        lines = " and ".join(f"`set {bound.name}.{name} = 0`" for name in unset)
        command.collector.error("RDB-C419", message, bound.statement.name.span, help=f"add {lines}")
