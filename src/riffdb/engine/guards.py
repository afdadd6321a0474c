"""The rules that effects may break, at the end of `evaluate`: what the store must look at, then invariants.

Rows are as they would be committed. Uniques come first, then references, each over the bindings in source order and as
the entity declares them; an invariant that does not hold is told here, after the guards that stand before it. A value
with a null in it holds to no unique and no reference; one that did not change needs no look. Of a loop they are told
item by item, after those of the rows above it.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from riffdb.core.types import BOOL
from riffdb.engine.expressions import Scope, expression_text
from riffdb.engine.slots import Slot
from riffdb.engine.source import Source, note, row_of
from riffdb.engine.steps import Watched
from riffdb.engine.views import Views
from riffdb.plan import Plan
from riffdb.plan.commands import BreachPlan, OutcomeUse
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Unary


class GuardWriter:
    """Writes the guards of one command. `failure` gives the text of a declared failure, `mutates` the condition under
    which a row is mutated, None for always; `item_names` are what the text keeps of every item of a loop.

    `is_guarded`: there is a rule that only the store can tell, and so a tuple `guards`.
    """

    def __init__(
        self,
        plan: Plan,
        views: Views,
        source: Source,
        failure: Callable[[OutcomeUse, Scope], str],
        mutates: Callable[[Slot], str | None],
        watched: list[Watched],
        item_names: Sequence[str],
    ) -> None:
        self._plan, self._views, self._source = plan, views, source
        self._failure, self._mutates, self._item_names = failure, mutates, item_names
        self._outside = [part for part in watched if not part.slot.in_loop]
        self._inside = [part for part in watched if part.slot.in_loop]
        self.is_guarded = any(breach.kind == "conflict" for part in watched for breach in part.slot.bind.breaches)

    def write(self) -> None:
        """Write the guards, which are added to `guards`, and the invariants; all successors and `changes` stand."""
        self._rules(self._outside)
        if self._inside:
            with self._source.block(f"for {row_of(list(self._item_names))} in formed:"):
                self._rules(self._inside)

    def _rules(self, watched: list[Watched]) -> None:
        conflicts = [
            (part, breach)
            for is_unique in (True, False)
            for part in watched
            for breach in part.slot.bind.breaches
            if breach.kind == "conflict" and self._is_unique(part.slot.entity, breach) == is_unique
        ]
        for part, breach in conflicts:
            self._conflict(part, breach)
        for part in watched:
            for breach in part.slot.bind.breaches:
                if breach.kind == "violates":
                    self._invariant(part, breach)

    def _is_unique(self, entity: EntityPlan, breach: BreachPlan) -> bool:
        return not breach.incoming and any(unique.name == breach.name for unique in entity.uniques)

    def _conflict(self, part: Watched, breach: BreachPlan) -> None:
        slot = part.slot
        entity = self._plan.entity(breach.entity)
        self._source.line(note(f"conflict {breach.entity}.{breach.name} by way of {slot.name}"))
        if self._is_unique(entity, breach):
            kind, columns = "unique", next(rule.columns for rule in entity.uniques if rule.name == breach.name)
        else:
            reference = next(rule for rule in entity.references if rule.name == breach.name)
            kind, columns = ("left", reference.target) if breach.incoming else ("target", reference.columns)
        found = row_of([slot.found(column) for column in columns])
        stands = row_of([self._views.stands(slot, column) for column in columns])
        conditions = [self._mutates(slot)]
        if kind == "left":
            if slot.bind.kind == "init_or_mutate":
                conditions.append(f"{slot.row} is not None")
            if slot.bind.kind != "delete":
                conditions.append(f"{found} != {stands}")
        elif slot.bind.kind == "mutate":
            conditions.append(f"{found} != {stands}")
        elif slot.bind.kind == "init_or_mutate":
            conditions.append(f"{slot.row} is None or {found} != {stands}")
        values = found if kind == "left" else stands
        if any(slot.entity.types[column].optional for column in columns):
            conditions.append(f"None not in {values}")
        failure = self._failure(breach.outcome, self._views.found(f"conflict {breach.name}", part.bound))
        guard = f"{kind!r}, {breach.entity!r}, {breach.name!r}, {values}, {slot.key}, {self._later(slot, failure)}"
        self._guarded(conditions, f"guards += (new(Guard, ({guard})),)")

    def _later(self, slot: Slot, failure: str) -> str:
        """A function that forms the failure; in a loop it holds on to what its item was."""
        names = [name for name in self._item_names if slot.in_loop and re.search(rf"\b{name}\b", failure)]
        return f"lambda {', '.join(f'{name}={name}' for name in names)}: {failure}"

    def _invariant(self, part: Watched, breach: BreachPlan) -> None:
        slot = part.slot
        rule = next(rule for rule in slot.entity.invariants if rule.name == breach.name)
        self._source.line(note(f"invariant {breach.entity}.{breach.name} of {slot.name}"))
        place = f"invariant {breach.name}"
        broken = expression_text(Unary(BOOL, "!", rule.condition), self._views.standing(place, slot))
        failure = self._failure(breach.outcome, self._views.found(place, part.bound))
        answer = f"new(Guarded, ({failure}, guards, changes))" if self.is_guarded else failure
        # The condition is looked at inside: what it computes is there only if the row is mutated.
        self._guarded([self._mutates(slot), broken], f"return {answer}")

    def _guarded(self, conditions: Iterable[str | None], statement: str) -> None:
        wanted = [f"({condition})" for condition in conditions if condition is not None]
        if not wanted:
            self._source.line(statement)
            return
        with self._source.block(f"if {' and '.join(wanted)}:"):
            self._source.line(statement)
