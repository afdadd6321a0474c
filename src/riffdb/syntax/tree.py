"""The tree of a contract: what the parser makes and the compiler reads; every node knows its span.

Nodes are frozen values that mirror the grammar of the language, one class a rule; families end in `Decl`, `Stmt` or
`Expr`. Lists keep source order. A node exists only if it was parsed whole; broken declarations and statements are left
out and have a diagnostic instead. Absent: names resolved, types, any rule beyond the grammar.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from riffdb.core.spans import Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier as written."""

    text: str
    span: Span


# --- types and expressions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntArgument:
    """`N` or `A..B` in a type; `low` equals `high` for a single number."""

    low: int
    high: int
    is_range: bool
    span: Span


@dataclass(frozen=True, slots=True)
class TypeExpr:
    """`NAME` or `NAME<…>`."""

    name: Name
    arguments: tuple["TypeExpr | IntArgument", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LiteralExpr:
    """A literal; the value of `decimal` is its text, of `null` None."""

    kind: Literal["int", "decimal", "string", "bool", "null"]
    value: int | str | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class NameExpr:
    """`name`: an input, service value, binding, field or parameterless name."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class MemberExpr:
    """`a.b`: a binding's field, an enum's variant, a bulk element's field."""

    owner: Name
    member: Name
    span: Span


@dataclass(frozen=True, slots=True)
class ParamExpr:
    """`$name`; `name.text` is without the `$`."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class TimeExpr:
    """`tx.time`."""

    span: Span


@dataclass(frozen=True, slots=True)
class CallExpr:
    """`function(arguments)`."""

    function: Name
    arguments: tuple["Expr", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class UnaryExpr:
    """`!x` or `-x`."""

    operator: Literal["!", "-"]
    operand: "Expr"
    span: Span


@dataclass(frozen=True, slots=True)
class BinaryExpr:
    """`left operator right`."""

    operator: Literal["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"]
    left: "Expr"
    right: "Expr"
    span: Span


@dataclass(frozen=True, slots=True)
class IsNullExpr:
    """`x is null` or `x is not null`."""

    operand: "Expr"
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InExpr:
    """`x in (…)`, `x in $p`, or `not in`."""

    operand: "Expr"
    options: "tuple[Expr, ...] | ParamExpr"
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class IfExpr:
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


@dataclass(frozen=True, slots=True)
class Selection:
    """`{ field … }` after a payload value of a query, or of a stream's event."""

    fields: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PayloadItem:
    """`name: value`, or `name` alone, which stands for `name: name`."""

    name: Name
    value: Expr
    selection: Selection | None
    span: Span


@dataclass(frozen=True, slots=True)
class Payload:
    """`{ … }`."""

    items: tuple[PayloadItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Outcome:
    """`Name { … }`."""

    name: Name
    payload: Payload
    span: Span


# --- declarations of data ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypedName:
    """`name: type` of a record, an event or a key."""

    name: Name
    type: TypeExpr
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class EnumDecl:
    name: Name
    variants: tuple[Name, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class RecordDecl:
    name: Name
    fields: tuple[TypedName, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class EventDecl:
    name: Name
    partition: Name
    fields: tuple[TypedName, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class KeyMember:
    fields: tuple[TypedName, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PartitionMember:
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class FieldMember:
    name: Name
    type: TypeExpr
    secret: bool
    default: Expr | None
    was: Name | None
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ComputedMember:
    name: Name
    type: TypeExpr
    value: Expr
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class OrderedName:
    """A name with its direction."""

    name: Name
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class IndexMember:
    name: Name
    columns: tuple[OrderedName, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class UniqueMember:
    name: Name
    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ReferenceMember:
    name: Name
    columns: tuple[Name, ...]
    target: Name
    target_columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InvariantMember:
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


@dataclass(frozen=True, slots=True)
class EntityDecl:
    name: Name
    members: tuple[Member, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class TransitionDecl:
    name: Name
    sources: tuple[Name, ...]
    destination: Name
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class LeaseDecl:
    """`lease NAME { … }`; clauses in any order."""

    name: Name
    owner: Name
    expires_at: Name
    fencing_token: Name
    attempts: Name | None
    duration_min: LiteralExpr
    duration_max: LiteralExpr
    span: Span


@dataclass(frozen=True, slots=True)
class WorkflowDecl:
    name: Name
    entity: Name
    state: Name
    initial: Name | None
    transitions: tuple[TransitionDecl, ...]
    lease: LeaseDecl | None
    span: Span
    doc: str = ""


# --- commands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputDecl:
    name: Name
    type: TypeExpr
    secret: bool
    default: Expr | None
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class InputKeyDecl:
    """`input key of Entity`: one input a key field."""

    entity: Name
    span: Span


@dataclass(frozen=True, slots=True)
class ServiceDecl:
    name: Name
    kind: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Breach:
    """`conflict [Child.]name Outcome` or `violates name Outcome`."""

    kind: Literal["conflict", "violates"]
    entity: Name | None
    name: Name
    outcome: Outcome
    span: Span


@dataclass(frozen=True, slots=True)
class BindStmt:
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


@dataclass(frozen=True, slots=True)
class RequireStmt:
    name: Name
    condition: Expr
    otherwise: Outcome
    span: Span


@dataclass(frozen=True, slots=True)
class SetStmt:
    binding: Name
    field: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class EmitStmt:
    event: Name
    payload: Payload
    span: Span


@dataclass(frozen=True, slots=True)
class OutcomeClause:
    """`stale Outcome`, `invalid Outcome` and their kin, in a transition or a lease operation."""

    word: Name
    outcome: Outcome
    span: Span


@dataclass(frozen=True, slots=True)
class OperandClause:
    """`owner expr`, `revision expr` and their kin, in a transition or a lease operation."""

    word: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class TransitionStmt:
    transition: Name
    binding: Name
    operands: tuple[OperandClause, ...]
    outcomes: tuple[OutcomeClause, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LeaseStmt:
    operation: Name
    lease: Name
    binding: Name
    operands: tuple[OperandClause, ...]
    outcomes: tuple[OutcomeClause, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ReturnStmt:
    outcome: Outcome
    span: Span


@dataclass(frozen=True, slots=True)
class Arm:
    """`when expr` or `otherwise` (condition None), then `apply { … [return] }` or `none Outcome`."""

    condition: Expr | None
    body: tuple["Stmt", ...]
    answer: ReturnStmt | None
    none: Outcome | None
    span: Span


@dataclass(frozen=True, slots=True)
class DecideStmt:
    binding: Name
    arms: tuple[Arm, ...]
    span: Span


Stmt: TypeAlias = BindStmt | RequireStmt | SetStmt | EmitStmt | TransitionStmt | LeaseStmt | DecideStmt


@dataclass(frozen=True, slots=True)
class Loop:
    """`for NAME in NAME { … }` of a bulk command."""

    item: Name
    items: Name
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CommandDecl:
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


@dataclass(frozen=True, slots=True)
class ReimportDecl:
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


@dataclass(frozen=True, slots=True)
class ContractDecl:
    name: Name
    version: int
    version_span: Span
    members: tuple[ContractMember, ...]
    span: Span
    doc: str = ""


# --- queries, streams, roles, schedules --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """`$name: type = default`; `name.text` is without the `$`."""

    name: Name
    type: TypeExpr
    default: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class FromStmt:
    """`one|maybe|many|count|sum|min|max NAME … from ENTITY where …` with the clauses that its kind takes."""

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


@dataclass(frozen=True, slots=True)
class RevealDecl:
    entity: Name
    field: Name
    span: Span


@dataclass(frozen=True, slots=True)
class QueryDecl:
    name: Name
    params: tuple[ParamDecl, ...]
    reveals: tuple[RevealDecl, ...]
    bindings: tuple[FromStmt, ...]
    answer: ReturnStmt | None
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class StreamEventDecl:
    event: Name
    selection: Selection
    where: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class StreamDecl:
    name: Name
    params: tuple[ParamDecl, ...]
    partition: Name
    partition_value: ParamExpr
    events: tuple[StreamEventDecl, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class RoleDecl:
    """Exact names by family, in source order."""

    name: Name
    queries: tuple[Name, ...]
    commands: tuple[Name, ...]
    streams: tuple[Name, ...]
    span: Span
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleDecl:
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


@dataclass(frozen=True, slots=True)
class Tree:
    """One parsed file: the declarations that were parsed whole, in source order."""

    declarations: tuple[TopDecl, ...]
    span: Span
