"""Reimport commands: a row is put back as it was, every field of it, with its revision and fence.

The input that holds the row has the entity as its type, which is a type there and nowhere else; in the answer its name
stands for the row as it was put back. It is lowered to a create and what sets each field, then the step that holds
revision and fence against the key's last life. The one `else` answers for all that is in the way.
"""

from riffdb.compiler.body import answered
from riffdb.compiler.path import Bound, CommandDraft, Path, failed
from riffdb.core.types import Type
from riffdb.plan.commands import BindStep, BreachPlan, InputPlan, OutcomeUse, ReconstituteStep, SetStep, Step
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Item
from riffdb.syntax.tree import BindStmt, InputDecl, ReimportDecl


def holds_row(decl: ReimportDecl, part: InputDecl) -> bool:
    """Whether an input is that which holds the row, by its name or by its type."""
    return part.name.text == decl.source.text or part.type.name.text == decl.entity.text


def restored_input(command: CommandDraft, decl: ReimportDecl) -> InputPlan | None:
    """The input that holds the row; None with a diagnostic if there is none, or it is of another type."""
    collector, draft = command.collector, command.draft
    name, entity = decl.source, decl.entity.text
    if entity not in draft.declared.entities:
        collector.unknown("RDB-C104", f"there is no entity `{entity}`", decl.entity, draft.declared.entities)
        return None
    given = {part.name.text: part for part in decl.inputs if isinstance(part, InputDecl)}
    part = given.get(name.text)
    if part is None:
        collector.unknown("RDB-C205", f"there is no input `{name.text}`", name, given)
        return None
    command.names.add(part.name)
    if part.type.name.text != entity or part.type.arguments or part.default is not None:
        message = f"`{name.text}` is put back as a row of `{entity}`, so that is its type"
        help_text = f"write `input {name.text}: {entity}`"
        collector.error("RDB-C560", message, part.type.span, help=help_text)
        return None
    drafted = draft.entities.get(entity)
    if drafted is None or drafted.broken:
        return None
    if drafted.secrets and not part.secret:
        hidden = ", ".join(f"`{secret}`" for secret in sorted(drafted.secrets))
        message = f"rows of `{entity}` have secrets, {hidden}, so the input that holds one is secret"
        collector.error("RDB-C217", message, part.name.span, help=f"write `input secret {name.text}: {entity}`")
        return None
    return InputPlan(name.text, Type("record", name=entity), part.secret, doc=part.doc)


def lower_restoration(command: CommandDraft, decl: ReimportDecl) -> tuple[tuple[Step, ...], OutcomeUse | None] | None:
    """The steps and the answer; the input that holds the row is sound."""
    entity = command.draft.entities[decl.entity.text]
    plan, name = entity.plan, decl.source.text
    path = Path()
    command.hidden[name] = f"`{name}` is put back here, and a failure shows rows as they were before the command"
    otherwise = command.outcomes.use(decl.otherwise, failed(command, path), success=False)
    del command.hidden[name]
    types = plan.types
    key = tuple(Item(types[part], part) for part in plan.storage_key)
    workflow = command.draft.workflow_of(plan.name)
    statement = BindStmt("create", decl.entity, None, (), decl.source, decl.otherwise, None, (), decl.span)
    bound = Bound(
        statement,
        entity,
        plan.storage_key,
        key,
        0,
        workflow,
        command.draft.workflow_is_broken(plan.name),
        None,
        None,
    )
    path.bound[name] = bound
    path.assigned[name] = {part.name for part in plan.fields}
    command.rows.append(bound)
    command.mutates = decl.entity.span
    command.partition = key[0]
    answer = None if decl.answer is None else answered(command, path, decl.answer.outcome, path.known)
    if otherwise is None:
        return None
    breaches = tuple(_breaches(plan, otherwise))
    bind = BindStep("create", name, plan.name, key, otherwise, breaches=breaches)
    sets = [SetStep(name, part.name, Item(part.type, part.name)) for part in plan.fields]
    return (bind, *sets, ReconstituteStep(plan.name, name, otherwise)), answer


def _breaches(plan: EntityPlan, otherwise: OutcomeUse) -> list[BreachPlan]:
    rules = [rule.name for rule in plan.uniques] + [rule.name for rule in plan.references]
    conflicts = [BreachPlan("conflict", plan.name, rule, otherwise) for rule in rules]
    return conflicts + [BreachPlan("violates", plan.name, rule.name, otherwise) for rule in plan.invariants]
