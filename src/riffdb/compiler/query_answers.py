"""What a query answers: values of an outcome, each the rows of a binding, its cursor, its number, or an expression.

Rows are shown with the fields that are selected, or with all that are no secret; a secret only where it is selected and
the header reveals it. Expressions read parameters, `tx.time` and the rows of `one` and `maybe`.
Absent: how rows are found.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from riffdb.compiler.collector import Collector, remove
from riffdb.compiler.draft import Draft, EntityDraft
from riffdb.compiler.expressions import infer
from riffdb.compiler.linking import NameScope
from riffdb.compiler.outcomes import SCALARS
from riffdb.compiler.params import Params
from riffdb.compiler.scope import RowScope, Scope
from riffdb.core.diagnostics import Related
from riffdb.core.types import U64
from riffdb.plan.expressions import Field, leaves
from riffdb.plan.queries import QueryField, QueryOutcome, RevealPlan
from riffdb.syntax.tree import FromStmt, MemberExpr, Name, NameExpr, Outcome, PayloadItem, RevealDecl, Selection

ROWS = ("one", "maybe", "many")


@dataclass(slots=True)
class Answers:
    """The outcomes of one query, and the secrets that they show."""

    draft: Draft
    collector: Collector
    params: Params
    reveals: Set[tuple[str, str]]
    shown: set[tuple[str, str]] = field(default_factory=set)
    outcomes: dict[str, tuple[Name, QueryOutcome | None]] = field(default_factory=dict)
    names: NameScope = field(init=False)

    def __post_init__(self) -> None:
        self.names = NameScope("an outcome", self.collector)

    def lower(self, outcome: Outcome, bindings: Sequence[FromStmt]) -> QueryOutcome | None:
        """An outcome that tells of these bindings; None after a diagnostic, or where an entity is broken."""
        names = NameScope("a value of this answer", self.collector)
        known = {statement.name.text: statement for statement in bindings}
        scope = self.scope(known)
        found = [self.value(item, known, scope) if names.add(item.name) else None for item in outcome.payload.items]
        whole = tuple(part for part in found if part is not None)
        plan = QueryOutcome(outcome.name.text, whole) if len(whole) == len(found) else None
        self.agree(outcome.name, plan)
        return plan

    def agree(self, name: Name, plan: QueryOutcome | None) -> None:
        """Report an outcome whose name is taken, or whose values are not those that it had before."""
        if name.text not in self.outcomes:
            self.names.add(name)
        first = self.outcomes.setdefault(name.text, (name, plan))
        if first[1] is None or plan is None or _shape(first[1]) == _shape(plan):
            return
        self.collector.error(
            "RDB-C513",
            f"`{name.text}` has another payload here than where it was used first",
            name.span,
            related=(Related("first used here", first[0].span),),
            help="give the payloads the same names and types, or one outcome another name",
        )

    def scope(self, known: Mapping[str, FromStmt]) -> Scope:
        """What an expression may name: single rows, parameters, variants, the time."""
        rows: dict[str, RowScope] = {}
        refused: dict[str, str] = {}
        unknown: set[str] = set()
        for name, statement in known.items():
            entity = self.draft.entities.get(statement.entity.text)
            if entity is None:
                unknown.add(name)
            elif statement.kind == "many":
                refused[name] = f"`{name}` is a list of rows; name it alone, or `{name}.next`"
            elif statement.kind in ROWS:
                rows[name] = self.row(statement, entity)
            else:
                refused[name] = f"`{name}` is told as it is; name it alone"
        return Scope(
            enums=self.draft.enums,
            params=self.params.types,
            rows=rows,
            time=True,
            refused=refused,
            broken=self.params.broken | unknown,
        )

    def row(self, statement: FromStmt, entity: EntityDraft) -> RowScope:
        """A single row, whose secrets may be read where they are revealed."""
        name, title = statement.name.text, entity.plan.name
        hidden = {secret for secret in entity.secrets if (title, secret) not in self.reveals}
        refused = {secret: f"`{secret}` is secret, so a query does not show it" for secret in hidden}
        types = dict(entity.types) | {"revision": U64}
        return RowScope(name, f"`{title}`", title, types, entity.broken, refused, maybe=statement.kind == "maybe")

    # --- values --------------------------------------------------------------------------------------------------

    def value(self, item: PayloadItem, known: Mapping[str, FromStmt], scope: Scope) -> QueryField | None:
        """One value; None after a diagnostic."""
        match item.value:
            case NameExpr(name=name) if name.text in known:
                return self.bound(item, known[name.text])
            case NameExpr(name=name):
                self.collector.unknown("RDB-C630", f"there is no binding `{name.text}` here", name, known)
                return None
            case MemberExpr(owner=owner, member=member) if owner.text in known:
                statement = known[owner.text]
                if statement.kind not in ("one", "maybe"):
                    return self.cursor(item, statement, member)
        return self.expression(item, scope)

    def bound(self, item: PayloadItem, statement: FromStmt) -> QueryField | None:
        """The rows or the number of a binding."""
        if statement.kind not in ROWS:
            is_plain = item.selection is None or self.refuse_selection(item.selection)
            return QueryField(item.name.text, statement.name.text) if is_plain else None
        entity = self.draft.entities.get(statement.entity.text)
        fields = None if entity is None else self.selected(item.selection, entity)
        return None if fields is None else QueryField(item.name.text, statement.name.text, fields)

    def cursor(self, item: PayloadItem, statement: FromStmt, member: Name) -> QueryField | None:
        """The cursor that goes on from a binding's rows."""
        name = statement.name.text
        if item.selection is not None and not self.refuse_selection(item.selection):
            return None
        if statement.kind == "many" and member.text == "next":
            return QueryField(item.name.text, name, is_cursor=True)
        if statement.kind == "many":
            message = f"`{name}` is a list of rows, of which `{name}.next` is the only value by name"
            help = f"select fields, as in `{name} {{ {member.text} }}`"
        else:
            message, help = f"`{name}` is one value and has no fields", f"write `{name}` alone"
        self.collector.error("RDB-C634", message, item.value.span, help=help)
        return None

    def expression(self, item: PayloadItem, scope: Scope) -> QueryField | None:
        """A value that is computed from single rows and parameters."""
        if item.selection is not None and not self.refuse_selection(item.selection):
            return None
        value = infer(item.value, scope, None, self.collector)
        if value is None:
            return None
        if value.type.kind not in SCALARS or value.type.kind == "record":
            message, help = f"a payload value cannot be `{value.type}`", "name single values"
            if value.type.kind == "null":
                message, help = "null alone has no type to show", "leave the value out"
            self.collector.error("RDB-C514", message, item.value.span, help=help)
            return None
        read = {(scope.rows[leaf.binding].entity, leaf.name) for leaf in leaves(value) if isinstance(leaf, Field)}
        self.shown |= read & self.reveals
        return QueryField(item.name.text, value=value)

    def refuse_selection(self, selection: Selection) -> bool:
        """Report a selection from what has no fields; False."""
        message = "only rows have fields to select from"
        self.collector.error("RDB-C633", message, selection.span, fix=remove(selection.span, "take the selection out"))
        return False

    # --- selections ----------------------------------------------------------------------------------------------

    def selected(self, selection: Selection | None, entity: EntityDraft) -> tuple[str, ...] | None:
        """The fields of a selection; None after a diagnostic."""
        if selection is None:
            return (*entity.plan.visible, "revision")
        names = NameScope("a field of this selection", self.collector)
        found = [self.is_selectable(name, entity) and names.add(name) for name in selection.fields]
        return tuple(name.text for name in selection.fields) if all(found) else None

    def is_selectable(self, name: Name, entity: EntityDraft) -> bool:
        """Whether a query may show that field."""
        title = entity.plan.name
        if name.text in entity.secrets and (title, name.text) not in self.reveals:
            message = f"`{name.text}` is secret, so a query does not show it"
            help = f"leave it out of the selection, or let the header say `reveals ({title}.{name.text})`"
            self.collector.error("RDB-C632", message, name.span, help=help)
            return False
        if name.text in entity.secrets:
            self.shown.add((title, name.text))
        if name.text == "revision" or name.text in entity.types:
            return True
        if name.text not in entity.broken:
            message = f"`{title}` has no field `{name.text}`"
            self.collector.unknown("RDB-C631", message, name, [*entity.plan.visible, "revision"])
        return False


