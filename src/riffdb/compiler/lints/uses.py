"""What the sources use, by name: gathered in one walk over the trees, which every family of lints then asks.

Names of values are kept apart for each declaration whose scope they are of; names of data have one scope. A name counts
wherever an expression may mean it, so that a use is never missed; a declaration of the name itself is none.
Absent: judging whether a use matters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from riffdb.compiler.draft import Draft
from riffdb.plan.parts import parts_of
from riffdb.syntax.tree import (
    BindStmt,
    CommandDecl,
    DecideStmt,
    EmitStmt,
    FromStmt,
    InputKeyDecl,
    Loop,
    MemberExpr,
    NameExpr,
    ParamExpr,
    QueryDecl,
    ReferenceMember,
    ReimportDecl,
    StreamDecl,
    TypeExpr,
)

ValueScope = CommandDecl | ReimportDecl | QueryDecl | StreamDecl


@dataclass(slots=True)
class Uses:
    """The names that the sources use: of data anywhere, of values and parameters by family and declaration."""

    types: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    values: dict[tuple[type, str], set[str]] = field(default_factory=dict)

    def values_of(self, decl: ValueScope) -> set[str]:
        """The inputs, service values, bindings and parameters (with their `$`) that a declaration uses."""
        return self.values[type(decl), decl.name.text]


def uses_of(draft: Draft) -> Uses:
    """What the sources of an application use."""
    uses, declared = Uses(), draft.declared
    families: tuple[Mapping[str, ValueScope], ...] = (declared.commands, declared.queries, declared.streams)
    for family in families:
        for name, decl in family.items():
            uses.values[type(decl), name] = _gather(uses, decl)
    for data in (declared.records, declared.entities, declared.events):
        for part in data.values():
            _gather(uses, part)
    return uses


def _gather(uses: Uses, decl: object) -> set[str]:
    """Take in the uses of data within a declaration; the uses of values are given back."""
    values: set[str] = set()
    for part in parts_of(decl):
        match part:
            case NameExpr():
                values.add(part.name.text)
            case MemberExpr():
                values.add(part.owner.text)
            case TypeExpr():
                uses.types.add(part.name.text)
            case ParamExpr():
                values.add(f"${part.name.text}")
            case BindStmt() | FromStmt() | InputKeyDecl():
                uses.entities.add(part.entity.text)
            case DecideStmt():
                values.add(part.binding.text)
            case EmitStmt():
                uses.events.add(part.event.text)
            case Loop():
                values.add(part.items.text)
            case ReferenceMember():
                uses.entities.add(part.target.text)
            case ReimportDecl():
                uses.entities.add(part.entity.text)
                values.add(part.source.text)
    if isinstance(decl, CommandDecl | ReimportDecl) and decl.idempotency_key is not None:
        values.add(decl.idempotency_key.text)
    return values
