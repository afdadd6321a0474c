"""References and invariants: what the rows of an entity hold to, over the entities that are all known by now.

Proven here: a reference leads, from columns of the same types in the same order, to the key or to a unique of its
target, the partition first on both sides; an invariant is a condition over its own row alone. Absent: uniques, which
are declared as indexes are (`indexes`), and who may break a rule (`breakable`).
"""

from dataclasses import replace

from msgspec import structs

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, EntityDraft
from riffdb.compiler.expressions import lower_condition
from riffdb.compiler.indexes import Listing, listed_columns
from riffdb.compiler.scope import RowScope, Scope
from riffdb.core.diagnostics import Related
from riffdb.plan.declarations import EntityPlan, InvariantPlan, ReferencePlan
from riffdb.plan.expressions import Field, leaves
from riffdb.syntax.tree import InvariantMember, ReferenceMember, UniqueMember


def lower_rules(draft: Draft, collector: Collector) -> Draft:
    """Lower the references and invariants of every entity."""
    return replace(draft, entities={name: _entity(entity, draft, collector) for name, entity in draft.entities.items()})


def _entity(entity: EntityDraft, draft: Draft, collector: Collector) -> EntityDraft:
    references = [
        _reference(rule, entity, draft, collector) for rule in entity.rules if isinstance(rule, ReferenceMember)
    ]
    invariants = [
        _invariant(rule, entity, draft, collector) for rule in entity.rules if isinstance(rule, InvariantMember)
    ]
    plan = structs.replace(
        entity.plan,
        references=tuple(reference for reference in references if reference is not None),
        invariants=tuple(invariant for invariant in invariants if invariant is not None),
    )
    return replace(entity, plan=plan)


# --- references --------------------------------------------------------------------------------------------------


def _reference(
    member: ReferenceMember, entity: EntityDraft, draft: Draft, collector: Collector
) -> ReferencePlan | None:
    name = member.target.text
    if name not in draft.declared.entities:
        collector.unknown("RDB-C104", f"there is no entity `{name}`", member.target, draft.declared.entities)
        return None
    columns = listed_columns(member.columns, _listing(entity), collector)
    target = draft.entities.get(name)
    named = None if target is None else listed_columns(member.target_columns, _listing(target), collector)
    if columns is None or target is None or named is None or not _agree(member, entity, target, collector):
        return None
    pairs = dict(zip(named, columns, strict=True))
    found = _way_in(target.plan, frozenset(named))
    if found is None:
        _report_no_way_in(member, target, collector)
        return None
    unique, order = found
    return ReferencePlan(member.name.text, tuple(pairs[column] for column in order), name, order, unique)


def _listing(entity: EntityDraft) -> Listing:
    return Listing(entity.plan, "a reference", entity.secrets, entity.broken)


def _agree(member: ReferenceMember, entity: EntityDraft, target: EntityDraft, collector: Collector) -> bool:
    """Whether each column has a column of the same type on the other side."""
    if len(member.columns) != len(member.target_columns):
        message = (
            f"the reference `{member.name.text}` leads from {len(member.columns)} fields "
            f"to {len(member.target_columns)}"
        )
        help_text = f"name one field of `{target.plan.name}` for each field of `{entity.plan.name}`"
        collector.error("RDB-C320", message, member.span, help=help_text)
        return False
    for column, other in zip(member.columns, member.target_columns, strict=True):
        kind, wanted = entity.types[column.text].required, target.types[other.text].required
        if kind != wanted:
            place = target.places.get(other.text.lower())
            message = (
                f"`{column.text}` is `{kind}`, and `{target.plan.name}.{other.text}`, which it names, is `{wanted}`"
            )
            related = () if place is None else (Related("declared here", place.span),)
            help_text = "declare both with the same type; only the field that names a row may be optional"
            collector.error("RDB-C321", message, column.span, related=related, help=help_text)
            return False
    return True


def _way_in(target: EntityPlan, named: frozenset[str]) -> tuple[str, tuple[str, ...]] | None:
    """The unique (empty: the key) whose columns these are, and the columns in its order."""
    if named == frozenset(target.storage_key):
        return "", target.storage_key
    return next(
        ((unique.name, unique.columns) for unique in target.uniques if named == frozenset(unique.columns)), None
    )


def _report_no_way_in(member: ReferenceMember, target: EntityDraft, collector: Collector) -> None:
    plan = target.plan
    listed = ", ".join(name.text for name in member.target_columns)
    ways = [f"({', '.join(plan.storage_key)})", *(f"({', '.join(unique.columns)})" for unique in plan.uniques)]
    message = f"({listed}) is neither the key nor a unique of `{plan.name}`, so it can name several rows or none"
    help_text = f"name {' or '.join(ways)}, or declare `unique by_{member.target_columns[-1].text} ({listed})` there"
    span = member.target_columns[0].span.to(member.target_columns[-1].span)
    wanted = {name.text for name in member.target_columns}
    uniques = (rule for rule in target.rules if isinstance(rule, UniqueMember))
    if any({name.text for name in unique.columns} == wanted for unique in uniques):
        return  # a unique that has a mistake of its own
    collector.error("RDB-C322", message, span, help=help_text)


# --- invariants --------------------------------------------------------------------------------------------------


def _invariant(
    member: InvariantMember, entity: EntityDraft, draft: Draft, collector: Collector
) -> InvariantPlan | None:
    plan = entity.plan
    columns = {name: kind for name, kind in entity.types.items() if name != "revision"}
    refused = {"revision": "an invariant cannot rest on the revision; use fields of the row alone"}
    row = RowScope("", f"`{plan.name}`", plan.name, columns, entity.broken, refused, secrets=entity.secrets)
    time = "an invariant holds at every time; compare with the time in a `require` of the command"
    condition = lower_condition(
        member.condition, Scope(enums=draft.enums, row=row, refused={"tx.time": time}), collector
    )
    if condition is None:
        return None
    if not any(isinstance(leaf, Field) for leaf in leaves(condition)):
        message = f"the invariant `{member.name.text}` reads no field, so no row is held to it"
        collector.error("RDB-C323", message, member.condition.span, help="name a field, or leave the invariant out")
        return None
    return InvariantPlan(member.name.text, condition)
