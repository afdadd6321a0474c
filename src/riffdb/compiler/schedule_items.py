"""The items of a schedule: what a query's answer, or a stream's event, must show so that a worker can act on it.

An item shows the key of the leased row, a due time that is never null, and the revision that the claim presents. A
query also leaves out what somebody holds, and what stays in it after its work is done.
Absent: the commands of the schedule.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from riffdb.compiler.access_paths import index_line, index_name
from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.scheduled_commands import Leased, Scheduled
from riffdb.compiler.steps import is_on_every_path
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.spans import Span
from riffdb.core.types import TIMESTAMP
from riffdb.plan.commands import SetStep, Step, TransitionStep
from riffdb.plan.expressions import Call, Constant, Expression, Field, TransactionTime, leaves
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan, QueryPlan
from riffdb.syntax.tree import Name, QueryDecl, ScheduleDecl, Selection


@dataclass(frozen=True, slots=True)
class Items:
    """What each item shows, how messages call it, and where it is selected."""

    title: str
    fields: frozenset[str]
    span: Span
    selection: Selection | None


def check_items(items: Items, decl: ScheduleDecl, leased: Leased, collector: Collector) -> bool:
    """Whether an item shows the key, a due time and the revision."""
    found = len(collector.diagnostics)
    _check_key(items, leased, collector)
    _check_due(items, decl, leased, collector)
    if "revision" not in items.fields:
        message = f"{items.title} does not show `revision`, which a claim presents"
        collector.error("RDB-C825", message, items.span, fix=_addition(items, ("revision",)))
    return len(collector.diagnostics) == found


def _check_key(items: Items, leased: Leased, collector: Collector) -> None:
    key = leased.entity.plan.key
    missing = tuple(part.name for part in key if part.name not in items.fields)
    if missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        message = f"{items.title} does not show {shown}, which a worker needs to name the row"
        collector.error("RDB-C822", message, items.span, fix=_addition(items, missing))


def _check_due(items: Items, decl: ScheduleDecl, leased: Leased, collector: Collector) -> None:
    due, types = decl.due, leased.entity.types
    if due is None or due.text in leased.entity.broken:
        return
    kind = types.get(due.text)
    if kind is None:
        candidates = [name for name, other in types.items() if other == TIMESTAMP]
        message = f"`{leased.entity.plan.name}` has no field `{due.text}`"
        collector.unknown("RDB-C823", message, due, candidates)
    elif kind != TIMESTAMP:
        message = f"a due time is a timestamp that is never null, and `{due.text}` is `{kind}`"
        collector.error("RDB-C824", message, due.span, help="name a field of type `timestamp`")
    elif due.text not in items.fields:
        message = f"{items.title} does not show `{due.text}`"
        collector.error("RDB-C823", message, due.span, fix=_addition(items, (due.text,)))


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
    return Items(f"`{decl.each.text}` of `{query.name}`", frozenset(selection.fields), span, chosen), many


def _selection_of(query: QueryDecl, each: Name) -> tuple[Span, Selection | None]:
    assert query.answer is not None
    for item in query.answer.outcome.payload.items:
        if item.name.text == each.text:
            return item.span, item.selection
    raise AssertionError("the plan has a payload value that the query does not declare")


def check_selection(
    decl: ScheduleDecl, written: QueryDecl, many: BindingPlan, run: Scheduled, leased: Leased, collector: Collector
) -> None:
    """A schedule's query leaves out rows that are held, and rows whose work is done."""
    statement = next(part for part in written.bindings if part.name.text == many.name)
    place = (Related("the condition", statement.where.span),)
    if not all(_excludes_held(path, leased) for path in many.paths):
        collector.error(
            "RDB-C840",
            f"`{written.name.text}` also selects rows that a worker holds, which every other worker would try in vain",
            decl.source_name.span,
            related=place,
            help=_held_remedy(many, leased, decl),
        )
    elif any(_stays_selected(path, run, leased) for path in many.paths):
        collector.error(
            "RDB-C842",
            f"a row that `{run.command.name}` is done with stays in `{written.name.text}`, and comes up again",
            run.name.span,
            related=place,
            help="move the row to a state that the query leaves out, or set a field that its condition asks for",
        )


