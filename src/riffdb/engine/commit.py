"""The end of `evaluate`: what a success commits, then events and answer over it.

A row is mutated when an effect on it ran. Where that depends on the arm that a decide took, the text asks for the arm.
A deleted row takes a revision as every mutated row does, and leaves it with its fence in a tombstone, from which a row
that is created under the same key goes on; payloads show a deleted row as it last stood.
"""

import re
from collections.abc import Iterable
from typing import TypeAlias

from riffdb.core.layout import TOMBSTONE_REVISION
from riffdb.engine.expressions import constant_text, expression_text
from riffdb.engine.guards import GuardWriter
from riffdb.engine.loops import loop_of
from riffdb.engine.slots import Arm, Slot
from riffdb.engine.source import Source, note, row_of
from riffdb.engine.steps import Answer, Emitted, StepWriter, payload_text
from riffdb.engine.views import Views
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, DecideStep

Items: TypeAlias = list[tuple[str | None, str]]
"""Texts, each with the condition under which it counts; None for always."""


class CommitWriter:
    """Writes the end of one command."""

    def __init__(self, plan: Plan, command: CommandPlan, slots: tuple[Slot, ...], views: Views, source: Source) -> None:
        self._plan, self._command, self._views, self._source = plan, command, views, source
        loop = loop_of(command)
        self._item_names: list[str] = []
        self._mutated = [slot for slot in slots if slot.is_changed and not slot.in_loop]
        self._looped = [slot for slot in slots if slot.is_changed and slot.in_loop]
        steps = (*command.steps, *(() if loop is None else loop.steps))
        self._applying = [
            {Arm(decide, number) for number, branch in enumerate(step.arms) if branch.none is None}
            for decide, step in enumerate(step for step in steps if isinstance(step, DecideStep))
        ]

    def write(self, steps: StepWriter) -> None:
        """Write successors, guards, events and the return of every success."""
        emits, answers = steps.emits, steps.answers
        events = [(self._condition({emit.arm}), self._event(emit)) for emit in emits if not emit.in_loop]
        looped = [(self._condition({emit.arm}), self._event(emit)) for emit in emits if emit.in_loop]
        returns = [(answer, self._payload(answer)) for answer in answers]
        shown = [text for _, text in (*events, *looped, *returns)]
        self._source.line(note("commit"))
        for slot in self._mutated:
            self._successor(slot, shown)
        mutated = [(self._mutates(slot), slot) for slot in self._mutated]
        changes = self._collected(
            "changes", [part for condition, slot in mutated for part in _changes(slot, condition)]
        )
        if steps.kept:
            changes = self._item_successors(steps.kept, changes, shown)
        guards = GuardWriter(
            self._plan, self._views, self._source, steps.failure, self._mutates, steps.watched, self._item_names
        )
        if not guards.is_guarded:
            guards.write()
            self._answers(events, looped, returns, changes, "{}")
            return
        self._source.line("guards = ()")
        with self._source.block("try:"):
            guards.write()
            self._answers(events, looped, returns, changes, "new(Guarded, ({}, guards, changes))")
        with self._source.block("except RiffError as error:"):
            self._source.line("return new(Guarded, (error, guards, changes))")

    def _item_successors(self, kept: list[str], changes: str, shown: list[str]) -> str:
        """Write the successors of every item, which are all there before the first rule is looked at."""
        names = [name for slot in self._looped for name in _formed(slot) if name not in kept]
        self._item_names = [*kept, *names]
        if names:
            self._source.line(f"{' = '.join(names)} = None")
        self._source.line(f"changes = [*{changes}]")
        self._source.line("formed = []")
        with self._source.block(f"for {row_of(kept)} in kept:"):
            for slot in self._looped:
                self._successor(slot, shown)
                self._append("changes", _changes(slot, self._mutates(slot)))
            self._source.line(f"formed.append({row_of(self._item_names)})")
        self._source.line("changes = (*changes,)")
        return "changes"

    def _answers(
        self, events: Items, looped: Items, returns: list[tuple[Answer, str]], changes: str, form: str
    ) -> None:
        """Write events, revisions and the return of every success; `form` takes the evaluation in its braces."""
        emitted = self._collected("events", events)
        revisions = self._collected("revisions", self._revisions(self._mutated))
        told = self._revisions(self._looped)
        if looped or told:
            self._source.line(f"events, revisions = [*{emitted}], [*{revisions}]")
            with self._source.block(f"for index, {row_of(self._item_names)} in enumerate(formed):"):
                self._append("events", looped)
                self._append("revisions", told)
            self._source.line("events, revisions = (*events,), (*revisions,)")
            emitted, revisions = "events", "revisions"
        # Later answers stand first: each replaces those above it, and that of the command is what remains.
        for answer, payload in (*reversed(returns[:-1]), returns[-1]):
            parts = f"({answer.use.name!r}, {payload}, {changes}, {emitted}, {revisions})"
            statement = "return " + form.format(f"new(Evaluation, {parts})")
            if answer.arm is None:
                self._source.line(statement)
            else:
                with self._source.block(f"if d{answer.arm.decide} == {answer.arm.arm}:"):
                    self._source.line(statement)

    def _revisions(self, slots: list[Slot]) -> Items:
        """The successor revisions that are told."""
        return [
            (self._mutates(slot), f"({_told(slot)}, {slot.revision_committed})")
            for slot in slots
            if slot.workflow and slot.bind.kind != "delete"
        ]

    def _append(self, name: str, items: Items) -> None:
        for condition, text in items:
            if condition is None:
                self._source.line(f"{name}.append({text})")
            else:
                with self._source.block(f"if {condition}:"):
                    self._source.line(f"{name}.append({text})")

    def _event(self, emit: Emitted) -> str:
        event = self._plan.event(emit.step.event)
        scope = self._views.committed(f"emit {event.name}", emit.bound)
        values = {part.name: expression_text(part.value, scope) for part in emit.step.payload}
        fields = [values.get(part.name, constant_text(part.type, part.default)) for part in event.fields]
        return f"({event.name!r}, {row_of(fields)})"

    def _payload(self, answer: Answer) -> str:
        return payload_text(self._command, answer.use, self._views.committed(f"return {answer.use.name}", answer.bound))

    def _successor(self, slot: Slot, shown: list[str]) -> None:
        condition = self._mutates(slot)
        if condition is None:
            self._successor_lines(slot, shown)
            return
        with self._source.block(f"if {condition}:"):
            self._successor_lines(slot, shown)
        # In an arm a row is mutated if the arm was taken, save one that was there for `init_or_mutate`.
        may_stay = slot.bind.kind == "init_or_mutate"
        if slot.arm is None or may_stay:
            with self._source.block(f"elif {slot.row} is not None:" if may_stay else "else:"):
                for column in slot.entity.computed:
                    self._source.line(f"{slot.local(column.name)} = {slot.found(column.name)}")
                self._source.line(f"{slot.revision_committed} = {slot.revision_found}")
                self._source.line(f"{slot.committed} = {slot.row}")

    def _successor_lines(self, slot: Slot, shown: list[str]) -> None:
        if slot.bind.kind == "create":
            self._first_revision(slot)
        elif slot.reads_tombstone:
            with self._source.block(f"if {slot.row} is None:"):
                self._first_revision(slot)
            with self._source.block("else:"):
                self._next_revision(slot, slot.revision_found)
        else:
            self._next_revision(slot, slot.revision_found)
        if slot.bind.kind == "delete" and not _is_shown(slot, shown):
            return
        for column in slot.entity.computed:
            self._source.line(f"{slot.local(column.name)} = {self._views.computed(slot, column.name)}")
        columns = [slot.local(name) if name in slot.computed else slot.now(name) for name in slot.entity.columns]
        self._source.line(f"{slot.committed} = {row_of([*columns, slot.revision_committed, 'sequence'])}")

    def _mutates(self, slot: Slot) -> str | None:
        """The condition under which the command mutates the row; None when every success does."""
        if slot.bind.kind != "init_or_mutate":
            return self._condition(slot.mutated_in)
        effects = self._condition(slot.mutated_in) if slot.mutated_in else ""
        reached = self._condition({slot.arm})
        if effects is None:
            return reached
        is_new = f"{slot.row} is None" if reached is None else f"({reached}) and {slot.row} is None"
        return f"{is_new} or {effects}" if effects else is_new

    def _first_revision(self, slot: Slot) -> None:
        if self._command.kind == "reimport":
            self._source.line(f"{slot.revision_committed} = {self._views.inputs['.revision']}")
            return
        self._source.line(f"{slot.revision_committed} = 1")
        with self._source.block(f"if {slot.tombstone} is not None:"):
            self._next_revision(slot, f"{slot.tombstone}[{TOMBSTONE_REVISION}]")

    def _next_revision(self, slot: Slot, found: str) -> None:
        with self._source.block(f"if {found} == U64_MAX:"):
            self._source.line(f"raise revision_exhausted({slot.name!r})")
        self._source.line(f"{slot.revision_committed} = {found} + 1")

    def _collected(self, name: str, items: Items) -> str:
        """Write a tuple of the items whose condition holds; the text that reads it."""
        if not items:
            return "()"
        certain = 0
        while certain < len(items) and items[certain][0] is None:
            certain += 1
        start = [text for _, text in items[:certain]]
        self._source.line(f"{name} = {row_of(start) if start else '()'}")
        for condition, text in items[certain:]:
            if condition is None:
                self._source.line(f"{name} += ({text},)")
            else:
                with self._source.block(f"if {condition}:"):
                    self._source.line(f"{name} += ({text},)")
        return name

    def _condition(self, places: Iterable[Arm | None]) -> str | None:
        """The condition under which one of the places was passed; None when every success passes one."""
        arms = {place for place in places if place is not None}
        if None in places or any(applying <= arms for applying in self._applying):
            return None
        return " or ".join(arm.taken for arm in sorted(arms))


