"""The steps of a command as statements of `evaluate`, in source order; each declared failure is a `return`.

What success commits is not formed here: emits and answers are only collected, each with its arm and the bindings that
it sees, since their payloads are evaluated last.
"""

from itertools import count
from typing import NamedTuple

from riffdb.core.layout import TOMBSTONE_FENCE
from riffdb.core.types import BOOL
from riffdb.engine.evaluation import Evaluation
from riffdb.engine.expressions import Scope, constant_text, expression_text, is_direct
from riffdb.engine.leases import Operation, lease_operation, transition_operation
from riffdb.engine.loops import Items, kept_names
from riffdb.engine.restoring import is_behind, misfits
from riffdb.engine.slots import LOOPED, Arm, Slot
from riffdb.engine.source import Source, note, numbered, row_of
from riffdb.engine.views import Bound, Views, texts
from riffdb.plan import Plan
from riffdb.plan.commands import (
    BindStep,
    CommandPlan,
    DecideStep,
    EmitStep,
    ForStep,
    LeaseStep,
    OutcomeUse,
    ReconstituteStep,
    RequireStep,
    SetStep,
    Step,
    TransitionStep,
)
from riffdb.plan.expressions import Constant, Input, Item, Unary


class Emitted(NamedTuple):
    """An emit, where it stands and what it sees."""

    arm: Arm | None
    step: EmitStep
    bound: Bound
    in_loop: bool


class Answer(NamedTuple):
    """A success, where it stands and what it sees."""

    arm: Arm | None
    use: OutcomeUse
    bound: Bound


class Watched(NamedTuple):
    """A binding with outcomes for broken rules, and what their payloads see."""

    slot: Slot
    bound: Bound


def payload_text(command: CommandPlan, use: OutcomeUse, scope: Scope) -> str:
    """The tuple of a payload, in the order in which the outcome declares it."""
    values = {part.name: part.value for part in use.payload}
    declared = command.outcome(use.name).payload
    return row_of(texts(tuple(values[part.name] for part in declared), scope)) if declared else "()"


