"""The tree of a contract: what the parser makes and the compiler reads; every node knows its span.

Nodes are frozen values that mirror the grammar of the language, one class a rule; families end in `Decl`, `Stmt` or
`Expr`. Lists keep source order. A node exists only if it was parsed whole; broken declarations and statements are left
out and have a diagnostic instead. Structs, since sixty dataclasses would cost each short command a tenth of a second
to define. Absent: names resolved, types, any rule beyond the grammar.
"""

from typing import Literal, TypeAlias

import msgspec

from riffdb.core.spans import Span


class Name(msgspec.Struct, frozen=True):
    """An identifier as written."""

    text: str
    span: Span


# --- types and expressions ---------------------------------------------------------------------------------------


class IntArgument(msgspec.Struct, frozen=True):
    """`N` or `A..B` in a type; `low` equals `high` for a single number."""

    low: int
    high: int
    is_range: bool
    span: Span


class TypeExpr(msgspec.Struct, frozen=True):
    """`NAME` or `NAME<…>`."""

    name: Name
    arguments: tuple["TypeExpr | IntArgument", ...]
    span: Span


class LiteralExpr(msgspec.Struct, frozen=True):
    """A literal; the value of `decimal` is its text, of `null` None."""

    kind: Literal["int", "decimal", "string", "bool", "null"]
    value: int | str | bool | None
    span: Span


class NameExpr(msgspec.Struct, frozen=True):
    """`name`: an input, service value, binding, field or parameterless name."""

    name: Name
    span: Span


class MemberExpr(msgspec.Struct, frozen=True):
    """`a.b`: a binding's field, an enum's variant, a bulk element's field."""

    owner: Name
    member: Name
    span: Span


class ParamExpr(msgspec.Struct, frozen=True):
    """`$name`; `name.text` is without the `$`."""

    name: Name
    span: Span


class TimeExpr(msgspec.Struct, frozen=True):
    """`tx.time`."""

    span: Span


class CallExpr(msgspec.Struct, frozen=True):
    """`function(arguments)`."""

    function: Name
    arguments: tuple["Expr", ...]
    span: Span


class UnaryExpr(msgspec.Struct, frozen=True):
    """`!x` or `-x`."""

    operator: Literal["!", "-"]
    operand: "Expr"
    span: Span


class BinaryExpr(msgspec.Struct, frozen=True):
    """`left operator right`."""

    operator: Literal["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"]
    left: "Expr"
    right: "Expr"
    span: Span


class IsNullExpr(msgspec.Struct, frozen=True):
    """`x is null` or `x is not null`."""

    operand: "Expr"
    negated: bool
    span: Span


class InExpr(msgspec.Struct, frozen=True):
    """`x in (…)`, `x in $p`, or `not in`."""

    operand: "Expr"
    options: "tuple[Expr, ...] | ParamExpr"
    negated: bool
    span: Span


class IfExpr(msgspec.Struct, frozen=True):
    """`(if c then a else b)`."""

    condition: "Expr"
    then: "Expr"
    otherwise: "Expr"
    span: Span


Expr: TypeAlias = (
    LiteralExpr
    | NameExpr
    | MemberExpr
    | ParamExpr
    | TimeExpr
    | CallExpr
    | UnaryExpr
    | BinaryExpr
    | IsNullExpr
    | InExpr
    | IfExpr
)


# --- outcomes and payloads ---------------------------------------------------------------------------------------


class Selection(msgspec.Struct, frozen=True):
    """`{ field … }` after a payload value of a query, or of a stream's event."""

    fields: tuple[Name, ...]
    span: Span


class PayloadItem(msgspec.Struct, frozen=True):
    """`name: value`, or `name` alone, which stands for `name: name`."""

    name: Name
    value: Expr
    selection: Selection | None
    span: Span


class Payload(msgspec.Struct, frozen=True):
    """`{ … }`."""

    items: tuple[PayloadItem, ...]
    span: Span


class Outcome(msgspec.Struct, frozen=True):
    """`Name { … }`."""

    name: Name
    payload: Payload
    span: Span


# --- declarations of data ----------------------------------------------------------------------------------------


class TypedName(msgspec.Struct, frozen=True):
    """`name: type` of a record, an event or a key."""

    name: Name
    type: TypeExpr
    span: Span
    doc: str = ""


class EnumDecl(msgspec.Struct, frozen=True):
    name: Name
    variants: tuple[Name, ...]
    span: Span
    doc: str = ""


class RecordDecl(msgspec.Struct, frozen=True):
    name: Name
    fields: tuple[TypedName, ...]
    span: Span
    doc: str = ""


class EventDecl(msgspec.Struct, frozen=True):
    name: Name
    partition: Name
    fields: tuple[TypedName, ...]
    span: Span
    doc: str = ""


