"""A whole file: contracts and what stands beside them, from text to a tree and diagnostics.

Nothing raises, whatever the text. A declaration on the wrong side of a contract's braces is reported and put on the
right one. Absent: reading files, and how many contracts an application has.
"""

from collections.abc import Callable, Mapping

import msgspec

from riffdb.core.diagnostics import Diagnostic, Edit, Fix, Related
from riffdb.core.limits import SOURCE_BYTES_MAX
from riffdb.core.spans import Source, Span
from riffdb.syntax.commands import bulk_decl, command_decl, reimport_decl
from riffdb.syntax.cursor import Block, Cursor
from riffdb.syntax.data import entity_decl, enum_decl, event_decl, record_decl, workflow_decl
from riffdb.syntax.expressions import integer
from riffdb.syntax.position import BrokenItemError, FullReportError
from riffdb.syntax.queries import query_decl, role_decl, schedule_decl, stream_decl
from riffdb.syntax.tokens import tokenize
from riffdb.syntax.tree import (
    ContractDecl,
    ContractMember,
    Name,
    QueryDecl,
    RoleDecl,
    ScheduleDecl,
    StreamDecl,
    TopDecl,
    Tree,
)

_MEMBERS: Mapping[str, Callable[[Cursor, int], ContractMember]] = {
    "enum": enum_decl,
    "record": record_decl,
    "entity": entity_decl,
    "event": event_decl,
    "workflow": workflow_decl,
    "command": command_decl,
    "bulk": bulk_decl,
    "reimport": reimport_decl,
}
_BESIDE: Mapping[str, Callable[[Cursor, int], TopDecl]] = {
    "query": query_decl,
    "stream": stream_decl,
    "role": role_decl,
    "schedule": schedule_decl,
}
_A_MEMBER = "a declaration such as `entity`, `workflow` or `command`"

# In a file whose braces do not balance, a query inside the contract shows that the contract's own brace is missing.
_CONTRACT: Block[ContractMember] = Block("the contract", _A_MEMBER, _MEMBERS, declares=frozenset(_MEMBERS))
_CONTRACT_AND_MORE: Block[ContractMember | TopDecl] = Block(
    "the contract", _A_MEMBER, {**_MEMBERS, **_BESIDE}, declares=frozenset((*_MEMBERS, *_BESIDE))
)


