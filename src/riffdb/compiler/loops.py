"""The loop of a bulk command: its list, its item, and a body that runs once for each item or for none.

What the body learns holds for one item alone, and what it changes of a row that is bound above it may have been changed
before by another item; so the body is lowered with that in mind, and nothing of it is in sight afterwards.
Proven here: an answer has room for the successor revisions of all items. Absent: the rules of single statements.
"""

from collections.abc import Sequence

from riffdb.compiler.body import check_created, lasting, lower_statements
from riffdb.compiler.path import Bound, CommandDraft, Path
from riffdb.compiler.scope import ItemScope
from riffdb.core.diagnostics import Related
from riffdb.core.limits import WORKFLOW_REVISIONS_MAX
from riffdb.core.types import Type
from riffdb.plan.commands import ForStep
from riffdb.plan.declarations import LeasePlan
from riffdb.syntax.tree import DecideStmt, LeaseStmt, Loop, Name, SetStmt, Stmt, TransitionStmt


def lower_loop(command: CommandDraft, path: Path, loop: Loop) -> ForStep | None:
    """The loop as a step; the path is left behind it."""
    items = _items(command, loop.items)
    fresh = _fresh_item(command, loop.item)
    if items is None or not fresh:
        command.broken.add(loop.item.text)  # so that the body is still checked for what does not rest on the item
    else:
        command.item = _item(command, loop, items)
        command.items_max = items.bound
    command.loop = loop
    inner = path.copy()
    _forget_changed(inner, loop.body)
    steps = lower_statements(command, inner, loop.body, None, _effects_above(path, loop.body))
    check_created(command, inner, [bound for name, bound in inner.bound.items() if name not in path.bound])
    command.loop = command.item = None
    _leave(command, path, inner, loop, at_least_once=items is not None and items.scale > 0)
    if items is None:
        return None
    _check_revisions(command, loop, items)
    return ForStep(loop.item.text, loop.items.text, steps) if fresh else None


def _items(command: CommandDraft, name: Name) -> Type | None:
    """The type of the list input that the loop runs over."""
    plan = command.inputs.get(name.text)
    if plan is not None and plan.type.kind == "list":
        return plan.type
    if name.text in command.broken:
        return None
    lists = [part.name for part in command.inputs.values() if part.type.kind == "list"]
    if plan is None:
        message = f"a loop runs over a list input, and there is no input `{name.text}`"
        command.collector.unknown("RDB-C550", message, name, lists, help="declare it, such as `list<uuid, 1..64>`")
        return None
    command.collector.error(
        "RDB-C550",
        f"a loop runs over a list input, and `{name.text}` is `{plan.type}`",
        name.span,
        related=(Related("declared here", command.names.names[name.text.lower()].span),),
        help="give the input a type such as `list<uuid, 1..64>`",
    )
    return None


def _fresh_item(command: CommandDraft, name: Name) -> bool:
    if name.text in command.draft.declared.enums:
        message = f"`{name.text}` is an enum, and an item needs a name of its own"
        command.collector.error("RDB-C516", message, name.span)
        return False
    return command.names.add(name)


def _item(command: CommandDraft, loop: Loop, items: Type) -> ItemScope:
    element, secret = items.element, command.inputs[loop.items.text].secret
    assert element is not None, "a list has items"
    if element.kind != "record":
        return ItemScope(loop.item.text, "", {"": element}, secret=secret)
    record = command.draft.records[element.name]
    return ItemScope(loop.item.text, element.name, record.types, record.broken, secret)


# --- what an item leaves to the next -----------------------------------------------------------------------------


def _forget_changed(path: Path, body: Sequence[Stmt]) -> None:
    """Let the path know of the rows above the loop only what still holds when items before this one were done."""
    path.known = lasting(path.known, body)
    for bound in path.bound.values():
        known, before = path.known, path.before
        path.change(bound, dict.fromkeys(_changed_fields(bound, body), False))
        path.known, path.before = known, before