class StepWriter:
    """Writes the steps; `constants` are the failures without payload, by the name that the text gives them.

    `kept` are the names that the text keeps of every run through the loop.
    """

    def __init__(
        self,
        plan: Plan,
        command: CommandPlan,
        slots: tuple[Slot, ...],
        items: Items | None,
        views: Views,
        source: Source,
    ) -> None:
        self.constants: dict[str, Evaluation] = {}
        self.emits: list[Emitted] = []
        self.answers: list[Answer] = []
        self.watched: list[Watched] = []
        self.kept: list[str] = []
        self._items = items
        self._in_loop = False
        self._plan, self._command, self._slots, self._views, self._source = plan, command, slots, views, source
        self._unwritten = iter(slots)
        self._decides = count()

    def write(self) -> None:
        """Write all steps of the command."""
        bound: dict[str, Slot] = {}
        self._steps(self._command.steps, None, bound)
        self.answers.append(Answer(None, self._command.answer, bound))

    def _steps(self, steps: tuple[Step, ...], arm: Arm | None, bound: dict[str, Slot]) -> None:
        for step in steps:
            match step:
                case BindStep():
                    self._bind(step, next(self._unwritten), bound)
                case RequireStep():
                    self._require(step, bound)
                case SetStep():
                    self._set(step, bound)
                case EmitStep():
                    self.emits.append(Emitted(arm, step, dict(bound), self._in_loop))
                case TransitionStep():
                    self._transition(step, bound)
                case LeaseStep():
                    self._lease(step, bound)
                case DecideStep():
                    self._decide(step, bound)
                case ReconstituteStep():
                    self._reconstitute(step, bound)
                case ForStep():
                    self._loop(step, dict(bound))

    def _bind(self, step: BindStep, slot: Slot, bound: dict[str, Slot]) -> None:
        self._note(f"{step.kind} {step.entity} as {step.name}: {numbered(slot.entity.columns)}")
        is_asked_for = slot.in_loop or not step.unique  # else the stage has asked for it, and the row tells its key
        key = texts(step.key, self._views.found(f"the key of {slot.name}", bound)) if is_asked_for else []
        if step.kind == "create":
            # The key is read by name further down, and is computed once.
            names = [slot.local(column) for column in slot.entity.storage_key]
            for name, text in zip(names, key, strict=True):
                self._source.line(f"{name} = {text}")
            key = names
        if slot.in_loop:
            self._look_up(slot, key)
        elif step.unique:
            found = row_of([slot.found(column) for column in slot.entity.storage_key])
            self._source.line(f"{slot.key} = None if {slot.row} is None else {found}")
        elif self._needs_key(slot):
            self._source.line(f"{slot.key} = {row_of(key)}")
        for rival in () if slot.in_loop else slot.rivals:
            is_there = f"{slot.key} is not None and " if step.unique else ""
            with self._source.block(f"if {is_there}{slot.key} == {rival.key}:"):
                self._source.line(f"raise aliased({rival.name!r}, {slot.name!r})")
        above = dict(bound)
        bound[step.name] = slot
        if step.otherwise is not None:
            is_there = "is not None" if step.kind == "create" else "is None"
            scope = self._views.found(f"the else of {step.name}", bound)
            self._fail_if(f"{slot.row} {is_there}", step.otherwise, scope)
        if step.breaches:
            self.watched.append(Watched(slot, dict(bound)))
        if step.kind == "create":
            self._start(slot)
        elif step.kind in ("mutate", "delete"):
            self._take(slot)
        elif step.kind == "init_or_mutate":
            with self._source.block(f"if {slot.row} is None:"):
                for column, text in zip(slot.entity.storage_key, key, strict=True):
                    self._source.line(f"{slot.local(column)} = {text}")
                self._start(slot)
                for part in step.initialize:
                    place = f"initialize {step.name}.{part.name}"
                    text = expression_text(part.value, self._views.now(place, above))
                    self._source.line(f"{slot.local(part.name)} = {text}")
            with self._source.block("else:"):
                self._take(slot)

    def _look_up(self, slot: Slot, key: list[str]) -> None:
        """Find the row of one item of the loop, which no other item may have."""
        if slot.bind.unique:
            self._source.line(f"{slot.row} = {slot.looked_up}.get({row_of(key)})")
            found = row_of([slot.found(column) for column in slot.entity.storage_key])
            self._source.line(f"{slot.key} = None if {slot.row} is None else {found}")
            with self._source.block(f"if {slot.key} is not None:"):
                self._see(slot)
            return
        self._source.line(f"{slot.key} = {row_of(key)}")
        if not _is_seen_first(slot):
            self._see(slot)
        self._source.line(f"{slot.row} = {slot.looked_up}.get({slot.key})")
        if slot.reads_tombstone:
            self._source.line(f"{slot.tombstone} = {slot.looked_up_tombstone}.get({slot.key})")

    def _needs_key(self, slot: Slot) -> bool:
        is_compared = slot.rivals or any(slot in other.rivals for other in self._slots)
        return bool(slot.is_changed or is_compared or not all(is_direct(part) for part in slot.bind.key))

    def _take(self, slot: Slot) -> None:
        """The columns of a row that is there before its steps."""
        for column in slot.entity.columns:
            if column in slot.written:
                self._source.line(f"{slot.local(column)} = {slot.found(column)}")

    def _start(self, slot: Slot) -> None:
        """The columns of a created row before its steps: initial state, defaults, nulls."""
        workflow, lease = slot.workflow, slot.lease
        for column in slot.entity.fields:
            text = constant_text(column.type, column.default) if column.has_default else "None"
            if workflow and column.name == workflow.state:
                text = str(workflow.initial)
            elif lease and column.name in (lease.owner, lease.expires_at):
                text = "None"
            self._source.line(f"{slot.local(column.name)} = {text}")

    def _require(self, step: RequireStep, bound: Bound) -> None:
        self._note(f"require {step.name}")
        broken = Unary(BOOL, "!", step.condition)
        condition = expression_text(broken, self._views.now(f"require {step.name}", bound))
        scope = self._views.found(f"the else of {step.name}", bound)
        self._fail_if(condition, step.otherwise, scope)

    def _set(self, step: SetStep, bound: Bound) -> None:
        place = f"set {step.binding}.{step.field}"
        self._note(place)
        slot = bound[step.binding]
        text = expression_text(step.value, self._views.now(place, bound))
        is_fence = slot.lease is not None and step.field == slot.lease.fencing_token
        if slot.reads_tombstone and is_fence and self._command.kind != "reimport":
            # The literal 0 stands for the fence of the key's last life.
            text = f"{text} if {slot.tombstone} is None else {slot.tombstone}[{TOMBSTONE_FENCE}] or 0"
        self._source.line(f"{slot.local(step.field)} = {text}")
        self._touch(slot)

    def _reconstitute(self, step: ReconstituteStep, bound: Bound) -> None:
        place = f"reconstitute {step.entity} from {step.source}"
        self._note(place)
        slot = bound[step.source]
        for condition, field, message in misfits(slot, self._views.inputs):
            with self._source.block(f"if {condition}:"):
                self._source.line(f"raise unfit({step.source!r}, {field!r}, {message!r})")
        self._fail_if(is_behind(slot, self._views.inputs), step.otherwise, self._views.found(place, bound))

    def _transition(self, step: TransitionStep, bound: Bound) -> None:
        place = f"transition {step.transition} on {step.binding}"
        workflow = self._plan.workflow(step.workflow)
        slot = bound[step.binding]
        self._operation(place, transition_operation(step, workflow, slot, self._views.now(place, bound)), bound)
        self._touch(slot)

    def _lease(self, step: LeaseStep, bound: Bound) -> None:
        place = f"lease {step.operation} on {step.binding}"
        self._operation(place, lease_operation(step, bound[step.binding], self._views.now(place, bound)), bound)
        self._touch(bound[step.binding])

    def _operation(self, place: str, operation: Operation, bound: Bound) -> None:
        self._note(place)
        for check in operation.checks:
            self._fail_if(check.condition, check.outcome, self._views.found(place, bound))
        for name, text in operation.assignments:
            self._source.line(f"{name} = {text}")

    def _touch(self, slot: Slot) -> None:
        """Note that an item has come to an effect on a row above the loop."""
        if self._in_loop and not slot.in_loop:
            self._source.line(f"{slot.changed} = True")

    def _loop(self, step: ForStep, bound: dict[str, Slot]) -> None:
        items = self._items
        assert items is not None, "a command with a loop has items"
        inner = tuple(slot for slot in self._slots if slot.in_loop)
        decides = sum(1 for part in step.steps if isinstance(part, DecideStep))
        self.kept = kept_names(inner, items, decides)
        self._note(f"for {step.item} in {step.items}")
        for slot in self._slots:
            if Arm(LOOPED, slot.number) in slot.mutated_in:
                self._source.line(f"{slot.changed} = False")
        self._source.line(f"{' = '.join(self.kept)} = None")
        self._see_first(inner, items)
        self._source.line("kept = []")
        with self._source.block(f"for index, item in enumerate({items.list}):"):
            self._source.line(items.unpacking)
            self._in_loop = True
            self._steps(step.steps, None, bound)
            self._in_loop = False
            self._source.line(f"kept.append({row_of(self.kept)})")

    def _see_first(self, inner: tuple[Slot, ...], items: Items) -> None:
        """No two items may name one row: where the keys are known beforehand, nothing is evaluated before that."""
        for entity in dict.fromkeys(slot.entity.name for slot in inner):
            above = [slot for slot in self._slots if slot.entity.name == entity and not slot.in_loop]
            named = ", ".join(f"{slot.key}: {slot.name!r}" for slot in above)
            self._source.line(f"{self._seen(entity)} = {{{named}}}")
        first = [slot for slot in inner if _is_seen_first(slot)]
        if not first:
            return
        with self._source.block(f"for index, item in enumerate({items.list}):"):
            self._source.line(items.unpacking)
            for slot in first:
                key = texts(slot.bind.key, self._views.found(f"the key of {slot.name}", {}))
                self._source.line(f"{slot.key} = {row_of(key)}")
                self._see(slot)

    def _see(self, slot: Slot) -> None:
        seen, name = self._seen(slot.entity.name), f"{slot.name + '[%d]'!r} % index"
        with self._source.block(f"if {slot.key} in {seen}:"):
            self._source.line(f"raise aliased({seen}[{slot.key}], {name})")
        self._source.line(f"{seen}[{slot.key}] = {name}")

    def _seen(self, entity: str) -> str:
        return f"s{[part.name for part in self._plan.entities].index(entity)}"

    def _decide(self, step: DecideStep, bound: dict[str, Slot]) -> None:
        decide = next(self._decides)
        self._note(f"decide {step.binding}")
        for slot in self._slots:
            is_inside = slot.arm is not None and slot.arm.decide == decide and not slot.in_loop
            if is_inside and any(slot in other.rivals and other.arm != slot.arm for other in self._slots):
                self._source.line(f"{slot.key} = None")
        for number, branch in enumerate(step.arms):
            if branch.condition is None:
                opening = "else:" if number else "if True:"
            else:
                place = f"the conditions of decide {step.binding}"
                condition = expression_text(branch.condition, self._views.now(place, bound))
                opening = f"{'elif' if number else 'if'} {condition}:"
            with self._source.block(opening):
                if branch.none is not None:
                    self._fail(branch.none, self._views.found(f"decide {step.binding}", bound))
                    continue
                arm, inner = Arm(decide, number), dict(bound)
                self._source.line(f"d{decide} = {number}")
                self._steps(branch.steps, arm, inner)
                if branch.answer is not None:
                    self.answers.append(Answer(arm, branch.answer, inner))

    def _fail_if(self, condition: str, use: OutcomeUse, scope: Scope) -> None:
        with self._source.block(f"if {condition}:"):
            self._fail(use, scope)

    def _fail(self, use: OutcomeUse, scope: Scope) -> None:
        text = self.failure(use, scope)
        comment = "" if text.startswith("failed(") else f"  {note(use.name)}"
        self._source.line(f"return {text}{comment}")

    def failure(self, use: OutcomeUse, scope: Scope) -> str:
        """The text of a declared failure."""
        payload = payload_text(self._command, use, scope)
        if payload != "()":
            return f"failed({use.name!r}, {payload})"
        failure = Evaluation(use.name, (), (), (), ())
        names = [name for name, known in self.constants.items() if known == failure]
        name = names[0] if names else f"failure_{len(self.constants)}"
        self.constants[name] = failure
        return name

    def _note(self, text: str) -> None:
        self._source.line(note(text))


def _is_seen_first(slot: Slot) -> bool:
    """Whether every item comes to the binding, by a key that is there as it is."""
    is_by_key = not slot.bind.unique
    return slot.arm is None and is_by_key and all(isinstance(part, Constant | Input | Item) for part in slot.bind.key)