def parse(source: Source) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The tree of a source as far as it was parsed, and what is wrong in it in order of place; never raises."""
    whole = Span(source, 0, len(source.text))
    refusal = _refusal(source)
    if refusal is not None:
        return Tree((), whole), (refusal,)
    tokens = tokenize(source)
    cursor = Cursor(tokens)
    declarations: list[TopDecl] = []
    try:
        _file(cursor, declarations)
    except FullReportError:  # the list of diagnostics says it
        pass
    diagnostics = sorted((*tokens.diagnostics, *cursor.diagnostics), key=lambda diagnostic: diagnostic.span.start)
    return Tree(tuple(declarations), whole), tuple(diagnostics)


def _refusal(source: Source) -> Diagnostic | None:
    """Why a text is not parsed at all."""
    try:
        size = len(source.text.encode())
    except UnicodeEncodeError as problem:
        span = Span(source, problem.start, problem.end)
        return Diagnostic("RDB-C002", "the file is not Unicode text", span, help="save it as UTF-8")
    if size <= SOURCE_BYTES_MAX:
        return None
    message = f"a file has at most {SOURCE_BYTES_MAX} bytes, this one has {size}"
    return Diagnostic("RDB-C002", message, Span(source, 0, 0), help="split the application into several files")


def _file(cursor: Cursor, declarations: list[TopDecl]) -> None:
    top: Block[TopDecl] = Block(
        "the file",
        "a declaration such as `contract`, `query` or `role`",
        {"contract": lambda cursor, start: _contract_decl(cursor, start, declarations), **_BESIDE},
    )
    cursor.levels.append(top.parsers)
    while cursor.kinds[cursor.index] != "end":
        if cursor.at("}"):
            _stray_brace(cursor)
        elif cursor.texts[cursor.index] in _MEMBERS:
            _outside(cursor, declarations)
        else:
            declaration = cursor.item(top)
            if declaration is not None:
                declarations.append(declaration)


def _stray_brace(cursor: Cursor) -> None:
    if not cursor.is_recovering:
        span = cursor.span(cursor.index)
        cursor.report("RDB-C012", "`}` closes nothing", span, remedy="take it out, or look for a `{` that is missing")
    cursor.is_recovering = False
    cursor.index += 1


def _outside(cursor: Cursor, declarations: list[TopDecl]) -> None:
    """Members behind the contract's closing brace; they are put into it."""
    place = next((place for place in reversed(range(len(declarations))) if _is_contract(declarations[place])), None)
    contract = None if place is None else declarations[place]
    word = cursor.texts[cursor.index]
    related: tuple[Related, ...] = ()
    remedy = "put it into `contract NAME version 1 { … }`"
    if contract is not None:
        closer = Span(cursor.source, contract.span.end - 1, contract.span.end)
        related = (Related("the contract is closed here", closer),)
        remedy = "move it before the brace that closes the contract, or take out a `}` too many above it"
    if not cursor.is_recovering:
        message = f"`{word}` stands outside the contract"
        cursor.report("RDB-C012", message, cursor.span(cursor.index), related=related, remedy=remedy)
    members: list[ContractMember] = []
    cursor.levels.append(_MEMBERS)
    while cursor.texts[cursor.index] in _MEMBERS:
        member = cursor.item(_CONTRACT)
        if member is not None:
            members.append(member)
    cursor.levels.pop()
    if place is not None and isinstance(contract, ContractDecl):
        declarations[place] = msgspec.structs.replace(contract, members=(*contract.members, *members))
    cursor.accept("}")


def _is_contract(declaration: TopDecl) -> bool:
    return isinstance(declaration, ContractDecl)


def _contract_decl(cursor: Cursor, start: int, beside: list[TopDecl]) -> ContractDecl:
    """`contract NAME version INT { … }`; declarations that stand beside a contract go to `beside`."""
    name = _contract_name(cursor)
    version, version_span = _version(cursor)
    members: list[ContractMember] = []
    if not cursor.is_balanced:
        members.extend(member for _, member in cursor.items(_CONTRACT))
    else:
        for place, item in cursor.items(_CONTRACT_AND_MORE):
            if isinstance(item, ContractDecl | QueryDecl | StreamDecl | RoleDecl | ScheduleDecl):
                word = cursor.texts[place]
                message = f"`{word}` stands beside the contract, not in it"
                remedy = "move it behind the brace that closes the contract"
                cursor.report("RDB-C015", message, cursor.span(place), remedy=remedy)
                beside.append(item)
            else:
                members.append(item)
    if name is None:
        raise BrokenItemError
    return ContractDecl(name, version, version_span, tuple(members), cursor.span_from(start), cursor.doc(start))


def _contract_name(cursor: Cursor) -> Name | None:
    try:
        return cursor.name("a name for the contract", "version", "{")
    except BrokenItemError:
        return None


def _version(cursor: Cursor) -> tuple[int, Span]:
    """The version; a missing one is reported and taken as 1."""
    place = cursor.gap(cursor.index)
    if cursor.at("{"):
        fix = Fix("add `version 1`", (Edit(place, " version 1"),))
        cursor.unexpected("`version` and a number", fix)
        return 1, place
    try:
        cursor.expect("version")
        number = integer(cursor)
        return int(number.value or 0), number.span
    except BrokenItemError:
        if not cursor.at("{") and cursor.texts[cursor.index + 1 : cursor.index + 2] == ["{"]:
            cursor.index += 1
        return 1, place
