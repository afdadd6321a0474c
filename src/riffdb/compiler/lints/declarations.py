"""Declarations that nothing uses: enums and records, events, entities, indexes.

A use of data is by name, since data has one scope; an index's is in the paths that the compiler chose for queries. What
belongs to an unused entity is not reported beside it.
Absent: names within a declaration (`names`) and what a workflow declares (`workflows`).
"""

from collections.abc import Iterator

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.uses import Uses
from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.spans import Span
from riffdb.plan.declarations import EntityPlan, IndexPlan
from riffdb.syntax.tree import IndexMember


def find_unused_declarations(draft: Draft, uses: Uses, collector: Collector) -> None:
    """Report enums, records, events, entities and indexes that nothing uses."""
    for kind, types in (("enum", draft.declared.enums), ("record", draft.declared.records)):
        for name, decl in types.items():
            if name not in uses.types:
                message = f"nothing is of the {kind} `{name}`"
                collector.lint("unused-type", message, decl.name.span, fix=_without(decl.span, name))
    for name, event in draft.declared.events.items():
        if name not in uses.events:
            message = f"no command emits `{name}`"
            collector.lint("unused-event", message, event.name.span, fix=_without(event.span, name))
    for name, entity in draft.declared.entities.items():
        if name not in uses.entities:
            message = f"no command and no query has a row of `{name}`"
            collector.lint("unused-entity", message, entity.name.span, help="take it out with what belongs to it")
    _find_unused_indexes(draft, uses, collector)


def _find_unused_indexes(draft: Draft, uses: Uses, collector: Collector) -> None:
    if not draft.queries:
        return  # which queries there will be is not said yet
    read = set(_indexes_read(draft))
    for name, decl in draft.declared.entities.items():
        entity = draft.entities[name].plan
        indexes = {index.name: index for index in entity.indexes}
        for member in decl.members if name in uses.entities else ():
            if not isinstance(member, IndexMember):
                continue
            index = member.name.text
            if (name, index) not in read and not _serves_a_reference(entity, indexes[index]):
                message = f"no query reads `{name}` by the index `{index}`"
                collector.lint("unused-index", message, member.name.span, fix=_without(member.span, index))


def _indexes_read(draft: Draft) -> Iterator[tuple[str, str]]:
    """Entity and index of every path that a query reads by."""
    for query in draft.queries.values():
        for binding in query.bindings:
            for path in binding.paths:
                yield binding.entity, path.index


def _serves_a_reference(entity: EntityPlan, index: IndexPlan) -> bool:
    """Whether the index finds the rows that refer to one, without which that one cannot be deleted."""
    return any(
        set(index.columns[: len(reference.columns)]) == set(reference.columns) for reference in entity.references
    )


def _without(span: Span, name: str) -> Fix:
    """Taking a declaration out, which a contract that is deployed may not allow, so not without a look."""
    return Fix(f"take `{name}` out, or use it", (Edit(span, ""),), safe=False)
