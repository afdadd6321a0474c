"""Commands: inputs, bindings, requires, effects, decisions, loops and answers, in the three kinds of command.

Clauses of one operation stand in any order, each once. An item in the wrong place is reported and kept where it can be.
Absent: which clauses an operation must have, which the compiler knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from riffdb.core.diagnostics import Edit, Fix
from riffdb.syntax.cursor import Block, Cursor
from riffdb.syntax.data import is_secret, once, require_clauses
from riffdb.syntax.expressions import constant, expr, exprs, outcome, payload, type_expr
from riffdb.syntax.position import BrokenItemError
from riffdb.syntax.tree import (
    Arm,
    BindStmt,
    Breach,
    CommandDecl,
    DecideStmt,
    EmitStmt,
    Expr,
    InputDecl,
    InputKeyDecl,
    LeaseStmt,
    Loop,
    Name,
    OperandClause,
    Outcome,
    OutcomeClause,
    ReimportDecl,
    RequireStmt,
    ReturnStmt,
    ServiceDecl,
    SetStmt,
    Stmt,
    TransitionStmt,
)
from riffdb.syntax.words import CLAUSES, LEASE_OPERATIONS, LEASE_OUTCOMES, OPERANDS, TRANSITION_OUTCOMES

_BREACHES = frozenset(("conflict", "violates"))

# --- inputs ------------------------------------------------------------------------------------------------------


def _input(cursor: Cursor, start: int) -> InputDecl | InputKeyDecl:
    if cursor.at("key") and cursor.texts[cursor.index + 1] == "of":
        cursor.index += 2
        return InputKeyDecl(cursor.name("an entity"), cursor.span_from(start))
    secret = is_secret(cursor)
    name = cursor.name("a name for the input", ":")
    cursor.expect(":")
    kind = type_expr(cursor)
    default = constant(cursor) if cursor.accept("=") else None
    return InputDecl(name, kind, secret, default, cursor.span_from(start), cursor.doc(start))


def _service(cursor: Cursor, start: int) -> ServiceDecl:
    name = cursor.name("a name for the service value", ":")
    cursor.expect(":")
    kind = cursor.word("`uuid_v7`", ("uuid_v7",))
    return ServiceDecl(name, kind, cursor.span_from(start))


def _idempotency_key(cursor: Cursor, start: int) -> Name:
    return cursor.name("an input")


# --- bindings and requires ---------------------------------------------------------------------------------------


def _binding(cursor: Cursor, start: int) -> BindStmt:
    kind = _BINDINGS[cursor.keyword]
    can_use_unique = kind in ("read", "mutate", "delete", "maybe")
    entity = cursor.name("an entity", *("(.}" if can_use_unique else "("))
    unique = None
    if can_use_unique and cursor.accept("."):
        unique = cursor.name("a unique", "(")
    cursor.expect("(")
    key = exprs(cursor)
    cursor.expect("as")
    name = cursor.name("a name for the binding")
    otherwise = initialize = None
    if kind == "init_or_mutate":
        cursor.expect("initialize")
        initialize = payload(cursor)
    elif kind == "maybe":
        _refuse_else(cursor, name)
    else:
        cursor.expect("else")
        otherwise = outcome(cursor)
    breaches = () if kind == "maybe" else _breaches(cursor)
    return BindStmt(kind, entity, unique, key, name, otherwise, initialize, breaches, cursor.span_from(start))


def _refuse_else(cursor: Cursor, name: Name) -> None:
    place = cursor.index
    if not cursor.accept("else"):
        return
    outcome(cursor)
    if not cursor.is_recovering:
        span = cursor.span_from(place)
        fix = Fix("take the `else` out", (Edit(span, ""),))
        remedy = f"test `{name.text} is null` instead, or write `read`"
        cursor.report("RDB-C016", "`maybe` has no `else`", span, fix=fix, remedy=remedy)


def _breaches(cursor: Cursor) -> tuple[Breach, ...]:
    found: list[Breach] = []
    while True:
        start = cursor.index
        word = cursor.clause(_BREACHES)
        if word is None:
            return tuple(found)
        first = cursor.plain_name("what may be broken")
        if word.text == "conflict":
            second = cursor.plain_name("a reference") if cursor.accept(".") else None
            entity, name = (None, first) if second is None else (first, second)
            found.append(Breach("conflict", entity, name, outcome(cursor), cursor.span_from(start)))
        else:
            found.append(Breach("violates", None, first, outcome(cursor), cursor.span_from(start)))


def _require(cursor: Cursor, start: int) -> RequireStmt:
    name = cursor.name("a name for the condition", ":")
    cursor.expect(":")
    condition = expr(cursor)
    cursor.expect("else")
    return RequireStmt(name, condition, outcome(cursor), cursor.span_from(start))


# --- effects -----------------------------------------------------------------------------------------------------


def _set(cursor: Cursor, start: int) -> SetStmt:
    binding = cursor.name("a binding", ".")
    cursor.expect(".")
    field = cursor.name("a field", "=")
    cursor.expect("=")
    value = expr(cursor)
    return SetStmt(binding, field, value, cursor.span_from(start))


def _emit(cursor: Cursor, start: int) -> EmitStmt:
    event = cursor.name("an event", "{")
    return EmitStmt(event, payload(cursor), cursor.span_from(start))


def _transition(cursor: Cursor, start: int) -> TransitionStmt:
    transition = cursor.name("a transition", "on")
    cursor.expect("on")
    binding = cursor.name("a binding")
    allowed = frozenset(("revision", *TRANSITION_OUTCOMES))
    operands, outcomes = _clauses(cursor, "transition", allowed)
    return TransitionStmt(transition, binding, operands, outcomes, cursor.span_from(start))


def _lease(cursor: Cursor, start: int) -> LeaseStmt:
    operation = cursor.word("a lease operation such as `claim` or `fence`", LEASE_OPERATIONS)
    lease = cursor.name("a lease", "on")
    cursor.expect("on")
    binding = cursor.name("a binding")
    operands, outcomes = _clauses(cursor, "lease", OPERANDS | LEASE_OUTCOMES)
    return LeaseStmt(operation, lease, binding, operands, outcomes, cursor.span_from(start))


def _clauses(
    cursor: Cursor, owner: str, allowed: frozenset[str]
) -> tuple[tuple[OperandClause, ...], tuple[OutcomeClause, ...]]:
    """The clauses of a transition or a lease operation; those of the other kind are reported and left out."""
    operands: list[OperandClause] = []
    outcomes: list[OutcomeClause] = []
    seen: dict[str, int] = {}
    while True:
        start = cursor.index
        word = cursor.clause(CLAUSES)
        if word is None:
            break
        is_kept = word.text in allowed
        if is_kept:
            is_kept = once(cursor, seen, word.text, start)
        elif not cursor.is_recovering:
            remedy = f"a {owner} takes {', '.join(f'`{name}`' for name in sorted(allowed))}"
            message = f"`{word.text}` is no clause of a {owner}"
            cursor.report("RDB-C016", message, word.span, remedy=remedy)
        if word.text in OPERANDS:
            value = _operand(cursor)
            if is_kept:
                operands.append(OperandClause(word, value, cursor.span_from(start)))
        else:
            answer = outcome(cursor)
            if is_kept:
                outcomes.append(OutcomeClause(word, answer, cursor.span_from(start)))
            cursor.accept(",")
    is_next = cursor.texts[cursor.index] in cursor.levels[-1]
    if not is_next and cursor.kinds[cursor.index] == "name" and cursor.has_shape(cursor.index, (("NAME", "{"),)):
        raise cursor.unexpected(f"a clause of the {owner}, such as `stale`")
    return tuple(operands), tuple(outcomes)


def _operand(cursor: Cursor) -> Expr:
    index = cursor.index
    if cursor.texts[index] in CLAUSES and cursor.kinds[index + 1] == "name":
        after = cursor.texts[index + 1]
        is_last = after in CLAUSES or after in cursor.levels[-1]
        if not is_last or cursor.texts[index + 2] == "{":
            raise cursor.unexpected("an expression")
    return expr(cursor)


# --- decisions ---------------------------------------------------------------------------------------------------


def _decide(cursor: Cursor, start: int) -> DecideStmt:
    binding = cursor.name("a binding", "{")
    arms = tuple(arm for _, arm in cursor.items(_DECIDE))
    return DecideStmt(binding, arms, cursor.span_from(start))


def _when(cursor: Cursor, start: int) -> Arm:
    return _arm(cursor, start, expr(cursor))


def _otherwise(cursor: Cursor, start: int) -> Arm:
    return _arm(cursor, start, None)


def _arm(cursor: Cursor, start: int, condition: Expr | None) -> Arm:
    if cursor.word("`apply` or `none`", ("apply", "none")).text == "none":
        return Arm(condition, (), None, outcome(cursor), cursor.span_from(start))
    body: list[Stmt] = []
    answer: ReturnStmt | None = None
    for place, item in cursor.items(_APPLY):
        if answer is not None:
            _nothing_follows(cursor, place)
        elif isinstance(item, ReturnStmt):
            answer = item
        else:
            body.append(item)
    return Arm(condition, tuple(body), answer, None, cursor.span_from(start))


def _nothing_follows(cursor: Cursor, place: int) -> None:
    remedy = "move it before the `return`, or take it out"
    cursor.report("RDB-C015", "nothing follows `return`", cursor.span(place), remedy=remedy)


def return_stmt(cursor: Cursor, start: int) -> ReturnStmt:
    """`return Outcome { … }`, in every declaration that answers."""
    return ReturnStmt(outcome(cursor), cursor.span_from(start))


def _for(cursor: Cursor, start: int) -> Loop:
    item = cursor.name("a name for the item", "in")
    cursor.expect("in")
    items = cursor.name("a list input", "{")
    body = tuple(statement for _, statement in cursor.items(_FOR))
    return Loop(item, items, body, cursor.span_from(start))


# --- the three kinds of command ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reconstitution:
    """`reconstitute ENTITY from INPUT else OUTCOME`, before its declaration is put together."""

    entity: Name
    source: Name
    otherwise: Outcome


CommandItem: TypeAlias = InputDecl | InputKeyDecl | ServiceDecl | Name | Stmt | Loop | Reconstitution | ReturnStmt


def _reconstitute(cursor: Cursor, start: int) -> Reconstitution:
    entity = cursor.name("an entity", "from")
    cursor.expect("from")
    source = cursor.name("an input", "else")
    cursor.expect("else")
    return Reconstitution(entity, source, outcome(cursor))


def _rank(item: CommandItem) -> int:
    if isinstance(item, InputDecl | InputKeyDecl | ServiceDecl):
        return 0
    if isinstance(item, Name):
        return 1
    if isinstance(item, Loop | Reconstitution):
        return 3
    return 4 if isinstance(item, ReturnStmt) else 2


_PLACES = (
    "inputs and service values come first",
    "`idempotency_key` comes after the inputs, before the first statement",
    "nothing but `return` follows `for`",
    "there is one, and only `return` follows it",
)


class _Items:
    """The items of one command, sorted by kind; what is out of order is reported and kept."""

    def __init__(self) -> None:
        self.inputs: list[InputDecl | InputKeyDecl] = []
        self.services: list[ServiceDecl] = []
        self.idempotency_key: Name | None = None
        self.body: list[Stmt] = []
        self.loop: Loop | None = None
        self.reconstitution: Reconstitution | None = None
        self.answer: ReturnStmt | None = None
        self.seen: dict[str, int] = {}
        self.rank = 0

    def add(self, cursor: Cursor, place: int, item: CommandItem) -> None:
        """Put an item where it belongs."""
        rank = _rank(item)
        if rank == 1 and not once(cursor, self.seen, "idempotency_key", place):
            return
        if rank == 3:
            self.seen.setdefault("reconstitute" if isinstance(item, Reconstitution) else "for", place)
        if self.rank == 4:
            _nothing_follows(cursor, place)
        elif rank < self.rank or rank == self.rank == 3:
            word = cursor.texts[place]
            cursor.report("RDB-C015", f"`{word}` is out of place", cursor.span(place), remedy=_PLACES[rank])
        self.rank = max(self.rank, rank)
        self._keep(item)

    def _keep(self, item: CommandItem) -> None:
        if isinstance(item, InputDecl | InputKeyDecl):
            self.inputs.append(item)
        elif isinstance(item, ServiceDecl):
            self.services.append(item)
        elif isinstance(item, Name):
            self.idempotency_key = item
        elif isinstance(item, Loop):
            self.loop = self.loop or item
        elif isinstance(item, Reconstitution):
            self.reconstitution = self.reconstitution or item
        elif isinstance(item, ReturnStmt):
            self.answer = self.answer or item
            self.seen["return"] = 0
        else:
            self.body.append(item)


def command_decl(cursor: Cursor, start: int) -> CommandDecl:
    """`command NAME { … }`."""
    name = cursor.name("a name for the command", "{")
    items = _Items()
    for place, item in cursor.items(_COMMAND):
        items.add(cursor, place, item)
    require_clauses(cursor, f"the command `{name.text}`", ("return",), items.seen, start)
    return _command(cursor, start, "command", name, items)


def bulk_decl(cursor: Cursor, start: int) -> CommandDecl:
    """`bulk command NAME { … for ITEM in INPUT { … } … }`."""
    cursor.expect("command")
    name = cursor.name("a name for the command", "{")
    items = _Items()
    for place, item in cursor.items(_BULK):
        items.add(cursor, place, item)
        if isinstance(item, SetStmt | EmitStmt | TransitionStmt | LeaseStmt | DecideStmt):
            word = cursor.texts[place]
            message = f"`{word}` is out of place: the effects of a bulk command stand inside its `for`"
            cursor.report("RDB-C015", message, cursor.span(place), remedy="move it into `for ITEM in INPUT { … }`")
    require_clauses(cursor, f"the bulk command `{name.text}`", ("for", "return"), items.seen, start)
    return _command(cursor, start, "bulk", name, items)


def _command(cursor: Cursor, start: int, kind: Literal["command", "bulk"], name: Name, items: _Items) -> CommandDecl:
    return CommandDecl(
        kind,
        name,
        tuple(items.inputs),
        tuple(items.services),
        items.idempotency_key,
        tuple(items.body),
        items.loop,
        items.answer,
        cursor.span_from(start),
        cursor.doc(start),
    )


def reimport_decl(cursor: Cursor, start: int) -> ReimportDecl:
    """`reimport command NAME { … reconstitute ENTITY from INPUT else OUTCOME … }`."""
    cursor.expect("command")
    name = cursor.name("a name for the command", "{")
    items = _Items()
    for place, item in cursor.items(_REIMPORT):
        items.add(cursor, place, item)
    require_clauses(cursor, f"the reimport command `{name.text}`", ("reconstitute", "return"), items.seen, start)
    found = items.reconstitution
    if found is None:
        raise BrokenItemError
    return ReimportDecl(
        name,
        tuple(items.inputs),
        items.idempotency_key,
        found.entity,
        found.source,
        found.otherwise,
        items.answer,
        cursor.span_from(start),
        cursor.doc(start),
    )


BindKind: TypeAlias = Literal["read", "mutate", "delete", "maybe", "create", "init_or_mutate"]
_BINDINGS: dict[str, BindKind] = {
    "read": "read",
    "mutate": "mutate",
    "delete": "delete",
    "maybe": "maybe",
    "create": "create",
    "init_or_mutate": "init_or_mutate",
}
_STATEMENTS: Mapping[str, Callable[[Cursor, int], Stmt]] = {
    **dict.fromkeys(_BINDINGS, _binding),
    "require": _require,
    "set": _set,
    "emit": _emit,
    "transition": _transition,
    "lease": _lease,
    "decide": _decide,
}
_INPUTS: Mapping[str, Callable[[Cursor, int], CommandItem]] = {"input": _input, "idempotency_key": _idempotency_key}
_A_STATEMENT = "a statement such as `mutate`, `set` or `return`"

_FOR: Block[Stmt] = Block("the `for`", "a statement such as `mutate` or `set`", _STATEMENTS)
_APPLY: Block[Stmt | ReturnStmt] = Block("the `apply`", _A_STATEMENT, {**_STATEMENTS, "return": return_stmt})
_DECIDE: Block[Arm] = Block("the `decide`", "`when` or `otherwise`", {"when": _when, "otherwise": _otherwise})
_COMMAND: Block[CommandItem] = Block(
    "the command", _A_STATEMENT, {**_INPUTS, "service": _service, **_STATEMENTS, "return": return_stmt}
)
_BULK: Block[CommandItem] = Block(
    "the bulk command",
    "a statement such as `require`, `for` or `return`",
    {**_INPUTS, "service": _service, **_STATEMENTS, "for": _for, "return": return_stmt},
)
_REIMPORT: Block[CommandItem] = Block(
    "the reimport command",
    "`input`, `idempotency_key`, `reconstitute` or `return`",
    {**_INPUTS, "reconstitute": _reconstitute, "return": return_stmt},
)