class KeyMember(msgspec.Struct, frozen=True):
    fields: tuple[TypedName, ...]
    span: Span


class PartitionMember(msgspec.Struct, frozen=True):
    name: Name
    span: Span


class FieldMember(msgspec.Struct, frozen=True):
    name: Name
    type: TypeExpr
    secret: bool
    default: Expr | None
    was: Name | None
    span: Span
    doc: str = ""


class ComputedMember(msgspec.Struct, frozen=True):
    name: Name
    type: TypeExpr
    value: Expr
    span: Span
    doc: str = ""


class OrderedName(msgspec.Struct, frozen=True):
    """A name with its direction."""

    name: Name
    descending: bool
    span: Span


class IndexMember(msgspec.Struct, frozen=True):
    name: Name
    columns: tuple[OrderedName, ...]
    span: Span


class UniqueMember(msgspec.Struct, frozen=True):
    name: Name
    columns: tuple[Name, ...]
    span: Span


class ReferenceMember(msgspec.Struct, frozen=True):
    name: Name
    columns: tuple[Name, ...]
    target: Name
    target_columns: tuple[Name, ...]
    span: Span


class InvariantMember(msgspec.Struct, frozen=True):
    name: Name
    condition: Expr
    span: Span


Member: TypeAlias = (
    KeyMember
    | PartitionMember
    | FieldMember
    | ComputedMember
    | IndexMember
    | UniqueMember
    | ReferenceMember
    | InvariantMember
)


class EntityDecl(msgspec.Struct, frozen=True):
    name: Name
    members: tuple[Member, ...]
    span: Span
    doc: str = ""


class TransitionDecl(msgspec.Struct, frozen=True):
    name: Name
    sources: tuple[Name, ...]
    destination: Name
    span: Span
    doc: str = ""


class LeaseDecl(msgspec.Struct, frozen=True):
    """`lease NAME { … }`; clauses in any order."""

    name: Name
    owner: Name
    expires_at: Name
    fencing_token: Name
    attempts: Name | None
    duration_min: LiteralExpr
    duration_max: LiteralExpr
    span: Span


class WorkflowDecl(msgspec.Struct, frozen=True):
    name: Name
    entity: Name
    state: Name
    initial: Name | None
    transitions: tuple[TransitionDecl, ...]
    lease: LeaseDecl | None
    span: Span
    doc: str = ""


# --- commands ----------------------------------------------------------------------------------------------------


class InputDecl(msgspec.Struct, frozen=True):
    name: Name
    type: TypeExpr
    secret: bool
    default: Expr | None
    span: Span
    doc: str = ""


class InputKeyDecl(msgspec.Struct, frozen=True):
    """`input key of Entity`: one input a key field."""

    entity: Name
    span: Span


class ServiceDecl(msgspec.Struct, frozen=True):
    name: Name
    kind: Name
    span: Span


class Breach(msgspec.Struct, frozen=True):
    """`conflict [Child.]name Outcome` or `violates name Outcome`."""

    kind: Literal["conflict", "violates"]
    entity: Name | None
    name: Name
    outcome: Outcome
    span: Span


class BindStmt(msgspec.Struct, frozen=True):
    """`read|mutate|delete|maybe|create ENTITY[.unique](…) as NAME [else OUTCOME] breach…`, or `init_or_mutate` with its
    `initialize` payload."""

    kind: Literal["read", "mutate", "delete", "maybe", "create", "init_or_mutate"]
    entity: Name
    unique: Name | None
    key: tuple[Expr, ...]
    name: Name
    otherwise: Outcome | None
    initialize: Payload | None
    breaches: tuple[Breach, ...]
    span: Span


class RequireStmt(msgspec.Struct, frozen=True):
    name: Name
    condition: Expr
    otherwise: Outcome
    span: Span


class SetStmt(msgspec.Struct, frozen=True):
    binding: Name
    field: Name
    value: Expr
    span: Span


class EmitStmt(msgspec.Struct, frozen=True):
    event: Name
    payload: Payload
    span: Span


class OutcomeClause(msgspec.Struct, frozen=True):
    """`stale Outcome`, `invalid Outcome` and their kin, in a transition or a lease operation."""

    word: Name
    outcome: Outcome
    span: Span


class OperandClause(msgspec.Struct, frozen=True):
    """`owner expr`, `revision expr` and their kin, in a transition or a lease operation."""

    word: Name
    value: Expr
    span: Span


class TransitionStmt(msgspec.Struct, frozen=True):
    transition: Name
    binding: Name
    operands: tuple[OperandClause, ...]
    outcomes: tuple[OutcomeClause, ...]
    span: Span


class LeaseStmt(msgspec.Struct, frozen=True):
    operation: Name
    lease: Name
    binding: Name
    operands: tuple[OperandClause, ...]
    outcomes: tuple[OutcomeClause, ...]
    span: Span


