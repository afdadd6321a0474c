"""Linking: which name stands for which declaration. One contract an application, no name twice in a scope.

Two names of one scope differ beyond ASCII case. Declarations of data (enums, records, entities, events, workflows)
share one scope; commands, queries, streams, roles, schedules have one each. Of a name declared twice the first stands.
Absent: names inside a declaration, which its own pass looks up.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Declared, Draft
from riffdb.compiler.typing import BUILT_IN
from riffdb.core.diagnostics import Related
from riffdb.core.spans import Source, Span
from riffdb.syntax.tree import (
    CommandDecl,
    ContractDecl,
    ContractMember,
    EntityDecl,
    EnumDecl,
    EventDecl,
    Name,
    QueryDecl,
    RecordDecl,
    ReimportDecl,
    RoleDecl,
    ScheduleDecl,
    StreamDecl,
    TopDecl,
    WorkflowDecl,
)


def link(draft: Draft, collector: Collector) -> Draft:
    """Collect the declarations of all files by name."""
    declarations = [declaration for tree in draft.trees for declaration in tree.declarations]
    contract = _one_contract(draft, declarations, collector)
    members: tuple[ContractMember, ...] = () if contract is None else contract.members
    data = NameScope("a declaration", collector)
    kept = [member for member in members if isinstance(member, CommandDecl | ReimportDecl) or data.add(member.name)]
    for member in kept:
        if isinstance(member, EnumDecl | RecordDecl) and member.name.text in BUILT_IN:
            message = f"`{member.name.text}` is a type of the language, so nothing else is called so"
            collector.error("RDB-C105", message, member.name.span, help="give the declaration another name")
    declared = Declared(
        contract=contract,
        enums=_by_name(member for member in kept if isinstance(member, EnumDecl)),
        records=_by_name(member for member in kept if isinstance(member, RecordDecl)),
        entities=_by_name(member for member in kept if isinstance(member, EntityDecl)),
        events=_by_name(member for member in kept if isinstance(member, EventDecl)),
        workflows=_by_name(member for member in kept if isinstance(member, WorkflowDecl)),
        commands=_scope(
            "a command", (part for part in kept if isinstance(part, CommandDecl | ReimportDecl)), collector
        ),
        queries=_scope("a query", (part for part in declarations if isinstance(part, QueryDecl)), collector),
        streams=_scope("a stream", (part for part in declarations if isinstance(part, StreamDecl)), collector),
        roles=_scope("a role", (part for part in declarations if isinstance(part, RoleDecl)), collector),
        schedules=_scope("a schedule", (part for part in declarations if isinstance(part, ScheduleDecl)), collector),
    )
    return replace(draft, declared=declared)


def _one_contract(draft: Draft, declarations: list[TopDecl], collector: Collector) -> ContractDecl | None:
    contracts = [declaration for declaration in declarations if isinstance(declaration, ContractDecl)]
    if not contracts:
        source = draft.trees[0].span.source if draft.trees else Source(draft.application, "")
        message = "the application has no contract"
        help_text = "add `contract Name version 1 { … }` to one of its files"
        collector.error("RDB-C100", message, Span(source, 0, 0), help=help_text)
        return None
    first = contracts[0]
    for other in contracts[1:]:
        collector.error(
            "RDB-C101",
            f"an application has one contract, and `{first.name.text}` is it already",
            other.name.span,
            related=(Related("the first contract", first.name.span),),
            help="move its declarations into the first contract",
        )
    if first.version < 1:
        collector.error("RDB-C102", "a contract's version is a whole number from 1 on", first.version_span)
    return first


class NameScope:
    """The names of one scope; a second one that differs in ASCII case alone, or not at all, is refused."""

    def __init__(self, kind: str, collector: Collector) -> None:
        self.kind = kind
        self.collector = collector
        self.names: dict[str, Name] = {}

    def add(self, name: Name) -> bool:
        """Whether the name is new here; if not, it is reported."""
        first = self.names.setdefault(name.text.lower(), name)
        if first is name:
            return True
        message = f"{self.kind} called `{name.text}` stands here already"
        if first.text != name.text:
            message = f"`{name.text}` differs from `{first.text}` in case alone"
        self.collector.error(
            "RDB-C103",
            message,
            name.span,
            related=(Related("first declared here", first.span),),
            help="give one of the two another name",
        )
        return False


Declaration = TypeVar(
    "Declaration",
    EnumDecl,
    RecordDecl,
    EntityDecl,
    EventDecl,
    WorkflowDecl,
    CommandDecl | ReimportDecl,
    QueryDecl,
    StreamDecl,
    RoleDecl,
    ScheduleDecl,
)


def _by_name(declarations: Iterable[Declaration]) -> dict[str, Declaration]:
    return {declaration.name.text: declaration for declaration in declarations}


def _scope(kind: str, declarations: Iterable[Declaration], collector: Collector) -> dict[str, Declaration]:
    scope = NameScope(kind, collector)
    return {declaration.name.text: declaration for declaration in declarations if scope.add(declaration.name)}
