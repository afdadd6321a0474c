"""Queries, streams, roles and schedules of a plan.

A query's access path is chosen by the compiler and stands here; the engine only follows it. A schedule holds, for each
of its commands, which input takes which value, so that an adapter needs nothing but this.
"""

from typing import Literal

import msgspec

from riffdb.plan.commands import InputPlan
from riffdb.plan.expressions import Expression


class BoundPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One end of a range: a value over parameters and `tx.time`, and whether it belongs to the range."""

    value: Expression
    inclusive: bool


class ManyPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A binding that reads a range of one index (empty name: the key): equalities over a prefix of its columns, then at
    most one range, in the index's order or wholly reversed, at most `take` rows. `take` names a parameter or is a
    number. `where` is the whole condition, for explanation and for the slow twin; the path alone already answers it."""

    name: str
    entity: str
    index: str
    equals: tuple[Expression, ...]
    take: str | int
    where: Expression
    lower: BoundPlan | None = None
    upper: BoundPlan | None = None
    reverse: bool = False


class SelectionPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A payload value of a query: the fields of a binding's rows, `revision` among them where it was asked for."""

    name: str
    binding: str
    fields: tuple[str, ...]


class QueryPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A query, confined to the partition that `partition` (over parameters) names."""

    name: str
    params: tuple[InputPlan, ...]
    partition: Expression
    bindings: tuple[ManyPlan, ...]
    outcome: str
    payload: tuple[SelectionPlan, ...]
    doc: str = ""


class StreamEventPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of a stream: its selected fields and the condition it must meet, if any (over the event's fields)."""

    event: str
    fields: tuple[str, ...]
    where: Expression | None = None


class StreamPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream over the events of the partition that `partition` names."""

    name: str
    params: tuple[InputPlan, ...]
    partition: Expression
    events: tuple[StreamEventPlan, ...]
    doc: str = ""


class RolePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The exact names that a role may use."""

    name: str
    queries: tuple[str, ...]
    commands: tuple[str, ...]
    streams: tuple[str, ...]
    doc: str = ""


class ScheduledCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an adapter calls one command of a schedule: input names by purpose.

    `key` gives for each key field of the entity (in declared order) the input that takes it. `binding` is the leased
    row's binding, whose successor revision the next command presents. `further` are inputs without a purpose, which the
    user's handler supplies (run) or the policy (`retry_seconds` of fail). Outcomes that are evidence failures or
    successes are told by the command's own plan.
    """

    command: str
    binding: str
    idempotency_key: str
    key: tuple[str, ...]
    owner: str | None = None
    duration: str | None = None
    revision: str | None = None
    fencing_token: str | None = None
    further: tuple[str, ...] = ()
    missing: str = ""
    """The outcome of the leased row's own `else`: the row is gone."""
    stale: str = ""
    unavailable: str = ""
    invalid: str = ""
    exhausted: str = ""
    expired: str = ""
    row: str = ""
    """The payload field of claim's success that is the whole row, from which the fence is read."""
    releases: bool = False
    """Whether success of this command leaves the lease released."""


class SchedulePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A selection tied to the commands of one workflow. `items` is the query's payload value that holds the items;
    `due` and `revision` are fields of an item; key fields are found in it by their own names."""

    name: str
    source: Literal["query", "stream"]
    source_name: str
    items: str
    due: str
    revision: str
    entity: str
    workflow: str
    claim: ScheduledCommand
    run: ScheduledCommand
    release: ScheduledCommand
    renew: ScheduledCommand | None = None
    fail: ScheduledCommand | None = None
    doc: str = ""
