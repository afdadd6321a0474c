"""Queries: parameters, bindings with their access path, the answer. Each reads one range of one index in one partition.

The path is chosen here and answers the whole condition; what no path answers is refused, with the `index` and
`computed` lines to add. A construct that the plan has no place for yet is refused as such, never left out.
Absent: the choice itself (`access_paths`) and the reading of conditions (`conditions`).
"""

from dataclasses import replace

from riffdb.compiler.access_paths import Demand, Ordering, Path, choose
from riffdb.compiler.advice import missing_computed, missing_path
from riffdb.compiler.collector import Collector
from riffdb.compiler.conditions import Condition, Odd, calculated_side, reads_outside, take_apart
from riffdb.compiler.draft import Draft, EntityDraft, present
from riffdb.compiler.expressions import lower_condition
from riffdb.compiler.linking import NameScope
from riffdb.compiler.params import lower_params, not_yet
from riffdb.compiler.scope import RowScope, Scope
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import QUERY_ROWS_MAX
from riffdb.core.spans import Span
from riffdb.core.types import U64
from riffdb.plan.expressions import Expression, Param
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan, QueryField, QueryPlan
from riffdb.syntax.tree import (
    FromStmt,
    IndexMember,
    LiteralExpr,
    Name,
    NameExpr,
    ParamExpr,
    PayloadItem,
    QueryDecl,
    Selection,
)


def lower_queries(draft: Draft, collector: Collector) -> Draft:
    """Fill in the queries of the plan."""
    queries = {name: _Query(decl, draft, collector).lower() for name, decl in draft.declared.queries.items()}
    return replace(draft, queries=present(queries))


