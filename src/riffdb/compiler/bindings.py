"""Bindings: which rows a command reads and writes, by keys that are known before anything is evaluated.

Proven here: every binding lies in the one partition that the inputs name; a key rests on inputs and on fields of
earlier rows that nothing has changed; no two bindings are visibly the same row. Keys are lowered into storage order.
Absent: what is done to the rows (`effects`, `leases`).
"""

from dataclasses import replace

from riffdb.compiler.breaches import lower_breaches
from riffdb.compiler.draft import EntityDraft
from riffdb.compiler.expressions import lower, rebuilt, secrets_of
from riffdb.compiler.path import Bound, CommandDraft, Path, failed, found, now
from riffdb.compiler.scope import Scope
from riffdb.core.diagnostics import Related
from riffdb.core.spans import Span
from riffdb.plan.commands import BindStep, OutcomeUse
from riffdb.plan.declarations import FieldPlan
from riffdb.plan.expressions import Constant, Expression, Field, Input, Item, Revision, leaves
from riffdb.syntax.tree import BindStmt, DecideStmt, Expr, UniqueMember


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
    breaches = lower_breaches(command, path, bound)
    if breaches is None or (otherwise is None and statement.kind not in ("maybe", "init_or_mutate")):
        return None
    unique = "" if statement.unique is None else statement.unique.text
    return BindStep(
        statement.kind,
        bound.name,
        bound.entity.plan.name,
        bound.key,
        otherwise,
        bound.stage,
        unique,
        breaches=breaches,
    )


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
    if entity is None or _is_leased_anew(command, statement):
        return None
    parts = _parts(command, statement, entity)
    values = None if parts is None else _values(command, path, statement, entity, parts)
    if parts is None or values is None or not fresh:
        return None
    by = entity.plan.storage_key if statement.unique is None else tuple(part.name for part in parts)
    key = tuple(values[name] for name in by)
    workflow = draft.workflow_of(name)
    workflow_broken = draft.workflow_is_broken(name)
    stage = _stage(path, key)
    bound = Bound(statement, entity, by, key, stage, workflow, workflow_broken, arm, command.loop)
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


def _is_leased_anew(command: CommandDraft, statement: BindStmt) -> bool:
    """Whether a leased row would be created and changed by one binding, which is reported."""
    workflow = command.draft.workflow_of(statement.entity.text)
    if statement.kind != "init_or_mutate" or workflow is None or workflow.lease is None:
        return False
    message = f"`{statement.entity.text}` has a lease, so its rows are created and changed by separate commands"
    command.collector.error("RDB-C422", message, statement.entity.span, help="use `create` and `mutate`")
    return True


# --- keys --------------------------------------------------------------------------------------------------------


def _parts(command: CommandDraft, statement: BindStmt, entity: EntityDraft) -> tuple[FieldPlan, ...] | None:
    """What a row is looked up by, as the contract declares it: the fields of the key, or of a unique."""
    name = statement.unique
    if name is None:
        return entity.plan.key
    unique = next((unique for unique in entity.plan.uniques if unique.name == name.text), None)
    if unique is not None:
        return tuple(FieldPlan(column, entity.types[column].required) for column in unique.columns)
    if not isinstance(entity.rule(name.text), UniqueMember):
        candidates = [unique.name for unique in entity.plan.uniques]
        message = f"`{entity.plan.name}` has no unique `{name.text}`"
        help_text = None if candidates else "look the row up by its key, or declare a `unique` in the entity"
        command.collector.unknown("RDB-C545", message, name, candidates, help=help_text)
    return None


