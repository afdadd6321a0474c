"""One command of the twin, step after step over dictionaries: from inputs and rows to an outcome, changes and events.

This is the language page in its own order: bindings, requires and effects as they stand, then successor rows, then
rules (uniques, references, invariants), then events and the answer. A row is a dictionary of its columns with
`revision` and, for the history, `commit`. Nothing is written here; `twin.Twin` keeps what a `Run` came to.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from riffdb.plan import Plan
from riffdb.plan.commands import (
    BindStep,
    BreachPlan,
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
from riffdb.plan.declarations import EntityPlan, LeasePlan
from riffdb.plan.expressions import Constant, Expression, Input, Item, inside_value
from tests.model.expressions import value_of
from tests.model.wire import RANGES, RefusedError

U64_MAX = 2**64 - 1
CHECKS = {
    "claim": ("stale", "invalid", "unavailable", "exhausted"),
    "renew": ("stale", "invalid", "expired", "exhausted"),
    "release": ("stale", "invalid"),
    "expire": ("stale", "active"),
    "fence": ("stale", "invalid", "expired"),
    "unheld": ("stale", "unavailable"),
}
SECOND = 1_000_000

Row = dict[str, Any]
Key = tuple[Any, ...]
Tables = Mapping[str, Mapping[Key, Row]]


class FailedError(Exception):
    """A declared failure, with the values of its payload, and the check that failed, for whoever counts."""

    def __init__(self, outcome: str, payload: dict[str, Any], check: str) -> None:
        super().__init__(outcome)
        self.outcome, self.payload, self.check = outcome, payload, check


class Binding:
    """A bound row: as it was found, as the effects so far left it, and as it is committed."""

    def __init__(self, step: BindStep, entity: EntityPlan, key: Key, found: Row | None, shown_as: str) -> None:
        self.step, self.entity, self.key, self.found, self.shown_as = step, entity, key, found, shown_as
        self.kind = step.kind
        self.seen: tuple[dict[str, Binding], dict[str, Any]] = ({}, {})
        self.item: int | None = None
        self.now: Row | None = None if found is None else dict(found)
        self.committed = found
        self.is_touched = False

    @property
    def is_created(self) -> bool:
        """Whether the row begins with this command."""
        return self.found is None and self.now is not None


class Run:
    """A command on its way through its steps."""

    def __init__(
        self, plan: Plan, command: CommandPlan, inputs: dict[str, Any], tables: Tables, graves: Tables
    ) -> None:
        self.plan, self.command, self.inputs, self.tables, self.graves = plan, command, inputs, tables, graves
        self.time, self.sequence = 0, 0
        self.bindings: list[Binding] = []
        self.bound: dict[str, Binding] = {}
        self.element: dict[str, Any] = {}
        self.at: int | None = None
        self.named: dict[tuple[str, Key], tuple[str, int | None]] = {}
        self.emitted: list[tuple[EmitStep, dict[str, Binding], dict[str, Any]]] = []
        self.answer = (command.answer, self.bound)
        self.view = "now"

    def to_its_end(self, time: int, sequence: int) -> tuple[str, dict[str, Any], list[tuple[str, dict[str, Any]]]]:
        """Outcome, payload and events of a success; a `FailedError` or a `RefusedError` otherwise."""
        self.time, self.sequence = time, sequence
        last = self.command.steps[-1]
        if isinstance(last, ReconstituteStep):
            self._begin_restoration(last)
        self._steps(self.command.steps)
        touched = [binding for binding in self.bindings if binding.is_touched]
        for binding in touched:
            self._succeed(binding)
        self._keep_rules(touched)
        events = [(step.event, self._event(step, *seen)) for step, *seen in self.emitted]
        use, self.bound = self.answer
        self.element = {}
        return use.name, self._payload(use, "committed"), events

    # --- what names mean ---------------------------------------------------------------------------------------

    def given(self, name: str) -> Any:
        return self.inputs[name]

    def item(self, name: str) -> Any:
        return self.element[name]

    def field(self, binding: str, name: str) -> Any:
        bound = self.bound[binding]
        row = self._seen(bound)
        assert row is not None, f"{binding} is absent, and read"
        computed = next((part for part in bound.entity.computed if part.name == name), None)
        if computed is None or (self.view != "now" and name in row):
            return row[name]
        return value_of(computed.expression, OwnRow(row))

    def revision(self, binding: str) -> int:
        bound = self.bound[binding]
        row = bound.committed if self.view == "committed" else bound.found
        assert row is not None, f"{binding} is absent, and its revision is read"
        return int(row["revision"])

    def row(self, binding: str) -> Any:
        bound = self.bound[binding]
        row = self._seen(bound)
        return None if row is None else Whole(bound.entity, row)

    def _seen(self, bound: Binding) -> Row | None:
        return {"found": bound.found, "now": bound.now, "committed": bound.committed}[self.view]

    def _value(self, expression: Expression, view: str) -> Any:
        self.view = view
        return value_of(expression, self)

    def _payload(self, use: OutcomeUse, view: str) -> dict[str, Any]:
        return {part.name: self._value(part.value, view) for part in use.payload}

    def _fail(self, use: OutcomeUse | None, check: str) -> None:
        assert use is not None, "a check without its outcome"
        raise FailedError(use.name, self._payload(use, "found"), check)

    # --- steps -------------------------------------------------------------------------------------------------

    def _steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case BindStep():
                    self._bind(step)
                case RequireStep():
                    if not self._value(step.condition, "now"):
                        self._fail(step.otherwise, "require")
                case SetStep():
                    self._set(step)
                case EmitStep():
                    self.emitted.append((step, dict(self.bound), self.element))
                case TransitionStep():
                    self._transition(step)
                case LeaseStep():
                    self._lease(step)
                case DecideStep():
                    self._decide(step)
                case ForStep():
                    self._for(step)
                case ReconstituteStep():
                    self._reconstitute(step)

    def _bind(self, step: BindStep) -> None:
        entity = self.plan.entity(step.entity)
        key = tuple(self._value(part, "found") for part in step.key)
        if step.unique:
            columns = next(unique.columns for unique in entity.uniques if unique.name == step.unique)
            rows = self.tables[step.entity]
            fitting = [own for own, row in rows.items() if tuple(row[name] for name in columns) == key]
            key = fitting[0] if fitting and None not in key else ("absent",)
        found = self.tables[step.entity].get(key)
        if key != ("absent",):
            self._name(step, key)
        bound = Binding(step, entity, key, found, step.name if self.at is None else f"{step.name}[{self.at}]")
        self.bindings.append(bound)
        self.bound[step.name] = bound
        bound.seen, bound.item = (dict(self.bound), self.element), self.at
        if step.kind == "create":
            if found is not None:
                self._fail(step.otherwise, "create exists")
            self._start(bound)
        elif step.kind == "init_or_mutate":
            if found is None:
                row = self._start(bound)
                row |= {part.name: self._value(part.value, "now") for part in step.initialize}
                bound.is_touched = True
        elif found is None and step.kind != "maybe":
            self._fail(step.otherwise, f"{step.kind} missing")
        if step.kind in ("create", "delete"):
            bound.is_touched = True

    def _name(self, step: BindStep, key: Key) -> None:
        """No two bindings name one row."""
        name = (step.name, self.at)
        if self.named.setdefault((step.entity, key), name) != name:
            raise RefusedError("RDB-E-ALIASED")

    def _start(self, bound: Binding) -> Row:
        """A new row: its key, defaults, nulls, and the workflow's initial state."""
        entity = bound.entity
        row = bound.now = dict(zip(entity.storage_key, bound.key, strict=True))
        for part in entity.fields:
            row[part.name] = inside_value(part.type, part.default) if part.has_default else None
        workflow = self.plan.workflow_of(entity.name)
        if workflow is not None:
            row[workflow.state] = workflow.initial
            if workflow.lease is not None:
                row |= {workflow.lease.owner: None, workflow.lease.expires_at: None}
        return row

    def _set(self, step: SetStep) -> None:
        bound, row = self._changed(step.binding)
        value = self._value(step.value, "now")
        lease = self._lease_of(bound)
        if lease is not None and step.field == lease.fencing_token and self.command.kind != "reimport":
            grave = self.graves[bound.entity.name].get(bound.key)
            value = 0 if grave is None else grave["fence"]
        row[step.field] = value

    def _changed(self, binding: str) -> tuple[Binding, Row]:
        bound = self.bound[binding]
        assert bound.now is not None, f"{binding} is absent, and changed"
        bound.is_touched = True
        return bound, bound.now

    def _lease_of(self, bound: Binding) -> LeasePlan | None:
        workflow = self.plan.workflow_of(bound.entity.name)
        return None if workflow is None else workflow.lease

    def _transition(self, step: TransitionStep) -> None:
        _, row = self._changed(step.binding)
        workflow = self.plan.workflow(step.workflow)
        transition = next(part for part in workflow.transitions if part.name == step.transition)
        if self._value(step.revision, "now") != self.revision(step.binding):
            self._fail(step.stale, "transition stale")
        if row[workflow.state] not in transition.sources:
            self._fail(step.illegal, "transition illegal")
        row[workflow.state] = transition.destination

    def _lease(self, step: LeaseStep) -> None:
        bound, row = self._changed(step.binding)
        lease = self._lease_of(bound)
        assert lease is not None
        given = {
            name: self._value(operand, "now")
            for name in ("revision", "owner", "fencing_token", "duration_seconds")
            if (operand := getattr(step, name)) is not None
        }
        assert bound.found is not None
        owner, expiry, fence = row[lease.owner], row[lease.expires_at], row[lease.fencing_token]
        is_over = expiry is None or expiry <= self.time
        is_held = owner is not None and not is_over
        new_expiry = self.time + given.get("duration_seconds", 0) * SECOND
        is_outside = not lease.seconds_min <= given.get("duration_seconds", lease.seconds_min) <= lease.seconds_max
        is_foreign = owner is None or owner != given.get("owner") or fence != given.get("fencing_token")
        attempts = 0 if lease.attempts is None else row[lease.attempts]
        is_at_end = step.operation == "claim" and U64_MAX in (fence, attempts)
        fails = {
            "stale": given["revision"] != bound.found["revision"],
            "invalid": is_outside or ("owner" in given and step.operation != "claim" and is_foreign),
            "unavailable": is_held,
            "expired": is_over,
            "active": owner is None or not is_over,
            "exhausted": new_expiry > RANGES["timestamp"][1] or is_at_end,
        }
        for check in CHECKS[step.operation]:
            if fails[check]:
                self._fail(getattr(step, check), f"{step.operation} {check}")
        match step.operation:
            case "claim":
                row |= {lease.owner: given["owner"], lease.expires_at: new_expiry, lease.fencing_token: fence + 1}
                if lease.attempts is not None:
                    row[lease.attempts] = attempts + 1
            case "renew":
                row[lease.expires_at] = new_expiry
            case "release" | "expire":
                row |= {lease.owner: None, lease.expires_at: None}

    def _decide(self, step: DecideStep) -> None:
        outside = self.bound
        for arm in step.arms:
            if arm.condition is not None and not self._value(arm.condition, "now"):
                continue
            if arm.none is not None:
                self._fail(arm.none, "decide none")
            self.bound = dict(outside)
            self._steps(arm.steps)
            if arm.answer is not None:
                self.answer = (arm.answer, self.bound)
            self.bound = outside
            return
        raise AssertionError("a decide without an arm to take")

    def _for(self, step: ForStep) -> None:
        """Run the steps for each element; elements that name one row refuse the whole before any is looked at."""
        elements = [one if isinstance(one, dict) else {"": one} for one in self.inputs[step.items]]
        for self.at, self.element in enumerate(elements):
            for part in step.steps:
                if isinstance(part, BindStep) and not part.unique and all(map(_is_given, part.key)):
                    self._name(part, tuple(self._value(value, "found") for value in part.key))
        outside = self.bound
        for self.at, self.element in enumerate(elements):
            self.bound = dict(outside)
            self._steps(step.steps)
        self.bound, self.element, self.at = outside, {}, None

    def _begin_restoration(self, step: ReconstituteStep) -> None:
        """The row that is put back is the element; what no row can be is refused like any other input."""
        row = self.element = self.inputs[step.source]
        workflow = self.plan.workflow_of(step.entity)
        lease = workflow.lease if workflow else None
        if row["revision"] == 0 or (lease and (row[lease.owner] is None) != (row[lease.expires_at] is None)):
            raise RefusedError("RDB-E-INPUT")

    def _reconstitute(self, step: ReconstituteStep) -> None:
        bound = self.bound[step.source]
        grave, lease = self.graves[step.entity].get(bound.key), self._lease_of(bound)
        if grave is None:
            return
        is_behind = lease is not None and self.element[lease.fencing_token] < grave["fence"]
        if is_behind or self.element["revision"] < grave["revision"]:
            self._fail(step.otherwise, "restored behind")

    # --- what is committed -------------------------------------------------------------------------------------

    def _succeed(self, bound: Binding) -> None:
        """The successor of a touched row: its revision, the commit that wrote it, its computed columns."""
        assert bound.now is not None
        grave = self.graves[bound.entity.name].get(bound.key)
        last = bound.found or (grave if bound.is_created else None)
        before = 0 if last is None else last["revision"]
        if self.command.kind == "reimport":
            before = self.inputs[bound.step.name]["revision"] - 1
        if before == U64_MAX:
            raise RefusedError("RDB-E-REVISION-EXHAUSTED")
        bound.committed = {**bound.now, "revision": before + 1, "commit": self.sequence}
        for part in bound.entity.computed:
            bound.committed.pop(part.name, None)
        for part in bound.entity.computed:
            if bound.kind != "delete":
                bound.committed[part.name] = value_of(part.expression, OwnRow(bound.committed))

    def _event(self, step: EmitStep, bound: dict[str, Binding], element: dict[str, Any]) -> dict[str, Any]:
        self.bound, self.element = bound, element
        given = {part.name: self._value(part.value, "committed") for part in step.payload}
        fields = self.plan.event(step.event).fields
        return {part.name: given.get(part.name, inside_value(part.type, part.default)) for part in fields}

    # --- rules -------------------------------------------------------------------------------------------------

    def _keep_rules(self, touched: list[Binding]) -> None:
        """Uniques, references and invariants over all rows as they would stand, in this order."""
        after = {name: dict(rows) for name, rows in self.tables.items() if self._has_rules}
        for bound in touched if self._has_rules else ():
            if bound.kind == "delete":
                after[bound.entity.name].pop(bound.key, None)
            else:
                assert bound.committed is not None
                after[bound.entity.name][bound.key] = bound.committed
        items = (
            list(dict.fromkeys(bound.item for bound in touched if bound.item is not None)) if self._has_rules else []
        )
        for item in (None, *items):  # of a loop item by item, after the rows above it
            for breaches in (broken_uniques, broken_references, broken_invariants):
                for bound in touched if self._has_rules else ():
                    for kind, entity, name in breaches(self.plan, bound, after) if bound.item == item else ():
                        self._breach(bound, kind, entity, name)

    @property
    def _has_rules(self) -> bool:
        return any(entity.uniques or entity.references or entity.invariants for entity in self.plan.entities)

    def _breach(self, bound: Binding, kind: str, entity: str, name: str) -> None:
        """Answer a broken rule. That a clause for it stands is what the compiler has proven."""
        own = [part for part in bound.step.breaches if (part.kind, part.entity, part.name) == (kind, entity, name)]
        assert own, f"`{kind} {entity}.{name}` can happen to `{bound.step.name}`, which has no clause for it"
        clause: BreachPlan = own[0]
        self.bound, self.element = bound.seen
        self._fail(clause.outcome, kind)


