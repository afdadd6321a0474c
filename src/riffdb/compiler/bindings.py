"""Bindings: which rows a command reads and writes, by keys that are known before anything is evaluated.

Proven here: every binding lies in the one partition that the inputs name; a key rests on inputs and on fields of
earlier rows that nothing has changed; no two bindings are visibly the same row. Keys are lowered into storage order.
Absent: what is done to the rows (`effects`, `leases`).
"""

from dataclasses import replace

from riffdb.compiler.draft import EntityDraft
from riffdb.compiler.expressions import lower, rebuilt
from riffdb.compiler.path import Bound, CommandDraft, Path, failed, found, now
from riffdb.core.diagnostics import Related
from riffdb.core.spans import Span
from riffdb.plan.commands import BindStep, OutcomeUse
from riffdb.plan.expressions import Constant, Expression, Field, Input, Revision, leaves
from riffdb.syntax.tree import BindStmt, DecideStmt, Expr


def lower_binding(command: CommandDraft, path: Path, statement: BindStmt, arm: DecideStmt | None) -> BindStep | None:
    """Bind a row; on success its name stands in the path from here on."""
    bound = _bound(command, path, statement, arm)
    if bound is None:
        command.broken.add(statement.name.text)
        command.is_broken = True
        return None
    otherwise = _otherwise(command, path, bound)
    path.bound[bound.name] = bound
    command.rows.append(bound)
    if statement.kind == "create":
        path.assigned[bound.name] = set()
    if otherwise is None and statement.kind not in ("maybe", "init_or_mutate"):
        return None
    return BindStep(statement.kind, bound.name, bound.entity.plan.name, bound.key, otherwise, bound.stage)


def _bound(command: CommandDraft, path: Path, statement: BindStmt, arm: DecideStmt | None) -> Bound | None:
    fresh = _fresh_name(command, statement)
    if statement.kind in ("mutate", "delete", "create", "init_or_mutate"):
        command.mutates = command.mutates or statement.name.span
    draft, name = command.draft, statement.entity.text
    if name not in draft.declared.entities:
        message = f"there is no entity `{name}`"
        command.collector.unknown("RDB-C104", message, statement.entity, draft.declared.entities)
        return None
    entity = draft.entities.get(name)
    if entity is None or not _is_supported(command, statement):
        return None
    key = _key(command, path, statement, entity)
    if key is None or not fresh:
        return None
    workflow = draft.workflow_of(name)
    workflow_broken = draft.workflow_is_broken(name)
    stage = _stage(path, key)
    bound = Bound(statement, entity, key, stage, workflow, workflow_broken, arm)
    _check_partition(command, bound)
    _check_same_row(command, path, bound)
    _check_workflow(command, bound)
    return bound


def _fresh_name(command: CommandDraft, statement: BindStmt) -> bool:
    name = statement.name
    if name.text in command.draft.declared.enums:
        message = f"`{name.text}` is an enum, and a binding needs a name of its own"
        command.collector.error("RDB-C516", message, name.span)
        return False
    return command.names.add(name)


def _is_supported(command: CommandDraft, statement: BindStmt) -> bool:
    collector = command.collector
    for breach in statement.breaches:
        collector.unsupported(f"`{breach.kind}`", breach.name.span)
    if statement.kind == "init_or_mutate":
        workflow = command.draft.workflow_of(statement.entity.text)
        if workflow is not None and workflow.lease is not None:
            message = f"`{statement.entity.text}` has a lease, so its rows are created and changed by separate commands"
            collector.error("RDB-C422", message, statement.entity.span, help="use `create` and `mutate`")
            return False
    if statement.unique is not None:
        collector.unsupported("a look-up by a unique", statement.unique.span)
        return False
    return True


# --- keys --------------------------------------------------------------------------------------------------------


def _key(command: CommandDraft, path: Path, statement: BindStmt, entity: EntityDraft) -> tuple[Expression, ...] | None:
    parts = entity.plan.key
    if len(statement.key) != len(parts):
        wanted = ", ".join(f"{part.name}: {part.type}" for part in parts)
        message = (
            f"the key of `{entity.plan.name}` is ({wanted}), so it takes {len(parts)} values, not {len(statement.key)}"
        )
        command.collector.error("RDB-C506", message, _arguments_span(statement))
        return None
    scope = now(command, path)
    refusal = "keys are known before the time is; take the value as an input"
    scope = replace(scope, time=False, refused={**scope.refused, "tx.time": refusal})
    values: dict[str, Expression] = {}
    for part, written in zip(parts, statement.key, strict=True):
        value = lower(written, scope, part.type, command.collector)
        if value is not None and _is_known_early(command, path, value, written):
            values[part.name] = keys_replaced(path, value)
    if len(values) < len(parts):
        return None
    return tuple(values[name] for name in entity.plan.storage_key)


