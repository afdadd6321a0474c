"""Events: fields and the one among them that holds the partition.

An event with a broken field keeps the others, so that what emits it is still checked.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, EventDraft, present
from riffdb.compiler.linking import NameScope
from riffdb.compiler.typing import KEY_KINDS, lower_type
from riffdb.plan.declarations import EventPlan, FieldPlan
from riffdb.syntax.tree import EventDecl


def lower_events(draft: Draft, collector: Collector) -> Draft:
    """Lower every event."""
    events = {name: _event(decl, draft, collector) for name, decl in draft.declared.events.items()}
    return replace(draft, events=present(events))


def _event(decl: EventDecl, draft: Draft, collector: Collector) -> EventDraft | None:
    scope = NameScope("a field", collector)
    fields = []
    broken = set()
    for part in decl.fields:
        kind = lower_type(part.type, draft.declared, "event", collector) if scope.add(part.name) else None
        if kind is None:
            broken.add(part.name.text)
        else:
            fields.append(FieldPlan(part.name.text, kind, doc=part.doc))
    types = {part.name: part.type for part in fields}
    partition = decl.partition
    if partition.text in broken:
        return None
    if partition.text not in types:
        message = f"`{decl.name.text}` has no field `{partition.text}` to be its partition"
        collector.unknown("RDB-C310", message, partition, types)
        return None
    kind = types[partition.text]
    if kind.optional or kind.kind not in KEY_KINDS:
        wanted = "a partition is a uuid, u64, i64, string, date, timestamp or enum, and not optional"
        collector.error("RDB-C311", f"`{kind}` cannot be a partition", partition.span, help=wanted)
        return None
    return EventDraft(EventPlan(decl.name.text, partition.text, tuple(fields), decl.doc), types, frozenset(broken))