class ReturnStmt(msgspec.Struct, frozen=True):
    outcome: Outcome
    span: Span


class Arm(msgspec.Struct, frozen=True):
    """`when expr` or `otherwise` (condition None), then `apply { … [return] }` or `none Outcome`."""

    condition: Expr | None
    body: tuple["Stmt", ...]
    answer: ReturnStmt | None
    none: Outcome | None
    span: Span


class DecideStmt(msgspec.Struct, frozen=True):
    binding: Name
    arms: tuple[Arm, ...]
    span: Span


Stmt: TypeAlias = BindStmt | RequireStmt | SetStmt | EmitStmt | TransitionStmt | LeaseStmt | DecideStmt


class Loop(msgspec.Struct, frozen=True):
    """`for NAME in NAME { … }` of a bulk command."""

    item: Name
    items: Name
    body: tuple[Stmt, ...]
    span: Span


class CommandDecl(msgspec.Struct, frozen=True):
    """A command; `loop` only in a bulk command, after `body`. `answer` is None only if its place was broken."""

    kind: Literal["command", "bulk"]
    name: Name
    inputs: tuple[InputDecl | InputKeyDecl, ...]
    services: tuple[ServiceDecl, ...]
    idempotency_key: Name | None
    body: tuple[Stmt, ...]
    loop: Loop | None
    answer: ReturnStmt | None
    span: Span
    doc: str = ""


class ReimportDecl(msgspec.Struct, frozen=True):
    name: Name
    inputs: tuple[InputDecl | InputKeyDecl, ...]
    idempotency_key: Name | None
    entity: Name
    source: Name
    otherwise: Outcome
    answer: ReturnStmt | None
    span: Span
    doc: str = ""


ContractMember: TypeAlias = EnumDecl | RecordDecl | EntityDecl | EventDecl | WorkflowDecl | CommandDecl | ReimportDecl


class ContractDecl(msgspec.Struct, frozen=True):
    name: Name
    version: int
    version_span: Span
    members: tuple[ContractMember, ...]
    span: Span
    doc: str = ""


# --- queries, streams, roles, schedules --------------------------------------------------------------------------


class ParamDecl(msgspec.Struct, frozen=True):
    """`$name: type = default`; `name.text` is without the `$`."""

    name: Name
    type: TypeExpr
    default: Expr | None
    span: Span


class FromStmt(msgspec.Struct, frozen=True):
    """`one|maybe|many|count|sum|min|max NAME … from ENTITY where …` with the clauses that its kind takes.

    A clause that the kind demands is absent here only if its absence was reported."""

    kind: Literal["one", "maybe", "many", "count", "sum", "min", "max"]
    name: Name
    of: Name | None
    entity: Name
    where: Expr
    by: Name | None
    order: tuple[OrderedName, ...]
    take: LiteralExpr | ParamExpr | None
    cursor: ParamExpr | None
    cursor_kind: Literal["after", "before", ""]
    otherwise: Outcome | None
    span: Span


class RevealDecl(msgspec.Struct, frozen=True):
    entity: Name
    field: Name
    span: Span


class QueryDecl(msgspec.Struct, frozen=True):
    name: Name
    params: tuple[ParamDecl, ...]
    reveals: tuple[RevealDecl, ...]
    bindings: tuple[FromStmt, ...]
    answer: ReturnStmt | None
    span: Span
    doc: str = ""


class StreamEventDecl(msgspec.Struct, frozen=True):
    event: Name
    selection: Selection
    where: Expr | None
    span: Span


class StreamDecl(msgspec.Struct, frozen=True):
    name: Name
    params: tuple[ParamDecl, ...]
    partition: Name
    partition_value: ParamExpr
    events: tuple[StreamEventDecl, ...]
    span: Span
    doc: str = ""


class RoleDecl(msgspec.Struct, frozen=True):
    """Exact names by family, in source order."""

    name: Name
    queries: tuple[Name, ...]
    commands: tuple[Name, ...]
    streams: tuple[Name, ...]
    span: Span
    doc: str = ""


class ScheduleDecl(msgspec.Struct, frozen=True):
    """`due`, `claim`, `run` and `release` are None only if their absence was reported."""

    name: Name
    source: Literal["query", "stream"]
    source_name: Name
    each: Name | None
    event: Name | None
    due: Name | None
    revision: Name | None
    claim: Name | None
    renew: Name | None
    run: Name | None
    release: Name | None
    fail: Name | None
    span: Span
    doc: str = ""


TopDecl: TypeAlias = ContractDecl | QueryDecl | StreamDecl | RoleDecl | ScheduleDecl


class Tree(msgspec.Struct, frozen=True):
    """One parsed file: the declarations that were parsed whole, in source order."""

    declarations: tuple[TopDecl, ...]
    span: Span
