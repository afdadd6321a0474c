"""The rules that effects may break, at the end of `evaluate`: what the store must look at, then invariants.

Rows are as they would be committed. Uniques come first, then references, each over the bindings in source order and as
the entity declares them; an invariant that does not hold is told here, after the guards that stand before it. A value
with a null in it holds to no unique and no reference; one that did not change needs no look. Of a loop they are told
item by item, after those of the rows above it.
"""

from collections.abc import Callable, Iterable

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
    which a row is mutated, None for always.

    `is_guarded`: there is a rule that only the store can tell, and so a tuple `guards`. `keeps_broken`: an invariant
    that does not hold waits as `broken`, since guards before it are judged over the changes of all items.
    """

    def __init__(
        self,
        plan: Plan,
        views: Views,
        source: Source,
        failure: Callable[[OutcomeUse, Scope], str],
        mutates: Callable[[Slot], str | None],
        watched: list[Watched],
        *,
        has_loop: bool,
    ) -> None:
        self._plan, self._views, self._source = plan, views, source
        self._failure, self._mutates, self._watched = failure, mutates, watched
        self.is_guarded = any(breach.kind == "conflict" for part in watched for breach in part.slot.bind.breaches)
        self.keeps_broken = has_loop and self.is_guarded

    def begin(self) -> None:
        """Write what the guards are gathered in."""
        if self.is_guarded:
            self._source.line("guards = ()")
        if self.keeps_broken:
            self._source.line("broken = None")

    def write(self, *, in_loop: bool) -> None:
        """Write the guards and invariants of the rows of the loop, or of all others; the tuple `changes` stands, unless
        an invariant that does not hold waits for it."""
        watched = [part for part in self._watched if part.slot.in_loop == in_loop]
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
        values = found if kind == "left" else stands
        if any(slot.entity.types[column].optional for column in columns):
            conditions.append(f"None not in {values}")
        failure = self._failure(breach.outcome, self._views.found(f"conflict {breach.name}", part.bound))
        guard = f"new(Guard, ({kind!r}, {breach.entity!r}, {breach.name!r}, {values}, {slot.key}, {failure}))"
        self._guarded(conditions, f"guards += ({guard},)")

    def end(self, changes: str) -> None:
        """Write the return of an invariant that did not hold."""
        if self.keeps_broken:
            with self._source.block("if broken is not None:"):
                self._source.line(f"return new(Guarded, (broken, guards, {changes}))")

    def _invariant(self, part: Watched, breach: BreachPlan) -> None:
        slot = part.slot
        rule = next(rule for rule in slot.entity.invariants if rule.name == breach.name)
        self._source.line(note(f"invariant {breach.entity}.{breach.name} of {slot.name}"))
        place = f"invariant {breach.name}"
        broken = expression_text(Unary(BOOL, "!", rule.condition), self._views.standing(place, slot))
        failure = self._failure(breach.outcome, self._views.found(place, part.bound))
        statement = f"return {failure}"
        if self.keeps_broken:
            statement = f"broken = {failure}"
        elif self.is_guarded:
            statement = f"return new(Guarded, ({failure}, guards, changes))"
        # The condition is looked at inside: what it computes is there only if the row is mutated.
        self._guarded([self._mutates(slot), broken], statement)

    def _guarded(self, conditions: Iterable[str | None], statement: str) -> None:
        unbroken = ["broken is None"] if self.keeps_broken else []
        wanted = [f"({condition})" for condition in (*unbroken, *conditions) if condition is not None]
        if not wanted:
            self._source.line(statement)
            return
        with self._source.block(f"if {' and '.join(wanted)}:"):
            self._source.line(statement)
