"""Effects but for leases: fields that are set, events that are emitted, transitions of a workflow's state.

Proven here: nothing sets what is not a command's to set (key, computed, revision, a workflow's state, a lease's
fields); a transition stands on an exact revision that the caller gives; an event lies in the command's partition.
Absent: when an emitted payload is lowered, which `body` sees to, since payloads show rows as committed.
"""

from riffdb.compiler.bindings import check_partition, keys_replaced
from riffdb.compiler.collector import replace as put
from riffdb.compiler.draft import EventDraft
from riffdb.compiler.expressions import lower, secrets_of
from riffdb.compiler.linking import NameScope
from riffdb.compiler.operands import changed_row, direct_inputs, outcome_clauses, touched_row
from riffdb.compiler.path import Bound, CommandDraft, Path, now
from riffdb.compiler.scope import Scope
from riffdb.core.diagnostics import Related
from riffdb.core.types import U64
from riffdb.plan.commands import EmitStep, PayloadPlan, SetStep, TransitionStep
from riffdb.plan.declarations import FieldPlan, WorkflowPlan
from riffdb.plan.expressions import Constant, Expression, Input, Item
from riffdb.syntax.tree import DecideStmt, EmitStmt, LiteralExpr, Name, PayloadItem, SetStmt, TransitionStmt

# --- set ---------------------------------------------------------------------------------------------------------


def lower_set(command: CommandDraft, path: Path, statement: SetStmt, arm: DecideStmt | None) -> SetStep | None:
    """Set a field of a row that the command changes or creates."""
    bound = touched_row(command, path, statement.binding, arm)
    if bound is None:
        command.sets_unknown = True
        return None
    if not _is_settable(command, bound, statement):
        return None
    scope = now(command, path)  # in which a created row's field has no value yet
    if bound.statement.kind == "create":
        path.assigned[bound.name].add(statement.field.text)
    found = settable_value(command, bound, statement, scope)
    if found is None:
        return None
    field, value = found
    path.change(bound, {field.name: not value.type.optional})
    return SetStep(bound.name, field.name, value)


def settable_value(
    command: CommandDraft, bound: Bound, statement: SetStmt, scope: Scope
) -> tuple[FieldPlan, Expression] | None:
    """The field that a command may set, and the value that it gets; what is wrong with either is reported."""
    field = next((part for part in bound.entity.plan.fields if part.name == statement.field.text), None)
    if field is None:
        _report_unsettable(command, bound, statement.field)
        command.sets_unknown = True
        return None
    if not _is_commands_own(command, bound, statement):
        return None
    value = lower(statement.value, scope, field.type, command.collector)
    if value is None or not _keeps_secrets(command, field, value, scope, statement):
        return None
    return field, value


def _is_settable(command: CommandDraft, bound: Bound, statement: SetStmt) -> bool:
    kind = bound.statement.kind
    if kind in ("mutate", "create", "init_or_mutate"):
        return True
    message = f"`{bound.name}` is bound by `{kind}`, so nothing in it can be set"
    help_text = "a row that is deleted keeps its values" if kind == "delete" else "bind it by `mutate`"
    related = (Related("bound here", bound.statement.name.span),)
    command.collector.error("RDB-C508", message, statement.binding.span, related=related, help=help_text)
    return False


def _report_unsettable(command: CommandDraft, bound: Bound, name: Name) -> None:
    plan, collector = bound.entity.plan, command.collector
    if any(part.name == name.text for part in plan.key):
        message = f"`{name.text}` is part of the key of `{plan.name}`, and a key never changes"
        collector.error("RDB-C509", message, name.span)
    elif any(part.name == name.text for part in plan.computed):
        message = f"`{name.text}` is computed from other fields and never set"
        related = (Related("declared here", bound.entity.places[name.text.lower()].span),)
        collector.error("RDB-C510", message, name.span, related=related)
    elif name.text == "revision":
        message = "a revision counts the changes of its row and is never set"
        collector.error("RDB-C511", message, name.span, help="leave it out")
    elif name.text not in bound.entity.broken:
        candidates = [part.name for part in plan.fields]
        collector.unknown("RDB-C206", f"`{plan.name}` has no field `{name.text}`", name, candidates)


def _is_commands_own(command: CommandDraft, bound: Bound, statement: SetStmt) -> bool:
    """Whether the field is a command's to set: not the state, and of a lease only the counters of a new row, to 0."""
    name, workflow = statement.field.text, bound.workflow
    if workflow is None:
        return True
    if name == workflow.state:
        created = bound.statement.kind != "mutate"
        message = f"`{name}` is the state of the workflow `{workflow.name}`, which transitions alone change"
        help_text = "leave it out; `initial` gives it" if created else "use a transition of the workflow"
        command.collector.error("RDB-C417", message, statement.field.span, help=help_text)
        return False
    lease = workflow.lease
    if lease is None or name not in (lease.owner, lease.expires_at, lease.fencing_token, lease.attempts):
        return True
    if bound.statement.kind != "create" or name in (lease.owner, lease.expires_at):
        created = bound.statement.kind == "create"
        message = f"`{name}` belongs to the lease `{lease.name}`, whose operations alone change it"
        help_text = "leave it out; a new row is not leased" if created else "use a lease operation"
        command.collector.error("RDB-C418", message, statement.field.span, help=help_text)
        return False
    value = statement.value
    if isinstance(value, LiteralExpr) and value.kind == "int" and value.value == 0:
        return True
    message = f"`{name}` counts from 0, so a new row sets it to the literal 0"
    command.collector.error("RDB-C420", message, statement.value.span, fix=put(statement.value.span, "0"))
    return False


