"""Queries, streams, roles and schedules of a plan.

A query's access path is chosen by the compiler and stands here; the engine only follows it. A schedule holds, for each
of its commands, which input takes which value, so that an adapter needs nothing but this.
"""

from typing import Literal

import msgspec

from riffdb.plan.commands import InputPlan
from riffdb.plan.expressions import Expression, Param


class BoundPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One end of a range: a value over parameters and `tx.time`, and whether it belongs to the range."""

    value: Expression
    inclusive: bool


class PrefixPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One column of a path's prefix: the values that it may equal, or the list parameter that holds them.

    Values that are equal at run time are one range. A value may be null, which only null equals.
    """

    values: tuple[Expression, ...] = ()
    among: Param | None = None


class PathPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """How rows are found: ranges of one index or unique (empty name: the key), merged in the order of the path.

    There is one range for each combination of the prefix columns' values, at most `QUERY_RANGES_MAX`; each may end in
    bounds of the next column, which leave rows with null there out, and is read in the index's order or wholly
    reversed. `residual` is what of the condition the ranges leave open; None where they answer the whole. `given`: the
    path is for the case in which these of the binding's optional filters are given, and the others null. The columns
    of a unique are followed by the rest of the key.
    """

    index: str
    prefix: tuple[PrefixPlan, ...]
    lower: BoundPlan | None = None
    upper: BoundPlan | None = None
    reverse: bool = False
    residual: Expression | None = None
    given: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    """The order in which these rows come, where it ends otherwise than the `order` of the binding."""


class QueryField(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of an outcome of a query.

    Of `binding`: its row or rows with these `fields` (`revision` among them where it was asked for), or its number if
    it is an aggregate; with `is_cursor` the cursor that goes on from its last row. Without a binding: `value`, over
    parameters, `tx.time` and fields of bindings that have one row.
    """

    name: str
    binding: str = ""
    fields: tuple[str, ...] = ()
    is_cursor: bool = False
    value: Expression | None = None


class QueryOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """An outcome that a query answers."""

    name: str
    payload: tuple[QueryField, ...]


class BindingPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A binding of a query: the rows of one entity that meet `where`, or a number of them.

    `paths` has one path for each case of the optional `filters` (parameters that, when null, ask for nothing). `order`
    is the order of the rows as (column, descends): what was asked for, then the columns that the index goes on with,
    the rest of the key at the end, so that no two rows are equal in it. Of `min` and `max` it is the order in which the
    first row has the answer, if the paths give that one; it is empty for all others. A `one` or `maybe` has one path,
    whose prefix is the whole key or a unique. `take` names a parameter or is a number: of rows, and for aggregates of
    entries read. `where` is the whole condition, for explanation and the slow twin.
    """

    name: str
    kind: Literal["one", "maybe", "many", "count", "sum", "min", "max"]
    entity: str
    paths: tuple[PathPlan, ...]
    where: Expression
    take: str | int = 1
    order: tuple[tuple[str, bool], ...] = ()
    filters: tuple[str, ...] = ()
    cursor: str = ""
    """The parameter that holds the cursor."""
    cursor_kind: Literal["after", "before", ""] = ""
    field: str = ""
    """The column that `sum`, `min` and `max` are of."""
    by: str = ""
    """The column by whose values `count` counts."""
    missing: QueryOutcome | None = None
    """What a `one` answers when there is no row."""


class RevealPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A secret field that a query may show."""

    entity: str
    field: str


class QueryPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A query, confined to the partition that `partition` (over parameters) names."""

    name: str
    params: tuple[InputPlan, ...]
    partition: Expression
    bindings: tuple[BindingPlan, ...]
    outcome: str
    payload: tuple[QueryField, ...]
    reveals: tuple[RevealPlan, ...] = ()
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
    fence: str = ""
    """The payload field of claim's success that is the fence, where it shows no row."""
    stale_row: str = ""
    """Of a claim from a stream: the payload field of `stale` that is the row, or else the one below."""
    stale_revision: str = ""
    unavailable_row: str = ""
    """Of a claim from a stream: the payload field of `unavailable` that is the row, or else the one below."""
    unavailable_expires_at: str = ""
    releases: bool = False
    """Whether success of this command leaves the lease released."""


class SchedulePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A selection tied to the commands of one workflow.

    From a query `items` is the payload value that holds the items; from a stream it is empty, and an item is the
    selected fields of a delivery of `event`: deliveries of the stream's other events are none of the schedule's, and
    settled without a turn. `due` and `revision` are fields of an item; key fields are found in it by their own names.
    """

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
    event: str = ""
