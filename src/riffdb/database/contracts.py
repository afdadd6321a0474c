"""A deployed plan made ready to run: codecs of inputs and payloads, compiled functions, tables.

A `Contract` is made once for a plan and shared by all requests; each command is prepared at its first use. Nothing here
changes after it was made, so a request holds on to the contract that admitted it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import partition_encoder
from riffdb.core.layout import Index, Key, Row, Table
from riffdb.core.suggestions import did_you_mean
from riffdb.core.values import Encoder, Enums, decoder, encoder, uuid_text
from riffdb.database.layouts import tables
from riffdb.engine import CompiledCommand, CompiledQuery, compile_command, compile_query
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, InputPlan, PayloadField
from riffdb.plan.declarations import EntityPlan, EventPlan
from riffdb.plan.expressions import Expression, Input, Param
from riffdb.plan.identity import plan_hash
from riffdb.plan.queries import QueryPlan


class InputCodec:
    """Decodes the inputs of a command, or the parameters of a query, and says them in canonical form."""

    def __init__(self, inputs: tuple[InputPlan, ...], enums: Enums, noun: str) -> None:
        self.inputs = inputs
        self._noun = noun
        self._positions = {plan.name: position for position, plan in enumerate(inputs)}
        self._decoders = tuple(decoder(plan.type, enums) for plan in inputs)
        self._encoders = tuple(encoder(plan.type, enums) for plan in inputs)
        self._defaults = tuple(plan.default if plan.has_default else None for plan in inputs)
        self._required = tuple(plan for plan in inputs if not (plan.has_default or plan.type.optional))
        self._sorted = sorted(self._positions.items())

    def decode(self, values: Mapping[str, object], only: frozenset[str] | None = None) -> tuple[Any, ...]:
        """Inside values in declared order; `RDB-E-INPUT` with the path of what is wrong.

        With `only`, the names that matter: the others may be missing and come out as None.
        """
        decoded = list(self._defaults)
        for name, value in values.items():
            position = self._positions.get(name)
            if position is None:
                hint = did_you_mean(name, self._positions)
                raise input_error(name, f"is no {self._noun} here{hint}")
            decoded[position] = self._decoders[position](value, name)
        for plan in self._required:
            if plan.name not in values and (only is None or plan.name in only):
                raise input_error(plan.name, f"is missing; give a value of type {plan.type}")
        return tuple(decoded)

    def canonical(self, decoded: tuple[Any, ...], *, with_secrets: bool) -> str:
        """Canonical JSON of the values, defaults left out (null is one), so that a new input keeps old forms valid.

        The names are in order already, and msgspec writes the text that `core.canonical` would, several times faster.
        """
        form = {
            name: self._encoders[position](decoded[position])
            for name, position in self._sorted
            if decoded[position] != self._defaults[position] and (with_secrets or not self.inputs[position].secret)
        }
        return msgspec.json.encode(form).decode()

    @property
    def has_secrets(self) -> bool:
        """Whether any of the inputs is secret."""
        return any(plan.secret for plan in self.inputs)


class RowCodec:
    """The wire forms of one entity's rows: whole without secrets, by changed fields, and of keys.

    The wire form of the newest row is kept: an answer's payload and the record of the change show the same row.
    """

    def __init__(self, entity: EntityPlan, enums: Enums) -> None:
        self.entity = entity.name
        self.revision_position = len(entity.columns)
        self.sequence_position = self.revision_position + 1
        types, shown = entity.types, frozenset(entity.visible)
        self._fields = tuple(
            (name, position, encoder(types[name], enums)) for position, name in enumerate(entity.columns)
        )
        self._hidden = tuple(name for name in entity.columns if name not in shown)
        order = entity.storage_key
        self._key = tuple((part.name, order.index(part.name), encoder(part.type, enums)) for part in entity.key)
        self._newest: tuple[Row, dict[str, Any]] = ((), {})

    def row(self, row: Row) -> dict[str, Any]:
        """The whole row with its revision, secrets left out."""
        wire = self._whole(row)
        return {name: wire[name] for name in wire if name not in self._hidden} if self._hidden else wire

    def key(self, key: Key) -> dict[str, Any]:
        """A storage key by field name, in declared order."""
        return {name: encode(key[position]) for name, position, encode in self._key}

    def changed(self, before: Row | None, after: Row | None) -> dict[str, Any]:
        """The fields of `after` that differ from `before`; all of them for a new row, none for a deleted one."""
        if after is None:
            return {}
        wire = self._whole(after)
        return {
            name: wire[name]
            for name, position, _ in self._fields
            if before is None or before[position] != after[position]
        }

    def _whole(self, row: Row) -> dict[str, Any]:
        newest, wire = self._newest
        if newest is not row:
            wire = {name: encode(row[position]) for name, position, encode in self._fields}
            wire["revision"] = str(row[self.revision_position])
            self._newest = (row, wire)
        return wire


@dataclass(frozen=True)
class PreparedCommand:
    """A command ready to run."""

    plan: CommandPlan
    inputs: InputCodec
    compiled: CompiledCommand
    tables: tuple[Table, ...]
    rows: tuple["RowCodec", ...]
    partition_bytes: Callable[[Any], bytes]
    partition_inputs: frozenset[str]
    key_position: int | None
    encode_payloads: Mapping[str, Callable[[tuple[Any, ...]], dict[str, Any]]]
    evidence: frozenset[str]

    def request_key(self, inputs: tuple[Any, ...]) -> str | None:
        """The idempotency key as text, None for a command without one; an empty one is refused."""
        if self.key_position is None:
            return None
        key = inputs[self.key_position]
        text = key if isinstance(key, str) else uuid_text(key)
        if not text:
            raise input_error(self.plan.inputs[self.key_position].name, "is the idempotency key and must not be empty")
        return text


@dataclass(frozen=True)
class PreparedQuery:
    """A query ready to run."""

    plan: QueryPlan
    params: InputCodec
    compiled: CompiledQuery
    tables: Mapping[str, Table]
    partition_bytes: Callable[[Any], bytes]
    encode: Callable[[tuple[Any, ...]], dict[str, Any]]


class Contract:
    """A deployed plan with everything that running it needs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.hash = plan_hash(plan)
        self.enums = plan.enum_variants()
        self.tables = tables(plan)
        self._commands: dict[str, PreparedCommand] = {}
        self._queries: dict[str, PreparedQuery] = {}

    def command(self, name: str) -> PreparedCommand:
        """The command of that name, prepared; `KeyError` if there is none."""
        found = self._commands.get(name)
        if found is None:
            found = self._commands[name] = self._prepare_command(self.plan.command(name))
        return found

    def query(self, name: str) -> PreparedQuery:
        """The query of that name, prepared; `KeyError` if there is none."""
        found = self._queries.get(name)
        if found is None:
            found = self._queries[name] = self._prepare_query(self.plan.query(name))
        return found

    def entity_named(self, name: str) -> EntityPlan:
        """The entity of that name or of that table name; `RDB-E-NOT-FOUND` with a suggestion otherwise."""
        for entity in self.plan.entities:
            if name in (entity.name, self.tables[entity.name].name):
                return entity
        names = [entity.name for entity in self.plan.entities]
        raise RiffError("RDB-E-NOT-FOUND", f"the contract has no entity of that name{did_you_mean(name, names)}")

    def partition_of(self, entity: EntityPlan) -> Callable[[Any], bytes]:
        """The function from the inside value of the entity's partition to its byte form."""
        return partition_encoder(entity.types[entity.partition])

    def decode_partition(self, value: object) -> bytes:
        """The byte form of a partition given in its wire form, read as the first declared entity with such a one does;
        `RDB-E-INPUT` if no entity has it."""
        types = dict.fromkeys(entity.types[entity.partition] for entity in self.plan.entities)
        refusals = []
        for partition_type in types:
            try:
                inside = decoder(partition_type, self.enums)(value, "partition")
            except RiffError as error:
                refusals.append(error)
            else:
                return partition_encoder(partition_type)(inside)
        raise refusals[0] if refusals else input_error("partition", "is given, but the contract has no entity")

    def index(self, entity: str, name: str) -> Index:
        """The index of that name on the entity's table."""
        position = [index.name for index in self.plan.entity(entity).indexes].index(name)
        return self.tables[entity].indexes[position]

    @cached_property
    def rows(self) -> dict[str, RowCodec]:
        """The wire forms of each entity's rows."""
        return {entity.name: RowCodec(entity, self.enums) for entity in self.plan.entities}

    @cached_property
    def event_encoders(self) -> dict[str, Callable[[tuple[Any, ...]], dict[str, Any]]]:
        """For each event, the function from its values to their wire form."""
        return {event.name: self._event_encoder(event) for event in self.plan.events}

    def _event_encoder(self, event: EventPlan) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
        parts = tuple((field.name, encoder(field.type, self.enums)) for field in event.fields)
        return lambda values: {name: encode(value) for (name, encode), value in zip(parts, values, strict=True)}

    def _payload_encoder(self, fields: tuple[PayloadField, ...]) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
        parts = tuple(
            (
                field.name,
                _nullable(self.rows[field.entity].row) if field.entity else encoder(field.type, self.enums),
            )
            for field in fields
        )
        return lambda values: {name: encode(value) for (name, encode), value in zip(parts, values, strict=True)}

    def _prepare_command(self, plan: CommandPlan) -> PreparedCommand:
        compiled = compile_command(self.plan, plan.name)
        names = [item.name for item in plan.inputs]
        return PreparedCommand(
            plan=plan,
            inputs=InputCodec(plan.inputs, self.enums, "input"),
            compiled=compiled,
            tables=tuple(self.tables[entity] for entity in compiled.slots),
            rows=tuple(self.rows[entity] for entity in compiled.slots),
            partition_bytes=partition_encoder(plan.partition.type),
            partition_inputs=_names_in(plan.partition),
            key_position=None if plan.idempotency_key is None else names.index(plan.idempotency_key),
            encode_payloads={outcome.name: self._payload_encoder(outcome.payload) for outcome in plan.outcomes},
            evidence=frozenset(outcome.name for outcome in plan.outcomes if outcome.evidence),
        )

    def _prepare_query(self, plan: QueryPlan) -> PreparedQuery:
        entities = {binding.name: self.plan.entity(binding.entity) for binding in plan.bindings}
        parts = []
        for selection in plan.payload:
            types = entities[selection.binding].types
            parts.append((selection.name, tuple((name, encoder(types[name], self.enums)) for name in selection.fields)))

        def encode(payload: tuple[Any, ...]) -> dict[str, Any]:
            return {
                name: [
                    {field: encode_value(value) for (field, encode_value), value in zip(fields, item, strict=True)}
                    for item in items
                ]
                for (name, fields), items in zip(parts, payload, strict=True)
            }

        return PreparedQuery(
            plan=plan,
            params=InputCodec(plan.params, self.enums, "parameter"),
            compiled=compile_query(self.plan, plan.name),
            tables=self.tables,
            partition_bytes=partition_encoder(plan.partition.type),
            encode=encode,
        )


def _nullable(encode: Encoder) -> Encoder:
    return lambda row: None if row is None else encode(row)


def _names_in(expression: Expression) -> frozenset[str]:
    """Names of the inputs or parameters in the expression of a partition."""
    if isinstance(expression, Input | Param):
        return frozenset([expression.name])
    raise AssertionError("a partition is one input or parameter")
