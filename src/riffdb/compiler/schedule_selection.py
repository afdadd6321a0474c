"""Which rows the query of a schedule selects: none that somebody holds, and none that stays after its work is done.

Both are told from the paths, which answer the whole condition; where the query has optional filters, in every case.
Absent: what an item shows, which `schedule_items` sees to.
"""

from collections.abc import Iterator

from riffdb.compiler.access_paths import index_line, index_name
from riffdb.compiler.collector import Collector
from riffdb.compiler.scheduled_commands import Leased, Scheduled
from riffdb.compiler.steps import is_on_every_path
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import SetStep, Step, TransitionStep
from riffdb.plan.expressions import Call, Constant, Expression, Field, TransactionTime, leaves
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan
from riffdb.syntax.tree import QueryDecl, ScheduleDecl


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
