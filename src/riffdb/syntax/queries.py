"""What stands beside the contract: queries, streams, roles and schedules.

Clauses of one binding or schedule stand in any order, each once; one that the grammar demands and that is absent is
reported here and None in the tree. Absent: what a query may read and what a schedule needs of its commands.
"""

from typing import Literal, TypeAlias

from riffdb.core.diagnostics import Edit, Fix
from riffdb.syntax.commands import return_stmt
from riffdb.syntax.cursor import Block, Cursor
from riffdb.syntax.data import Clause, NamedClause, once, ordered_name, require_clauses
from riffdb.syntax.expressions import constant, expr, integer, outcome, param, selection, type_expr
from riffdb.syntax.position import BrokenItemError
from riffdb.syntax.tree import (
    Expr,
    FromStmt,
    LiteralExpr,
    Name,
    OrderedName,
    Outcome,
    ParamDecl,
    ParamExpr,
    QueryDecl,
    ReturnStmt,
    RevealDecl,
    RoleDecl,
    ScheduleDecl,
    StreamDecl,
    StreamEventDecl,
)
from riffdb.syntax.words import FORMS, WORDS

# --- queries -----------------------------------------------------------------------------------------------------


def query_decl(cursor: Cursor, start: int) -> QueryDecl:
    """`query NAME($PARAM: TYPE, …) [reveals (…)] { from … return … }`."""
    name = cursor.name("a name for the query", "(")
    params = _params(cursor)
    reveals = _reveals(cursor) if cursor.accept("reveals") else ()
    bindings: list[FromStmt] = []
    answer: ReturnStmt | None = None
    seen: dict[str, int] = {}
    for place, item in cursor.items(_QUERY):
        if answer is not None:
            remedy = "move it before the `return`, or take it out"
            cursor.report("RDB-C015", "nothing follows `return`", cursor.span(place), remedy=remedy)
        elif isinstance(item, ReturnStmt):
            answer = item
            seen["return"] = place
        else:
            bindings.append(item)
    require_clauses(cursor, f"the query `{name.text}`", ("return",), seen, start)
    return QueryDecl(name, params, reveals, tuple(bindings), answer, cursor.span_from(start), cursor.doc(start))


def _return(cursor: Cursor, start: int) -> ReturnStmt:
    cursor.has_selections = True
    try:
        return return_stmt(cursor, start)
    finally:
        cursor.has_selections = False


def _params(cursor: Cursor) -> tuple[ParamDecl, ...]:
    cursor.expect("(")
    if cursor.accept(")"):
        return ()
    found = [_param_decl(cursor)]
    while cursor.separated(")"):
        found.append(_param_decl(cursor))
    return tuple(found)


def _param_decl(cursor: Cursor) -> ParamDecl:
    start = cursor.index
    if cursor.kinds[start] == "name" and cursor.texts[start + 1] == ":" and not cursor.is_recovering:
        text = cursor.texts[start]
        fix = Fix(f"write `${text}`", (Edit(cursor.span(start), f"${text}"),), safe=True)
        raise cursor.unexpected(f"a parameter, written `${text}`", fix)
    name = param(cursor).name
    cursor.expect(":")
    kind = type_expr(cursor)
    default = constant(cursor) if cursor.accept("=") else None
    return ParamDecl(name, kind, default, cursor.span_from(start))


def _reveals(cursor: Cursor) -> tuple[RevealDecl, ...]:
    cursor.expect("(")
    found = [_reveal(cursor)]
    while cursor.separated(")"):
        found.append(_reveal(cursor))
    return tuple(found)


def _reveal(cursor: Cursor) -> RevealDecl:
    start = cursor.index
    entity = cursor.name("an entity", ".")
    cursor.expect(".")
    field = cursor.name("a field", ",", ")")
    return RevealDecl(entity, field, cursor.span_from(start))


FromKind: TypeAlias = Literal["one", "maybe", "many", "count", "sum", "min", "max"]

# The clauses that a binding may have; those before the bar it must have.
_AGGREGATE = "where take |"
_CLAUSES: dict[FromKind, str] = {
    "one": "where else |",
    "maybe": "where |",
    "many": "where order take | after before",
    "count": "where take | by",
    "sum": _AGGREGATE,
    "min": _AGGREGATE,
    "max": _AGGREGATE,
}
_KINDS: dict[str, FromKind] = {kind: kind for kind in _CLAUSES}
_FROM_WORDS = frozenset(("where", "order", "take", "after", "before", "by", "else"))