class _Query:
    """One query on its way to its plan."""

    def __init__(self, decl: QueryDecl, draft: Draft, collector: Collector) -> None:
        self.decl = decl
        self.draft = draft
        self.collector = collector
        self.params = lower_params(decl.params, draft, collector)
        self.partition: tuple[Param, Span] | None = None
        self.is_scheduled = any(
            schedule.source == "query" and schedule.source_name.text == decl.name.text
            for schedule in draft.declared.schedules.values()
        )

    def lower(self) -> QueryPlan | None:
        """The plan of the query, or None after at least one diagnostic."""
        decl, collector = self.decl, self.collector
        if decl.reveals:
            not_yet("`reveals`", decl.reveals[0].span, collector)
        names = NameScope("a binding", collector)
        bindings = {part.name.text: self.binding(part) for part in decl.bindings if names.add(part.name)}
        whole = present(bindings)
        if not decl.bindings:
            message = f"`{decl.name.text}` reads nothing"
            help = "add `many rows from Entity where … order by … take …`"
            collector.error("RDB-C600", message, decl.name.span, help=help)
        payload = self.payload(bindings)
        is_whole = len(whole) == len(decl.bindings) and len(self.params.plans) == len(decl.params)
        if decl.answer is None or payload is None or self.partition is None or not is_whole or decl.reveals:
            return None
        return QueryPlan(
            name=decl.name.text,
            params=self.params.plans,
            partition=self.partition[0],
            bindings=tuple(whole.values()),
            outcome=decl.answer.outcome.name.text,
            payload=payload,
            doc=decl.doc,
        )

    # --- bindings ------------------------------------------------------------------------------------------------

    def binding(self, statement: FromStmt) -> BindingPlan | None:
        """One binding with its path."""
        if statement.kind != "many":
            not_yet(f"`{statement.kind}` in a query", statement.span, self.collector)
            return None
        entity = self.entity(statement.entity)
        if entity is None:
            return None
        where = lower_condition(statement.where, self.scope(entity), self.collector)
        order = self.order(statement, entity)
        take = self.take(statement)
        if statement.cursor is not None:
            cursor = f"${statement.cursor.name.text}"
            if cursor not in self.params.broken:
                not_yet(f"`{statement.cursor_kind}` with a cursor", statement.cursor.span, self.collector)
            return None
        if where is None or order is None:
            return None
        condition = take_apart(statement.where, where)
        partition = self.named_partition(statement, entity, condition)
        demand = _demand(entity, condition, order)
        is_plain = self.report_odd(statement, entity, condition, demand)
        path = self.path(statement, entity, condition, demand) if partition is not None and is_plain else None
        if path is None or take is None:
            return None
        return _many(statement, entity, condition, where, path, take)

    def entity(self, name: Name) -> EntityDraft | None:
        """The entity of that name; None if there is none, or if its own declaration is broken."""
        declared = self.draft.declared.entities
        if name.text not in declared:
            self.collector.unknown("RDB-C104", f"there is no entity `{name.text}`", name, declared)
        return self.draft.entities.get(name.text)

    def scope(self, entity: EntityDraft) -> Scope:
        """What a condition may name: the columns of the row, parameters, variants, the time."""
        columns = {name: kind for name, kind in entity.types.items() if name not in entity.secrets}
        refused = {name: f"`{name}` is secret, so no condition may ask for it" for name in entity.secrets}
        title = f"`{entity.plan.name}`"
        row = RowScope("", title, entity.plan.name, columns | {"revision": U64}, entity.broken, refused)
        return Scope(enums=self.draft.enums, params=self.params.types, row=row, time=True, broken=self.params.broken)

    def order(self, statement: FromStmt, entity: EntityDraft) -> tuple[Ordering, ...] | None:
        """The order of the rows; None after a diagnostic."""
        names = NameScope("a field of this order", self.collector)
        found = [self.is_column(part.name, entity) and names.add(part.name) for part in statement.order]
        return tuple((part.name.text, part.descending) for part in statement.order) if all(found) else None

    def is_column(self, name: Name, entity: EntityDraft) -> bool:
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

    def take(self, statement: FromStmt) -> str | int | None:
        """The parameter or the number of rows at most; None after a diagnostic."""
        match statement.take:
            case LiteralExpr(kind="int", value=int(value)) if 1 <= value <= QUERY_ROWS_MAX:
                return value
            case ParamExpr(name=name) if f"${name.text}" in self.params.broken:
                return None
            case ParamExpr(name=name) if name.text not in self.params.types:
                candidates = [f"${param}" for param, kind in self.params.types.items() if kind.kind == "limit"]
                message = f"there is no parameter `${name.text}` here"
                self.collector.unknown("RDB-C603", message, Name(f"${name.text}", name.span), candidates)
                return None
            case ParamExpr(name=name) if self.params.types[name.text].kind == "limit":
                return name.text
        span = statement.name.span if statement.take is None else statement.take.span
        message = f"`take` has a number from 1 to {QUERY_ROWS_MAX:,}, or a parameter of type `limit<N>`"
        self.collector.error("RDB-C603", message, span, help="as in `($limit: limit<100> = 32)` and `take $limit`")
        return None

    # --- conditions ----------------------------------------------------------------------------------------------

    def named_partition(self, statement: FromStmt, entity: EntityDraft, condition: Condition) -> Param | None:
        """The parameter that the partition equals, which is the same for all bindings; None after a diagnostic."""
        partition = entity.plan.partition
        equality = condition.equal.get(partition)
        if equality is None:
            self.report_no_partition(statement, partition)
            return None
        value = equality.value
        if not isinstance(value, Param) or value.type.optional:
            message = f"the partition `{partition}` must equal a parameter that is never null"
            help = f"write `{partition} == $name` with a parameter of type `{entity.types[partition]}`"
            self.collector.error("RDB-C611", message, equality.span, help=help)
            return None
        if self.partition is not None and self.partition[0].name != value.name:
            self.collector.error(
                "RDB-C612",
                f"a query reads one partition, and another binding has `${self.partition[0].name}` for it",
                equality.span,
                related=(Related("the partition of the query", self.partition[1]),),
            )
            return None
        self.partition = self.partition or (value, equality.span)
        return value

    def report_no_partition(self, statement: FromStmt, partition: str) -> None:
        """Report that a condition does not name its partition, with the conjunct to add."""
        start = replace(statement.where.span, end=statement.where.span.start)
        fix = None
        if partition in self.params.types and not self.params.types[partition].optional:
            edit = Edit(start, f"{partition} == ${partition} && ")
            fix = Fix(f"begin with `{partition} == ${partition} &&`", (edit,))
        self.collector.error(
            "RDB-C610",
            f"a query reads one partition, and this condition does not say which `{partition}`",
            statement.where.span,
            fix=fix,
            help=None if fix else f"add a parameter `${partition}`, and begin with `{partition} == ${partition} &&`",
        )

    def report_odd(self, statement: FromStmt, entity: EntityDraft, condition: Condition, demand: Demand) -> bool:
        """Report each conjunct that no path answers; whether there was none."""
        for odd in condition.odd:
            if odd.kind == "calculation" and not reads_outside(calculated_side(odd)[1]):
                missing_computed(self.draft.declared.entities[entity.plan.name], entity, odd, demand, self.collector)
            elif odd.kind == "calculation":
                self.collector.error(
                    "RDB-C622",
                    "functions and arithmetic in a condition take parameters and `tx.time` only, not fields",
                    calculated_side(odd)[0].span,
                    help="move what is not of the row to the other side of the comparison",
                )
            else:
                self.report_residual(odd)
        return not condition.odd

    def report_residual(self, odd: Odd) -> None:
        """Report a conjunct that would have to be filtered or merged."""
        if self.is_scheduled:
            message = f"a query of a schedule is answered by one range of an index alone: {odd.reason}"
            help = "ask only for equalities and one range, over a `computed` field if need be"
            self.collector.error("RDB-C841", message, odd.expr.span, help=help)
        elif odd.kind == "residual":
            message = f"a condition beside the one range of an index is not supported yet: {odd.reason}"
            help = "ask only for equalities and one range, over a `computed` field if need be"
            self.collector.error("RDB-C690", message, odd.expr.span, help=help)
        else:
            word = "`||`" if odd.kind == "union" else "`in`"
            not_yet(f"{word} in a query's condition", odd.expr.span, self.collector)

    def path(self, statement: FromStmt, entity: EntityDraft, condition: Condition, demand: Demand) -> Path | None:
        """The path of the binding; None after a diagnostic, or where an index of the entity is broken."""
        path = choose(entity.plan, demand)
        if path is not None:
            return path
        if not demand.is_possible and condition.range is not None:
            self.collector.error(
                "RDB-C621",
                f"no index gives this order: it must begin with `{demand.ranged}`, which has the range",
                statement.order[0].span.to(statement.order[-1].span),
                related=(Related("the range", condition.range.span),),
                help=f"write `order by {demand.ranged}, …`",
            )
            return None
        decl = self.draft.declared.entities[entity.plan.name]
        if sum(isinstance(member, IndexMember) for member in decl.members) == len(entity.plan.indexes):
            missing_path(decl, entity, statement, demand, self.collector)
        return None

    # --- the answer ----------------------------------------------------------------------------------------------

    def payload(self, bindings: dict[str, BindingPlan | None]) -> tuple[QueryField, ...] | None:
        """The payload of the answer; None after a diagnostic, or where a binding is broken."""
        if self.decl.answer is None:
            return None
        names = NameScope("a value of this answer", self.collector)
        items = self.decl.answer.outcome.payload.items
        found = [self.selection(item, bindings) if names.add(item.name) else None for item in items]
        whole = tuple(part for part in found if part is not None)
        return whole if len(whole) == len(found) else None

    def selection(self, item: PayloadItem, bindings: dict[str, BindingPlan | None]) -> QueryField | None:
        """One value of the answer: a binding's rows, with the selected fields or all that are no secret."""
        if not isinstance(item.value, NameExpr):
            not_yet("a value other than the rows of a binding in a query's answer", item.value.span, self.collector)
            return None
        name = item.value.name
        if name.text not in bindings:
            self.collector.unknown("RDB-C630", f"there is no binding `{name.text}` here", name, bindings)
            return None
        statement = next(part for part in self.decl.bindings if part.name.text == name.text)
        entity = self.draft.entities.get(statement.entity.text)
        if entity is None:
            return None
        fields = self.selected(item.selection, entity)
        return None if fields is None else QueryField(item.name.text, name.text, fields)

    def selected(self, selection: Selection | None, entity: EntityDraft) -> tuple[str, ...] | None:
        """The fields of a selection; None after a diagnostic."""
        if selection is None:
            return (*entity.plan.visible, "revision")
        names = NameScope("a field of this selection", self.collector)
        found = [self.is_selectable(name, entity) and names.add(name) for name in selection.fields]
        return tuple(name.text for name in selection.fields) if all(found) else None

    def is_selectable(self, name: Name, entity: EntityDraft) -> bool:
        """Whether a query may show that field."""
        if name.text in entity.secrets:
            message = f"`{name.text}` is secret, so a query does not show it"
            self.collector.error("RDB-C632", message, name.span, help="leave it out of the selection")
            return False
        if name.text == "revision" or name.text in entity.types:
            return True
        if name.text not in entity.broken:
            message = f"`{entity.plan.name}` has no field `{name.text}`"
            self.collector.unknown("RDB-C631", message, name, [*entity.plan.visible, "revision"])
        return False


def _demand(entity: EntityDraft, condition: Condition, order: tuple[Ordering, ...]) -> Demand:
    partition = entity.plan.partition
    equal = sorted(condition.equal, key=lambda name: name != partition)
    return Demand(tuple(equal), None if condition.range is None else condition.range.column, order)


def _many(
    statement: FromStmt, entity: EntityDraft, condition: Condition, where: Expression, path: Path, take: str | int
) -> BindingPlan:
    found = condition.range
    order = tuple((part.name.text, part.descending) for part in statement.order)
    named = {name for name, _ in order}
    rest = tuple((name, path.reverse) for name in entity.plan.storage_key if name not in named)
    return BindingPlan(
        name=statement.name.text,
        kind="many",
        entity=statement.entity.text,
        paths=(
            PathPlan(
                index=path.index,
                prefix=tuple(PrefixPlan((condition.equal[name].value,)) for name in path.equal),
                lower=None if found is None else found.lower,
                upper=None if found is None else found.upper,
                reverse=path.reverse,
            ),
        ),
        where=where,
        take=take,
        order=(*order, *rest),
    )
