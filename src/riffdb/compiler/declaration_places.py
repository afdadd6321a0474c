"""Where a declaration, or a member of it, stands in the sources: for what is said about a plan, which knows no places.

Names are those of the plan: a family such as `entities` (or `contract`), a declaration of it, and a field, index,
input, outcome, transition, variant or granted name within. What stands nowhere has the place of what is around it.
"""

from collections.abc import Iterator, Mapping

import msgspec

from riffdb.compiler.draft import Declared
from riffdb.core.spans import Span
from riffdb.syntax.tree import (
    CommandDecl,
    EntityDecl,
    EnumDecl,
    EventDecl,
    InputDecl,
    KeyMember,
    Name,
    Outcome,
    PartitionMember,
    RecordDecl,
    ReimportDecl,
    RoleDecl,
    WorkflowDecl,
)


def place_of(declared: Declared, family: str, declaration: str, member: str = "") -> Span | None:
    """The name of the member, else of the declaration, else of the contract; None where not even that stands."""
    declarations = getattr(declared, family)
    decl = declarations.get(declaration) if isinstance(declarations, Mapping) else None
    if decl is None:
        return None if declared.contract is None else declared.contract.name.span
    names = (name for name in _members(decl) if name.text == member)
    found: Name = next(names, decl.name)
    return found.span


def _members(decl: object) -> Iterator[Name]:
    match decl:
        case EnumDecl():
            yield from decl.variants
        case RecordDecl() | EventDecl():
            yield from (field.name for field in decl.fields)
        case EntityDecl():
            yield from _entity_members(decl)
        case WorkflowDecl():
            yield from (transition.name for transition in decl.transitions)
            if decl.lease is not None:
                yield decl.lease.name
        case CommandDecl() | ReimportDecl():
            yield from (part.name for part in decl.inputs if isinstance(part, InputDecl))
            yield from (outcome.name for outcome in _outcomes(decl))
        case RoleDecl():
            yield from (*decl.queries, *decl.commands, *decl.streams)


def _entity_members(decl: EntityDecl) -> Iterator[Name]:
    for member in decl.members:
        match member:
            case KeyMember():
                yield from (field.name for field in member.fields)
            case PartitionMember():
                pass
            case _:
                yield member.name


def _outcomes(node: object) -> Iterator[Outcome]:
    """Every outcome within, in source order as far as the tree keeps it."""
    if isinstance(node, tuple):
        for item in node:
            yield from _outcomes(item)
    elif isinstance(node, Outcome):
        yield node
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            yield from _outcomes(getattr(node, name))