def _arguments_span(statement: BindStmt) -> Span:
    if not statement.key:
        return statement.entity.span
    return statement.key[0].span.to(statement.key[-1].span)


def _is_known_early(command: CommandDraft, path: Path, value: Expression, written: Expr) -> bool:
    """Whether the value can be had before the command is evaluated, when its rows are read."""
    for leaf in leaves(value):
        if isinstance(leaf, Field | Revision) and _is_changed(path, leaf):
            message = f"a key is known before anything is changed, and this rests on an effect on `{leaf.binding}`"
            command.collector.error("RDB-C522", message, written.span, help="bind the row before the effect")
            return False
    return True


def _is_changed(path: Path, leaf: Field | Revision) -> bool:
    is_created = path.bound[leaf.binding].may_be_new
    return is_created or (isinstance(leaf, Field) and (leaf.binding, leaf.name) in path.written)


def keys_replaced(path: Path, value: Expression) -> Expression:
    """The same value, with key fields of bound rows replaced by what these rows are bound by."""

    def replaced(leaf: Expression) -> Expression:
        if isinstance(leaf, Field) and leaf.binding in path.bound:
            return path.bound[leaf.binding].key_value(leaf.name) or leaf
        return leaf

    return rebuilt(value, replaced)


def _stage(path: Path, key: tuple[Expression, ...]) -> int:
    used = [
        path.bound[leaf.binding].stage for value in key for leaf in leaves(value) if isinstance(leaf, Field | Revision)
    ]
    return max(used) + 1 if used else 0


# --- one partition, no row twice ---------------------------------------------------------------------------------


def _check_partition(command: CommandDraft, bound: Bound) -> None:
    declared = [part.name for part in bound.entity.plan.key]
    span = bound.statement.key[declared.index(bound.entity.plan.partition)].span
    check_partition(command, bound.key[0], span)


def check_partition(command: CommandDraft, value: Expression, span: Span) -> None:
    """Hold a partition, with key fields replaced, against the command's; the first one becomes it."""
    if not all(isinstance(leaf, Input | Constant) for leaf in leaves(value)):
        message = "the partition of a command is known from its inputs alone, and this rests on a row or the time"
        command.collector.error("RDB-C505", message, span, help="take it as an input")
        command.is_broken = True
    elif command.partition is None or command.partition_span is None:
        command.partition, command.partition_span = value, span
    elif value != command.partition:
        command.collector.error(
            "RDB-C504",
            "a command is confined to one partition, and this names another one",
            span,
            related=(Related("the partition of this command", command.partition_span),),
            help="use the same input, or make a second command",
        )


def _check_same_row(command: CommandDraft, path: Path, bound: Bound) -> None:
    for other in path.bound.values():
        if other.entity.plan.name == bound.entity.plan.name and other.key == bound.key:
            command.collector.error(
                "RDB-C515",
                f"`{bound.name}` is the same row as `{other.name}`",
                bound.statement.name.span,
                related=(Related("bound first here", other.statement.name.span),),
                help=f"use `{other.name}` for both",
            )
            return


def _check_workflow(command: CommandDraft, bound: Bound) -> None:
    statement, workflow = bound.statement, bound.workflow
    if workflow is None:
        return
    if bound.may_be_new and workflow.initial is None:
        decl = command.draft.declared.workflows[workflow.name]
        command.collector.error(
            "RDB-C421",
            f"the workflow `{workflow.name}` has no `initial`, so no row of `{workflow.entity}` can be created",
            statement.entity.span,
            related=(Related("the workflow", decl.name.span),),
            help="add `initial` with the state that new rows begin in",
        )
    if bound.is_leased and bound.arm is not None:
        message = f"`{workflow.entity}` has a lease, so `{bound.name}` is not bound in an arm"
        help_text = f"bind it above `decide {bound.arm.binding.text}`, with its lease operation"
        command.collector.error("RDB-C440", message, statement.name.span, help=help_text)


def _otherwise(command: CommandDraft, path: Path, bound: Bound) -> OutcomeUse | None:
    statement = bound.statement
    if statement.otherwise is None:
        return None
    if statement.kind == "create":
        scope = found(command, path, bound)
    else:
        scope = failed(command, path, missing=statement.name)
    return command.outcomes.use(statement.otherwise, scope, success=False, evidence=bound.is_leased)
