"""Stories by chance: rows to begin with, a clock that moves, and commands that mostly mean something.

A storyteller reads the plan to know which input is a key, a revision, an owner, a token or a duration, and looks at the
twin's rows to give what fits, what fitted a moment ago (a zombie's evidence), or what never did. It repeats earlier
commands, alters one input under an old key, sends what no type has, and moves the clock to the microsecond at which a
lease ends.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.commands import BindStep, CommandPlan, DecideStep, ForStep, InputPlan, LeaseStep, Step, TransitionStep
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Expression, Input, Item
from tests.model.running import (
    Binding,
    Row,
    broken_invariants,
    broken_references,
    broken_uniques,
)
from tests.model.twin import Twin
from tests.model.wire import RANGES, RefusedError, encode, fields_of, range_of
from tests.model.worlds import Call

START = 1_800_000_000_000_000
END = RANGES["timestamp"][1]
SECOND = 1_000_000
DAY = 86_400 * SECOND
EDGE_SHARE = 0.06


class Role(NamedTuple):
    """What an input is for: a column of a binding's row (`revision` among them), or an operand of its lease."""

    binding: str
    entity: str
    column: str
    kind: str


class Storyteller:
    """Draws the story of one contract."""

    def __init__(self, plan: Plan, random: Random, *, is_late: bool | None = None) -> None:
        self.plan, self.random = plan, random
        self.roles = {command.name: dict(_roles(plan, command.steps)) for command in plan.commands}
        self.kinds = {command.name: _kinds(command.steps) for command in plan.commands}
        self.told: list[Call] = []
        self.number = 0
        first = plan.entities[0]
        self.partitions = [self.value(first.types[first.partition], is_key=True) for _ in range(2)]
        self.is_late = random.random() < 0.15 if is_late is None else is_late
        self.clock = END - random.choice((60, 600)) * SECOND if self.is_late else START

    # --- rows to begin with ------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, Row]]:
        """Rows that are there before the first command, many of them near the ends of their ranges."""
        twin = Twin(self.plan)
        found = []
        for entity in self.plan.entities:
            for _ in range(self.random.randint(0, 8)):
                row = self._row(entity)
                key = tuple(row[name] for name in entity.storage_key)
                if key in twin.tables[entity.name]:
                    continue
                try:
                    whole = twin.seed(entity, row)
                    is_sound = _is_sound(self.plan, twin, entity, key, whole)
                except RefusedError:
                    is_sound = False
                if is_sound:
                    found.append((entity.name, row))
                else:
                    twin.tables[entity.name].pop(key, None)
        return found

    def _row(self, entity: EntityPlan) -> Row:
        random = self.random
        row = {part.name: self.value(part.type, is_key=True) for part in entity.key}
        row[entity.partition] = random.choice(self.partitions)
        row |= {part.name: self.value(part.type) for part in entity.fields}
        workflow = self.plan.workflow_of(entity.name)
        if workflow is not None and workflow.lease is not None:
            lease = workflow.lease
            is_owned = random.random() < 0.5
            row[lease.owner] = self.value(Type("uuid"), is_key=True) if is_owned else None
            row[lease.expires_at] = min(END, self.clock + random.randint(-20, 100) * SECOND) if is_owned else None
            counters = [lease.fencing_token, *([lease.attempts] if lease.attempts else [])]
            row |= {name: self._counter() for name in counters}
        return row | {"revision": max(1, self._counter()), "commit": 0}

    def _counter(self) -> int:
        return self.random.choice((1, 1, 2, 3, 4, 2**63) if self.random.random() < 0.85 else (2**64 - 2, 2**64 - 1))

    # --- commands ----------------------------------------------------------------------------------------------

    def moment(self, twin: Twin) -> int:
        """The clock's next reading: the same, a little later, much later, or right where a lease ends."""
        random = self.random
        choice = random.random()
        if self.is_late:  # there is little time left, and leases that end with it
            self.clock += random.choice((0, 0, 0, 1, SECOND))
        elif choice < 0.3:
            ends = list(self._expiries(twin))
            if ends:
                self.clock = max(self.clock, random.choice(ends) + random.choice((-2, -1, 0, 0, 0, 1)))
        elif choice < 0.6:
            self.clock += random.choice((1, 10, SECOND, 5 * SECOND, 60 * SECOND))
        elif choice < 0.63:
            self.clock += random.choice((900 * SECOND, DAY))
        self.clock = min(self.clock, END - SECOND)
        return self.clock

    def _expiries(self, twin: Twin) -> Iterator[int]:
        for workflow in self.plan.workflows:
            if workflow.lease is not None:
                for row in twin.tables[workflow.entity].values():
                    if row[workflow.lease.expires_at] is not None:
                        yield row[workflow.lease.expires_at]

    def call(self, twin: Twin) -> Call:
        """The next command, as it would come over the wire."""
        random = self.random
        if self.told and random.random() < 0.08:
            name, values = random.choice(self.told[-30:])
            return (name, self._altered(name, values)) if random.random() < 0.3 else (name, dict(values))
        command = random.choice(self.plan.commands)
        values = self._values(command, twin)
        if random.random() < 0.02:
            self._spoil(command, values)
        self.told.append((command.name, values))
        return command.name, values

    def _altered(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        command = self.plan.command(name)
        part = self.random.choice(command.inputs)
        if part.type.kind in ("list", "record") or part.name in (
            command.idempotency_key,
            getattr(command.partition, "name", ""),
        ):
            return dict(values)
        return values | {part.name: encode(part.type, self.value(part.type), self.plan)}

    def _spoil(self, command: CommandPlan, values: dict[str, Any]) -> None:
        part = self.random.choice(command.inputs)
        spoilt = self.random.choice(("missing", "unknown", "null", "kind", "bound"))
        if spoilt == "missing":
            values.pop(part.name, None)
        elif spoilt == "unknown":
            values["nothing_here"] = "1"
        elif spoilt == "null":
            values[part.name] = None
        elif spoilt == "kind":
            values[part.name] = {}
        elif part.type.kind in ("i64", "u64", "decimal"):
            values[part.name] = str(range_of(part.type)[1] + 1)[:25]
        elif part.type.kind in ("string", "bytes"):
            values[part.name] = "aaaa" * part.type.bound

    def _values(self, command: CommandPlan, twin: Twin) -> dict[str, Any]:
        """Inputs that fit some rows in one partition, mostly."""
        random = self.random
        partition = random.choice(self.partitions)
        rows = self._rows(command, partition, twin)
        values = {}
        for part in command.inputs:
            if part.name == getattr(command.partition, "name", ""):
                value = partition
            elif part.name == command.idempotency_key:
                value = self._request_key(part)
            elif part.type.kind == "list":
                value = self._elements(part, command, partition, twin)
            elif part.type.kind == "record":
                value = self._restored(self.plan.entity(part.type.name), partition, twin)
            else:
                value = self._input(part, self.roles[command.name].get(part.name), rows)
                if (part.has_default or part.type.optional) and random.random() < 0.3:
                    continue
            values[part.name] = self._wire(part.type, value)
        return values

    def _rows(self, command: CommandPlan, partition: Any, twin: Twin) -> dict[str, Row | None]:
        """A row for each binding, mostly one that is there."""
        random = self.random
        rows: dict[str, Row | None] = {}
        for binding, (entity, kind) in self.kinds[command.name].items():
            share = 0.25 if kind == "create" else 0.92
            own = self.plan.entity(entity).partition
            known = [row for row in twin.tables[entity].values() if row[own] == partition]
            rows[binding] = random.choice(known) if known and random.random() < share else None
        return rows

    def _request_key(self, part: InputPlan) -> Any:
        self.number += 1
        if part.type.kind == "uuid":
            return self.number.to_bytes(16, "big")
        return "" if self.random.random() < 0.002 else f"k-{self.number}"

    def _input(self, part: InputPlan, role: Role | None, rows: dict[str, Row | None]) -> Any:
        random = self.random
        if role is None:
            return self.value(part.type)
        row = rows.get(role.binding)
        if role.kind == "key":
            return self.value(part.type, is_key=True) if row is None else row[role.column]
        if role.kind == "duration":
            return self._duration(role)
        if row is None or random.random() < 0.05:
            return self.value(part.type, is_key=True)
        value = row[role.column]
        if role.kind == "owner":
            return self.value(Type("uuid"), is_key=True) if value is None else value
        if random.random() < 0.05:
            return max(0, min(2**64 - 1, value + random.choice((-1, 1))))
        return value

    def _duration(self, role: Role) -> int:
        workflow = self.plan.workflow_of(role.entity)
        assert workflow is not None
        assert workflow.lease is not None
        low, high = workflow.lease.seconds_min, workflow.lease.seconds_max
        if self.random.random() < 0.1:
            return self.random.choice((low - 1, high + 1, 2**64 - 1))
        return self.random.choice((low, low, high, high, (low + high) // 2))

    def _elements(self, part: InputPlan, command: CommandPlan, partition: Any, twin: Twin) -> Any:
        element, random = part.type.element, self.random
        assert element is not None
        roles, elements = self.roles[command.name], []
        fields = fields_of(element, self.plan) if element.kind == "record" else {"": element}
        for _ in range(random.randint(part.type.scale, min(part.type.bound, 4))):
            rows = self._rows(command, partition, twin)
            values = {name: self._input(InputPlan(name, kind), roles.get(name), rows) for name, kind in fields.items()}
            elements.append(values if element.kind == "record" else values[""])
        return tuple(elements)

    def _restored(self, entity: EntityPlan, partition: Any, twin: Twin) -> Row:
        """A whole row, of a key whose last life is over where there is one."""
        random = self.random
        row = self._row(entity)
        graves = [key for key in twin.graves[entity.name] if key[0] == partition]
        if graves and random.random() < 0.7:
            key = random.choice(graves)
            grave = twin.graves[entity.name][key]
            row |= dict(zip(entity.storage_key, key, strict=True))
            row["revision"] = max(0, min(2**64 - 1, grave["revision"] + random.choice((-1, 0, 1, 5))))
            workflow = self.plan.workflow_of(entity.name)
            if workflow is not None and workflow.lease is not None:
                fence = grave["fence"] + random.choice((-1, 0, 0, 1))
                row[workflow.lease.fencing_token] = max(0, min(2**64 - 1, fence))
                if random.random() < 0.1:
                    row[workflow.lease.owner] = None
        row[entity.partition] = partition
        del row["commit"]
        return row

    # --- values ------------------------------------------------------------------------------------------------

    def value(self, kind: Type, *, is_key: bool = False) -> Any:
        """A value: of keys one of a few, so that they meet; else often small, at times at an end of its range."""
        random = self.random
        if kind.optional and random.random() < 0.3:
            return None
        match kind.kind:
            case "bool":
                return random.random() < 0.5
            case "uuid":
                return random.randrange(4).to_bytes(16, "big")
            case "string":
                return random.choice(("", "a", "B", "ä\n", '"q\\', "\U00010348")[: 4 if is_key else 6])[: kind.bound]
            case "bytes":
                return random.choice((b"", b"\0\1", b"\xff", b"12345678"))[: kind.bound]
            case "enum":
                return random.randrange(len(self.plan.enum_variants()[kind.name]))
            case "timestamp":
                if random.random() < EDGE_SHARE and not is_key:
                    return random.choice(RANGES["timestamp"])
                return START + random.choice((-1, 0, 1, 2)) * SECOND
            case "date":
                return random.choice((*RANGES["date"], 0, 20_000))
        low, high = range_of(kind)
        if random.random() < EDGE_SHARE:
            return random.choice((low, low + 1, high - 1, high))
        return random.choice((0, 1, 2, 3) if is_key else (0, 0, 1, 2, 3, 5, 10, 100, max(low, -2)))

    def _wire(self, kind: Type, value: Any) -> Any:
        wire = encode(kind, value, self.plan)
        if wire is None or self.random.random() > 0.1:
            return wire
        match kind.kind:
            case "i64" | "u64":
                return value
            case "uuid":
                return wire.upper()
            case "timestamp":
                return wire.replace("Z", "+00:00")
            case "bytes":
                return wire + "=" * (-len(wire) % 4)
        return wire


def _is_sound(plan: Plan, twin: Twin, entity: EntityPlan, key: tuple[Any, ...], row: Row) -> bool:
    bound = Binding(BindStep("create", "", entity.name, ()), entity, key, None, "")
    bound.committed = row
    rules = (broken_uniques, broken_references, broken_invariants)
    return not any(any(rule(plan, bound, twin.tables)) for rule in rules)


def _roles(plan: Plan, steps: tuple[Step, ...]) -> Iterator[tuple[str, Role]]:
    """The inputs (or fields of elements) that name a column of a row."""
    bound: dict[str, str] = {}
    for step in _flat(steps):
        match step:
            case BindStep(name=name, entity=entity):
                bound[name] = entity
                columns = plan.entity(entity).storage_key
                if step.unique:
                    columns = next(one.columns for one in plan.entity(entity).uniques if one.name == step.unique)
                for column, part in zip(columns, step.key, strict=True):
                    yield from _role(part, Role(name, entity, column, "key"))
            case TransitionStep(binding=binding):
                yield from _role(step.revision, Role(binding, bound[binding], "revision", "evidence"))
            case LeaseStep(binding=binding):
                lease = plan.workflow(step.workflow).lease
                assert lease is not None
                entity = bound[binding]
                yield from _role(step.revision, Role(binding, entity, "revision", "evidence"))
                yield from _role(step.owner, Role(binding, entity, lease.owner, "owner"))
                yield from _role(step.fencing_token, Role(binding, entity, lease.fencing_token, "evidence"))
                yield from _role(step.duration_seconds, Role(binding, entity, "", "duration"))


def _role(expression: Expression | None, role: Role) -> Iterator[tuple[str, Role]]:
    if isinstance(expression, Input | Item):
        yield expression.name, role


def _kinds(steps: tuple[Step, ...]) -> dict[str, tuple[str, str]]:
    return {step.name: (step.entity, step.kind) for step in _flat(steps) if isinstance(step, BindStep)}


def _flat(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, DecideStep):
            for arm in step.arms:
                yield from _flat(arm.steps)
        elif isinstance(step, ForStep):
            yield from _flat(step.steps)
