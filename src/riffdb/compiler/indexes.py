"""Indexes and uniques of an entity: columns that rows are found by, in order, the partition first.

Proven here: an entry stays within 1,024 bytes encoded, with the rest of the key that ends it; a secret stands in none.
Indexes, uniques, references and invariants of one entity share one scope of names. Absent: which query walks which
index (`access_paths`), which command may break a unique (`breakable`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Rule
from riffdb.compiler.linking import NameScope
from riffdb.core.diagnostics import Edit, Fix, Related
from riffdb.core.limits import KEY_BYTES_MAX
from riffdb.core.spans import Span
from riffdb.core.types import Type
from riffdb.plan.declarations import EntityPlan, IndexPlan, UniquePlan
from riffdb.syntax.tree import EntityDecl, IndexMember, InvariantMember, Name, ReferenceMember, UniqueMember


@dataclass(frozen=True, slots=True)
class Listing:
    """Where a list of columns stands: the entity, what the list is of (`an index`), what it may not hold."""

    plan: EntityPlan
    noun: str
    secrets: frozenset[str]
    broken: frozenset[str]

    @property
    def types(self) -> Mapping[str, Type]:
        """The columns that may be named."""
        return {name: kind for name, kind in self.plan.types.items() if name != "revision"}


def lower_indexes(
    decl: EntityDecl, plan: EntityPlan, secrets: frozenset[str], broken: frozenset[str], collector: Collector
) -> tuple[EntityPlan, tuple[Rule, ...]]:
    """The plan with its indexes and uniques; and the uniques, references and invariants whose names are their own."""
    names = NameScope("an index or rule", collector)
    indexes: list[IndexPlan | None] = []
    uniques: list[UniquePlan | None] = []
    rules: list[Rule] = []
    for member in decl.members:
        match member:
            case IndexMember() if names.add(member.name):
                indexes.append(_index(member, Listing(plan, "an index", secrets, broken), collector))
            case UniqueMember() if names.add(member.name):
                uniques.append(_unique(member, Listing(plan, "a unique", secrets, broken), collector))
                rules.append(member)
            case ReferenceMember() | InvariantMember() if names.add(member.name):
                rules.append(member)
    plan = structs.replace(
        plan,
        indexes=tuple(index for index in indexes if index is not None),
        uniques=tuple(unique for unique in uniques if unique is not None),
    )
    return plan, tuple(rules)


def _index(member: IndexMember, listing: Listing, collector: Collector) -> IndexPlan | None:
    named = listed_columns([column.name for column in member.columns], listing, collector)
    columns = None if named is None else _with_key(named, listing, member.span, collector)
    if named is None or columns is None:
        return None
    descending = tuple(column.descending for column in member.columns)
    return IndexPlan(member.name.text, columns, descending + (False,) * (len(columns) - len(named)))


def _unique(member: UniqueMember, listing: Listing, collector: Collector) -> UniquePlan | None:
    named = listed_columns(member.columns, listing, collector)
    if named is None or _with_key(named, listing, member.span, collector) is None:
        return None
    return UniquePlan(member.name.text, named)


def listed_columns(names: Sequence[Name], listing: Listing, collector: Collector) -> tuple[str, ...] | None:
    """The names of a list of columns, each known, shown, named once, the partition first."""
    plan, noun = listing.plan, listing.noun
    seen: dict[str, Name] = {}
    for name in names:
        if name.text in listing.broken:
            return None
        if name.text not in listing.types:
            collector.unknown("RDB-C306", f"`{plan.name}` has no field `{name.text}`", name, listing.types)
            return None
        if name.text in listing.secrets:
            collector.error("RDB-C217", f"`{name.text}` is secret and stands in no {_bare(noun)}", name.span)
            return None
        if name.text in seen:
            related = (Related("named here already", seen[name.text].span),)
            message = f"the {_bare(noun)} names `{name.text}` twice"
            collector.error("RDB-C308", message, name.span, related=related)
            return None
        seen[name.text] = name
    if names[0].text != plan.partition:
        message = f"{noun} begins with the partition of its entity, `{plan.partition}`"
        first = names[0].span
        edit = Edit(Span(first.source, first.start, first.start), f"{plan.partition}, ")
        fix = None if plan.partition in seen else Fix(f"write `{plan.partition}` first", (edit,), safe=True)
        help_text = f"write `{plan.partition}` first"
        collector.error("RDB-C307", message, first, fix=fix, help=help_text if fix is None else None)
        return None
    return tuple(seen)


def _bare(noun: str) -> str:
    return noun.removeprefix("an ").removeprefix("a ")


def _with_key(named: tuple[str, ...], listing: Listing, span: Span, collector: Collector) -> tuple[str, ...] | None:
    """The columns with the rest of the key behind them, if such an entry is never too large."""
    columns = named + tuple(name for name in listing.plan.storage_key if name not in named)
    size = sum(encoded_bytes(listing.types[name]) for name in columns)
    if size <= KEY_BYTES_MAX:
        return columns
    message = (
        f"an entry of this {_bare(listing.noun)} can take {size:,} bytes with its key, "
        f"and at most {KEY_BYTES_MAX:,} are kept"
    )
    collector.error("RDB-C309", message, span, help="leave out long texts or give them smaller bounds")
    return None


def encoded_bytes(kind: Type) -> int:
    """The most bytes that a value takes in a key or an index entry: a tag, for texts their length, the value."""
    match kind.kind:
        case "string" | "bytes":
            return 5 + kind.bound
        case "uuid" | "decimal":
            return 17
        case "bool":
            return 2
    return 9
