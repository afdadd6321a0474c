"""What changed of one entity: key, partition, fields, computed fields, indexes, and the rules that its rows keep.

Parts are found by their names, so their order says nothing. The member of a change is the part that stands in the new
entity; of what is gone there is none.
"""

from collections.abc import Iterator

from riffdb.plan.changes import Change, change
from riffdb.plan.declarations import EntityPlan, FieldPlan
from riffdb.plan.plan import Plan
from riffdb.plan.widening import meaning, type_step

FAMILY = "entities"


def entity_changes(old: EntityPlan, new: EntityPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    """The changes of an entity."""
    yield from _key_changes(old, new)
    yield from _field_changes(old, new)
    yield from _computed_changes(old, new)
    for noun, family in (("index", "indexes"), ("unique", "uniques"), ("reference", "references")):
        yield from _rule_changes(noun, family, old, new)
    yield from _rule_changes("invariant", "invariants", old, new)


def _key_changes(old: EntityPlan, new: EntityPlan) -> Iterator[Change]:
    steps = [type_step(was.type, part.type) for was, part in zip(old.key, new.key, strict=False)]
    if [part.name for part in old.key] != [part.name for part in new.key] or not {"same", "wider"} >= set(steps):
        yield change("key-changed", FAMILY, old.name, f"the key of entity `{old.name}` changed", new.key[0].name)
    else:
        for was, part, step in zip(old.key, new.key, steps, strict=True):
            if step == "wider":
                what = f"key `{part.name}` of entity `{old.name}` was `{was.type}` and is `{part.type}`"
                yield change("key-widened", FAMILY, old.name, what, part.name)
    if old.partition != new.partition:
        what = f"the partition of entity `{old.name}` is `{new.partition}` and was `{old.partition}`"
        yield change("partition-changed", FAMILY, old.name, what, new.partition)


def _field_changes(old: EntityPlan, new: EntityPlan) -> Iterator[Change]:
    known = {part.name: part for part in old.fields}
    named = {part.name for part in new.fields}
    renamed = {part.was: part for part in new.fields if part.was in known and part.name not in known}
    for part in new.fields:
        label = f"field `{part.name}` of entity `{old.name}`"
        was = known.get(part.name)
        if was is None and part.was in renamed:
            was = known[part.was]
            yield change("field-renamed", FAMILY, old.name, f"{label} was called `{part.was}`", part.name)
        if was is not None:
            yield from _one_field(old.name, label, was, part)
        elif part.type.optional or part.has_default:
            yield change("field-added", FAMILY, old.name, f"{label} is new", part.name)
        else:
            what = f"{label} is new, and older rows have no value for it"
            yield change("field-required", FAMILY, old.name, what, part.name, old.name)
    for name in known:
        if name not in named and name not in renamed:
            yield change("field-removed", FAMILY, old.name, f"field `{name}` of entity `{old.name}` is gone")
    kept = [part.name for part in old.fields if part.name in named]
    if kept != [part.name for part in new.fields if part.name in known]:
        yield change("field-moved", FAMILY, old.name, f"the fields of entity `{old.name}` stand in another order")


def _one_field(entity: str, label: str, was: FieldPlan, part: FieldPlan) -> Iterator[Change]:
    step = type_step(was.type, part.type)
    if step != "same":
        kind = {"wider": "field-widened", "nullable": "field-nullable"}.get(step, "field-retyped")
        yield change(kind, FAMILY, entity, f"{label} was `{was.type}` and is `{part.type}`", part.name)
    if (was.has_default, was.default) != (part.has_default, part.default):
        what = f"{label} has another default" if was.has_default and part.has_default else f"{label} has a default"
        what = what if part.has_default else f"{label} has no default any more"
        yield change("field-default", FAMILY, entity, what, part.name)
    if part.secret and not was.secret:
        yield change("field-secret", FAMILY, entity, f"{label} is secret from now on", part.name)
    if was.secret and not part.secret:
        yield change("field-revealed", FAMILY, entity, f"{label} is secret no more", part.name)


def _computed_changes(old: EntityPlan, new: EntityPlan) -> Iterator[Change]:
    known = {part.name: part for part in old.computed}
    for part in new.computed:
        label = f"computed field `{part.name}` of entity `{old.name}`"
        was = known.get(part.name)
        if was is None:
            what = f"{label} is new, and older rows have no value for it"
            yield change("computed-added", FAMILY, old.name, what, part.name, old.name)
        elif type_step(was.type, part.type) not in ("same", "wider"):
            what = f"{label} was `{was.type}` and is `{part.type}`"
            yield change("computed-retyped", FAMILY, old.name, what, part.name)
        elif meaning(was.expression) != meaning(part.expression):
            what = f"{label} changed, and older rows hold the former value"
            yield change("computed-changed", FAMILY, old.name, what, part.name, old.name)
    for name in known.keys() - {part.name for part in new.computed}:
        yield change("computed-removed", FAMILY, old.name, f"computed field `{name}` of entity `{old.name}` is gone")


def _rule_changes(noun: str, family: str, old: EntityPlan, new: EntityPlan) -> Iterator[Change]:
    known = {part.name: part for part in getattr(old, family)}
    for part in getattr(new, family):
        label = f"{noun} `{part.name}` of entity `{old.name}`"
        if part.name not in known:
            yield change(f"{noun}-added", FAMILY, old.name, f"{label} is new", part.name, old.name)
        elif meaning(known[part.name]) != meaning(part):
            yield change(f"{noun}-changed", FAMILY, old.name, f"{label} changed", part.name, old.name)
    for name in known:
        if name not in {part.name for part in getattr(new, family)}:
            yield change(f"{noun}-removed", FAMILY, old.name, f"{noun} `{name}` of entity `{old.name}` is gone")