def _keeps_secrets(
    command: CommandDraft, field: FieldPlan, value: Expression, scope: Scope, statement: SetStmt
) -> bool:
    if field.secret:
        is_given = isinstance(value, Input | Item) and bool(secrets_of(value, scope))
        if is_given or (isinstance(value, Constant) and value.value is None):
            return True
        message = f"`{field.name}` is secret, so it is set from an `input secret` alone"
        command.collector.error("RDB-C217", message, statement.value.span)
        return False
    for name in secrets_of(value, scope):
        message = f"`{name}` is secret, and `{field.name}` would show it"
        command.collector.error("RDB-C217", message, statement.value.span, help=f"declare `field secret {field.name}`")
        return False
    return True


# --- emit --------------------------------------------------------------------------------------------------------


def lower_emit(command: CommandDraft, path: Path, statement: EmitStmt, scope: Scope) -> EmitStep | None:
    """Emit an event; its payload gives every field that is not optional."""
    name = statement.event.text
    command.mutates = command.mutates or statement.event.span
    event = command.draft.events.get(name)
    if event is None:
        command.is_broken = True
        if name not in command.draft.declared.events:
            message = f"there is no event `{name}`"
            command.collector.unknown("RDB-C104", message, statement.event, command.draft.declared.events)
        return None
    items = _emitted_items(command, event, statement)
    values = {} if items is None else _emitted_values(command, event, items, scope)
    if items is None or values is None:
        command.is_broken = True
        return None
    partition = keys_replaced(path, values[event.plan.partition])
    check_partition(command, partition, items[event.plan.partition].value.span)
    payload = tuple(
        PayloadPlan(part.name, values.get(part.name, Constant(part.type, None))) for part in event.plan.fields
    )
    return EmitStep(name, payload)


def _emitted_items(command: CommandDraft, event: EventDraft, statement: EmitStmt) -> dict[str, PayloadItem] | None:
    names = NameScope("a payload value", command.collector)
    items: dict[str, PayloadItem] = {}
    broken = False
    for item in statement.payload.items:
        if not names.add(item.name):
            broken = True
        elif item.name.text in event.types:
            items[item.name.text] = item
        else:
            broken = True
            if item.name.text not in event.broken:
                message = f"`{event.plan.name}` has no field `{item.name.text}`"
                command.collector.unknown("RDB-C518", message, item.name, event.types)
    missing = [part for part in event.plan.fields if part.name not in items and not part.type.optional]
    if missing and not broken:
        wanted = ", ".join(f"`{part.name}`" for part in missing)
        message = f"`{event.plan.name}` is emitted without {wanted}"
        command.collector.error("RDB-C517", message, statement.event.span, help="give every field that is not optional")
    return None if broken or missing else items


def _emitted_values(
    command: CommandDraft, event: EventDraft, items: dict[str, PayloadItem], scope: Scope
) -> dict[str, Expression] | None:
    values: dict[str, Expression] = {}
    for name, item in items.items():
        value = lower(item.value, scope, event.types[name], command.collector)
        if value is None:
            continue
        secrets = secrets_of(value, scope)
        if secrets:
            message = f"`{secrets[0]}` is secret and stands in no event"
            command.collector.error("RDB-C217", message, item.value.span, help="leave it out")
        else:
            values[name] = value
    return values if values.keys() == items.keys() else None


# --- transitions -------------------------------------------------------------------------------------------------


def lower_transition(
    command: CommandDraft, path: Path, statement: TransitionStmt, arm: DecideStmt | None
) -> TransitionStep | None:
    """Move the state of a row, if it is still at the revision that the caller has seen."""
    bound = changed_row(command, path, statement, arm)
    workflow = None if bound is None else _workflow_of(command, bound, statement)
    place = statement.transition
    operands = direct_inputs(command, "transition", statement.operands, {"revision": U64}, place)
    outcomes = outcome_clauses(command, path, "transition", statement.outcomes, ("stale", "illegal"), place)
    if bound is None or workflow is None or operands is None or outcomes is None:
        return None
    path.change(bound, {workflow.state: True})
    return TransitionStep(workflow.name, place.text, bound.name, operands["revision"], **outcomes)


def _workflow_of(command: CommandDraft, bound: Bound, statement: TransitionStmt) -> WorkflowPlan | None:
    workflow, name = bound.workflow, statement.transition
    if workflow is None:
        if not bound.workflow_broken:
            message = f"`{bound.entity.plan.name}` has no workflow, so it has no transitions"
            help_text = f"declare a `workflow` with `entity {bound.entity.plan.name}`"
            command.collector.error("RDB-C431", message, name.span, help=help_text)
        return None
    candidates = [transition.name for transition in workflow.transitions]
    if name.text in candidates:
        return workflow
    message = f"the workflow `{workflow.name}` has no transition `{name.text}`"
    command.collector.unknown("RDB-C430", message, name, candidates)
    return None
