"""Streams: the events of one partition, the fields of each that are shown, and what of them is dropped.

The partition field is the `partition_by` of every event of the stream, with the type of the parameter that names it.
Absent: consumers and deliveries, which are run-time state.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, EventDraft, present
from riffdb.compiler.expressions import lower_condition
from riffdb.compiler.linking import NameScope
from riffdb.compiler.params import Params, lower_params
from riffdb.compiler.scope import RowScope, Scope
from riffdb.core.diagnostics import Related
from riffdb.core.types import Type
from riffdb.plan.expressions import Param
from riffdb.plan.queries import StreamEventPlan, StreamPlan
from riffdb.syntax.tree import Name, StreamDecl, StreamEventDecl


def lower_streams(draft: Draft, collector: Collector) -> Draft:
    """Fill in the streams of the plan."""
    streams = {name: _stream(decl, draft, collector) for name, decl in draft.declared.streams.items()}
    return replace(draft, streams=present(streams))


def _stream(decl: StreamDecl, draft: Draft, collector: Collector) -> StreamPlan | None:
    params = lower_params(decl.params, draft, collector)
    limits = [part for part in decl.params if part.name.text in params.types and _is_bound(part.name, params)]
    for part in limits:
        message = "a stream has no limit; whoever asks for deliveries says how many"
        if params.types[part.name.text].kind == "cursor":
            message = "a stream has no cursor; a consumer's place is kept by the database"
        collector.error("RDB-C703", message, part.type.span, help="leave the parameter out")
    partition = _partition(decl, params, collector)
    names = NameScope("an event of this stream", collector)
    found = [_event(part, decl, partition, params, draft, collector) for part in decl.events if names.add(part.event)]
    if not decl.events:
        message = f"`{decl.name.text}` has no events"
        collector.error("RDB-C700", message, decl.name.span, help="name at least one, as in `event Name { field }`")
    events = tuple(part for part in found if part is not None)
    is_whole = len(events) == len(decl.events) > 0 and len(params.plans) == len(decl.params) and not limits
    if partition is None or not is_whole:
        return None
    return StreamPlan(decl.name.text, params.plans, partition, events, decl.doc)


def _is_bound(name: Name, params: Params) -> bool:
    return params.types[name.text].kind in ("limit", "cursor")


def _partition(decl: StreamDecl, params: Params, collector: Collector) -> Param | None:
    name = decl.partition_value.name
    kind = params.types.get(name.text)
    if kind is None:
        if f"${name.text}" not in params.broken:
            candidates = [f"${param}" for param in params.types]
            message = f"there is no parameter `${name.text}` here"
            collector.unknown("RDB-C205", message, Name(f"${name.text}", decl.partition_value.span), candidates)
        return None
    if kind.optional:
        message = f"the partition is never null, and `${name.text}` may be"
        collector.error("RDB-C702", message, decl.partition_value.span, help=f"declare it as `{kind.required}`")
        return None
    return Param(kind, name.text)


def _event(
    part: StreamEventDecl,
    decl: StreamDecl,
    partition: Param | None,
    params: Params,
    draft: Draft,
    collector: Collector,
) -> StreamEventPlan | None:
    event = draft.events.get(part.event.text)
    if event is None:
        if part.event.text not in draft.declared.events:
            message = f"there is no event `{part.event.text}`"
            collector.unknown("RDB-C104", message, part.event, draft.declared.events)
        return None
    is_placed = partition is None or _has_partition(part, decl, event, partition.type, draft, collector)
    names = NameScope("a field of this selection", collector)
    selected = [_is_field(name, event, collector) and names.add(name) for name in part.selection.fields]
    fields = tuple(name.text for name in part.selection.fields)
    if part.where is None:
        return StreamEventPlan(event.plan.name, fields) if is_placed and all(selected) else None
    row = RowScope("", f"`{event.plan.name}`", "", event.types, event.broken)
    scope = Scope(enums=draft.enums, params=params.types, row=row, broken=params.broken)
    where = lower_condition(part.where, scope, collector)
    is_whole = is_placed and all(selected) and where is not None
    return StreamEventPlan(event.plan.name, fields, where) if is_whole else None


def _has_partition(
    part: StreamEventDecl, decl: StreamDecl, event: EventDraft, kind: Type, draft: Draft, collector: Collector
) -> bool:
    """Whether the event lies in the partition that the stream names."""
    declared = draft.declared.events[event.plan.name].partition
    if event.plan.partition != decl.partition.text:
        collector.error(
            "RDB-C701",
            f"the partition of `{event.plan.name}` is `{event.plan.partition}`, and of the stream"
            f" `{decl.partition.text}`",
            part.event.span,
            related=(
                Related("the partition of the stream", decl.partition.span),
                Related("the partition of the event", declared.span),
            ),
            help="a stream shows events of one partition; put this one into a stream of its own",
        )
        return False
    wanted = event.types[event.plan.partition]
    if wanted == kind:
        return True
    collector.error(
        "RDB-C702",
        f"`{event.plan.partition}` of `{event.plan.name}` is `{wanted}`,"
        f" and `${decl.partition_value.name.text}` is `{kind}`",
        decl.partition_value.span,
        related=(Related("declared here", declared.span),),
        help=f"declare the parameter as `{wanted}`",
    )
    return False


def _is_field(name: Name, event: EventDraft, collector: Collector) -> bool:
    if name.text in event.types:
        return True
    if name.text not in event.broken:
        message = f"`{event.plan.name}` has no field `{name.text}`"
        collector.unknown("RDB-C704", message, name, event.types)
    return False