def _is_given(expression: Expression) -> bool:
    return isinstance(expression, Constant | Input | Item)


Broken = tuple[str, str, str]


def broken_uniques(plan: Plan, bound: Binding, after: Tables) -> Iterator[Broken]:
    """Uniques whose values the command gave to the row, and that another row holds too."""
    for unique in bound.entity.uniques:
        own = _given(bound, unique.columns)
        for key, row in after[bound.entity.name].items() if None not in own else ():
            if key != bound.key and tuple(row[name] for name in unique.columns) == own:
                yield "conflict", bound.entity.name, unique.name
                break


def broken_references(plan: Plan, bound: Binding, after: Tables) -> Iterator[Broken]:
    """References that the command gave to the row and that find no target; those of other rows to what is no more."""
    for reference in bound.entity.references:
        own = _given(bound, reference.columns)
        targets = [tuple(row[name] for name in reference.target) for row in after[reference.entity].values()]
        if None not in own and own not in targets:
            yield "conflict", bound.entity.name, reference.name
    for child in plan.entities:
        for reference in child.references:
            if reference.entity != bound.entity.name or bound.found is None:
                continue
            gone = tuple(bound.found[name] for name in reference.target)
            left = [tuple(row[name] for name in reference.target) for row in after[reference.entity].values()]
            sources = [tuple(row[name] for name in reference.columns) for row in after[child.name].values()]
            if gone in sources and gone not in left:
                yield "conflict", child.name, reference.name


