"""The items of a schedule: what a query's answer, or a stream's event, must show so that a worker can act on it.

An item shows the key of the leased row, a due time that is never null, and the revision that the claim presents.
Absent: which rows a query may select (`schedule_selection`), and the commands of the schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.scheduled_commands import Leased
from riffdb.compiler.typing import fits
from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.spans import Span
from riffdb.core.types import TIMESTAMP, U64, Type
from riffdb.plan.queries import BindingPlan, QueryPlan, StreamPlan
from riffdb.syntax.tree import Name, QueryDecl, ScheduleDecl, Selection


@dataclass(frozen=True, slots=True)
class Items:
    """What each item shows, of which types, how messages call it and what it is of, and where it is selected."""

    title: str
    origin: str
    fields: frozenset[str]
    types: Mapping[str, Type]
    broken: frozenset[str]
    span: Span
    selection: Selection | None
    revision: str = "revision"


def check_items(items: Items, decl: ScheduleDecl, leased: Leased, collector: Collector) -> bool:
    """Whether an item shows the key, a due time and the revision."""
    found = len(collector.diagnostics)
    _check_key(items, leased, collector)
    _check_due(items, decl, collector)
    _check_revision(items, decl, collector)
    return len(collector.diagnostics) == found


def _check_key(items: Items, leased: Leased, collector: Collector) -> None:
    key = leased.entity.plan.key
    missing = tuple(part.name for part in key if part.name not in items.fields)
    if missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        message = f"{items.title} does not show {shown}, which a worker needs to name the row"
        fix = _addition(items, missing) if set(missing) <= items.types.keys() else None
        help = None if fix else f"key fields are found under their own names; `{items.origin}` has to have them"
        collector.error("RDB-C822", message, items.span, fix=fix, help=help)
        return
    for part in key:
        kind = items.types[part.name]
        if not fits(kind, part.type):
            message = f"`{part.name}` of `{items.origin}` is `{kind}`, and in the key of `{leased.entity.plan.name}` it"
            help = "declare both with the same type"
            collector.error("RDB-C829", f"{message} is `{part.type}`", items.span, help=help)
            return


def _check_due(items: Items, decl: ScheduleDecl, collector: Collector) -> None:
    due = decl.due
    if due is None or due.text in items.broken:
        return
    kind = items.types.get(due.text)
    if kind is None:
        candidates = [name for name, other in items.types.items() if other == TIMESTAMP]
        message = f"`{items.origin}` has no field `{due.text}`"
        collector.unknown("RDB-C823", message, due, candidates)
    elif kind != TIMESTAMP:
        message = f"a due time is a timestamp that is never null, and `{due.text}` is `{kind}`"
        collector.error("RDB-C824", message, due.span, help="name a field of type `timestamp`")
    elif due.text not in items.fields:
        message = f"{items.title} does not show `{due.text}`"
        collector.error("RDB-C823", message, due.span, fix=_addition(items, (due.text,)))


def _check_revision(items: Items, decl: ScheduleDecl, collector: Collector) -> None:
    name, span = items.revision, items.span if decl.revision is None else decl.revision.span
    kind = items.types.get(name)
    if name in items.broken:
        return
    if kind is not None and kind != U64:
        message = f"a revision is `u64`, and `{name}` of `{items.origin}` is `{kind}`"
        collector.error("RDB-C826", message, span, help="name the field that has the revision of the row")
    elif name not in items.fields:
        fix = _addition(items, (name,)) if kind is not None else None
        help = None if fix else "name the field that has it, as in `revision row_revision`"
        message = f"{items.title} does not show `{name}`, which a claim presents"
        collector.error("RDB-C825", message, span, fix=fix, help=help)


def _addition(items: Items, names: tuple[str, ...]) -> Fix | None:
    if items.selection is None or not items.selection.fields:
        return None
    last = items.selection.fields[-1].span
    text = "".join(f" {name}" for name in names)
    shown = ", ".join(f"`{name}`" for name in names)
    return Fix(f"add {shown} to the selection", (Edit(replace(last, start=last.end), text),))


# --- from a query ------------------------------------------------------------------------------------------------


def query_items(
    decl: ScheduleDecl, query: QueryPlan, draft: Draft, leased: Leased, collector: Collector
) -> tuple[Items, BindingPlan] | None:
    """The items of a query's answer and the binding that reads them; None after a diagnostic."""
    written = draft.declared.queries[query.name]
    if decl.each is None:
        return None
    selection = next((part for part in query.payload if part.name == decl.each.text), None)
    if selection is None:
        message = f"the answer of `{query.name}` has no `{decl.each.text}`"
        collector.unknown("RDB-C820", message, decl.each, [part.name for part in query.payload])
        return None
    many = next((part for part in query.bindings if part.name == selection.binding), None)
    entity = leased.entity.plan
    if many is None or many.kind != "many" or selection.is_cursor:
        message = f"`{decl.each.text}` of `{query.name}` is no list of rows"
        help = "name a value of the answer that holds the rows of a `many`"
        collector.error("RDB-C827", message, decl.each.span, help=help)
        return None
    if many.cursor:
        message = f"a schedule reads the first page of its items, and `{many.name}` of `{query.name}` has a cursor"
        help = "give the schedule a query of its own, without the cursor"
        collector.error("RDB-C843", message, decl.each.span, help=help)
        return None
    if many.entity != entity.name:
        collector.error(
            "RDB-C821",
            f"`{decl.each.text}` of `{query.name}` holds rows of `{many.entity}`, and the claim leases `{entity.name}`",
            decl.each.span,
            help=f"name a value of the answer that holds rows of `{entity.name}`",
        )
        return None
    if decl.revision is not None and decl.revision.text != "revision":
        message = "from a query, the revision of an item is the `revision` of its row"
        fix = Fix("write `revision revision`, or leave the clause out", (Edit(decl.revision.span, "revision"),))
        collector.error("RDB-C826", message, decl.revision.span, fix=fix)
        return None
    span, chosen = _selection_of(written, decl.each)
    title = f"`{decl.each.text}` of `{query.name}`"
    types = {**leased.entity.types, "revision": U64}
    fields = frozenset(selection.fields)
    return Items(title, entity.name, fields, types, leased.entity.broken, span, chosen), many


