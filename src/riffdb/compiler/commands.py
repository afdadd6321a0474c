"""Commands: inputs, the idempotency key, the body, the outcomes, the one partition that confines it all.

A command with a mistake is left out of the plan as a whole, after everything in it has been checked that does not rest
on the mistake. Absent: the rules of single statements, which stand with their families.
"""

from dataclasses import replace

from riffdb.compiler.body import answered, check_created, lower_statements
from riffdb.compiler.breaches import settled
from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, present
from riffdb.compiler.expressions import lower_default
from riffdb.compiler.leases import check_leases
from riffdb.compiler.linking import NameScope
from riffdb.compiler.loops import lower_loop
from riffdb.compiler.outcomes import Outcomes
from riffdb.compiler.path import CommandDraft, Path
from riffdb.compiler.reimports import holds_row, lower_restoration, restored_input
from riffdb.compiler.typing import lower_type
from riffdb.core.diagnostics import Edit, Fix, Related, has_errors
from riffdb.core.types import UUID
from riffdb.plan.commands import CommandPlan, InputPlan, ServicePlan, Step
from riffdb.syntax.tree import CommandDecl, InputDecl, InputKeyDecl, Name, ReimportDecl


def lower_commands(draft: Draft, collector: Collector) -> Draft:
    """Lower every command."""
    commands = {name: _command(decl, draft, collector) for name, decl in draft.declared.commands.items()}
    return replace(draft, commands=present(commands))


def _reimport(decl: ReimportDecl, draft: Draft, collector: Collector) -> CommandPlan | None:
    found = len(collector.diagnostics)
    others = tuple(part for part in decl.inputs if isinstance(part, InputKeyDecl) or not holds_row(decl, part))
    head = CommandDecl(
        "command", decl.name, others, (), decl.idempotency_key, (), None, decl.answer, decl.span, decl.doc
    )
    outcomes = Outcomes(collector)
    names = NameScope("an input or binding", collector)
    command = CommandDraft(draft, collector, head, outcomes, names, NameScope("a requirement", collector))
    row = restored_input(command, decl)
    _lower_inputs(command)
    lowered = None if row is None else lower_restoration(command, decl)
    key = _idempotency_key(command)
    if row is None or lowered is None or lowered[1] is None or command.partition is None:
        return None
    if has_errors(collector.diagnostics[found:]):
        return None
    inputs = (*command.inputs.values(), row)
    steps, answer = lowered[0], lowered[1]
    return CommandPlan(
        decl.name.text, inputs, key, command.partition, steps, answer, outcomes.plans(), (), "reimport", decl.doc
    )


def _command(decl: CommandDecl | ReimportDecl, draft: Draft, collector: Collector) -> CommandPlan | None:
    if isinstance(decl, ReimportDecl):
        return _reimport(decl, draft, collector)
    found = len(collector.diagnostics)
    outcomes = Outcomes(collector)
    names = NameScope("an input or binding", collector)
    command = CommandDraft(draft, collector, decl, outcomes, names, NameScope("a requirement", collector))
    _lower_inputs(command)
    path = Path()
    steps: tuple[Step, ...] = lower_statements(command, path, decl.body, None, ())
    if decl.loop is not None:
        loop = lower_loop(command, path, decl.loop)
        steps = steps if loop is None else (*steps, loop)
    answer = None if decl.answer is None else answered(command, path, decl.answer.outcome, path.known)
    check_created(command, path, list(path.bound.values()))
    check_leases(command, command.rows)
    key = _idempotency_key(command)
    _check_confined(command)
    if not has_errors(collector.diagnostics[found:]):
        steps = settled(command, steps)
    if answer is None or command.partition is None or has_errors(collector.diagnostics[found:]):
        return None
    return CommandPlan(
        decl.name.text,
        tuple(command.inputs.values()),
        key,
        command.partition,
        steps,
        answer,
        outcomes.plans(),
        tuple(command.services.values()),
        decl.kind,
        decl.doc,
    )


# --- inputs ------------------------------------------------------------------------------------------------------


