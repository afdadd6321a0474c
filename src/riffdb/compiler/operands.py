"""What transitions and lease operations share: the row that they stand on, their clauses, and operands that are inputs.

The evidence of a caller (owner, token, revision, duration) is a direct input of the command, or a field of the item of
a loop: required, of the exact type, without a default, and no secret. Nothing computed and nothing filled in can then
stand for what the caller has seen.
"""

from collections.abc import Mapping
from dataclasses import replace

from riffdb.compiler.collector import remove
from riffdb.compiler.path import Bound, CommandDraft, Path, failed
from riffdb.compiler.scope import ItemScope
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.spans import Span
from riffdb.core.types import Type
from riffdb.plan.commands import OutcomeUse
from riffdb.plan.expressions import Input, Item
from riffdb.syntax.tree import (
    Arm,
    DecideStmt,
    LeaseStmt,
    MemberExpr,
    Name,
    NameExpr,
    OperandClause,
    OutcomeClause,
    TransitionStmt,
)


def bound_row(command: CommandDraft, path: Path, name: Name) -> Bound | None:
    """The row of a binding that a statement names."""
    if name.text in path.bound:
        return path.bound[name.text]
    if name.text in command.broken:
        return None
    if name.text in command.hidden:
        command.collector.error("RDB-C206", command.hidden[name.text], name.span)
    else:
        message = f"no row is bound as `{name.text}` here"
        command.collector.unknown("RDB-C205", message, name, path.bound)
    return None


def arm_head(arm: Arm) -> Span:
    """The beginning of an arm, up to what it does: `otherwise`, or `when` with its condition."""
    end = arm.span.start + len("otherwise") if arm.condition is None else arm.condition.span.end
    return replace(arm.span, end=end)


def touched_row(command: CommandDraft, path: Path, name: Name, arm: DecideStmt | None) -> Bound | None:
    """The row that an effect touches. In an arm that is the decided row, or one whose lease is seen to at the top."""
    bound = bound_row(command, path, name)
    if bound is None or arm is None or bound.arm is not None or not bound.is_leased or name.text == arm.binding.text:
        return bound
    if any(isinstance(part, LeaseStmt) and part.binding.text == name.text for part in command.level(bound)):
        return bound
    if command.changes_every_time(bound):  # which no lease operation can mend
        return bound
    if name.text in command.bypassed:
        return None
    command.bypassed.add(name.text)
    decided = f"`decide {arm.binding.text}`"
    message = f"an arm of {decided} cannot touch `{name.text}`, whose lease has no operation at the top level"
    help_text = f"add a lease operation on `{name.text}` at the top level, or decide on `{name.text}`"
    command.collector.error("RDB-C437", message, name.span, help=help_text)
    return None


def changed_row(
    command: CommandDraft, path: Path, statement: TransitionStmt | LeaseStmt, arm: DecideStmt | None
) -> Bound | None:
    """The row of a transition or lease operation: one that is bound to be changed."""
    bound = touched_row(command, path, statement.binding, arm)
    if bound is None or bound.statement.kind in ("mutate", "delete"):
        return bound
    message = f"`{bound.name}` is bound by `{bound.statement.kind}`, and this needs a row bound by `mutate` or `delete`"
    related = (Related("bound here", bound.statement.name.span),)
    command.collector.error("RDB-C429", message, statement.binding.span, related=related)
    return None


def direct_inputs(
    command: CommandDraft, operation: str, operands: tuple[OperandClause, ...], wanted: Mapping[str, Type], place: Name
) -> dict[str, Input | Item] | None:
    """The operands by their word, each a direct input; None if one is missing, too many or wrong."""
    given = {clause.word.text: clause for clause in operands}
    found: dict[str, Input | Item] = {}
    for word, clause in given.items():
        if word not in wanted:
            takes = ", ".join(f"`{name}`" for name in wanted)
            message = f"`{operation}` has no `{word}`; it takes {takes}"
            command.collector.error("RDB-C434", message, clause.span, fix=remove(clause.span, f"take `{word}` out"))
            continue
        value = _direct(command, clause, wanted[word])
        if value is not None:
            found[word] = value
    for word, kind in wanted.items():
        if word not in given:
            help_text = f"add `{word}` with an input of type `{kind}`"
            command.collector.error("RDB-C433", f"`{operation}` needs `{word}`", place.span, help=help_text)
    return found if found.keys() == wanted.keys() and given.keys() == wanted.keys() else None


def _direct(command: CommandDraft, clause: OperandClause, wanted: Type) -> Input | Item | None:
    value, item = clause.value, command.item
    if item is not None and isinstance(value, MemberExpr) and value.owner.text == item.name and item.record:
        return _direct_item(command, item, value.member, clause, wanted)
    if item is not None and isinstance(value, NameExpr) and value.name.text == item.name and not item.record:
        return _direct_item(command, item, Name("", value.span), clause, wanted)
    return _direct_input(command, clause, wanted)


