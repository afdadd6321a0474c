"""Entities: key, partition, fields with defaults, computed fields.

Proven here: a key stays within 1,024 bytes encoded; the partition is a key component; a computed field rests on stored
fields of its own row alone, and on no secret; a former name is no name of today. An entity without a sound key is
broken as a whole; a broken field only makes whoever reads it silent. Absent: indexes and uniques (`indexes`),
references and invariants (`rules`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from riffdb.compiler.collector import Collector, remove
from riffdb.compiler.draft import Draft, EntityDraft, present
from riffdb.compiler.expressions import lower, lower_default, secrets_of
from riffdb.compiler.indexes import encoded_bytes, lower_indexes
from riffdb.compiler.linking import NameScope
from riffdb.compiler.scope import RowScope, Scope
from riffdb.compiler.typing import KEY_KINDS, lower_type
from riffdb.core.diagnostics import Fix, Related
from riffdb.core.limits import KEY_BYTES_MAX
from riffdb.core.spans import Span
from riffdb.core.types import Type
from riffdb.plan.declarations import ComputedPlan, EntityPlan, FieldPlan
from riffdb.syntax.tree import (
    ComputedMember,
    EntityDecl,
    FieldMember,
    KeyMember,
    Name,
    PartitionMember,
    TypedName,
)


def lower_entities(draft: Draft, collector: Collector) -> Draft:
    """Lower every entity."""
    entities = {name: _entity(decl, draft, collector) for name, decl in draft.declared.entities.items()}
    return replace(draft, entities=present(entities))


@dataclass(slots=True)
class _Columns:
    """The columns as they are gathered: in row order, with those whose declaration is broken."""

    key: list[FieldPlan] = field(default_factory=list)
    fields: list[FieldPlan] = field(default_factory=list)
    computed: list[ComputedPlan] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def stored(self) -> dict[str, Type]:
        return {part.name: part.type for part in (*self.key, *self.fields)}

    def secrets(self) -> frozenset[str]:
        return frozenset(part.name for part in self.fields if part.secret)


def _entity(decl: EntityDecl, draft: Draft, collector: Collector) -> EntityDraft | None:
    names = NameScope("a field", collector)
    columns = _Columns()
    key = _key_member(decl, collector)
    if key is not None:
        _lower_key(key, columns, names, draft, collector)
    for member in decl.members:
        if isinstance(member, FieldMember) and _fresh(member.name, names, collector):
            _lower_field(member, columns, draft, collector)
    computed = [
        part for part in decl.members if isinstance(part, ComputedMember) and _fresh(part.name, names, collector)
    ]
    refused = {part.name.text: f"`{part.name.text}` is computed itself" for part in computed}
    refused["revision"] = "a computed field cannot rest on the revision"
    refused = {name: f"{reason}; use stored fields of the row alone" for name, reason in refused.items()}
    for member in computed:
        _lower_computed(member, refused, columns, decl, draft, collector)
    _check_former_names(decl, names.names, collector)
    partition = _partition(decl, key, collector)
    if key is None or partition is None or len(columns.key) < len(key.fields):
        return None
    fields, computed_columns = tuple(columns.fields), tuple(columns.computed)
    plan = EntityPlan(decl.name.text, tuple(columns.key), partition, fields, computed_columns, doc=decl.doc)
    _check_key_size(plan, key, collector)
    broken = frozenset(columns.broken)
    plan, rules = lower_indexes(decl, plan, columns.secrets(), broken, collector)
    return EntityDraft(plan, plan.types, columns.secrets(), broken, names.names, rules)


def _fresh(name: Name, names: NameScope, collector: Collector) -> bool:
    if name.text.lower() == "revision":
        message = "every row has a `revision` of its own, so no field is called so"
        collector.error("RDB-C305", message, name.span, help="give the field another name")
        return False
    return names.add(name)


# --- key and partition -------------------------------------------------------------------------------------------


def _key_member(decl: EntityDecl, collector: Collector) -> KeyMember | None:
    keys = [member for member in decl.members if isinstance(member, KeyMember)]
    if not keys:
        message = f"`{decl.name.text}` has no key"
        collector.error("RDB-C301", message, decl.name.span, help="add a line such as `key (id: uuid)`")
        return None
    for other in keys[1:]:
        collector.error(
            "RDB-C302",
            f"`{decl.name.text}` has a key already",
            other.span,
            related=(Related("the first key", keys[0].span),),
            help="name all components in one `key (…)`",
        )
    return keys[0]


def _lower_key(member: KeyMember, columns: _Columns, names: NameScope, draft: Draft, collector: Collector) -> None:
    for part in member.fields:
        kind = lower_type(part.type, draft.declared, "key", collector) if _fresh(part.name, names, collector) else None
        if kind is None:
            columns.broken.add(part.name.text)
        elif kind.optional or kind.kind not in KEY_KINDS:
            message = f"`{kind}` cannot be a key"
            wanted = "a key is made of uuid, u64, i64, string, date, timestamp and enums, none of them optional"
            collector.error("RDB-C303", message, part.type.span, help=wanted)
            columns.broken.add(part.name.text)
        else:
            columns.key.append(FieldPlan(part.name.text, kind, doc=part.doc))


def _partition(decl: EntityDecl, key: KeyMember | None, collector: Collector) -> str | None:
    members = [member for member in decl.members if isinstance(member, PartitionMember)]
    for other in members[1:]:
        collector.error(
            "RDB-C302",
            f"`{decl.name.text}` has a partition already",
            other.span,
            related=(Related("the first one", members[0].span),),
            help="one component of the key is the partition",
        )
    if key is None or not key.fields:
        return None
    if not members:
        return key.fields[0].name.text
    return _component(members[0].name, key.fields, decl, collector)


def _component(name: Name, key: Iterable[TypedName], decl: EntityDecl, collector: Collector) -> str | None:
    candidates = [part.name.text for part in key]
    if name.text in candidates:
        return name.text
    message = f"the partition is a component of the key, and `{name.text}` is none of `{decl.name.text}`"
    collector.unknown("RDB-C304", message, name, candidates)
    return None


def _check_key_size(plan: EntityPlan, key: KeyMember, collector: Collector) -> None:
    size = sum(encoded_bytes(part.type) for part in plan.key)
    if size > KEY_BYTES_MAX:
        message = f"this key can take {size:,} bytes, and a key has at most {KEY_BYTES_MAX:,}"
        collector.error("RDB-C309", message, key.span, help="give its texts smaller bounds")


# --- fields ------------------------------------------------------------------------------------------------------


def _lower_field(member: FieldMember, columns: _Columns, draft: Draft, collector: Collector) -> None:
    kind = lower_type(member.type, draft.declared, "field", collector)
    if kind is None:
        columns.broken.add(member.name.text)
        return
    default = lower_default(member.default, draft.enums, kind, collector)
    columns.fields.append(
        FieldPlan(
            member.name.text,
            kind,
            member.secret,
            default is not None,
            default,
            member.doc,
            "" if member.was is None else member.was.text,
        ),
    )


def _lower_computed(
    member: ComputedMember,
    refused: Mapping[str, str],
    columns: _Columns,
    decl: EntityDecl,
    draft: Draft,
    collector: Collector,
) -> None:
    kind = lower_type(member.type, draft.declared, "computed", collector)
    row = RowScope(
        "",
        f"`{decl.name.text}`",
        decl.name.text,
        columns.stored(),
        frozenset(columns.broken),
        refused,
        secrets=columns.secrets(),
    )
    refusal = "a computed field changes with its row alone; compare its fields with the time in a query or command"
    scope = Scope(enums=draft.enums, row=row, refused={"tx.time": refusal})
    value = None if kind is None else lower(member.value, scope, kind, collector)
    if kind is None or value is None:
        columns.broken.add(member.name.text)
        return
    for secret in secrets_of(value, scope):
        message = f"`{secret}` is secret, and a computed field would show it"
        collector.error("RDB-C217", message, member.value.span)
    columns.computed.append(ComputedPlan(member.name.text, kind, value, member.doc))


def _check_former_names(decl: EntityDecl, names: Mapping[str, Name], collector: Collector) -> None:
    """A former name is free now, and the former name of one field alone."""
    former: dict[str, Name] = {}
    for member in decl.members:
        if not isinstance(member, FieldMember) or member.was is None:
            continue
        was = member.was
        standing, first = names.get(was.text.lower()), former.setdefault(was.text, was)
        if was.text.lower() == "revision":
            message = "every row has a `revision` of its own, so no field was ever called so"
            collector.error("RDB-C340", message, was.span, fix=_without(member))
        elif standing is not None and standing.text == was.text:
            message = f"`{decl.name.text}` still has a field `{was.text}`, so nothing else was called so"
            related = () if standing is member.name else (Related("it stands here", standing.span),)
            collector.error("RDB-C340", message, was.span, related=related, fix=_without(member))
        elif first is not was:
            message = f"`{was.text}` is the former name of another field already"
            related = (Related("named here already", first.span),)
            collector.error("RDB-C341", message, was.span, related=related, fix=_without(member))


def _without(member: FieldMember) -> Fix | None:
    """The fix that takes the former name out, with the word before it; none where a comment stands between."""
    assert member.was is not None
    span = member.was.span
    word = re.search(r"\s*\bwas\s+$", span.source.text[: span.start])
    return None if word is None else remove(Span(span.source, word.start(), span.end), f"remove `was {span.text}`")