class _FromClauses:
    """The clauses of one binding as far as they were read."""

    def __init__(self) -> None:
        self.where: Expr | None = None
        self.by: Name | None = None
        self.order: tuple[OrderedName, ...] = ()
        self.take: LiteralExpr | ParamExpr | None = None
        self.cursor: ParamExpr | None = None
        self.cursor_kind: Literal["after", "before", ""] = ""
        self.otherwise: Outcome | None = None

    def read(self, cursor: Cursor, word: str, is_kept: bool) -> None:
        """Read what follows a clause's keyword."""
        if word == "where":
            self.where = expr(cursor)
        elif word == "order":
            self.order = _order(cursor)
        elif word == "take":
            self.take = param(cursor) if cursor.kinds[cursor.index] == "param" else integer(cursor)
        elif word == "by":
            self.by = cursor.name("a field")
        elif word == "else":
            otherwise = outcome(cursor)
            self.otherwise = otherwise if is_kept else None
        else:
            self.cursor = param(cursor)
            self.cursor_kind = "after" if word == "after" else "before"


def _order(cursor: Cursor) -> tuple[OrderedName, ...]:
    cursor.expect("by")
    found = [ordered_name(cursor)]
    while cursor.accept(","):
        found.append(ordered_name(cursor))
    return tuple(found)


def _from(cursor: Cursor, start: int) -> FromStmt:
    kind = _KINDS[cursor.keyword]
    is_fold = kind in ("sum", "min", "max")
    name = cursor.name("a name for the binding", "of" if is_fold else "from")
    of = None
    if is_fold:
        cursor.expect("of")
        of = cursor.name("a field", "from")
    cursor.expect("from")
    entity = cursor.name("an entity")
    needed, _, optional = _CLAUSES[kind].partition("|")
    clauses = _FromClauses()
    seen: dict[str, int] = {}
    while (clause := cursor.clause(_FROM_WORDS)) is not None:
        _from_clause(cursor, kind, clause.text, f"{needed} {optional}".split(), clauses, seen)
    _check_take(cursor, kind, clauses.take)
    if cursor.kinds[cursor.index] != "end":  # a text that is cut off lacks its brace first of all
        require_clauses(cursor, f"`{kind} {name.text}`", tuple(needed.split()), seen, start)
    if clauses.where is None:
        raise BrokenItemError
    return FromStmt(
        kind,
        name,
        of,
        entity,
        clauses.where,
        clauses.by,
        clauses.order,
        clauses.take,
        clauses.cursor,
        clauses.cursor_kind,
        clauses.otherwise,
        cursor.span_from(start),
    )


def _from_clause(
    cursor: Cursor, kind: FromKind, word: str, allowed: list[str], clauses: _FromClauses, seen: dict[str, int]
) -> None:
    place = cursor.index - 1
    if word not in allowed:
        if not cursor.is_recovering:
            message = f"`{word}` is no clause of `{kind}`"
            remedy = f"`{kind}` takes {', '.join(f'`{name}`' for name in allowed)}"
            cursor.report("RDB-C016", message, cursor.span(place), remedy=remedy)
        _FromClauses().read(cursor, word, False)
        return
    is_kept = once(cursor, seen, "after` or `before" if word in ("after", "before") else word, place)
    (clauses if is_kept else _FromClauses()).read(cursor, word, is_kept)


def _check_take(cursor: Cursor, kind: FromKind, take: LiteralExpr | ParamExpr | None) -> None:
    if isinstance(take, ParamExpr) and kind != "many":
        remedy = "only the `take` of `many` may be a parameter"
        cursor.report("RDB-C016", f"the `take` of `{kind}` is a number", take.span, remedy=remedy)


# --- streams -----------------------------------------------------------------------------------------------------

_Partition: TypeAlias = tuple[Name, ParamExpr]


def stream_decl(cursor: Cursor, start: int) -> StreamDecl:
    """`stream NAME($PARAM: TYPE) { partition FIELD == $PARAM event … }`."""
    name = cursor.name("a name for the stream", "(")
    params = _params(cursor)
    partition: _Partition | None = None
    events: list[StreamEventDecl] = []
    seen: dict[str, int] = {}
    for place, item in cursor.items(_STREAM):
        if isinstance(item, StreamEventDecl):
            events.append(item)
        elif once(cursor, seen, "partition", place):
            partition = item
    require_clauses(cursor, f"the stream `{name.text}`", ("partition",), seen, start)
    if partition is None:
        raise BrokenItemError
    return StreamDecl(name, params, *partition, tuple(events), cursor.span_from(start), cursor.doc(start))


def _partition(cursor: Cursor, start: int) -> _Partition:
    field = cursor.name("a field", "==")
    cursor.expect("==")
    return field, param(cursor)