def _direct_item(
    command: CommandDraft, item: ItemScope, field: Name, clause: OperandClause, wanted: Type
) -> Item | None:
    word, span, kind = clause.word.text, clause.value.span, item.fields.get(field.text)
    if kind is None:
        if field.text not in item.broken:
            message = f"`{item.record}` has no field `{field.text}`"
            command.collector.unknown("RDB-C206", message, field, item.fields)
        return None
    if kind != wanted:
        message = f"`{word}` takes a value of type `{wanted}`, and `{span.text}` is `{kind}`"
        place = "the items of the list" if not item.record else f"`{field.text}` in `{item.record}`"
        command.collector.error("RDB-C424", message, span, help=f"declare {place} as `{wanted}`")
        return None
    if item.secret:
        _report_secret(command, clause)
        return None
    return Item(wanted, field.text)


def _report_secret(command: CommandDraft, clause: OperandClause) -> None:
    message = f"`{clause.value.span.text}` is secret, and `{clause.word.text}` is kept where everyone sees it"
    command.collector.error("RDB-C217", message, clause.value.span, help="take it from an input that is not secret")


def _direct_input(command: CommandDraft, clause: OperandClause, wanted: Type) -> Input | None:
    value, word, collector = clause.value, clause.word.text, command.collector
    name = value.name if isinstance(value, NameExpr) else None
    if name is not None and name.text in command.broken:
        return None
    plan = None if name is None else command.inputs.get(name.text)
    if name is not None and plan is None and name.text.lower() not in command.names.names:
        collector.unknown("RDB-C205", f"nothing here is called `{name.text}`", name, command.inputs)
        return None
    if plan is None:
        message = f"`{word}` is what the caller gives, so it is an input as it is, not computed and not read from a row"
        help_text = f"declare an input of type `{wanted}` and name it here"
        if command.item is not None and command.item.record:
            help_text = f"declare an input, or a field of `{command.item.record}`, of type `{wanted}` and name it here"
        collector.error("RDB-C423", message, value.span, help=help_text)
        return None
    if plan.type != wanted:
        message = f"`{word}` takes an input of type `{wanted}`, and `{plan.name}` is `{plan.type}`"
        help_text = f"declare it as `input {plan.name}: {wanted}`"
        collector.error("RDB-C424", message, value.span, related=_declared(command, plan.name), help=help_text)
        return None
    if plan.has_default:
        message = f"`{word}` is what the caller gives, and `{plan.name}` has a default that would stand in for it"
        help_text = "leave the default out of the input"
        collector.error("RDB-C425", message, value.span, related=_declared(command, plan.name), help=help_text)
        return None
    if plan.secret:
        _report_secret(command, clause)
        return None
    return Input(wanted, plan.name)


def _declared(command: CommandDraft, name: str) -> tuple[Related, ...]:
    return (Related("declared here", command.names.names[name.lower()].span),)


def outcome_clauses(
    command: CommandDraft,
    path: Path,
    operation: str,
    clauses: tuple[OutcomeClause, ...],
    wanted: tuple[str, ...],
    place: Name,
) -> dict[str, OutcomeUse] | None:
    """The outcomes by their word; None if one is missing, too many or broken. All but `illegal` are evidence."""
    given = {clause.word.text for clause in clauses}
    end = clauses[-1].span if clauses else place.span
    for clause in clauses:
        if clause.word.text not in wanted:
            can = ", ".join(f"`{name}`" for name in wanted)
            message = f"`{operation}` never ends in `{clause.word.text}`; it can end in {can}"
            fix = remove(clause.span, f"take `{clause.word.text}` out")
            command.collector.error("RDB-C436", message, clause.word.span, fix=fix)
    for word in wanted:
        if word not in given:
            message = f"`{operation}` can end in `{word}`, and no outcome is named for it"
            text = f"{word} {SUGGESTED[word]} {{}}"
            fix = Fix(f"add a clause such as `{text}`", (Edit(replace(end, start=end.end), f" {text}"),))
            command.collector.error("RDB-C435", message, place.span, fix=fix)
    if given != set(wanted):
        return None
    scope = failed(command, path)
    uses = {
        clause.word.text: command.outcomes.use(
            clause.outcome, scope, success=False, evidence=clause.word.text != "illegal"
        )
        for clause in clauses
    }
    found = {word: use for word, use in uses.items() if use is not None}
    return found if len(found) == len(uses) else None


SUGGESTED = {
    "stale": "StaleRevision",
    "illegal": "IllegalState",
    "unavailable": "AlreadyClaimed",
    "invalid": "WrongHolder",
    "exhausted": "LeaseCounterExhausted",
    "expired": "LeaseExpired",
    "active": "LeaseStillActive",
}
