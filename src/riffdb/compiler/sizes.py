"""How large a declaration may be: what is over it could not be stored or run, or would take minutes to compile.

Looked at before the passes, and one error alone for a declaration, so nothing is worked out of what is too large.
Absent: sizes of a file, of names, expressions and nesting, which the parser knows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from riffdb.core.diagnostics import Diagnostic
from riffdb.core.limits import (
    COMMAND_BINDINGS_MAX,
    COMMAND_INPUTS_MAX,
    COMMAND_STATEMENTS_MAX,
    DECIDE_ARMS_MAX,
    ENTITY_MEMBERS_MAX,
)
from riffdb.syntax import tree as t


def oversized(trees: Sequence[t.Tree]) -> Iterator[Diagnostic]:
    """An error for each entity and command that has too many parts, at the first that is too many."""
    for tree in trees:
        for declaration in tree.declarations:
            for member in declaration.members if isinstance(declaration, t.ContractDecl) else ():
                yield from _declaration(member)


def _declaration(node: t.ContractMember) -> Iterator[Diagnostic]:
    match node:
        case t.EntityDecl():
            parts = [part for member in node.members for part in _members(member)]
            yield from _over(node.name, "an entity", "members", parts, ENTITY_MEMBERS_MAX)
        case t.CommandDecl():
            yield from _command(node)


def _members(member: Any) -> Sequence[Any]:
    return member.fields if isinstance(member, t.KeyMember) else (member,)


def _command(node: t.CommandDecl) -> Iterator[Diagnostic]:
    statements = list(_statements((*node.body, *(() if node.loop is None else node.loop.body))))
    bindings = [part for part in statements if isinstance(part, t.BindStmt)]
    yield from _over(node.name, "a command", "inputs", node.inputs, COMMAND_INPUTS_MAX)
    yield from _over(node.name, "a command", "statements", statements, COMMAND_STATEMENTS_MAX)
    yield from _over(node.name, "a command", "bindings", bindings, COMMAND_BINDINGS_MAX)
    for decide in statements:
        if isinstance(decide, t.DecideStmt):
            yield from _over(decide.binding, "a `decide`", "arms", decide.arms, DECIDE_ARMS_MAX)


def _statements(body: Sequence[t.Stmt]) -> Iterator[t.Stmt]:
    for statement in body:
        yield statement
        for arm in statement.arms if isinstance(statement, t.DecideStmt) else ():
            yield from _statements(arm.body)


def _over(name: t.Name, what: str, noun: str, parts: Sequence[Any], most: int) -> Iterator[Diagnostic]:
    if len(parts) > most:
        message = f"`{name.text}` has {len(parts):,} {noun}, and {what} has at most {most:,}"
        yield Diagnostic("RDB-C107", message, parts[most].span, help="divide it into several")