def _selection_of(query: QueryDecl, each: Name) -> tuple[Span, Selection | None]:
    assert query.answer is not None
    for item in query.answer.outcome.payload.items:
        if item.name.text == each.text:
            return item.span, item.selection
    raise AssertionError("the plan has a payload value that the query does not declare")


# --- from a stream -----------------------------------------------------------------------------------------------


def stream_items(
    decl: ScheduleDecl, stream: StreamPlan, draft: Draft, leased: Leased, collector: Collector
) -> tuple[Items, str] | None:
    """The items of a stream and the event that they are; None after a diagnostic."""
    names = [part.event for part in stream.events]
    place = decl.source_name if decl.event is None else decl.event
    if decl.event is None and len(names) > 1:
        listed = " or ".join(f"`event {name}`" for name in names)
        message = f"`{stream.name}` has several events, and the schedule does not say which are its items"
        collector.error("RDB-C828", message, place.span, help=f"add {listed} after the name of the stream")
        return None
    if decl.event is not None and decl.event.text not in names:
        message = f"`{stream.name}` has no event `{decl.event.text}`"
        collector.unknown("RDB-C828", message, decl.event, names)
        return None
    event = draft.events[names[0] if decl.event is None else decl.event.text]
    part = next(part for part in stream.events if part.event == event.plan.name)
    entity = leased.entity.plan
    if event.plan.partition != entity.partition:
        message = f"the partition of `{event.plan.name}` is `{event.plan.partition}`, and of `{entity.name}`"
        help = "an event is about rows of its own partition; call both by one name"
        collector.error("RDB-C829", f"{message} `{entity.partition}`", place.span, help=help)
        return None
    written = draft.declared.streams[stream.name]
    chosen = next(one for one in written.events if one.event.text == event.plan.name)
    return (
        Items(
            title=f"`{event.plan.name}` of `{stream.name}`",
            origin=event.plan.name,
            fields=frozenset(part.fields),
            types=event.types,
            broken=event.broken,
            span=chosen.span,
            selection=chosen.selection,
            revision="revision" if decl.revision is None else decl.revision.text,
        ),
        event.plan.name,
    )