def _event(cursor: Cursor, start: int) -> StreamEventDecl:
    cursor.form = "event EVENT { FIELD … }"
    event = cursor.name("an event", "{")
    fields = selection(cursor)
    where = expr(cursor) if cursor.accept("where") else None
    return StreamEventDecl(event, fields, where, cursor.span_from(start))


# --- roles -------------------------------------------------------------------------------------------------------


def role_decl(cursor: Cursor, start: int) -> RoleDecl:
    """`role NAME { query NAME, … command NAME, … stream NAME, … }`."""
    name = cursor.name("a name for the role", "{")
    found: dict[str, list[Name]] = {"query": [], "command": [], "stream": []}
    for _, clause in cursor.items(_ROLE):
        found[clause.word].extend(clause.names)
    return RoleDecl(
        name,
        tuple(found["query"]),
        tuple(found["command"]),
        tuple(found["stream"]),
        cursor.span_from(start),
        cursor.doc(start),
    )


def _granted(cursor: Cursor, start: int) -> Clause:
    word = cursor.keyword
    cursor.form = FORMS["role"]
    names = [cursor.name(f"a {word}")]
    while True:
        if cursor.accept(","):
            family = cursor.texts[cursor.index]
            after = cursor.index + 1
            if family in _ROLE.parsers and cursor.kinds[after] == "name" and cursor.texts[after] not in _ROLE.parsers:
                span = cursor.span(cursor.index - 1)
                fix = Fix("take the `,` out", (Edit(span, ""),), safe=True)
                cursor.report("RDB-C001", f"no `,` stands before `{family}`", span, fix=fix)
                break
        elif cursor.kinds[cursor.index] == "name" and cursor.texts[cursor.index] not in WORDS:
            cursor.missing(",")
        else:
            break
        names.append(cursor.name(f"a {word}"))
    return Clause(word, tuple(names))


# --- schedules ---------------------------------------------------------------------------------------------------


def schedule_decl(cursor: Cursor, start: int) -> ScheduleDecl:
    """`schedule NAME { from … due … claim … run … release … }`, clauses in any order."""
    name = cursor.name("a name for the schedule", "{")
    found: dict[str, Clause] = {}
    seen: dict[str, int] = {}
    for place, clause in cursor.items(_SCHEDULE):
        word = "from" if clause.word in ("query", "stream") else clause.word
        if once(cursor, seen, word, place):
            found[word] = clause
    wanted = ("from", "due", "claim", "run", "release")
    require_clauses(cursor, f"the schedule `{name.text}`", wanted, seen, start)
    origin = found.get("from")
    if origin is None:
        raise BrokenItemError
    single = {word: clause.names[0] for word, clause in found.items()}
    second = origin.names[1] if len(origin.names) > 1 else None
    return ScheduleDecl(
        name,
        "query" if origin.word == "query" else "stream",
        origin.names[0],
        second if origin.word == "query" else None,
        second if origin.word == "stream" else None,
        single.get("due"),
        single.get("revision"),
        single.get("claim"),
        single.get("renew"),
        single.get("run"),
        single.get("release"),
        single.get("fail"),
        cursor.span_from(start),
        cursor.doc(start),
    )


def _schedule_from(cursor: Cursor, start: int) -> Clause:
    word = cursor.word("`query` or `stream`", ("query", "stream")).text
    if word == "query":
        query = cursor.name("a query", "each")
        cursor.expect("each")
        return Clause(word, (query, cursor.name("a list of the query's answer")))
    stream = cursor.name("a stream")
    if cursor.accept("event"):
        return Clause(word, (stream, cursor.name("an event")))
    return Clause(word, (stream,))


_QUERY: Block[FromStmt | ReturnStmt] = Block(
    "the query",
    "a binding such as `many` or `one`, or `return`",
    {**dict.fromkeys(_KINDS, _from), "return": _return},
)
_STREAM: Block[_Partition | StreamEventDecl] = Block(
    "the stream",
    "`partition` or `event`",
    {"partition": _partition, "event": _event},
    declares=frozenset(("event",)),
)
_ROLE: Block[Clause] = Block(
    "the role", "`query`, `command` or `stream`", dict.fromkeys(("query", "command", "stream"), _granted)
)
_SCHEDULE: Block[Clause] = Block(
    "the schedule",
    "a clause of the schedule such as `due`, `claim` or `run`",
    {
        "from": _schedule_from,
        **{word: NamedClause(word, "a field") for word in ("due", "revision")},
        **{word: NamedClause(word, "a command") for word in ("claim", "renew", "run", "release", "fail")},
    },
)