def _given(bound: Binding, columns: tuple[str, ...]) -> tuple[Any, ...]:
    """The values that the command gave to a row; with a null, which no rule looks at, if it gave none."""
    if bound.kind == "delete" or bound.committed is None:
        return (None,)
    before = None if bound.found is None else tuple(bound.found[name] for name in columns)
    own = tuple(bound.committed[name] for name in columns)
    return (None,) if own == before else own


def broken_invariants(plan: Plan, bound: Binding, after: Tables) -> Iterator[Broken]:
    """Invariants that do not hold of the row."""
    if bound.kind != "delete":
        assert bound.committed is not None
        for invariant in bound.entity.invariants:
            if not value_of(invariant.condition, OwnRow(bound.committed)):
                yield "violates", bound.entity.name, invariant.name


class OwnRow:
    """The scene of computed columns and invariants: the row itself."""

    time = 0

    def __init__(self, row: Row) -> None:
        self._row = row

    def field(self, binding: str, name: str) -> Any:
        return self._row[name]

    def revision(self, binding: str) -> int:
        return int(self._row["revision"])

    def given(self, name: str) -> Any:
        raise AssertionError(name)

    item = row = given


class Whole:
    """A whole row in a payload."""

    def __init__(self, entity: EntityPlan, row: Row) -> None:
        self.entity, self.row = entity, row
