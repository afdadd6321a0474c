"""The outcomes of broken rules: `conflict` and `violates` clauses of a binding, one for each rule that may break.

A clause names a rule of the binding's own entity, or a reference of another entity that leads to it. Once the whole
command is known, a rule that may break without a clause is an error, and a clause of what never happens a warning.
Absent: what may break (`breakable`), and what the rules are (`indexes`, `rules`).
"""

from collections.abc import Mapping
from dataclasses import replace

from msgspec import structs

from riffdb.compiler.breakable import Break, breakable, incoming
from riffdb.compiler.collector import remove
from riffdb.compiler.collector import replace as put
from riffdb.compiler.path import Bound, CommandDraft, Path, failed
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.plan.commands import BindStep, BreachPlan, DecideStep, ForStep, Step
from riffdb.plan.declarations import EntityPlan, ReferencePlan
from riffdb.syntax.tree import Breach, Name

# --- clauses -----------------------------------------------------------------------------------------------------


def lower_breaches(command: CommandDraft, path: Path, bound: Bound) -> tuple[BreachPlan, ...] | None:
    """The clauses of a binding, in source order; None if one is broken. `path` knows the binding already."""
    scope = failed(command, path)
    found: list[BreachPlan] = []
    firsts: dict[Break, Breach] = {}
    for clause in bound.statement.breaches:
        outcome = command.outcomes.use(clause.outcome, scope, success=False)
        rule = _rule(command, bound, clause)
        if rule is None or outcome is None:
            continue
        first = firsts.setdefault(rule, clause)
        if first is not clause:
            message = f"`{clause.kind} {_written(clause)}` has an outcome already"
            related = (Related("the first one", first.span),)
            fix = remove(clause.span, "take the second one out")
            command.collector.error("RDB-C543", message, clause.span, related=related, fix=fix)
            continue
        found.append(BreachPlan(clause.kind, rule.entity, rule.name, outcome, rule.incoming))
    return tuple(found) if len(found) == len(bound.statement.breaches) else None


def _written(clause: Breach) -> str:
    return clause.name.text if clause.entity is None else f"{clause.entity.text}.{clause.name.text}"


def _rule(command: CommandDraft, bound: Bound, clause: Breach) -> Break | None:
    """The rule that a clause names, or None with a diagnostic."""
    if clause.entity is not None:
        return _incoming_rule(command, bound, clause, clause.entity)
    plan, name = bound.entity.plan, clause.name.text
    is_invariant = any(rule.name == name for rule in plan.invariants)
    is_conflict = name in _conflicts(plan)
    if not is_invariant and not is_conflict:
        if bound.entity.rule(name) is None:
            _report_unknown(command, bound, clause)
        return None
    right = "violates" if is_invariant else "conflict"
    if clause.kind == right:
        return Break(clause.kind, plan.name, name)
    what = "an invariant, which is violated" if is_invariant else "no invariant, so it is a conflict when it breaks"
    word = replace(clause.span, end=clause.span.start + len(clause.kind))
    command.collector.error("RDB-C542", f"`{name}` is {what}", word, fix=put(word, right))
    return None


def _report_unknown(command: CommandDraft, bound: Bound, clause: Breach) -> None:
    plan, collector, name = bound.entity.plan, command.collector, clause.name
    if clause.kind == "violates":
        message = f"`{plan.name}` has no invariant `{name.text}`"
        collector.unknown("RDB-C541", message, name, [rule.name for rule in plan.invariants])
        return
    message = f"`{plan.name}` has no unique or reference `{name.text}`"
    leading = [f"{entity.name}.{rule.name}" for entity, rule in _incoming(command, plan) if rule.name == name.text]
    if leading:
        message = f"{message}; did you mean `{leading[0]}`?"
        collector.error("RDB-C541", message, name.span, fix=put(name.span, leading[0]))
    else:
        collector.unknown("RDB-C541", message, name, _conflicts(plan))


def _incoming_rule(command: CommandDraft, bound: Bound, clause: Breach, owner: Name) -> Break | None:
    plan, collector, name = bound.entity.plan, command.collector, clause.name
    if owner.text not in command.draft.declared.entities:
        collector.unknown("RDB-C104", f"there is no entity `{owner.text}`", owner, command.draft.declared.entities)
        return None
    leading = [rule.name for entity, rule in _incoming(command, plan) if entity.name == owner.text]
    if name.text in leading:
        return Break("conflict", owner.text, name.text, incoming=True)
    entity = command.draft.entities.get(owner.text)
    if entity is None or (entity.rule(name.text) is not None and name.text not in _rule_names(entity.plan)):
        return None  # its declaration is broken
    if owner.text == plan.name and name.text in _rule_names(plan):
        whole = owner.span.to(name.span)
        message = f"`{name.text}` is a rule of the row itself, and no reference that leads to it"
        collector.error("RDB-C541", message, whole, fix=put(whole, name.text))
        return None
    message = f"`{owner.text}` has no reference `{name.text}` that leads to `{plan.name}`"
    collector.unknown("RDB-C541", message, name, leading)
    return None


