"""What changed of what callers name: commands, queries, streams, roles and schedules.

A command without an idempotency key leaves no record, so its inputs and payloads are free. The rules of the others
follow from two promises: what was sent before can be settled by sending it again, and a stored answer stays as it was.
"""

from collections.abc import Iterator

from riffdb.plan.changes import Change, change
from riffdb.plan.commands import CommandPlan, InputPlan, OutcomePlan, PayloadField
from riffdb.plan.identity import declaration_hashes
from riffdb.plan.plan import Plan
from riffdb.plan.queries import QueryPlan, RolePlan, SchedulePlan, StreamPlan
from riffdb.plan.widening import meaning, type_step

COMMANDS = "commands"


def command_changes(old: CommandPlan, new: CommandPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    """The changes of a command."""
    name = old.name
    if old.kind != new.kind:
        yield change("command-kind", COMMANDS, name, f"`{name}` is a {_KINDS[new.kind]} and was a {_KINDS[old.kind]}")
    if old.idempotency_key is None:
        yield from _unrecorded_changes(old, new)
    else:
        yield from _recorded_changes(old, new)
    if meaning((old.steps, old.answer, old.services)) != meaning((new.steps, new.answer, new.services)):
        yield change("command-does", COMMANDS, name, f"what command `{name}` does changed")


_KINDS = {"command": "command", "bulk": "bulk command", "reimport": "reimport command"}


def _unrecorded_changes(old: CommandPlan, new: CommandPlan) -> Iterator[Change]:
    if new.idempotency_key is not None:
        what = f"command `{old.name}` has an idempotency key"
        yield change("command-keyed", COMMANDS, old.name, what, new.idempotency_key)
    if (old.inputs, old.outcomes, old.partition) != (new.inputs, new.outcomes, new.partition):
        what = f"inputs or outcomes of command `{old.name}` changed, of which nothing is stored"
        yield change("command-unrecorded", COMMANDS, old.name, what)


def _recorded_changes(old: CommandPlan, new: CommandPlan) -> Iterator[Change]:
    if old.idempotency_key != new.idempotency_key:
        now = "none" if new.idempotency_key is None else f"`{new.idempotency_key}`"
        what = f"the idempotency key of command `{old.name}` is {now} and was `{old.idempotency_key}`"
        yield change("command-key", COMMANDS, old.name, what, new.idempotency_key or "")
    if meaning(old.partition) != meaning(new.partition):
        what = f"the partition of command `{old.name}` is told by another input"
        yield change("command-partition", COMMANDS, old.name, what)
    known = {part.name: part for part in old.inputs}
    for part in new.inputs:
        yield from _input_changes(old.name, known.get(part.name), part)
    for name in known:
        if name not in {part.name for part in new.inputs}:
            what = f"input `{name}` of command `{old.name}` is gone"
            yield change("input-removed", COMMANDS, old.name, what)
    yield from _outcome_changes(old, new)


def _input_changes(command: str, was: InputPlan | None, part: InputPlan) -> Iterator[Change]:
    label = f"input `{part.name}` of command `{command}`"
    if was is None:
        may_be_left_out = part.type.optional or part.has_default
        kind, more = ("input-added", "") if may_be_left_out else ("input-required", ", and must be given")
        yield change(kind, COMMANDS, command, f"{label} is new{more}", part.name)
        return
    step = type_step(was.type, part.type)
    if step != "same":
        kind = "input-retyped" if step == "other" else "input-widened"
        yield change(kind, COMMANDS, command, f"{label} was `{was.type}` and is `{part.type}`", part.name)
    if (was.has_default, was.default) != (part.has_default, part.default):
        yield change("input-default", COMMANDS, command, f"the default of {label} changed", part.name)
    if was.secret != part.secret:
        now = "secret from now on" if part.secret else "secret no more"
        yield change("input-secret", COMMANDS, command, f"{label} is {now}", part.name)


def _outcome_changes(old: CommandPlan, new: CommandPlan) -> Iterator[Change]:
    known = {part.name: part for part in old.outcomes}
    for part in new.outcomes:
        label = f"outcome `{part.name}` of command `{old.name}`"
        was = known.get(part.name)
        if was is None:
            yield change("outcome-added", COMMANDS, old.name, f"{label} is new", part.name)
            continue
        if was.success != part.success:
            now = "a success and was a failure" if part.success else "a failure and was a success"
            yield change("outcome-turned", COMMANDS, old.name, f"{label} is {now}", part.name)
        elif was.evidence != part.evidence:
            now = "is about the caller's evidence" if part.evidence else "is not about the caller's evidence"
            yield change("outcome-evidence", COMMANDS, old.name, f"{label} {now}", part.name)
        yield from _payload_changes(old.name, was, part)
    for name in known:
        if name not in {part.name for part in new.outcomes}:
            yield change("outcome-removed", COMMANDS, old.name, f"outcome `{name}` of command `{old.name}` is gone")


def _payload_changes(command: str, old: OutcomePlan, new: OutcomePlan) -> Iterator[Change]:
    known = {part.name: part for part in old.payload}
    for part in new.payload:
        label = f"value `{part.name}` in outcome `{old.name}` of command `{command}`"
        was = known.get(part.name)
        if was is None:
            yield change("payload-added", COMMANDS, command, f"{label} is new", new.name)
        elif was.entity != part.entity:
            what = f"{label} was {_payload_type(was)} and is {_payload_type(part)}"
            yield change("payload-retyped", COMMANDS, command, what, new.name)
        elif (step := type_step(was.type, part.type)) != "same":
            kind = "payload-retyped" if step == "other" else "payload-widened"
            what = f"{label} was {_payload_type(was)} and is {_payload_type(part)}"
            yield change(kind, COMMANDS, command, what, new.name)
    for name in known:
        if name not in {part.name for part in new.payload}:
            what = f"value `{name}` in outcome `{old.name}` of command `{command}` is gone"
            yield change("payload-removed", COMMANDS, command, what, new.name)


def _payload_type(part: PayloadField) -> str:
    return f"a row of `{part.entity}`" if part.entity else f"`{part.type}`"


def query_changes(old: QueryPlan, new: QueryPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    """The changes of a query."""
    if meaning(old) != meaning(new) or old.params != new.params:
        yield change("query-changed", "queries", old.name, f"query `{old.name}` changed")


def stream_changes(old: StreamPlan, new: StreamPlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    """The changes of a stream."""
    if (old.params, meaning(old.partition)) != (new.params, meaning(new.partition)):
        yield change("stream-params", "streams", old.name, f"the parameters of stream `{old.name}` changed")
    if meaning(old.events) != meaning(new.events):
        yield change("stream-changed", "streams", old.name, f"stream `{old.name}` selects otherwise")


def role_changes(old: RolePlan, new: RolePlan, _before: Plan, _after: Plan) -> Iterator[Change]:
    """The changes of a role."""
    for noun, family in (("query", "queries"), ("command", "commands"), ("stream", "streams")):
        before, after = getattr(old, family), getattr(new, family)
        for name in after:
            if name not in before:
                what = f"role `{old.name}` may use {noun} `{name}`"
                yield change("grant-added", "roles", old.name, what, name)
        for name in before:
            if name not in after:
                what = f"role `{old.name}` may use {noun} `{name}` no more"
                yield change("grant-removed", "roles", old.name, what)


def schedule_changes(old: SchedulePlan, new: SchedulePlan, before: Plan, after: Plan) -> Iterator[Change]:
    """The changes of a schedule; what attempt identities rest on may change only where no work is under way."""
    if _rests_on(old) != _rests_on(new) or _source_hash(old, before) != _source_hash(new, after):
        what = f"schedule `{old.name}` selects, or does, something else"
        yield change("schedule-source", "schedules", old.name, what, entity=old.entity)
    elif old != new:
        yield change("schedule-changed", "schedules", old.name, f"schedule `{old.name}` changed")


def _rests_on(plan: SchedulePlan) -> tuple[object, ...]:
    source = (plan.source, plan.source_name, plan.items, plan.event, plan.due)
    return (*source, plan.entity, plan.run.command, plan.run.key)


def _source_hash(plan: SchedulePlan, contract: Plan) -> bytes:
    family = "queries" if plan.source == "query" else "streams"
    return declaration_hashes(contract)[f"{family}.{plan.source_name}"]
