"""A deployed plan made ready to run: compiled functions, codecs, tables.

A `Contract` is made once for a plan and shared by all requests; each command is prepared at its first use. Nothing here
changes after it was made, so a request holds on to the contract that admitted it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import partition_encoder
from riffdb.core.layout import Index, Table
from riffdb.core.records import DeployedContract
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type
from riffdb.core.values import decoder, uuid_text
from riffdb.database.codecs import InputCodec, RowCodec, answer_encoder, object_encoder
from riffdb.database.layouts import tables, tombstone_table
from riffdb.database.query_answers import payload_encoder
from riffdb.database.streams import PreparedStream
from riffdb.engine import CompiledCommand, CompiledQuery, compile_command, compile_query
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Expression, Input, leaves
from riffdb.plan.identity import declaration_hashes, plan_hash
from riffdb.plan.plan import from_json
from riffdb.plan.queries import QueryPlan

_PAGING = ("cursor", "limit")
"""Parameters that say where a page begins and ends, not which rows there are."""


@dataclass(frozen=True)
class PreparedCommand:
    """A command ready to run. `tables` has one for each slot, those of tombstones last, which `rows` has not."""

    plan: CommandPlan
    inputs: InputCodec
    compiled: CompiledCommand
    finders: Mapping[int, Index | None]
    tables: tuple[Table, ...]
    rows: tuple[RowCodec, ...]
    partition_bytes: Callable[[Any], bytes]
    partition_inputs: frozenset[str]
    key_position: int | None
    has_secrets: bool
    encode_payloads: Mapping[str, Callable[[tuple[Any, ...]], str]]

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
    """A query ready to run. `choosing` is the codec of the parameters that choose rows, cursors and limits aside, and
    `choosing_places` are theirs. `encode` gives the payload of each outcome as JSON; `paged` are the bindings whose
    cursor stands in one."""

    plan: QueryPlan
    params: InputCodec
    choosing: InputCodec
    choosing_places: tuple[int, ...]
    compiled: CompiledQuery
    partition_bytes: Callable[[Any], bytes]
    encode: Mapping[str, Callable[[tuple[Any, ...]], str]]
    paged: frozenset[str]


class Contract:
    """A deployed plan with everything that running it needs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.hash = plan_hash(plan)
        self.enums = plan.enum_variants()
        self.tables = tables(plan)
        self.tombstones = {entity: tombstone_table(table) for entity, table in self.tables.items()}
        self._commands: dict[str, PreparedCommand] = {}
        self._queries: dict[str, PreparedQuery] = {}
        self._streams: dict[str, PreparedStream] = {}

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

    def stream(self, name: str) -> PreparedStream:
        """The stream of that name, prepared; `KeyError` if there is none."""
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = PreparedStream(self.plan, name, self.enums)
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

    def index(self, entity: str, name: str) -> Index | None:
        """The index or unique of that name on the entity's table; None for the key, whose name is empty."""
        if not name:
            return None
        plan = self.plan.entity(entity)
        names = [index.name for index in plan.indexes] + [unique.name for unique in plan.uniques]
        return self.tables[entity].indexes[names.index(name)]

    @cached_property
    def identities(self) -> dict[str, bytes]:
        """The identity of every declaration by `family.name`."""
        return declaration_hashes(self.plan)

    @cached_property
    def rows(self) -> dict[str, RowCodec]:
        """The wire forms of each entity's rows."""
        return {entity.name: RowCodec(entity, self.enums) for entity in self.plan.entities}

    @cached_property
    def event_encoders(self) -> dict[str, Callable[[Sequence[Any]], str]]:
        """For each event, the function from its values to their JSON text."""
        return {
            event.name: self._object_encoder([(part.name, part.type) for part in event.fields])
            for event in self.plan.events
        }

    def _object_encoder(self, fields: Sequence[tuple[str, Type]]) -> Callable[[Sequence[Any]], str]:
        return object_encoder([(name, kind, place) for place, (name, kind) in enumerate(fields)], self.enums)

    def _prepare_command(self, plan: CommandPlan) -> PreparedCommand:
        compiled = compile_command(self.plan, plan.name)
        names = [item.name for item in plan.inputs]
        inputs = InputCodec(plan.inputs, self.enums, "input", self.plan.record_fields())
        rows = tuple(self.rows[entity] for entity in compiled.slots)
        return PreparedCommand(
            plan=plan,
            inputs=inputs,
            compiled=compiled,
            finders={slot: self.index(compiled.slots[slot], unique) for slot, unique in compiled.finders.items()},
            tables=(
                *(self.tables[entity] for entity in compiled.slots),
                *(self.tombstones[entity] for entity in compiled.tombstones),
            ),
            rows=rows,
            partition_bytes=partition_encoder(plan.partition.type),
            partition_inputs=_names_in(plan.partition),
            key_position=None if plan.idempotency_key is None else names.index(plan.idempotency_key),
            has_secrets=inputs.has_secrets or any(of_entity.has_secrets for of_entity in rows),
            encode_payloads={
                outcome.name: answer_encoder(outcome.payload, self.rows, self.enums) for outcome in plan.outcomes
            },
        )

    def _prepare_query(self, plan: QueryPlan) -> PreparedQuery:
        choosing = [(place, part) for place, part in enumerate(plan.params) if part.type.kind not in _PAGING]
        outcomes = [(plan.outcome, plan.payload)]
        outcomes += [(part.missing.name, part.missing.payload) for part in plan.bindings if part.missing is not None]
        encode = {outcome: payload_encoder(self.plan, plan, payload) for outcome, payload in outcomes}
        answered = [part for _, payload in outcomes for part in payload]
        return PreparedQuery(
            plan=plan,
            params=InputCodec(plan.params, self.enums, "parameter"),
            choosing=InputCodec(tuple(part for _, part in choosing), self.enums, "parameter"),
            choosing_places=tuple(place for place, _ in choosing),
            compiled=compile_query(self.plan, plan.name),
            partition_bytes=partition_encoder(plan.partition.type),
            encode=encode,
            paged=frozenset(part.binding for part in answered if part.is_cursor),
        )


def stored_plan(entry: DeployedContract) -> Plan:
    """The plan of a contract that was deployed here; `RDB-E-STORAGE` if this version of RiffDB cannot read it."""
    try:
        return from_json(entry.plan)
    except msgspec.DecodeError as error:
        raise RiffError(
            "RDB-E-STORAGE",
            f"the deployed contract, version {entry.version} of `{entry.application}`, cannot be read: another version "
            "of RiffDB wrote it, or it is damaged",
        ) from error


def _names_in(expression: Expression) -> frozenset[str]:
    """Names of the inputs in the expression of a partition."""
    return frozenset(leaf.name for leaf in leaves(expression) if isinstance(leaf, Input))
