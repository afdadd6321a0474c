"""One binding of a query: its entity, condition, order and bounds, and the paths that answer it.

A conjunct that no path answers is residual. It is refused where the whole answer rests on the path: in an aggregate,
whose bound counts the entries that it reads, and in a query of a schedule, which has to stay flat.
Absent: the choice of a path (`query_paths`), advice where there is none (`advice`), the answer (`query_answers`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from msgspec import structs

from riffdb.compiler.access_paths import Ordering
from riffdb.compiler.advice import missing_computed, report_lack
from riffdb.compiler.collector import Collector
from riffdb.compiler.conditions import Condition, Leftover, Part, calculations, conjuncts, read, reads_outside
from riffdb.compiler.draft import Draft, EntityDraft
from riffdb.compiler.expressions import lower_condition
from riffdb.compiler.linking import NameScope
from riffdb.compiler.operations import ORDERED
from riffdb.compiler.params import Params
from riffdb.compiler.query_paths import Question, Way, left_by, ways_of
from riffdb.compiler.scope import RowScope, Scope
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import AGGREGATE_ENTRIES_MAX, QUERY_ROWS_MAX
from riffdb.core.spans import Span
from riffdb.core.types import TIMESTAMP, U64, Type
from riffdb.plan.expressions import Field, Param, leaves
from riffdb.plan.queries import BindingPlan, PathPlan, QueryOutcome
from riffdb.syntax.tree import FromStmt, IndexMember, LiteralExpr, Name, ParamExpr, UniqueMember

AGGREGATES = ("count", "sum", "min", "max")
SUMMABLE = ("i64", "u64", "decimal")


@dataclass(slots=True)
class Reading:
    """What the bindings of one query share: its parameters, its partition once one has named it, and whether a schedule
    selects its items with it."""

    draft: Draft
    collector: Collector
    params: Params
    is_scheduled: bool
    partition: tuple[Param, Span] | None = None
    cursors: dict[str, Span] = field(default_factory=dict)


class Binding:
    """One binding on its way to its plan."""

    def __init__(self, reading: Reading, statement: FromStmt) -> None:
        self.reading = reading
        self.statement = statement
        self.collector = reading.collector
        self.params = reading.params

    def lower(self, missing: QueryOutcome | None) -> BindingPlan | None:
        """The plan of the binding; `missing` is what a `one` answers without a row. None after a diagnostic."""
        statement = self.statement
        entity = self.entity(statement.entity)
        if entity is None:
            return None
        where = lower_condition(statement.where, self.scope(entity), self.collector)
        order = self.order(entity)
        take = 1 if statement.kind in ("one", "maybe") else self.take()
        has_columns = self.has_columns(entity)
        cursor = self.cursor()
        if where is None or order is None or not has_columns:
            return None
        whole = Part(statement.where, where)
        if not self.has_values(whole):
            return None
        partition = self.named_partition(entity, read(conjuncts(whole)))
        question = self.question(entity, whole, order)
        if not self.is_free_of_calculations(question, entity) or partition is None:
            return None
        ways = self.ways(question, entity)
        if ways is None or take is None or cursor is None:
            return None
        return BindingPlan(
            name=statement.name.text,
            kind=statement.kind,
            entity=statement.entity.text,
            paths=tuple(_path(way, ways[0]) for way in ways),
            where=where,
            take=take,
            order=ways[0].order,
            filters=tuple(dict.fromkeys(name for way in ways for name in way.path.given)),
            cursor=cursor,
            cursor_kind=statement.cursor_kind,
            field="" if statement.of is None else statement.of.text,
            by="" if statement.by is None else statement.by.text,
            missing=missing,
        )

    # --- names ---------------------------------------------------------------------------------------------------

    def entity(self, name: Name) -> EntityDraft | None:
        """The entity of that name; None if there is none, or if its own declaration is broken."""
        draft = self.reading.draft
        if name.text not in draft.declared.entities:
            self.collector.unknown("RDB-C104", f"there is no entity `{name.text}`", name, draft.declared.entities)
        return draft.entities.get(name.text)

    def scope(self, entity: EntityDraft) -> Scope:
        """What a condition may name: the columns of the row, parameters, variants, the time."""
        columns = {name: kind for name, kind in entity.types.items() if name not in entity.secrets}
        refused = {name: f"`{name}` is secret, so no condition may ask for it" for name in entity.secrets}
        title = f"`{entity.plan.name}`"
        row = RowScope("", title, entity.plan.name, columns | {"revision": U64}, entity.broken, refused)
        enums = self.reading.draft.enums
        return Scope(enums=enums, params=self.params.types, row=row, time=True, broken=self.params.broken)

    def has_values(self, where: Part) -> bool:
        """Whether the condition asks for no cursor, which is a place and no value."""
        for leaf in leaves(where.lowered):
            if isinstance(leaf, Param) and leaf.type.kind == "cursor":
                message = f"`${leaf.name}` is a cursor, and stands only after `after` or `before`"
                self.collector.error("RDB-C604", message, where.expr.span)
                return False
        return True

    def order(self, entity: EntityDraft) -> tuple[Ordering, ...] | None:
        """The order of the rows; None after a diagnostic."""
        names = NameScope("a field of this order", self.collector)
        statement = self.statement
        found = [self.is_ordered(part.name, entity) and names.add(part.name) for part in statement.order]
        return tuple((part.name.text, part.descending) for part in statement.order) if all(found) else None

    def is_ordered(self, name: Name, entity: EntityDraft) -> bool:
        """Whether rows can be ordered by that name."""
        if name.text in entity.secrets:
            message = f"`{name.text}` is secret, so nothing is ordered by it"
            self.collector.error("RDB-C632", message, name.span, help="order by another field")
        elif name.text == "revision":
            message = "no index holds the revision, so nothing is ordered by it"
            self.collector.error("RDB-C602", message, name.span, help="order by a field")
        elif name.text in entity.plan.columns:
            return True
        elif name.text not in entity.broken:
            message = f"`{entity.plan.name}` has no field `{name.text}`"
            self.collector.unknown("RDB-C602", message, name, entity.plan.visible)
        return False

    def has_columns(self, entity: EntityDraft) -> bool:
        """Whether what an aggregate is of, or counted by, is a column that it takes."""
        statement = self.statement
        is_of = statement.of is None or self.is_folded(statement.of, entity)
        is_by = statement.by is None or self.is_counted_by(statement.by, entity)
        return is_of and is_by

    def is_counted_by(self, name: Name, entity: EntityDraft) -> bool:
        """Whether rows are counted by the column, whose value stands beside the number, which is called `n`."""
        if self.column(name, entity, "counted by") is None:
            return False
        if name.text != "n":
            return True
        message = "the number of rows is called `n` in the answer, so they cannot be counted by a field of that name"
        help = f"add a computed field with another name to `{entity.plan.name}`, and count by it"
        self.collector.error("RDB-C606", message, name.span, help=help)
        return False

    def column(self, name: Name, entity: EntityDraft, verb: str) -> Type | None:
        """The type of a column that an aggregate reads; None after a diagnostic."""
        if name.text in entity.secrets:
            self.collector.error("RDB-C632", f"`{name.text}` is secret, so nothing is {verb} it", name.span)
        elif name.text in entity.plan.columns:
            return entity.types[name.text]
        elif name.text not in entity.broken:
            message = f"`{entity.plan.name}` has no field `{name.text}`"
            self.collector.unknown("RDB-C605", message, name, entity.plan.visible)
        return None

    def is_folded(self, name: Name, entity: EntityDraft) -> bool:
        """Whether `sum`, `min` or `max` takes the column."""
        kind, fold = self.column(name, entity, "told of"), self.statement.kind
        if kind is None:
            return False
        if kind.kind not in (SUMMABLE if fold == "sum" else ORDERED):
            message = f"`{fold}` does not take `{name.text}`, which is `{kind}`"
            help = "it takes `i64`, `u64` and decimals" if fold == "sum" else "it takes what has an order"
            self.collector.error("RDB-C606", message, name.span, help=help)
            return False
        if not kind.optional:
            return True
        zero = "0" if kind.kind in SUMMABLE else "value"
        line = f"computed {name.text}_known: {kind.required} = coalesce({name.text}, {zero})"
        self.collector.error(
            "RDB-C606",
            f"`{fold}` takes values that are never null, and `{name.text}` is `{kind}`",
            name.span,
            help=f"add `{line}` to `{entity.plan.name}`, with the value to take for null, and name it here",
        )
        return False

    # --- bounds --------------------------------------------------------------------------------------------------

    def take(self) -> str | int | None:
        """The parameter or the number at most; None after a diagnostic."""
        is_aggregate = self.statement.kind in AGGREGATES
        most = AGGREGATE_ENTRIES_MAX if is_aggregate else QUERY_ROWS_MAX
        match self.statement.take:
            case LiteralExpr(kind="int", value=int(value)) if 1 <= value <= most:
                return value
            case ParamExpr(name=name) if f"${name.text}" in self.params.broken:
                return None
            case ParamExpr(name=name) if name.text not in self.params.types:
                self.report_no_param(name, "limit")
                return None
            case ParamExpr(name=name) if self.params.types[name.text].kind == "limit":
                return name.text
            case LiteralExpr() | ParamExpr() as written:
                message, help = f"`take` of `{self.statement.kind}` has a number from 1 to {most:,}", None
                if not is_aggregate:
                    message = f"`take` has a number from 1 to {most:,}, or a parameter of type `limit<N>`"
                    help = "as in `($limit: limit<100> = 32)` and `take $limit`"
                self.collector.error("RDB-C603", message, written.span, help=help)
        return None

    def report_no_param(self, name: Name, kind: str) -> None:
        """Report a parameter that does not exist, where one of that kind is asked for."""
        candidates = [f"${param}" for param, other in self.params.types.items() if other.kind == kind]
        code = "RDB-C603" if kind == "limit" else "RDB-C604"
        message = f"there is no parameter `${name.text}` here"
        self.collector.unknown(code, message, Name(f"${name.text}", name.span), candidates)

    def cursor(self) -> str | None:
        """The parameter that holds the cursor, empty without one; None after a diagnostic."""
        written = self.statement.cursor
        if written is None:
            return ""
        name = written.name
        if f"${name.text}" in self.params.broken:
            return None
        kind = self.params.types.get(name.text)
        if kind is None:
            self.report_no_param(name, "cursor")
            return None
        if kind.kind != "cursor":
            message = f"`{self.statement.cursor_kind}` takes a cursor, and `${name.text}` is `{kind}`"
            help = f"declare it as `${name.text}: optional<cursor>`"
            self.collector.error("RDB-C604", message, written.span, help=help)
            return None
        first = self.reading.cursors.setdefault(name.text, written.span)
        if first is not written.span:
            self.collector.error(
                "RDB-C604",
                f"a cursor is of one binding, and `${name.text}` is of another one already",
                written.span,
                related=(Related("used here first", first),),
                help="declare a cursor of its own for each",
            )
            return None
        return name.text

    # --- the partition -------------------------------------------------------------------------------------------

    def named_partition(self, entity: EntityDraft, condition: Condition) -> Param | None:
        """The parameter that the partition equals, which is the same for all bindings; None after a diagnostic."""
        partition, reading = entity.plan.partition, self.reading
        equality = condition.equal.get(partition)
        if equality is None:
            self.report_no_partition(partition)
            return None
        value, span = equality.single, equality.part.expr.span
        if not isinstance(value, Param) or value.type.optional:
            message = f"the partition `{partition}` must equal a parameter that is never null"
            help = f"write `{partition} == $name` with a parameter of type `{entity.types[partition]}`"
            self.collector.error("RDB-C611", message, span, help=help)
            return None
        if reading.partition is not None and reading.partition[0].name != value.name:
            self.collector.error(
                "RDB-C612",
                f"a query reads one partition, and another binding has `${reading.partition[0].name}` for it",
                span,
                related=(Related("the partition of the query", reading.partition[1]),),
            )
            return None
        reading.partition = reading.partition or (value, span)
        return value

    def report_no_partition(self, partition: str) -> None:
        """Report that a condition does not name its partition, with the conjunct to add."""
        where = self.statement.where.span
        fix = None
        if partition in self.params.types and not self.params.types[partition].optional:
            edit = Edit(replace(where, end=where.start), f"{partition} == ${partition} && ")
            fix = Fix(f"begin with `{partition} == ${partition} &&`", (edit,))
        self.collector.error(
            "RDB-C610",
            f"a query reads one partition, and this condition does not say which `{partition}`",
            where,
            fix=fix,
            help=None if fix else f"add a parameter `${partition}`, and begin with `{partition} == ${partition} &&`",
        )

    # --- paths ---------------------------------------------------------------------------------------------------

    def question(self, entity: EntityDraft, where: Part, order: tuple[Ordering, ...]) -> Question:
        """What the binding asks of the entity's indexes."""
        statement = self.statement
        wished: tuple[Ordering, ...] = ()
        if statement.of is not None and statement.kind in ("min", "max") and statement.of.text in entity.plan.types:
            wished = ((statement.of.text, statement.kind == "max"),)
        is_single = statement.kind in ("one", "maybe")
        return Question(entity.plan, self.reading.draft.enums, where, order, is_single, wished)

    def is_free_of_calculations(self, question: Question, entity: EntityDraft) -> bool:
        """Whether the condition computes nothing from fields; what does is reported."""
        found = list(calculations(question.where))
        for calculation in found:
            if reads_outside(calculation.lowered):
                self.collector.error(
                    "RDB-C622",
                    "functions and arithmetic in a condition take parameters and `tx.time` only, not fields",
                    calculation.expr.span,
                    help="move what is not of the row to the other side of the comparison",
                )
            else:
                decl = self.reading.draft.declared.entities[entity.plan.name]
                missing_computed(calculation, question, decl, entity, self.collector)
        return not found

    def ways(self, question: Question, entity: EntityDraft) -> tuple[Way, ...] | None:
        """The ways of all cases; None after a diagnostic, or where an index of the entity is broken."""
        found = ways_of(question)
        if not self.is_answered(left_by(question, found), entity):
            return None
        if isinstance(found, tuple):
            return found
        decl = self.reading.draft.declared.entities[entity.plan.name]
        declared = sum(isinstance(member, IndexMember | UniqueMember) for member in decl.members)
        if declared == len(entity.plan.indexes) + len(entity.plan.uniques):
            report_lack(found, decl, entity, self.statement, self.collector)
        return None

    def is_answered(self, left: Iterable[Leftover], entity: EntityDraft) -> bool:
        """Whether nothing is left open that a path has to answer; what is left open is reported."""
        is_aggregate = self.statement.kind in AGGREGATES
        if not is_aggregate and not self.reading.is_scheduled:
            return True
        found = {leftover.part.expr.span: leftover for leftover in left}
        for leftover in found.values():
            code, who = "RDB-C841", "a query of a schedule is"
            if is_aggregate:
                code, who = "RDB-C623", f"`{self.statement.kind}` is"
            message = f"{who} answered by ranges of an index alone: {leftover.reason}"
            help = self.lease_help(leftover.part, entity)
            help = help or "ask only for equalities and one range, over a `computed` field if need be"
            self.collector.error(code, message, leftover.part.expr.span, help=help)
        return not found

    def lease_help(self, part: Part, entity: EntityDraft) -> str | None:
        """What to ask instead of whether a lease has run out, which no range of the row's own fields tells."""
        workflow = self.reading.draft.workflow_of(entity.plan.name)
        lease = None if workflow is None else workflow.lease
        if lease is None or not any(
            isinstance(leaf, Field) and leaf.name == lease.expires_at for leaf in leaves(part.lowered)
        ):
            return None
        times = (name for name, kind in entity.types.items() if kind == TIMESTAMP)
        due = next(times, "due_at")
        example = f"max({due}, coalesce({lease.expires_at}, {due}))"
        return f"ask for a `computed` field that is `<= tx.time`, such as `{example}`, and leave this out"


def _path(way: Way, first: Way) -> PathPlan:
    """The path, with its order where that is not the binding's."""
    return way.path if way.order == first.order else structs.replace(way.path, order=way.order)