def _lower_inputs(command: CommandDraft) -> None:
    for part in command.decl.inputs:
        if isinstance(part, InputKeyDecl):
            _lower_key_inputs(command, part)
        else:
            _lower_input(command, part)
    for service in command.decl.services:
        if command.names.add(service.name):
            command.services[service.name.text] = ServicePlan(service.name.text, UUID)


def _lower_input(command: CommandDraft, part: InputDecl) -> None:
    collector, draft = command.collector, command.draft
    kind = lower_type(part.type, draft.declared, "input", collector)
    if not command.names.add(part.name):
        return
    if kind is None:
        command.broken.add(part.name.text)
        return
    default = lower_default(part.default, draft.enums, kind, collector)
    command.inputs[part.name.text] = InputPlan(
        part.name.text, kind, part.secret, default is not None, default, part.doc
    )


def _lower_key_inputs(command: CommandDraft, part: InputKeyDecl) -> None:
    """`input key of Entity`: one input a key field, by its name."""
    draft, name = command.draft, part.entity
    decl = draft.declared.entities.get(name.text)
    if decl is None:
        message = f"there is no entity `{name.text}`"
        command.collector.unknown("RDB-C104", message, name, draft.declared.entities)
        command.is_broken = True
        return
    entity = draft.entities.get(name.text)
    if entity is None:
        command.is_broken = True
        return
    for field in entity.plan.key:
        if command.names.add(Name(field.name, name.span)):
            command.inputs[field.name] = InputPlan(field.name, field.type, doc=field.doc)


# --- the command as a whole --------------------------------------------------------------------------------------


def _idempotency_key(command: CommandDraft) -> str | None:
    name, collector = command.decl.idempotency_key, command.collector
    if name is None:
        if command.mutates is not None or command.decl.kind == "bulk":
            _report_missing_key(command)
        return None
    plan = command.inputs.get(name.text)
    if plan is None:
        if name.text not in command.broken:
            message = f"the idempotency key is an input, and there is no input `{name.text}`"
            collector.unknown("RDB-C502", message, name, command.inputs)
        return None
    related = (Related("declared here", command.names.names[name.text.lower()].span),)
    if plan.type.optional or plan.type.kind not in ("string", "uuid"):
        message = f"an idempotency key is `string<N>` or `uuid`, and `{name.text}` is `{plan.type}`"
        collector.error("RDB-C502", message, name.span, related=related, help="use an input such as `string<128>`")
        return None
    if plan.secret:
        message = f"`{name.text}` is secret, and an idempotency key is kept in the record of its commit"
        collector.error("RDB-C217", message, name.span, related=related, help="use another input")
        return None
    if plan.has_default:
        message = f"`{name.text}` has a default, and calls that leave it out would all be one"
        collector.error("RDB-C502", message, name.span, related=related, help="leave the default out")
        return None
    return name.text


def _report_missing_key(command: CommandDraft) -> None:
    decl = command.decl
    candidates = [
        plan.name for plan in command.inputs.values() if plan.type.kind == "string" and not plan.type.optional
    ]
    fix = None
    if len(candidates) == 1 and decl.inputs:
        end = decl.inputs[-1].span
        edit = Edit(replace(end, start=end.end), f"\n    idempotency_key {candidates[0]}")
        fix = Fix(f"add `idempotency_key {candidates[0]}`", (edit,))
    related = () if command.mutates is None else (Related("changed here", command.mutates),)
    command.collector.error(
        "RDB-C501",
        f"`{decl.name.text}` {'changes something' if decl.kind == 'command' else 'is a bulk command'}, so it needs an "
        "idempotency key",
        decl.name.span,
        related=related,
        fix=fix,
        help="add `input request_key: string<128>` and, after the inputs, `idempotency_key request_key`"
        if fix is None
        else None,
    )


def _check_confined(command: CommandDraft) -> None:
    if command.partition is None and not command.is_broken:
        message = f"nothing in `{command.decl.name.text}` names a row or an event, so it belongs to no partition"
        command.collector.error("RDB-C503", message, command.decl.name.span, help="bind a row, such as `read …`")
