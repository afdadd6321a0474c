"""Records: the fields of the elements of a list input, each name once, each a single value.

A record with a broken field keeps the others, so that the loop over such elements is still checked.
Absent: where a record may stand, which `typing` knows: as the element of a list input, and nowhere else.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, RecordDraft
from riffdb.compiler.linking import NameScope
from riffdb.compiler.typing import lower_type
from riffdb.plan.declarations import FieldPlan, RecordPlan
from riffdb.syntax.tree import RecordDecl


def lower_records(draft: Draft, collector: Collector) -> Draft:
    """Lower every record."""
    return replace(
        draft, records={name: _record(decl, draft, collector) for name, decl in draft.declared.records.items()}
    )


def _record(decl: RecordDecl, draft: Draft, collector: Collector) -> RecordDraft:
    names = NameScope("a field", collector)
    fields = []
    broken = set()
    for part in decl.fields:
        kind = lower_type(part.type, draft.declared, "record", collector) if names.add(part.name) else None
        if kind is None:
            broken.add(part.name.text)
        else:
            fields.append(FieldPlan(part.name.text, kind, doc=part.doc))
    if not decl.fields:
        help_text = "declare what an item carries, such as `article_id: uuid`"
        collector.error("RDB-C330", f"`{decl.name.text}` has no fields", decl.name.span, help=help_text)
    plan = RecordPlan(decl.name.text, tuple(fields), decl.doc)
    return RecordDraft(plan, {part.name: part.type for part in fields}, frozenset(broken))
