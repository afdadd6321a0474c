"""Why a binding of a query has no path, and what to add: the `index` line, and the `computed` line under it.

The lines are ready to be pasted, and the fix inserts them; it is not a safe one, since an index costs at every write.
Absent: judging whether the entity may have such an index at all, which its own pass says when the line is there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from riffdb.compiler.access_paths import Ordering, index_line
from riffdb.compiler.collector import Collector
from riffdb.compiler.conditions import Part, without
from riffdb.compiler.draft import EntityDraft
from riffdb.compiler.indexes import encoded_bytes
from riffdb.compiler.query_paths import (
    FILTERS_MAX,
    Cases,
    Indexes,
    Lack,
    Order,
    Question,
    Ranges,
    Several,
    ways_of,
)
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import KEY_BYTES_MAX, QUERY_RANGES_MAX
from riffdb.core.spans import Span
from riffdb.plan.declarations import ComputedPlan
from riffdb.plan.expressions import Binary, Call, Expression, Field, leaves
from riffdb.syntax.tree import ComputedMember, EntityDecl, FromStmt, IndexMember

_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "over", "%": "modulo"}


def report_lack(lack: Lack, decl: EntityDecl, entity: EntityDraft, statement: FromStmt, collector: Collector) -> None:
    """Report why there is no path, with what would give one."""
    match lack:
        case Indexes():
            _report_indexes(lack, decl, entity, statement, collector)
        case Order(column=column, part=part):
            collector.error(
                "RDB-C621",
                f"no index gives this order: it must begin with `{column}`, which has the range",
                _order_of(statement),
                related=(Related("the range", part.expr.span),),
                help=f"write `order by {column}, …`",
            )
        case Ranges(equalities=equalities, count=count):
            shown = f"{count:,}" if count <= 1_000_000 else "more than 1,000,000"
            collector.error(
                "RDB-C624",
                f"at most {QUERY_RANGES_MAX} ranges of an index are merged, and this condition asks for {shown}",
                equalities[-1].part.expr.span,
                related=tuple(Related("and this", part.part.expr.span) for part in equalities[:-1]),
                help="ask for fewer values, or give the list a smaller bound",
            )
        case Cases(filters=filters):
            collector.error(
                "RDB-C626",
                f"a binding has at most {FILTERS_MAX} optional filters, since each doubles the cases to cover",
                filters[-1].whole.expr.span,
                help="use fewer, or ask for some of them in a query of their own",
            )
        case Several(equal=equal):
            _report_several(equal, entity, statement, collector)


def _report_indexes(
    lack: Indexes, decl: EntityDecl, entity: EntityDraft, statement: FromStmt, collector: Collector
) -> None:
    lines = [index_line(name, columns) for name, columns in lack.columns.items()]
    fix = help = None
    if all(_is_indexable(entity, columns) for columns in lack.columns.values()):
        fix = Fix(f"add {_listed(lines)} to `{entity.plan.name}`", (_insertion(decl, *lines),))
    else:
        help = f"an index entry has at most {KEY_BYTES_MAX:,} bytes; give the texts smaller bounds"
    is_ordered = bool(statement.order)
    collector.error(
        "RDB-C620",
        f"no index of `{entity.plan.name}` answers this condition{' in this order' * is_ordered}{_case(lack)}",
        statement.where.span,
        related=(Related("ordered by this", _order_of(statement)),) if is_ordered else (),
        fix=fix,
        help=help,
    )


def _case(lack: Indexes) -> str:
    """The case of the filters in which the first index is missing."""
    given = ", ".join(f"`${name}`" for name in lack.given)
    absent = ", ".join(f"`${name}`" for name in lack.filters if name not in lack.given)
    parts = [f"{names} {verb}" for names, verb in ((given, "given"), (absent, "null")) if names]
    return f" with {' and '.join(parts)}" if parts else ""


def _order_of(statement: FromStmt) -> Span:
    return statement.order[0].span.to(statement.order[-1].span)


def _report_several(equal: tuple[str, ...], entity: EntityDraft, statement: FromStmt, collector: Collector) -> None:
    plan = entity.plan
    rest = [name for name in plan.storage_key if name not in equal]
    conjuncts = " && ".join(f"{name} == ${name}" for name in rest)
    help = f"add `{conjuncts}`" if conjuncts else "let each field of the key equal one value"
    columns = [plan.partition, *(name for name in equal if name != plan.partition)]
    if len(columns) > 1 and rest:
        line = f"unique by_{'_'.join(columns[1:])} ({', '.join(columns)})"
        help += f"; or `{line}` to `{plan.name}` if no two rows share these"
    collector.error(
        "RDB-C625",
        f"more than one row of `{plan.name}` may meet this condition, and `{statement.kind}` reads one",
        statement.where.span,
        help=f"{help}; or read `many`",
    )


def missing_computed(
    calculation: Part, question: Question, decl: EntityDecl, entity: EntityDraft, collector: Collector
) -> None:
    """Report a calculation over fields in a condition, with the computed field and the indexes that take its place."""
    lowered, span = calculation.lowered, calculation.expr.span
    plan = question.entity
    name = next((part.name for part in plan.computed if part.expression == lowered), "")
    lines: list[str] = []
    if not name:
        name = _computed_name(lowered, _taken(decl))
        lines = [f"computed {name}: {lowered.type} = {' '.join(span.text.split())}"]
        plan = structs.replace(plan, computed=(*plan.computed, ComputedPlan(name, lowered.type, lowered)))
    where = without(question.where, calculation, Field(lowered.type, "", name))
    lack = ways_of(replace(question, entity=plan, where=where))
    if isinstance(lack, Indexes):
        lines += [index_line(index, columns) for index, columns in lack.columns.items()]
    addition = f"add {_listed(lines)} to `{plan.name}`, and " if lines else ""
    edits = (*((_insertion(decl, *lines),) if lines else ()), Edit(span, name))
    collector.error(
        "RDB-C622",
        "functions and arithmetic in a condition take parameters and `tx.time` only, not fields",
        span,
        fix=Fix(f"{addition}write `{name}` here", edits),
    )


def _listed(lines: Iterable[str]) -> str:
    return " and ".join(f"`{line}`" for line in lines)


def _is_indexable(entity: EntityDraft, columns: tuple[Ordering, ...]) -> bool:
    types: Mapping[str, object] = entity.types
    names = {name for name, _ in columns if name in types} | set(entity.plan.storage_key)
    return sum(encoded_bytes(entity.types[name]) for name in names) <= KEY_BYTES_MAX


def _taken(decl: EntityDecl) -> set[str]:
    return {name.text for member in decl.members for name in (getattr(member, "name", None),) if name is not None}


def _computed_name(expression: Expression, taken: set[str]) -> str:
    fields = [leaf.name for leaf in leaves(expression) if isinstance(leaf, Field)]
    word = "value"
    if isinstance(expression, Call):
        word = expression.function
    elif isinstance(expression, Binary):
        word = _WORDS.get(expression.operator, word)
    name = f"{fields[0] if fields else 'row'}_{word}"
    return name if name not in taken else f"{name}_2"


def _insertion(decl: EntityDecl, *lines: str) -> Edit:
    """The lines as members of the entity, below its last computed field or index, or at its end."""
    spans = [member.span for member in decl.members if isinstance(member, ComputedMember | IndexMember)]
    after = spans[-1] if spans else decl.members[-1].span
    line, column = after.source.position(after.start)
    lead = after.source.line(line)[: column - 1]
    indent = lead if not lead.strip() else "    "
    return Edit(replace(after, start=after.end), "".join(f"\n{indent}{text}" for text in lines))