def _effects_above(path: Path, body: Sequence[Stmt]) -> list[Stmt]:
    """The effects of the body on rows that are bound above the loop, which run again after each item."""
    found: list[Stmt] = []
    for statement in body:
        if isinstance(statement, SetStmt | TransitionStmt | LeaseStmt) and statement.binding.text in path.bound:
            found.append(statement)
        elif isinstance(statement, DecideStmt):
            for arm in statement.arms:
                found.extend(_effects_above(path, arm.body))
    return found


def _changed_fields(bound: Bound, body: Sequence[Stmt]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case SetStmt() if statement.binding.text == bound.name:
                found.add(statement.field.text)
            case TransitionStmt() if statement.binding.text == bound.name and bound.workflow is not None:
                found.add(bound.workflow.state)
            case LeaseStmt() if statement.binding.text == bound.name and bound.workflow is not None:
                found.update(_lease_fields(bound.workflow.lease))
            case DecideStmt():
                for arm in statement.arms:
                    found |= _changed_fields(bound, arm.body)
    return found


def _lease_fields(lease: LeasePlan | None) -> set[str]:
    if lease is None:
        return set()
    names = (lease.owner, lease.expires_at, lease.fencing_token, lease.attempts)
    return {name for name in names if name is not None}


def _leave(command: CommandDraft, path: Path, inner: Path, loop: Loop, *, at_least_once: bool) -> None:
    """Go on behind the loop: nothing of it is in sight, and of the rows above it only what holds with any items."""
    for name in inner.bound:
        if name not in path.bound:
            command.hidden[name] = f"`{name}` is bound in the loop, once for each item, and is not there outside it"
    if loop.item.text not in command.broken:
        command.hidden[loop.item.text] = f"`{loop.item.text}` is one item of the loop, and is not there outside it"
    outside = frozenset(fact for fact in inner.known if fact[0] == "field" and fact[1] in path.bound)
    path.written |= {part for part in inner.written if part[0] in path.bound}
    path.trusting = path.trusting or inner.trusting
    if at_least_once:
        path.known = outside | frozenset(fact for fact in path.known if fact[0] != "field")
        for name in path.assigned:
            path.assigned[name] |= inner.assigned[name]
    else:
        path.known &= outside | frozenset(fact for fact in path.known if fact[0] != "field")


# --- successor revisions -----------------------------------------------------------------------------------------


def _check_revisions(command: CommandDraft, loop: Loop, items: Type) -> None:
    """Report a loop that may change more rows of workflows than an answer tells of."""
    each = _at_most(command, loop.body, loop)
    above = sum(1 for bound in command.rows if bound.loop is None and _has_revision(bound))
    if each == 0 or above + each * items.bound <= WORKFLOW_REVISIONS_MAX:
        return
    message = (
        f"an answer tells the successor revisions of at most {WORKFLOW_REVISIONS_MAX} rows, and this loop may change "
        f"{each * items.bound + above}"
    )
    most = (WORKFLOW_REVISIONS_MAX - above) // each
    help_text = f"declare `{loop.items.text}` with at most {most} items"
    related = (Related("the list", command.names.names[loop.items.text.lower()].span),)
    command.collector.error("RDB-C554", message, loop.items.span, related=related, help=help_text)


def _at_most(command: CommandDraft, body: Sequence[Stmt], loop: Loop) -> int:
    """How many rows of workflows one run through the statements changes at most."""
    names = {id(bound.statement) for bound in command.rows if bound.loop is loop and _has_revision(bound)}
    count = sum(1 for statement in body if id(statement) in names)
    for statement in body:
        if isinstance(statement, DecideStmt):
            count += max((_at_most(command, arm.body, loop) for arm in statement.arms), default=0)
    return count


def _has_revision(bound: Bound) -> bool:
    return bound.workflow is not None and bound.statement.kind in ("create", "mutate", "init_or_mutate")
