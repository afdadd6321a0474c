"""What a name in an expression reads: one view of the bound rows for each kind of place where an expression stands.

*Now*: conditions and effects see what the effects above left, and the revision before the command. *Committed*:
payloads of `return` and `emit`. *Found*: keys, and payloads of failures, see rows as they were before the command; the
compiler has proven that a key rests on nothing that was changed, and that a failure shows no created row but the one in
the way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from riffdb.engine.expressions import ATOM, CONDITIONAL, Scope, Term, expression_text
from riffdb.engine.slots import Slot
from riffdb.plan.expressions import Expression

Bound = Mapping[str, Slot]


@dataclass(frozen=True, slots=True)
class Views:
    """The scopes of one command: the texts of its inputs, and a source of fresh names."""

    inputs: Mapping[str, str]
    temporary: Callable[[], str]

    def now(self, place: str, bound: Bound) -> Scope:
        """For conditions and effects."""
        return self._scope(
            place,
            lambda binding, column: self._field_now(bound[binding], column),
            lambda binding: bound[binding].revision_found,
            lambda binding: bound[binding].row,
        )

    def committed(self, place: str, bound: Bound) -> Scope:
        """For payloads of successes and events."""
        return self._scope(
            place,
            lambda binding, column: Term(_field_committed(bound[binding], column), ATOM),
            lambda binding: bound[binding].revision_committed,
            lambda binding: bound[binding].committed,
        )

    def found(self, place: str, bound: Bound) -> Scope:
        """For payloads of failures, and for keys while the command runs."""
        return self._found(place, bound, lambda slot: slot.row)

    def standing(self, place: str, slot: Slot) -> Scope:
        """For invariants: the row itself as it would be committed."""
        return self._scope(
            place,
            lambda _, column: Term(self.stands(slot, column), ATOM),
            lambda _: slot.revision_committed,
            lambda _: slot.committed,
        )

    def stands(self, slot: Slot, column: str) -> str:
        """The text of a column as it would be committed."""
        return _field_committed(slot, column)

    def read(self, slot: Slot) -> Scope:
        """For the key of a slot before the command runs: rows are what the stages before it read."""
        return self._found(
            f"the key of {slot.name}",
            slot.above,
            lambda other: other.row if other.in_loop else f"rows[{other.number}]",
        )

    def computed(self, slot: Slot, column: str) -> str:
        """The text of a computed column over the row as the effects so far left it."""
        return self._computed(slot, column).text

    def _found(self, place: str, bound: Bound, row: Callable[[Slot], str]) -> Scope:
        def column_of(binding: str, position: int) -> str:
            return f"{row(bound[binding])}[{position}]"

        return self._scope(
            place,
            lambda binding, column: Term(column_of(binding, bound[binding].entity.columns.index(column)), ATOM),
            lambda binding: column_of(binding, len(bound[binding].entity.columns)),
            lambda binding: row(bound[binding]),
        )

    def _field_now(self, slot: Slot, column: str) -> Term:
        if column in slot.computed and slot.is_changed:
            return self._computed(slot, column)
        return Term(slot.now(column), ATOM)

    def _computed(self, slot: Slot, column: str) -> Term:
        expression = next(part.expression for part in slot.entity.computed if part.name == column)
        scope = self._scope(
            f"computed {slot.entity.name}.{column}",
            lambda _, other: self._field_now(slot, other),
            lambda _: slot.revision_found,
            lambda _: slot.row,
        )
        return Term(expression_text(expression, scope), CONDITIONAL)

    def _scope(
        self, place: str, field: Callable[[str, str], Term], revision: Callable[[str], str], row: Callable[[str], str]
    ) -> Scope:
        return Scope(
            place,
            self.inputs,
            field,
            lambda binding: Term(revision(binding), ATOM),
            lambda binding: Term(row(binding), ATOM),
            self.temporary,
        )


def texts(expressions: tuple[Expression, ...], scope: Scope) -> list[str]:
    """The texts of several expressions in one scope."""
    return [expression_text(expression, scope) for expression in expressions]


def _field_committed(slot: Slot, column: str) -> str:
    # A computed column is formed once, when the row is; before that an expression reads through to stored columns.
    return slot.local(column) if column in slot.computed and slot.is_changed else slot.now(column)
