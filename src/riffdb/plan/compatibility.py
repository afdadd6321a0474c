"""Which changes of a contract the stored rows do not allow.

Rows are kept as the deployed plan laid them out, so entities that exist stay as they are; enums may grow at their end;
new entities, and any change of commands, queries, streams, roles and schedules, are free. A workflow may change, but
a lease is not laid over rows that were written without it. Absent: migrations.
"""

from collections.abc import Iterator, Mapping

from riffdb.plan.declarations import EntityPlan, FieldPlan, LeasePlan
from riffdb.plan.plan import Plan


def refused_changes(old: Plan, new: Plan) -> list[str]:
    """One sentence for each change from `old` to `new` that would not fit the stored rows; empty when all do."""
    if old.application != new.application or old.contract != new.contract:
        return [
            f"the database holds `{old.application}` ({old.contract}), this is `{new.application}` ({new.contract})"
        ]
    refused = []
    entities = {entity.name: entity for entity in new.entities}
    for entity in old.entities:
        if entity.name not in entities:
            refused.append(f"entity `{entity.name}` is gone")
        else:
            refused.extend(_entity_changes(entity, entities[entity.name]))
            refused.extend(_lease_changes(entity.name, old, new))
    variants = {enum.name: enum.variants for enum in new.enums}
    for enum in old.enums:
        if variants.get(enum.name, ())[: len(enum.variants)] != enum.variants:
            refused.append(f"variants of enum `{enum.name}` were removed, renamed or reordered; only append to it")
    return refused


def _entity_changes(old: EntityPlan, new: EntityPlan) -> Iterator[str]:
    if (old.partition, list(_types(old.key).items())) != (new.partition, list(_types(new.key).items())):
        yield f"the key of entity `{old.name}` changed"
    yield from _part_changes(old.name, "field", _types(old.fields), _types(new.fields), is_ordered=True)
    yield from _part_changes(old.name, "computed field", _computed(old), _computed(new), is_ordered=True)
    yield from _part_changes(old.name, "index", _indexes(old), _indexes(new), is_ordered=False)


def _lease_changes(entity: str, old: Plan, new: Plan) -> Iterator[str]:
    before, after = _lease_fields(old, entity), _lease_fields(new, entity)
    if after is not None and after != before:
        yield f"the lease of entity `{entity}` rests on fields that other commands wrote"


def _lease_fields(plan: Plan, entity: str) -> tuple[str | None, ...] | None:
    workflow = plan.workflow_of(entity)
    lease: LeasePlan | None = None if workflow is None else workflow.lease
    return None if lease is None else (lease.owner, lease.expires_at, lease.fencing_token, lease.attempts)


def _types(parts: tuple[FieldPlan, ...]) -> dict[str, object]:
    return {part.name: part.type for part in parts}


def _computed(entity: EntityPlan) -> dict[str, object]:
    return {part.name: (part.type, part.expression) for part in entity.computed}


def _indexes(entity: EntityPlan) -> dict[str, object]:
    return {index.name: index for index in entity.indexes}


def _part_changes(
    entity: str, noun: str, old: Mapping[str, object], new: Mapping[str, object], *, is_ordered: bool
) -> Iterator[str]:
    for name, part in old.items():
        if name not in new:
            yield f"{noun} `{name}` of entity `{entity}` is gone"
        elif new[name] != part:
            yield f"{noun} `{name}` of entity `{entity}` changed"
    for name in new:
        if name not in old:
            yield f"{noun} `{name}` of entity `{entity}` is new, and its rows have none"
    if is_ordered and old.keys() == new.keys() and list(old) != list(new):
        yield f"each {noun} of entity `{entity}` must stay in its place"
