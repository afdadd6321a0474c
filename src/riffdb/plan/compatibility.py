"""What changed from one contract to another, change by change: every declaration that has another identity is told.

The families stand in the order in which a contract declares them, in each first what is new or changed, then what is
gone. Entities are compared in `entity_changes`, what may be called in `call_changes`; the class of a change is that of
its rule in `changes`. Absent: migrations, and whether an entity has rows or leases, which lifts some of the changes.
"""

from collections.abc import Callable, Iterator
from typing import Any

from riffdb.plan.call_changes import (
    command_changes,
    query_changes,
    role_changes,
    schedule_changes,
    stream_changes,
)
from riffdb.plan.changes import Change, change
from riffdb.plan.declarations import EnumPlan, EventPlan, LeasePlan, RecordPlan, WorkflowPlan
from riffdb.plan.entity_changes import entity_changes
from riffdb.plan.identity import declaration_hashes
from riffdb.plan.plan import Plan
from riffdb.plan.widening import type_step

Compare = Callable[[Any, Any, Plan, Plan], Iterator[Change]]


def contract_changes(old: Plan, new: Plan) -> list[Change]:
    """The changes from `old` to `new`; none if only comments, order or the version differ."""
    if (old.application, old.contract) != (new.application, new.contract):
        what = f"the database holds `{old.application}` ({old.contract}), this is `{new.application}` ({new.contract})"
        return [change("contract-other", "contract", new.contract, what)]
    before, after = declaration_hashes(old), declaration_hashes(new)
    found: list[Change] = []
    for family, (noun, compare) in _FAMILIES.items():
        known = {part.name: part for part in getattr(old, family)}
        for part in getattr(new, family):
            if part.name not in known:
                found.append(change(f"{noun}-added", family, part.name, f"{noun} `{part.name}` is new"))
                if isinstance(part, WorkflowPlan):
                    found.extend(_lease_changes(None, part, old, new))
                continue
            told = list(compare(known[part.name], part, old, new))
            name = f"{family}.{part.name}"
            if before[name] != after[name] and not told:
                what = f"{noun} `{part.name}` is written otherwise and means the same"
                told.append(change("written-otherwise", family, part.name, what))
            found.extend(told)
        gone = known.keys() - {part.name for part in getattr(new, family)}
        found.extend(
            change(f"{noun}-removed", family, name, f"{noun} `{name}` is gone") for name in known if name in gone
        )
    return found


def _enum_changes(old: EnumPlan, new: EnumPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    kept = new.variants[: len(old.variants)]
    if kept != old.variants:
        place = next((name for name, was in zip(kept, old.variants, strict=False) if name != was), "")
        what = f"variants of enum `{old.name}` were removed, renamed or reordered; only append to it"
        yield change("variant-changed", "enums", old.name, what, place)
        return
    for name in new.variants[len(old.variants) :]:
        yield change("variant-appended", "enums", old.name, f"variant `{name}` of enum `{old.name}` is new", name)


def _record_changes(old: RecordPlan, new: RecordPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    yield from _named_fields("record", "records", old, new)


def _event_changes(old: EventPlan, new: EventPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    if old.partition != new.partition:
        what = f"the partition of event `{old.name}` changed from `{old.partition}` to `{new.partition}`"
        yield change("event-partition", "events", old.name, what)
    yield from _named_fields("event", "events", old, new)


def _named_fields(noun: str, family: str, old: RecordPlan | EventPlan, new: RecordPlan | EventPlan) -> Iterator[Change]:
    known = {part.name: part for part in old.fields}
    for part in new.fields:
        label = f"field `{part.name}` of {noun} `{old.name}`"
        if part.name not in known:
            kind = "added" if part.type.optional else "required"
            yield change(f"{noun}-field-{kind}", family, old.name, f"{label} is new", part.name)
            continue
        step = type_step(known[part.name].type, part.type)
        if step != "same":
            kind = "retyped" if step == "other" else "widened"
            what = f"{label} was `{known[part.name].type}` and is `{part.type}`"
            yield change(f"{noun}-field-{kind}", family, old.name, what, part.name)
    for name in known:
        if name not in {part.name for part in new.fields}:
            what = f"field `{name}` of {noun} `{old.name}` is gone"
            yield change(f"{noun}-field-removed", family, old.name, what)


def _workflow_changes(old: WorkflowPlan, new: WorkflowPlan, before: Plan, after: Plan) -> Iterator[Change]:
    name = old.name
    if old.entity != new.entity:
        what = f"workflow `{name}` is of `{new.entity}` and was of `{old.entity}`"
        yield change("workflow-state", "workflows", name, what)
    elif old.state != new.state:
        what = f"the state of workflow `{name}` is `{new.state}` and was `{old.state}`"
        yield change("workflow-state", "workflows", name, what)
    if old.initial != new.initial:
        yield change("workflow-state", "workflows", name, f"the initial state of workflow `{name}` changed")
    known = {part.name: part for part in old.transitions}
    for part in new.transitions:
        label = f"transition `{part.name}` of workflow `{name}`"
        if part.name not in known:
            yield change("transition-added", "workflows", name, f"{label} is new", part.name)
        elif known[part.name] != part:
            yield change("transition-changed", "workflows", name, f"{label} changed", part.name)
    for gone in known.keys() - {part.name for part in new.transitions}:
        what = f"transition `{gone}` of workflow `{name}` is gone"
        yield change("transition-removed", "workflows", name, what)
    yield from _lease_changes(old, new, before, after)


def _lease_changes(old: WorkflowPlan | None, new: WorkflowPlan, before: Plan, after: Plan) -> Iterator[Change]:
    """Changes of the lease, against that which the entity had, whatever its workflow was called."""
    if new.lease is None:
        if old is not None and old.lease is not None:
            what = f"lease `{old.lease.name}` of workflow `{old.name}` is gone"
            yield change("lease-removed", "workflows", new.name, what)
        return
    label = f"lease `{new.lease.name}` of workflow `{new.name}`"
    earlier = before.workflow_of(new.entity)
    known = None if earlier is None else earlier.lease
    place = new.lease.name
    if all(entity.name != new.entity for entity in before.entities):
        return  # the entity itself is new
    if known is None or not _rests_alike(known, new.lease):
        what = f"{label} rests on fields that other commands wrote"
        yield change("lease-laid", "workflows", new.name, what, place, new.entity)
        return
    if (known.seconds_min, known.seconds_max) != (new.lease.seconds_min, new.lease.seconds_max):
        what = f"{label} may last {new.lease.seconds_min} to {new.lease.seconds_max} seconds"
        yield change("lease-bounds", "workflows", new.name, what, place)
    if (known.name, known.attempts) != (new.lease.name, new.lease.attempts):
        yield change("lease-renamed", "workflows", new.name, f"{label} has another name or counts no attempts", place)


def _rests_alike(old: LeasePlan, new: LeasePlan) -> bool:
    fields = (old.owner, old.expires_at, old.fencing_token) == (new.owner, new.expires_at, new.fencing_token)
    return fields and new.attempts in (None, old.attempts)


_FAMILIES: dict[str, tuple[str, Compare]] = {
    "enums": ("enum", _enum_changes),
    "records": ("record", _record_changes),
    "entities": ("entity", entity_changes),
    "events": ("event", _event_changes),
    "workflows": ("workflow", _workflow_changes),
    "commands": ("command", command_changes),
    "queries": ("query", query_changes),
    "streams": ("stream", stream_changes),
    "roles": ("role", role_changes),
    "schedules": ("schedule", schedule_changes),
}
