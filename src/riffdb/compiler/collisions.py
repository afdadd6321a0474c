"""Names that are two here and one in a generated client, where each language has its own way to join words.

`dueAt` and `due_at` are both `due_at` in Python and Rust, both `dueAt` in TypeScript, both `DueAt` in Go; and the table
of `WorkItem` is called as that of `work_item` would be. So the names of one scope differ as words, whatever joins them.
Absent: names that differ in case alone, which each scope reports (`linking`); names that no client shows, as those of
bindings, requirements, indexes and rules.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.core.diagnostics import Related
from riffdb.core.spans import Span
from riffdb.syntax.tree import (
    BinaryExpr,
    CallExpr,
    CommandDecl,
    ComputedMember,
    EntityDecl,
    FieldMember,
    InputDecl,
    KeyMember,
    Name,
    OperandClause,
    Outcome,
    Payload,
    ReimportDecl,
)

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def check_collisions(draft: Draft, collector: Collector) -> Draft:
    """Report names of one scope that a generated client could not tell apart."""
    for scope in _scopes(draft):
        _check(scope, collector)
    return draft


@lru_cache(4_096)
def joined(name: str) -> tuple[str, str]:
    """The forms of a name in languages that join words with `_`, and in those that join them with capitals."""
    words = [word.lower() for word in _WORD.findall(name)]
    return "_".join(words) or "_", "".join(word.capitalize() for word in words)


def _check(names: Iterable[Name], collector: Collector) -> None:
    firsts: dict[str, Name] = {}
    reported: set[str] = set()
    for name in names:
        for form in joined(name.text):
            first = firsts.setdefault(form, name)
            is_told = name.text in reported or first.span is name.span  # two of one key are told where it is declared
            if is_told or first.text.lower() == name.text.lower():
                continue
            reported.add(name.text)
            collector.error(
                "RDB-C106",
                f"`{first.text}` and `{name.text}` are one name in a generated client, `{form}`",
                name.span,
                related=(Related("the other one", first.span),),
                help="give one of the two another name",
            )


def _scopes(draft: Draft) -> Iterator[list[Name]]:
    declared = draft.declared
    yield [
        *(enum.name for enum in declared.enums.values()),
        *(record.name for record in declared.records.values()),
        *(entity.name for entity in declared.entities.values()),
        *(event.name for event in declared.events.values()),
        *(workflow.name for workflow in declared.workflows.values()),
    ]
    yield from ([part.name for part in workflow.transitions] for workflow in declared.workflows.values())
    yield [part.name for part in declared.commands.values()]
    yield [part.name for part in declared.queries.values()]
    yield [part.name for part in declared.streams.values()]
    yield [part.name for part in declared.roles.values()]
    yield [part.name for part in declared.schedules.values()]
    yield from (list(enum.variants) for enum in declared.enums.values())
    yield from ([part.name for part in record.fields] for record in declared.records.values())
    yield from (_columns(entity) for entity in declared.entities.values())
    yield from ([part.name for part in event.fields] for event in declared.events.values())
    yield from ([part.name for part in query.params] for query in declared.queries.values())
    yield from ([part.name for part in stream.params] for stream in declared.streams.values())
    for command in declared.commands.values():
        yield list(_inputs(command, declared.entities))
    for decl in (*declared.commands.values(), *declared.queries.values()):
        outcomes = list(_outcomes(decl))
        yield [outcome.name for outcome in outcomes]
        yield from ([item.name for item in outcome.payload.items] for outcome in outcomes)


def _inputs(command: CommandDecl | ReimportDecl, entities: Mapping[str, EntityDecl]) -> Iterator[Name]:
    """The inputs of a command; those of `input key of` stand where that does."""
    for part in command.inputs:
        if isinstance(part, InputDecl):
            yield part.name
        elif part.entity.text in entities:
            for member in entities[part.entity.text].members:
                if isinstance(member, KeyMember):
                    yield from (Name(field.name.text, part.entity.span) for field in member.fields)


def _columns(entity: EntityDecl) -> list[Name]:
    found: list[Name] = []
    for member in entity.members:
        match member:
            case KeyMember():
                found += [part.name for part in member.fields]
            case FieldMember() | ComputedMember():
                found.append(member.name)
    return found


def _outcomes(node: object) -> Iterator[Outcome]:
    """Every outcome of a command or query, wherever it stands."""
    match node:
        case Outcome():
            yield node
        case tuple():
            for part in node:
                yield from _outcomes(part)
        case Payload() | Name() | Span() | BinaryExpr() | CallExpr() | InputDecl() | OperandClause():
            return
        case _ if hasattr(node, "__struct_fields__"):
            for name in node.__struct_fields__:
                yield from _outcomes(getattr(node, name))
