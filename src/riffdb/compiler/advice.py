"""What to add to an entity so that a query can be answered: the `index` line, and the `computed` line under it.

The lines are ready to be pasted, and the fix inserts them; it is not a safe one, since an index costs at every write.
Absent: judging whether the entity may have such an index at all, which its own pass says when the line is there.
"""

from dataclasses import replace

from riffdb.compiler.access_paths import Demand, Ordering, index_line, index_name, missing_index
from riffdb.compiler.collector import Collector
from riffdb.compiler.conditions import Odd, calculated_side
from riffdb.compiler.draft import EntityDraft
from riffdb.compiler.indexes import encoded_bytes
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import KEY_BYTES_MAX
from riffdb.plan.expressions import Binary, Call, Expression, Field, leaves
from riffdb.syntax.tree import ComputedMember, EntityDecl, FromStmt, IndexMember

_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "over", "%": "modulo"}


def missing_path(
    decl: EntityDecl, entity: EntityDraft, statement: FromStmt, demand: Demand, collector: Collector
) -> None:
    """Report that no index answers the binding, with the line of one that would."""
    columns = missing_index(entity.plan, demand)
    line = _index_line(decl, entity, columns)
    fix = help = None
    if _is_indexable(entity, columns):
        fix = Fix(f"add `{line}` to `{entity.plan.name}`", (_insertion(decl, line),))
    else:
        help = f"an index entry has at most {KEY_BYTES_MAX:,} bytes; give the texts smaller bounds"
    collector.error(
        "RDB-C620",
        f"no index of `{entity.plan.name}` answers this condition in this order",
        statement.where.span,
        related=(Related("ordered by this", statement.order[0].span.to(statement.order[-1].span)),),
        fix=fix,
        help=help,
    )


def missing_computed(decl: EntityDecl, entity: EntityDraft, odd: Odd, demand: Demand, collector: Collector) -> None:
    """Report a calculation over fields in a condition, with the computed field, and its index, that take its place."""
    written, lowered = calculated_side(odd)
    name = _computed_name(lowered, _taken(decl))
    computed = f"computed {name}: {lowered.type} = {' '.join(written.span.text.split())}"
    is_equality = isinstance(odd.lowered, Binary) and odd.lowered.operator == "=="
    wanted = replace(
        demand,
        equal=(*demand.equal, name) if is_equality else demand.equal,
        ranged=demand.ranged if is_equality else name,
    )
    index = _index_line(decl, entity, missing_index(entity.plan, wanted))
    edits = (_insertion(decl, computed, index), Edit(written.span, name))
    collector.error(
        "RDB-C622",
        "functions and arithmetic in a condition take parameters and `tx.time` only, not fields",
        written.span,
        fix=Fix(f"add `{computed}` and `{index}` to `{entity.plan.name}`, and write `{name}` here", edits),
    )


def _index_line(decl: EntityDecl, entity: EntityDraft, columns: tuple[Ordering, ...]) -> str:
    return index_line(index_name(columns, entity.plan.partition, _taken(decl)), columns)


def _is_indexable(entity: EntityDraft, columns: tuple[Ordering, ...]) -> bool:
    names = {name for name, _ in columns} | set(entity.plan.storage_key)
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