def _told(slot: Slot) -> str:
    """The name of a binding as an answer tells it."""
    return f"{slot.name + '[%d]'!r} % index" if slot.in_loop else repr(slot.name)


def _changes(slot: Slot, condition: str | None) -> Items:
    """The changes of a mutated slot, each with the condition under which it is one."""
    before = "None" if slot.bind.kind == "create" else slot.row
    after = "None" if slot.bind.kind == "delete" else slot.committed
    change = (condition, f"new(Change, ({slot.number}, {slot.key}, {before}, {after}))")
    if slot.reads_tombstone:
        is_there = f"{slot.tombstone} is not None"
        both = is_there if condition is None else f"({condition}) and {is_there}"
        return [(both, f"new(Change, ({slot.grave}, {slot.key}, {slot.tombstone}, None))"), change]
    if slot.bind.kind == "delete":
        fence = slot.now(slot.lease.fencing_token) if slot.lease else "None"
        left = f"(*{slot.key}, {fence}, {slot.revision_committed}, sequence)"
        return [change, (condition, f"new(Change, ({slot.grave}, {slot.key}, None, {left}))")]
    return [change]


def _formed(slot: Slot) -> list[str]:
    """The names that hold the successor of a row."""
    names = (slot.revision_committed, slot.committed, *(slot.local(column.name) for column in slot.entity.computed))
    return [name for name in names if name.isidentifier()]


def _is_shown(slot: Slot, shown: list[str]) -> bool:
    """Whether a payload reads the row, its revision or a computed column as committed."""
    computed = (slot.local(column.name) for column in slot.entity.computed)
    names = "|".join((slot.committed, slot.revision_committed, *computed))
    return any(re.search(rf"\b(?:{names})\b", text) for text in shown)