def _shape(outcome: QueryOutcome) -> list[tuple[object, ...]]:
    """What a reader of the outcome sees of its values."""
    return [
        (part.name, part.binding, part.fields, part.is_cursor, None if part.value is None else part.value.type)
        for part in outcome.payload
    ]


def lower_reveals(reveals: Sequence[RevealDecl], draft: Draft, collector: Collector) -> tuple[RevealPlan, ...] | None:
    """The secrets that the header names; None after a diagnostic."""
    found: dict[tuple[str, str], RevealDecl] = {}
    is_whole = True
    for part in reveals:
        entity = draft.entities.get(part.entity.text)
        name = (part.entity.text, part.field.text)
        if part.entity.text not in draft.declared.entities:
            message = f"there is no entity `{part.entity.text}`"
            collector.unknown("RDB-C104", message, part.entity, draft.declared.entities)
        elif entity is None or part.field.text in entity.broken:
            pass
        elif part.field.text not in entity.types:
            message = f"`{entity.plan.name}` has no field `{part.field.text}`"
            collector.unknown("RDB-C640", message, part.field, entity.secrets)
        elif part.field.text not in entity.secrets:
            message = f"`{part.field.text}` is no secret, so there is nothing to reveal"
            collector.error("RDB-C640", message, part.span, help="leave it out; a query shows it anyway")
        elif name in found:
            message = f"`{part.span.text}` is revealed already"
            related = (Related("revealed here", found[name].span),)
            collector.error("RDB-C640", message, part.span, related=related, help="name it once")
        else:
            found[name] = part
            continue
        is_whole = False
    return tuple(RevealPlan(*name) for name in found) if is_whole else None