def _incoming(command: CommandDraft, plan: EntityPlan) -> list[tuple[EntityPlan, ReferencePlan]]:
    return incoming((entity.plan for entity in command.draft.entities.values()), plan.name)


def _conflicts(plan: EntityPlan) -> list[str]:
    return [rule.name for rule in plan.uniques] + [rule.name for rule in plan.references]


def _rule_names(plan: EntityPlan) -> list[str]:
    return _conflicts(plan) + [rule.name for rule in plan.invariants]


# --- what may break ----------------------------------------------------------------------------------------------


def settled(command: CommandDraft, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with the clauses of each binding in the order in which they are checked; a rule that may break without
    a clause is an error, a clause of what never happens a warning. The steps are those of a command without errors."""
    workflows = {workflow.entity: workflow for workflow in command.draft.workflows.values()}
    entities = {name: (entity.plan, workflows.get(name)) for name, entity in command.draft.entities.items()}
    if not any(plan.uniques or plan.references or plan.invariants for plan, _ in entities.values()):
        return steps
    breaks = breakable(steps, entities)
    return _each_settled(command, steps, breaks)


def _each_settled(
    command: CommandDraft, steps: tuple[Step, ...], breaks: Mapping[str, list[Break]]
) -> tuple[Step, ...]:
    done: list[Step] = []
    for step in steps:
        match step:
            case BindStep():
                done.append(_bind_settled(command, step, breaks.get(step.name, [])))
            case DecideStep(arms=arms):
                inner = [structs.replace(arm, steps=_each_settled(command, arm.steps, breaks)) for arm in arms]
                done.append(structs.replace(step, arms=tuple(inner)))
            case ForStep():
                done.append(structs.replace(step, steps=_each_settled(command, step.steps, breaks)))
            case _:
                done.append(step)
    return tuple(done)


def _bind_settled(command: CommandDraft, step: BindStep, breaks: list[Break]) -> BindStep:
    bound = next(row for row in command.rows if row.name == step.name)
    given = {Break(breach.kind, breach.entity, breach.name, breach.incoming): breach for breach in step.breaches}
    clauses = dict(zip(given, bound.statement.breaches, strict=True))
    for rule, clause in clauses.items():
        if rule not in breaks:
            message = f"nothing in this command can break `{_title(rule)}` by way of `{step.name}`"
            fix = remove(clause.span, f"take `{rule.kind} {_title(rule)}` out")
            command.collector.lint("needless-clause", message, clause.span, fix=fix)
    for rule in breaks:
        if rule.incoming and not _can_be_looked_up(command, bound, rule):
            continue
        if rule not in given:
            _report_unnamed(command, bound, rule)
    return structs.replace(step, breaches=tuple(given[rule] for rule in breaks if rule in given))


def _can_be_looked_up(command: CommandDraft, bound: Bound, rule: Break) -> bool:
    """Whether rows that still name this one are found by an index; what keeps them from it is reported."""
    owner = command.draft.entities[rule.entity]
    reference = next(part for part in owner.plan.references if part.name == rule.name)
    if owner.plan.way_in(reference.columns) is not None:
        return True
    declared = owner.rule(rule.name)
    columns = ", ".join(reference.columns)
    command.collector.error(
        "RDB-C544",
        f"rows of `{rule.entity}` may name `{bound.name}` by `{rule.name}`, and no index finds them",
        bound.statement.name.span,
        related=() if declared is None else (Related("the reference", declared.name.span),),
        help=f"add `index by_{rule.name} ({columns})` to `{rule.entity}`",
    )
    return False


def _title(rule: Break) -> str:
    return f"{rule.entity}.{rule.name}" if rule.incoming else rule.name


def _report_unnamed(command: CommandDraft, bound: Bound, rule: Break) -> None:
    entity = command.draft.entities[rule.entity]
    declared = entity.rule(rule.name)
    place = bound.statement.span
    text = f"{rule.kind} {_title(rule)} {_suggested(rule)} {{}}"
    command.collector.error(
        "RDB-C540",
        f"`{bound.name}` may break `{_title(rule)}`, and no outcome is named for it",
        bound.statement.name.span,
        related=() if declared is None else (Related("declared here", declared.name.span),),
        fix=Fix(f"add a clause such as `{text}`", (Edit(replace(place, start=place.end), f" {text}"),)),
    )


def _suggested(rule: Break) -> str:
    name = "".join(part.capitalize() for part in rule.name.split("_"))
    return f"{name}Violated" if rule.kind == "violates" else f"{name}Conflict"
