"""Workflows and their leases: the state field, its moves, the fields that keep a lease and the bounds of its duration.

Each rule has its own code. A workflow with any mistake is broken as a whole: commands that move its state or use its
lease are then not checked against it. Absent: what commands do with a workflow, which is `leases` and `effects`.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector, remove
from riffdb.compiler.draft import Draft, EntityDraft, present
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import LEASE_SECONDS_MAX
from riffdb.core.spans import Span
from riffdb.core.types import TIMESTAMP, U64, UUID, Type
from riffdb.plan.declarations import EnumPlan, LeasePlan, TransitionPlan, WorkflowPlan
from riffdb.syntax.tree import LeaseDecl, LiteralExpr, Name, TransitionDecl, WorkflowDecl


def lower_workflows(draft: Draft, collector: Collector) -> Draft:
    """Lower every workflow."""
    owners: dict[str, WorkflowDecl] = {}
    workflows = {}
    for name, decl in draft.declared.workflows.items():
        first = owners.setdefault(decl.entity.text, decl)
        if first is not decl:
            _report_second(first, decl, collector)
            continue
        workflows[name] = _workflow(decl, draft, collector)
    return replace(draft, workflows=present(workflows))


def _report_second(first: WorkflowDecl, second: WorkflowDecl, collector: Collector) -> None:
    collector.error(
        "RDB-C416",
        f"`{second.entity.text}` has the workflow `{first.name.text}` already",
        second.entity.span,
        related=(Related("the first workflow", first.entity.span),),
        help="an entity has one workflow; move the transitions into the first",
    )


def _workflow(decl: WorkflowDecl, draft: Draft, collector: Collector) -> WorkflowPlan | None:
    entity = draft.entities.get(decl.entity.text)
    if entity is None:
        if decl.entity.text not in draft.declared.entities:
            message = f"there is no entity `{decl.entity.text}`"
            collector.unknown("RDB-C104", message, decl.entity, draft.declared.entities)
        return None
    found = len(collector.diagnostics)
    enum = _state(decl, entity, draft, collector)
    transitions = initial = None
    if enum is not None:
        initial = None if decl.initial is None else _variant("RDB-C404", "`initial`", decl.initial, enum, collector)
        transitions = _transitions(decl, enum, collector)
    taken = {} if enum is None else {decl.state.text: ("the state", decl.state)}
    lease = None if decl.lease is None else _lease(decl.lease, taken, entity, collector)
    if transitions is None or len(collector.diagnostics) > found:
        return None
    return WorkflowPlan(decl.name.text, entity.plan.name, decl.state.text, initial, tuple(transitions), lease, decl.doc)


def _state(decl: WorkflowDecl, entity: EntityDraft, draft: Draft, collector: Collector) -> EnumPlan | None:
    kind = _stored(decl.state, entity, collector)
    if kind is None:
        return None
    if any(part.name == decl.state.text for part in entity.plan.key):
        message = f"`{decl.state.text}` is part of the key, and a key never changes"
        related = (Related("declared here", entity.places[decl.state.text.lower()].span),)
        collector.error("RDB-C403", message, decl.state.span, related=related, help="use a field of its own")
        return None
    if kind.kind != "enum" or kind.optional:
        message = f"the state of a workflow is an enum, and `{decl.state.text}` is `{kind}`"
        related = (Related("declared here", entity.places[decl.state.text.lower()].span),)
        collector.error("RDB-C402", message, decl.state.span, related=related, help="declare the field with an enum")
        return None
    return draft.enums[kind.name]


def _stored(name: Name, entity: EntityDraft, collector: Collector) -> Type | None:
    """The type of a stored column; None, silently if the column is broken."""
    stored = {part.name: part.type for part in (*entity.plan.key, *entity.plan.fields)}
    if name.text in stored or name.text in entity.broken:
        return stored.get(name.text)
    if name.text in entity.types:
        message = f"`{name.text}` is computed, and a workflow rests on stored fields"
        collector.error("RDB-C401", message, name.span)
        return None
    collector.unknown("RDB-C401", f"`{entity.plan.name}` has no field `{name.text}`", name, stored)
    return None


# --- transitions -------------------------------------------------------------------------------------------------


def _variant(code: str, place: str, name: Name, enum: EnumPlan, collector: Collector) -> int | None:
    if name.text in enum.variants:
        return enum.variants.index(name.text)
    collector.unknown(code, f"{place} is a variant of `{enum.name}`, and `{name.text}` is none", name, enum.variants)
    return None


def _transitions(decl: WorkflowDecl, enum: EnumPlan, collector: Collector) -> list[TransitionPlan]:
    seen: dict[str, TransitionDecl] = {}
    found = []
    for transition in decl.transitions:
        first = seen.setdefault(transition.name.text.lower(), transition)
        if first is not transition:
            _report_twice(first.name, transition.name, collector)
            continue
        sources = _sources(transition, enum, collector)
        destination = _variant("RDB-C406", "the destination", transition.destination, enum, collector)
        if sources is not None and destination is not None:
            found.append(TransitionPlan(transition.name.text, sources, destination))
    return found


def _report_twice(first: Name, second: Name, collector: Collector) -> None:
    message = f"the transition `{second.text}` is declared twice"
    help_text = "name all its sources in one `from (…)`, or give it another name"
    if first.text != second.text:
        message = f"`{second.text}` differs from `{first.text}` in case alone"
        help_text = "give one of the two another name"
    related = (Related("first declared here", first.span),)
    collector.error("RDB-C407", message, second.span, related=related, help=help_text)


def _sources(transition: TransitionDecl, enum: EnumPlan, collector: Collector) -> tuple[int, ...] | None:
    ordinals: list[int] = []
    for name in transition.sources:
        ordinal = _variant("RDB-C405", "a source", name, enum, collector)
        if ordinal is None:
            return None
        if ordinal in ordinals:
            first = transition.sources[ordinals.index(ordinal)]
            related = (Related("named here already", first.span),)
            before = transition.sources[len(ordinals) - 1].span
            fix = remove(Span(name.span.source, before.end, name.span.end), "take the second one out")
            message = f"the source `{name.text}` is named twice"
            collector.error("RDB-C438", message, name.span, related=related, fix=fix)
            return None
        ordinals.append(ordinal)
    return tuple(ordinals)


# --- the lease ---------------------------------------------------------------------------------------------------

LEASE_TYPES: dict[str, tuple[str, Type]] = {
    "owner": ("RDB-C408", UUID.nullable),
    "expires_at": ("RDB-C409", TIMESTAMP.nullable),
    "fencing_token": ("RDB-C410", U64),
    "attempts": ("RDB-C411", U64),
}


def _lease(
    lease: LeaseDecl, taken: dict[str, tuple[str, Name]], entity: EntityDraft, collector: Collector
) -> LeasePlan | None:
    named = {"owner": lease.owner, "expires_at": lease.expires_at, "fencing_token": lease.fencing_token}
    if lease.attempts is not None:
        named["attempts"] = lease.attempts
    for clause, name in named.items():
        if _distinct(clause, name, taken, entity, collector):
            _check_lease_field(clause, name, entity, collector)
    bounds = _duration(lease, collector)
    if bounds is None:
        return None
    attempts = None if lease.attempts is None else lease.attempts.text
    names = lease.owner.text, lease.expires_at.text, lease.fencing_token.text
    return LeasePlan(lease.name.text, *names, attempts, *bounds)


def _distinct(
    clause: str, name: Name, taken: dict[str, tuple[str, Name]], entity: EntityDraft, collector: Collector
) -> bool:
    if name.text in taken:
        use, first = taken[name.text]
        message = f"`{name.text}` keeps {use} already, and `{clause}` needs a field of its own"
        collector.error("RDB-C412", message, name.span, related=(Related("named here already", first.span),))
        return False
    taken[name.text] = (f"`{clause}`", name)
    if any(part.name == name.text for part in entity.plan.key):
        message = f"`{name.text}` is part of the key, and `{clause}` needs a field of its own"
        related = (Related("declared here", entity.places[name.text.lower()].span),)
        collector.error("RDB-C412", message, name.span, related=related)
        return False
    return True


def _check_lease_field(clause: str, name: Name, entity: EntityDraft, collector: Collector) -> None:
    kind = _stored(name, entity, collector)
    if kind is None:
        return
    code, wanted = LEASE_TYPES[clause]
    place = (Related("declared here", entity.places[name.text.lower()].span),)
    if kind != wanted:
        message = f"the `{clause}` of a lease is `{wanted}`, and `{name.text}` is `{kind}`"
        help_text = f"declare it as `field {name.text}: {wanted}`"
        collector.error(code, message, name.span, related=place, help=help_text)
    elif wanted.optional and any(part.name == name.text and part.has_default for part in entity.plan.fields):
        message = f"`{name.text}` has a default, so new rows would start out leased"
        collector.error("RDB-C439", message, name.span, related=place, help="leave the default out; it starts null")


def _duration(lease: LeaseDecl, collector: Collector) -> tuple[int, int] | None:
    low, high = _seconds(lease.duration_min, collector), _seconds(lease.duration_max, collector)
    if low is None or high is None:
        return None
    if low > high:
        message = "the bounds of `duration_seconds` are reversed; the least comes first"
        edits = (Edit(lease.duration_min.span, str(high)), Edit(lease.duration_max.span, str(low)))
        fix = Fix(f"write `duration_seconds ({high}, {low})`", edits, safe=True)
        collector.error("RDB-C414", message, lease.duration_min.span.to(lease.duration_max.span), fix=fix)
        return None
    return low, high


def _seconds(bound: LiteralExpr, collector: Collector) -> int | None:
    value = bound.value
    if not isinstance(value, int):
        return None
    if value == 0:
        collector.error("RDB-C413", "this bound is 0, and a lease lasts at least 1 second", bound.span)
        return None
    if value > LEASE_SECONDS_MAX:
        message = f"a lease lasts at most {LEASE_SECONDS_MAX} seconds, which is a day"
        collector.error("RDB-C415", message, bound.span)
        return None
    return value