def _held_remedy(many: BindingPlan, leased: Leased, decl: ScheduleDecl) -> str:
    due = "due_at" if decl.due is None else decl.due.text
    expiry = leased.lease.expires_at
    for part in leased.entity.plan.computed:
        if _covers(part.expression, expiry):
            return f"let the range be `{part.name} <= tx.time`"
    entity = leased.entity.plan
    name = "available_at" if "available_at" not in entity.types else "leasable_at"
    computed = f"computed {name}: timestamp = max({due}, coalesce({expiry}, {due}))"
    columns = [(column, False) for column in (*_equal_columns(many.paths[0], leased), name)]
    index = index_line(index_name(columns, entity.partition, {part.name for part in entity.indexes}), columns)
    return f"add `{computed}` and `{index}` to `{entity.name}`, and let the range be `{name} <= tx.time`"


def _columns(path: PathPlan, leased: Leased) -> tuple[str, ...]:
    """The columns of the index, unique or key that a path reads."""
    entity = leased.entity.plan
    columns = {"": entity.storage_key} | {unique.name: unique.columns for unique in entity.uniques}
    return (columns | {index.name: index.columns for index in entity.indexes})[path.index]


def _range_column(path: PathPlan, leased: Leased) -> str | None:
    if path.lower is None and path.upper is None:
        return None
    return _columns(path, leased)[len(path.prefix)]


def _equal_columns(path: PathPlan, leased: Leased) -> dict[str, PrefixPlan]:
    return dict(zip(_columns(path, leased), path.prefix, strict=False))


def _excludes_held(path: PathPlan, leased: Leased) -> bool:
    """Whether the ranges end at `tx.time`, over the lease's expiry or a computed field that is never before it."""
    column, upper = _range_column(path, leased), path.upper
    if column is None or upper is None or not isinstance(upper.value, TransactionTime):
        return False
    expiry = leased.lease.expires_at
    computed = {part.name: part.expression for part in leased.entity.plan.computed}
    return column == expiry or (column in computed and _covers(computed[column], expiry))


def _covers(expression: Expression, expiry: str) -> bool:
    """Whether the value is never before the expiry, where there is one."""
    match expression:
        case Field(name=name):
            return name == expiry
        case Call(function="max", arguments=arguments):
            return any(_covers(argument, expiry) for argument in arguments)
        case Call(function="coalesce", arguments=arguments):
            return _covers(arguments[0], expiry)
    return False


def _stays_selected(path: PathPlan, run: Scheduled, leased: Leased) -> bool:
    """Whether it can be seen that a successful run leaves the row as the condition asks for it."""
    if run.binding.kind == "delete":
        return False
    workflow, lease = leased.workflow, leased.lease
    asked = set(_asked_fields(path, leased)) - {part.name for part in leased.entity.plan.key}
    if asked & {lease.fencing_token, lease.attempts}:
        return False
    asked -= {lease.owner, lease.expires_at}
    states = _equal_columns(path, leased).get(workflow.state, PrefixPlan()).values
    selected = {state.value for state in states if isinstance(state, Constant)}
    destinations = {part.name: part.destination for part in workflow.transitions}

    def deselects(step: Step) -> bool:
        match step:
            case SetStep(binding=binding, field=field):
                return binding == run.binding.name and field in asked
            case TransitionStep(binding=binding, transition=transition):
                if binding != run.binding.name or workflow.state not in asked:
                    return False
                return destinations[transition] not in selected
        return False

    return not is_on_every_path(run.command.steps, deselects)


def _asked_fields(path: PathPlan, leased: Leased) -> Iterator[str]:
    """The stored fields that the condition rests on, through computed ones."""
    computed = {part.name: part.expression for part in leased.entity.plan.computed}
    column = _range_column(path, leased)
    for name in [*_equal_columns(path, leased), *([] if column is None else [column])]:
        if name in computed:
            yield from (leaf.name for leaf in leaves(computed[name]) if isinstance(leaf, Field))
        else:
            yield name
