"""The slow twin: a database that interprets a plan over dictionaries, with no generated code and no store.

It is written from the page of the language, not from the engine: where the two disagree, one of them is wrong. A
partition has a log; a row is a dictionary. `command` gives the whole answer as bytes, or raises the error.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, ReconstituteStep
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Expression, Input, inside_value
from tests.model.expressions import value_of
from tests.model.running import Binding, FailedError, OwnRow, Row, Run, Whole
from tests.model.wire import RefusedError, decode, encode, partition_text, text_of


class Commit(NamedTuple):
    """What a commit record says, as far as the language decides it."""

    sequence: int
    time: int
    command: str
    key: str
    outcome: str
    answer: str
    changes: str
    events: str


def chance(size: int) -> bytes:
    """What the stores of a world take for chance, so that a service value is the same everywhere."""
    return b"\7" * size


class Twin:
    """A database of one contract."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 0
        self.tables: dict[str, dict[tuple[Any, ...], Row]] = {entity.name: {} for entity in plan.entities}
        self.graves: dict[str, dict[tuple[Any, ...], Row]] = {entity.name: {} for entity in plan.entities}
        self.logs: dict[Any, list[Commit]] = {}
        self.ended: Counter[str] = Counter()
        self._answered: dict[tuple[Any, str, str], tuple[dict[str, Any], Commit]] = {}

    def seed(self, entity: EntityPlan, row: Row) -> Row:
        """Put a row in its place, its computed columns formed; for rows near the ends of their ranges."""
        whole = dict(row)
        for part in entity.computed:
            whole[part.name] = value_of(part.expression, OwnRow(row))
        self.tables[entity.name][tuple(row[name] for name in entity.storage_key)] = whole
        return whole

    def command(self, name: str, values: Mapping[str, Any]) -> bytes:
        """Run a command; its answer, or a `RefusedError`."""
        command = self.plan.command(name)
        inputs = self._decoded(command, values)
        partition = self._partition(command, inputs)
        key = None
        if command.idempotency_key is not None:
            given = inputs[command.idempotency_key]
            key = given if isinstance(given, str) else encode(Type("uuid"), given, self.plan)
            if not key:
                raise RefusedError("RDB-E-INPUT")
            known = self._answered.get((partition, name, key))
            if known is not None:
                if known[0] != self._canonical(command, inputs):
                    raise RefusedError("RDB-E-IDEMPOTENCY-REUSED")
                self.ended["replayed"] += 1
                return f'{known[1].answer},"replayed":true}}'.encode()
        services = {service.name: self._uuid_v7() for service in command.services}
        commit = self._committed(command, inputs | services, partition, key)
        return f'{commit.answer},"replayed":false}}'.encode()

    def _partition(self, command: CommandPlan, inputs: dict[str, Any]) -> Any:
        last = command.steps[-1] if command.steps else None
        if isinstance(last, ReconstituteStep):
            return inputs[last.source][self.plan.entity(last.entity).partition]
        assert isinstance(command.partition, Input), "the partition is an input"
        return inputs[command.partition.name]

    def _decoded(self, command: CommandPlan, values: Mapping[str, Any]) -> dict[str, Any]:
        inputs = {}
        for part in command.inputs:
            if part.name in values:
                inputs[part.name] = decode(part.type, values[part.name], self.plan)
            elif part.has_default:
                inputs[part.name] = inside_value(part.type, part.default)
            else:
                inputs[part.name] = decode(part.type, None, self.plan)
        if not values.keys() <= inputs.keys():
            raise RefusedError("RDB-E-INPUT")
        return inputs

    def _canonical(self, command: CommandPlan, inputs: dict[str, Any]) -> dict[str, Any]:
        defaults = {
            part.name: inside_value(part.type, part.default) if part.has_default else None for part in command.inputs
        }
        return {name: inputs[name] for name, default in defaults.items() if inputs[name] != default}

    def _uuid_v7(self) -> bytes:
        """Milliseconds, version, chance, variant, chance."""
        bits = f"{int.from_bytes(chance(10), 'big'):080b}"[6:]
        whole = f"{self.now // 1_000:048b}0111{bits[:12]}10{bits[12:]}"
        return int(whole, 2).to_bytes(16, "big")

    def _committed(self, command: CommandPlan, inputs: dict[str, Any], partition: Any, key: str | None) -> Commit:
        log = self.logs.get(partition, [])
        sequence, time = len(log) + 1, max(self.now, log[-1].time + 1 if log else 0)
        run = Run(self.plan, command, inputs, self.tables, self.graves)
        try:
            outcome, payload, events = run.to_its_end(time, sequence)
            changed = [bound for bound in run.bindings if bound.is_touched]
            self.ended["success"] += 1
        except FailedError as failure:
            self.ended[failure.check] += 1
            outcome, payload, events, changed = failure.outcome, failure.payload, [], []
        answer: dict[str, Any] = {
            "outcome": outcome,
            "payload": self._payload(command, outcome, payload),
            "workflow_revisions": [
                {"binding": bound.shown_as, "revision": str(bound.committed["revision"])}
                for bound in changed
                if bound.kind != "delete" and bound.committed and self.plan.workflow_of(bound.entity.name)
            ],
            "commit": None,
        }
        if key is not None:
            answer["commit"] = {
                "partition": partition_text(command.partition.type, partition),
                "sequence": str(sequence),
                "time": encode(Type("timestamp"), time, self.plan),
            }
        changes = text_of([self._change(bound) for bound in changed])
        told = text_of([{"event": name, "fields": self._event(name, fields)} for name, fields in events])
        commit = Commit(sequence, time, command.name, key or "", outcome, text_of(answer)[:-1], changes, told)
        if key is not None:
            for bound in changed:
                self._keep(bound)
            self.logs.setdefault(partition, []).append(commit)
            self._answered[(partition, command.name, key)] = (self._canonical(command, inputs), commit)
        return commit

    def _keep(self, bound: Binding) -> None:
        assert bound.committed is not None
        rows, graves = self.tables[bound.entity.name], self.graves[bound.entity.name]
        if bound.kind != "delete":
            rows[bound.key] = bound.committed
            graves.pop(bound.key, None)
            return
        del rows[bound.key]
        left = {name: bound.committed[name] for name in ("revision", "commit")}
        graves[bound.key] = left | {"fence": self._fence(bound)}

    def _fence(self, bound: Binding) -> int | None:
        """The fence that a row has as committed; None for one without a lease."""
        assert bound.committed is not None
        workflow = self.plan.workflow_of(bound.entity.name)
        return bound.committed[workflow.lease.fencing_token] if workflow and workflow.lease else None

    # --- what is shown -----------------------------------------------------------------------------------------

    def _payload(self, command: CommandPlan, outcome: str, payload: dict[str, Any]) -> dict[str, Any]:
        fields = command.outcome(outcome).payload
        return {part.name: self._shown(part.type, payload[part.name]) for part in fields}

    def _shown(self, kind: Type, value: Any) -> Any:
        if not isinstance(value, Whole):
            return encode(kind, value, self.plan)
        entity, row = value.entity, value.row
        computed = {part.name: part.expression for part in entity.computed}
        shown = {}
        for name in (*entity.visible, "revision"):
            inside = self._own(row, computed[name]) if name in computed else row[name]
            shown[name] = encode(entity.types[name], inside, self.plan)
        return shown

    def _own(self, row: Row, expression: Expression) -> Any:
        return value_of(expression, OwnRow(row))

    def _event(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return {part.name: encode(part.type, fields[part.name], self.plan) for part in self.plan.event(name).fields}

    def _change(self, bound: Binding) -> dict[str, Any]:
        """The key, the revisions before and after, the commit that wrote the row before, and the changed fields."""
        entity, after = bound.entity, bound.committed
        assert after is not None
        before = bound.found
        last = before or self.graves[entity.name].get(bound.key)
        key = dict(zip(entity.storage_key, bound.key, strict=True))
        secrets = [part.name for part in entity.fields if part.secret]
        names = [
            name for name in entity.columns if bound.kind != "delete" and (not before or before[name] != after[name])
        ]
        secret = [name for name in names if name in secrets]
        beside: dict[str, Any] = {"secret": secret} if secrets and bound.kind != "delete" else {}
        if bound.kind == "delete" and (fence := self._fence(bound)) is not None:
            beside = {"fence": str(fence)}
        return {
            "entity": entity.name,
            "key": {part.name: encode(part.type, key[part.name], self.plan) for part in entity.key},
            "before": None if before is None else str(before["revision"]),
            "after": None if bound.kind == "delete" else str(after["revision"]),
            "previous": None if last is None else str(last["commit"]),
            "fields": {
                name: encode(entity.types[name], after[name], self.plan) for name in names if name not in secret
            },
        } | beside