def _values(
    command: CommandDraft, path: Path, statement: BindStmt, entity: EntityDraft, parts: tuple[FieldPlan, ...]
) -> dict[str, Expression] | None:
    if len(statement.key) != len(parts):
        wanted = ", ".join(f"{part.name}: {part.type}" for part in parts)
        what = "the key" if statement.unique is None else f"the unique `{statement.unique.text}`"
        message = (
            f"{what} of `{entity.plan.name}` is ({wanted}), so it takes {len(parts)} values, not {len(statement.key)}"
        )
        command.collector.error("RDB-C506", message, _arguments_span(statement))
        return None
    scope = now(command, path)
    refusal = "keys are known before the time is; take the value as an input"
    scope = replace(scope, time=False, refused={**scope.refused, "tx.time": refusal})
    values: dict[str, Expression] = {}
    for part, written in zip(parts, statement.key, strict=True):
        value = lower(written, scope, part.type, command.collector)
        if (
            value is not None
            and _is_open(command, value, scope, written)
            and _is_known_early(command, path, value, written)
        ):
            values[part.name] = keys_replaced(path, value)
    return None if len(values) < len(parts) else values


def _arguments_span(statement: BindStmt) -> Span:
    if not statement.key:
        return statement.entity.span
    return statement.key[0].span.to(statement.key[-1].span)


def _is_open(command: CommandDraft, value: Expression, scope: Scope, written: Expr) -> bool:
    """Whether a key may hold the value: keys are shown wherever their row is."""
    for name in secrets_of(value, scope):
        message = f"`{name}` is secret, and a key is seen by everyone who sees its row"
        command.collector.error("RDB-C217", message, written.span, help="find the row by another value")
        return False
    return True


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
    position = 0
    if bound.statement.unique is None:
        position = [part.name for part in bound.entity.plan.key].index(bound.entity.plan.partition)
    check_partition(command, bound.key[0], bound.statement.key[position].span)


def _is_given(command: CommandDraft, leaf: Expression) -> bool:
    """Whether the caller gives the value, or the contract does."""
    return isinstance(leaf, Constant) or (isinstance(leaf, Input) and leaf.name not in command.services)


def check_partition(command: CommandDraft, value: Expression, span: Span) -> None:
    """Hold a partition, with key fields replaced, against the command's; the first one becomes it."""
    if not all(_is_given(command, leaf) for leaf in leaves(value)):
        message = "the partition of a command is known from its inputs alone, and this rests on a row or the time"
        help_text = "take it as an input"
        if any(isinstance(leaf, Item) for leaf in leaves(value)):
            message = "the partition of a bulk command is one for all items, and this is taken from each of them"
            help_text = "take it as an input beside the list"
        elif any(isinstance(leaf, Input) for leaf in leaves(value)):
            message = "the partition of a command is known from its inputs alone, and this is made by the database"
        command.collector.error("RDB-C505", message, span, help=help_text)
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
        if other.entity.plan.name == bound.entity.plan.name and (other.by, other.key) == (bound.by, bound.key):
            command.collector.error(
                "RDB-C515",
                f"`{bound.name}` is the same row as `{other.name}`",
                bound.statement.name.span,
                related=(Related("bound first here", other.statement.name.span),),
                help=f"use `{other.name}` for both",
            )
            return
    _check_each_other(command, path, bound)


def _check_each_other(command: CommandDraft, path: Path, bound: Bound) -> None:
    """Report a row of a loop whose key is the same for every item."""
    loop = bound.loop
    if loop is None or command.items_max < 2:
        return
    for leaf in (leaf for value in bound.key for leaf in leaves(value)):
        is_of_loop = isinstance(leaf, Field | Revision) and path.bound[leaf.binding].loop is not None
        if isinstance(leaf, Item) or is_of_loop:
            return
    message = f"`{bound.name}` would be the same row for every item"
    help_text = "bind it above the loop"
    if bound.statement.kind in ("create", "delete"):
        help_text = f"give it a key that rests on `{loop.item.text}`, or bind it above the loop"
    command.collector.error(
        "RDB-C551",
        message,
        bound.statement.name.span,
        related=(Related("the loop", loop.item.span),),
        help=help_text,
    )


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
