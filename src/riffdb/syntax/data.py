"""Declarations of data: enum, record, event, entity and workflow with its lease.

Each parser begins after its keyword and is given the index of that keyword, whose doc comment it takes.
Absent: everything that needs another declaration to be judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from riffdb.core.diagnostics import Related
from riffdb.syntax.cursor import Block, Cursor
from riffdb.syntax.expressions import constant, expr, integer, type_expr
from riffdb.syntax.position import BrokenItemError
from riffdb.syntax.tree import (
    ComputedMember,
    EntityDecl,
    EnumDecl,
    EventDecl,
    FieldMember,
    IndexMember,
    InvariantMember,
    KeyMember,
    LeaseDecl,
    LiteralExpr,
    Member,
    Name,
    OrderedName,
    PartitionMember,
    RecordDecl,
    ReferenceMember,
    TransitionDecl,
    TypedName,
    UniqueMember,
    WorkflowDecl,
)
from riffdb.syntax.words import CLAUSE_FORMS


@dataclass(frozen=True, slots=True)
class Clause:
    """A keyword with the names or numbers after it, before its declaration is put together."""

    word: str
    names: tuple[Name, ...] = ()
    numbers: tuple[LiteralExpr, ...] = ()


# --- enums, records, events --------------------------------------------------------------------------------------


def enum_decl(cursor: Cursor, start: int) -> EnumDecl:
    """`enum NAME { VARIANT, … }`."""
    name = cursor.name("a name for the enum", "{")
    opener = cursor.open("the enum")
    variants: list[Name] = []
    while True:
        variant = cursor.any_name()
        if variant is not None:
            variants.append(variant)
            cursor.accept(",")
        elif not _is_passed(cursor, "a variant or `}`", variants):
            break
    cursor.close(opener, f"the enum `{name.text}`")
    return EnumDecl(name, tuple(variants), cursor.span_from(start), cursor.doc(start))


def _is_passed(cursor: Cursor, expected: str, found: list[Name]) -> bool:
    """Whether a token that does not belong here was reported and passed over; not one that ends the list."""
    if cursor.texts[cursor.index] in ("}", "") or cursor.is_declaration(cursor.index):
        if not found:
            raise cursor.unexpected(expected)
        return False
    if cursor.texts[cursor.index] == "{":
        raise cursor.unexpected(expected)
    cursor.unexpected(expected)
    cursor.index += 1
    return True


def record_decl(cursor: Cursor, start: int) -> RecordDecl:
    """`record NAME { NAME: TYPE … }`."""
    name = cursor.name("a name for the record", "{")
    opener = cursor.open("the record")
    fields = _typed_names(cursor, opener, f"the record `{name.text}`")
    return RecordDecl(name, fields, cursor.span_from(start), cursor.doc(start))


_PARTITION = frozenset(("partition_by",))


def event_decl(cursor: Cursor, start: int) -> EventDecl:
    """`event NAME { partition_by (FIELD) NAME: TYPE … }`."""
    name = cursor.name("a name for the event", "{")
    opener = cursor.open("the event")
    partition = None
    if cursor.texts[cursor.index + 1 : cursor.index + 2] != [":"] and cursor.clause(_PARTITION) is not None:
        partition = _partition(cursor)
    else:
        cursor.unexpected("`partition_by (…)`, which comes first")
    fields = _typed_names(cursor, opener, f"the event `{name.text}`")
    if partition is None:
        raise BrokenItemError
    return EventDecl(name, partition, fields, cursor.span_from(start), cursor.doc(start))


def _partition(cursor: Cursor) -> Name | None:
    try:
        cursor.expect("(")
        name = cursor.name("a field", ")")
        cursor.expect(")")
    except BrokenItemError:
        return None
    return name


def _typed_names(cursor: Cursor, opener: int, what: str) -> tuple[TypedName, ...]:
    """`NAME: TYPE [,] …` up to the closing brace; broken ones are left out."""
    fields: list[TypedName] = []
    while not cursor.at("}") and cursor.kinds[cursor.index] != "end" and not cursor.is_declaration(cursor.index):
        start = cursor.index
        try:
            fields.append(typed_name(cursor))
            cursor.accept(",")
            cursor.is_recovering = False
        except BrokenItemError:
            _to_next_field(cursor, start)
    cursor.close(opener, what)
    return tuple(fields)


def _to_next_field(cursor: Cursor, start: int) -> None:
    cursor.nesting = 0
    cursor.index = max(cursor.index, start + 1)
    while cursor.kinds[cursor.index] != "end" and not cursor.at("}") and not cursor.is_declaration(cursor.index):
        if cursor.kinds[cursor.index] == "name" and cursor.texts[cursor.index + 1] == ":":
            cursor.is_recovering = False
            break
        cursor.index += 1


def typed_name(cursor: Cursor) -> TypedName:
    """`NAME: TYPE`."""
    start = cursor.index
    name = cursor.name("a name for the field", ":")
    cursor.expect(":")
    kind = type_expr(cursor)
    return TypedName(name, kind, cursor.span_from(start), cursor.doc(start))


# --- entities ----------------------------------------------------------------------------------------------------


def entity_decl(cursor: Cursor, start: int) -> EntityDecl:
    """`entity NAME { member … }`."""
    name = cursor.name("a name for the entity", "{")
    members = tuple(member for _, member in cursor.items(_ENTITY))
    return EntityDecl(name, members, cursor.span_from(start), cursor.doc(start))


def _key(cursor: Cursor, start: int) -> Member:
    cursor.expect("(")
    fields = [typed_name(cursor)]
    while cursor.separated(")"):
        fields.append(typed_name(cursor))
    return KeyMember(tuple(fields), cursor.span_from(start))


def _partition_by(cursor: Cursor, start: int) -> Member:
    cursor.expect("(")
    name = cursor.name("a field of the key", ")")
    cursor.expect(")")
    return PartitionMember(name, cursor.span_from(start))


def is_secret(cursor: Cursor) -> bool:
    """Read `secret` where it is no name itself."""
    if cursor.at("secret") and cursor.texts[cursor.index + 1] != ":":
        cursor.index += 1
        return True
    return False


def _field(cursor: Cursor, start: int) -> Member:
    secret = is_secret(cursor)
    name = cursor.name("a name for the field", ":")
    cursor.expect(":")
    kind = type_expr(cursor)
    default = constant(cursor) if cursor.accept("=") else None
    was = cursor.name("the former name of the field") if cursor.accept("was") else None
    return FieldMember(name, kind, secret, default, was, cursor.span_from(start), cursor.doc(start))


def _computed(cursor: Cursor, start: int) -> Member:
    name = cursor.name("a name for the computed field", ":")
    cursor.expect(":")
    kind = type_expr(cursor)
    cursor.expect("=")
    value = expr(cursor)
    return ComputedMember(name, kind, value, cursor.span_from(start), cursor.doc(start))


def ordered_name(cursor: Cursor) -> OrderedName:
    """`NAME [asc|desc]`."""
    start = cursor.index
    name = cursor.name("a field")
    descending = cursor.accept("desc")
    if not descending:
        cursor.accept("asc")
    return OrderedName(name, descending, cursor.span_from(start))


def _index(cursor: Cursor, start: int) -> Member:
    name = cursor.name("a name for the index", "(")
    cursor.expect("(")
    columns = [ordered_name(cursor)]
    while cursor.separated(")"):
        columns.append(ordered_name(cursor))
    return IndexMember(name, tuple(columns), cursor.span_from(start))


def _unique(cursor: Cursor, start: int) -> Member:
    name = cursor.name("a name for the unique", "(")
    return UniqueMember(name, cursor.names("a field"), cursor.span_from(start))


def _reference(cursor: Cursor, start: int) -> Member:
    name = cursor.name("a name for the reference", "(")
    columns = cursor.names("a field")
    cursor.expect("->")
    target = cursor.name("an entity", "(")
    target_columns = cursor.names("a field of the other entity")
    return ReferenceMember(name, columns, target, target_columns, cursor.span_from(start))


def _invariant(cursor: Cursor, start: int) -> Member:
    name = cursor.name("a name for the invariant", ":")
    cursor.expect(":")
    condition = expr(cursor)
    return InvariantMember(name, condition, cursor.span_from(start))


_ENTITY: Block[Member] = Block(
    "the entity",
    "a member such as `key`, `field` or `index`",
    {
        "key": _key,
        "partition_by": _partition_by,
        "field": _field,
        "computed": _computed,
        "index": _index,
        "unique": _unique,
        "reference": _reference,
        "invariant": _invariant,
    },
    commas=True,
)


# --- clauses -----------------------------------------------------------------------------------------------------


def once(cursor: Cursor, seen: dict[str, int], word: str, start: int) -> bool:
    """Whether a clause stands for the first time; a second one is reported."""
    first = seen.setdefault(word, start)
    if first == start or cursor.is_recovering:
        return first == start
    related = (Related("first given here", cursor.span(first)),)
    cursor.report(
        "RDB-C013",
        f"`{word}` is given twice; each clause stands once",
        cursor.span(start),
        related=related,
        remedy="take one of the two out",
    )
    return False


def require_clauses(cursor: Cursor, what: str, wanted: tuple[str, ...], seen: Mapping[str, int], start: int) -> None:
    """Report the clauses that a declaration lacks, unless a broken one may be among them."""
    absent = [f"`{word}`" for word in wanted if word not in seen]
    if absent and not cursor.has_errors_since(start):
        span = cursor.span(start).to(cursor.span(min(start + 1, len(cursor.texts) - 1)))
        listed = " and ".join([", ".join(absent[:-1]), absent[-1]] if len(absent) > 1 else absent)
        forms = ", ".join(f"`{CLAUSE_FORMS[word]}`" for word in wanted if word not in seen)
        cursor.report("RDB-C014", f"{what} lacks {listed}", span, remedy=f"add {forms}")


@dataclass(frozen=True, slots=True)
class NamedClause:
    """The parser of a keyword with one name."""

    word: str
    what: str

    def __call__(self, cursor: Cursor, start: int) -> Clause:
        """Read the name after the keyword; a keyword of the block is one only if the clause can end behind it."""
        level = cursor.levels[-1]
        cursor.form = CLAUSE_FORMS[self.word]
        after = cursor.texts[cursor.index + 1 : cursor.index + 2]
        if cursor.texts[cursor.index] in level and not (after == ["}"] or after[0] in level):
            raise cursor.unexpected(self.what)
        return Clause(self.word, (cursor.name(self.what),))


# --- workflows ---------------------------------------------------------------------------------------------------


def workflow_decl(cursor: Cursor, start: int) -> WorkflowDecl:
    """`workflow NAME { entity … state … initial … transition … lease … }`, clauses in any order."""
    name = cursor.name("a name for the workflow", "{")
    clauses: dict[str, Name] = {}
    seen: dict[str, int] = {}
    transitions: list[TransitionDecl] = []
    lease = None
    for place, item in cursor.items(_WORKFLOW):
        if isinstance(item, TransitionDecl):
            transitions.append(item)
        elif isinstance(item, LeaseDecl):
            if once(cursor, seen, "lease", place):
                lease = item
        elif once(cursor, seen, item.word, place):
            clauses[item.word] = item.names[0]
    require_clauses(cursor, f"the workflow `{name.text}`", ("entity", "state"), seen, start)
    if "entity" not in clauses or "state" not in clauses:
        raise BrokenItemError
    return WorkflowDecl(
        name,
        clauses["entity"],
        clauses["state"],
        clauses.get("initial"),
        tuple(transitions),
        lease,
        cursor.span_from(start),
        cursor.doc(start),
    )


def _transition(cursor: Cursor, start: int) -> TransitionDecl:
    cursor.form = "transition NAME from (STATE, …) to STATE"
    name = cursor.name("a name for the transition", "from")
    cursor.expect("from")
    sources = cursor.names("a state")
    cursor.expect("to")
    destination = cursor.name("a state")
    return TransitionDecl(name, sources, destination, cursor.span_from(start), cursor.doc(start))


def _lease(cursor: Cursor, start: int) -> LeaseDecl:
    cursor.form = "lease NAME { owner FIELD expires_at FIELD fencing_token FIELD duration_seconds (5, 900) }"
    name = cursor.name("a name for the lease", "{")
    found: dict[str, Clause] = {}
    seen: dict[str, int] = {}
    for place, clause in cursor.items(_LEASE):
        if once(cursor, seen, clause.word, place):
            found[clause.word] = clause
    wanted = ("owner", "expires_at", "fencing_token", "duration_seconds")
    require_clauses(cursor, f"the lease `{name.text}`", wanted, seen, start)
    if any(word not in found for word in wanted):
        raise BrokenItemError
    attempts = found.get("attempts")
    return LeaseDecl(
        name,
        found["owner"].names[0],
        found["expires_at"].names[0],
        found["fencing_token"].names[0],
        None if attempts is None else attempts.names[0],
        found["duration_seconds"].numbers[0],
        found["duration_seconds"].numbers[1],
        cursor.span_from(start),
    )


def _duration(cursor: Cursor, start: int) -> Clause:
    cursor.expect("(")
    low = integer(cursor)
    cursor.expect(",")
    high = integer(cursor)
    cursor.expect(")")
    return Clause("duration_seconds", (), (low, high))


_LEASE: Block[Clause] = Block(
    "the lease",
    "a clause of the lease such as `owner` or `duration_seconds`",
    {
        **{word: NamedClause(word, "a field") for word in ("owner", "expires_at", "fencing_token", "attempts")},
        "duration_seconds": _duration,
    },
)

_WORKFLOW: Block[TransitionDecl | LeaseDecl | Clause] = Block(
    "the workflow",
    "a clause of the workflow such as `state`, `transition` or `lease`",
    {
        "entity": NamedClause("entity", "an entity"),
        "state": NamedClause("state", "the field that holds the state"),
        "initial": NamedClause("initial", "a state"),
        "transition": _transition,
        "lease": _lease,
    },
)
