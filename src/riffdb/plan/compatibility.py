"""Which changes of a contract the stored rows do not allow.

Rows are kept as the deployed plan laid them out, so entities that exist stay as they are; enums may grow at their end;
new entities, and any change of commands, queries, streams, roles and schedules, are free. Absent: migrations.
"""

from riffdb.plan.declarations import EntityPlan
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
    variants = {enum.name: enum.variants for enum in new.enums}
    for enum in old.enums:
        if variants.get(enum.name, ())[: len(enum.variants)] != enum.variants:
            refused.append(f"variants of enum `{enum.name}` were removed, renamed or reordered; only append to it")
    return refused


def _entity_changes(old: EntityPlan, new: EntityPlan) -> list[str]:
    changes = []
    if (old.partition, [(part.name, part.type) for part in old.key]) != (
        new.partition,
        [(part.name, part.type) for part in new.key],
    ):
        changes.append(f"the key of entity `{old.name}` changed")
    if [(part.name, part.type) for part in old.fields] != [(part.name, part.type) for part in new.fields]:
        changes.append(f"the fields of entity `{old.name}` changed")
    if [(part.name, part.type, part.expression) for part in old.computed] != [
        (part.name, part.type, part.expression) for part in new.computed
    ]:
        changes.append(f"the computed fields of entity `{old.name}` changed")
    if old.indexes != new.indexes:
        changes.append(f"the indexes of entity `{old.name}` changed")
    return changes
