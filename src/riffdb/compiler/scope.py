"""Scopes: what the names of an expression may stand for at one place, and what is known of them there.

A scope is a value: narrowing makes a new one. A *fact* says that a value which may be null is not, or that a row which
may be absent is there; facts are read off a lowered condition for the case that it holds and for the case that it does
not. Absent: when a fact ends, which only the order of a command's effects tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from riffdb.core.types import Type
from riffdb.plan.declarations import EnumPlan
from riffdb.plan.expressions import Binary, Expression, Field, Input, IsNull, Item, Param, Row, Unary

Fact = tuple[str, str, str]
"""What is not null: `("field", binding, name)`, or with an empty end a name and what it is of: `"input"`, `"param"`,
`"item"` or `"row"`."""

Facts = frozenset[Fact]


@dataclass(frozen=True, slots=True)
class RowScope:
    """A row in scope: its binding (empty: the row itself), the columns that may be read, those that may not and why.

    `title` is how messages call what the row is of; `broken` columns have an error at their declaration already. A
    `maybe` row is there only where a fact says so. `secrets` may be read, but not shown.
    """

    name: str
    title: str
    entity: str
    columns: Mapping[str, Type]
    broken: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    maybe: bool = False
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ItemScope:
    """The item that a loop is at: a record with its fields, or (`record` empty) one value, a field with the empty name.

    `broken` fields have an error at their declaration already. Items of a secret list may be read, but not shown.
    """

    name: str
    record: str
    fields: Mapping[str, Type]
    broken: frozenset[str] = frozenset()
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of one place. `row` has its columns in scope without a binding; `refused` names are in sight but not
    to be used here, for the reason that they carry; `broken` names have an error at their declaration already. A
    `trusting` scope asks for no proof that a value is not null, since the proof is what is broken."""

    enums: Mapping[str, EnumPlan] = field(default_factory=dict)
    inputs: Mapping[str, Type] = field(default_factory=dict)
    params: Mapping[str, Type] = field(default_factory=dict)
    rows: Mapping[str, RowScope] = field(default_factory=dict)
    row: RowScope | None = None
    item: ItemScope | None = None
    time: bool = False
    known: Facts = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    secret_inputs: frozenset[str] = frozenset()
    trusting: bool = False

    def knows(self, fact: Fact | None) -> bool:
        """Whether the fact holds here, or its proof is broken."""
        return self.trusting or fact in self.known

    def knowing(self, facts: Facts) -> "Scope":
        """The same names, with more known of them."""
        return replace(self, known=self.known | facts) if facts else self

    def names(self) -> list[str]:
        """Every name that an expression may begin with here."""
        own = () if self.row is None else self.row.columns
        item = () if self.item is None else (self.item.name,)
        return [*self.inputs, *item, *self.rows, *own, *self.enums]


def subject(expression: Expression) -> Fact | None:
    """What a fact about this expression would speak of, if anything."""
    match expression:
        case Input(name=name):
            return ("input", name, "")
        case Param(name=name):
            return ("param", name, "")
        case Item(name=name):
            return ("item", name, "")
        case Field(binding=binding, name=name):
            return ("field", binding, name)
        case Row(binding=binding):
            return ("row", binding, "")
    return None


def facts_if(condition: Expression, holds: bool) -> Facts:
    """What is known where the condition holds, or where it does not."""
    match condition:
        case IsNull(operand=operand, negated=negated) if negated == holds:
            found = subject(operand)
            return frozenset() if found is None else frozenset({found})
        case Unary(operator="!", operand=operand):
            return facts_if(operand, not holds)
        case Binary(operator="&&" | "||" as operator, left=left, right=right):
            both = facts_if(left, holds), facts_if(right, holds)
            return both[0] | both[1] if (operator == "&&") == holds else both[0] & both[1]
    return frozenset()
