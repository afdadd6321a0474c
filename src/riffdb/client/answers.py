"""Answers as a Python caller holds them: native values, quiet in `repr`.

The JSON of an answer is the same from every edge; with the plan, its strings become UUIDs, times, integers and enums.
`repr` tells the outcome and never a value, since payloads may hold lease owners and tokens. What does not fit the plan
that the client knows is `RDB-E-CLIENT-TOO-OLD`; `raw` has it all the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.types import TIMESTAMP, U64
from riffdb.core.values import enum_classes, native
from riffdb.plan import Plan
from riffdb.plan.commands import PayloadField
from riffdb.plan.queries import QueryField, QueryPlan

native_time = native(TIMESTAMP, {})
"""The moment that a timestamp of an answer is."""


@dataclass(frozen=True, slots=True)
class WorkflowSuccessorRevision:
    """The exact revision of a binding's row after the command, which the next command presents."""

    binding: str
    revision: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Where and when an answer was committed."""

    partition: str
    sequence: int
    time: datetime


Convert = Callable[[Any], Mapping[str, Any]]


class _Front(msgspec.Struct):
    """What every caller looks at; the rest of an answer is read when it is asked for."""

    outcome: str
    replayed: bool


_front = msgspec.json.Decoder(_Front).decode


class Answer:
    """A command's answer, made of its JSON when it is asked for.

    `is_success` tells a `return` from a declared failure; `raw` is the JSON as it came.
    """

    def __init__(self, raw: bytes, front: "_Front", is_success: bool, convert: Convert) -> None:
        self.raw = raw
        self.outcome = front.outcome
        self.is_success = is_success
        self.replayed = front.replayed
        self._convert = convert

    @cached_property
    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = msgspec.json.decode(self.raw)
        return body

    @cached_property
    def payload(self) -> Mapping[str, Any]:
        """The payload in native values, by name."""
        return self._convert(self._body["payload"])

    @cached_property
    def workflow_revisions(self) -> tuple[WorkflowSuccessorRevision, ...]:
        """The successor revision of every mutated row of a workflow; empty for a declared failure."""
        revisions = self._body["workflow_revisions"]
        return tuple(WorkflowSuccessorRevision(item["binding"], int(item["revision"])) for item in revisions)

    @cached_property
    def commit(self) -> Commit | None:
        """Where and when it was committed; None for a command that only read."""
        commit = self._body["commit"]
        return (
            None
            if commit is None
            else Commit(commit["partition"], int(commit["sequence"]), native_time(commit["time"]))
        )

    def __repr__(self) -> str:
        return f"Answer({self.outcome}{', replayed' if self.replayed else ''})"


class QueryAnswer:
    """A query's answer, with the time and the commit sequence that it was read at; `raw` is the JSON as it came.

    `is_success` tells the answer of a `return` from that of a `one` that found no row.
    """

    def __init__(self, raw: bytes, body: dict[str, Any], is_success: bool, convert: Convert) -> None:
        self.raw = raw
        self.outcome: str = body["outcome"]
        self.is_success = is_success
        self._body = body
        self._convert = convert

    @cached_property
    def payload(self) -> Mapping[str, Any]:
        """The payload in native values, by name."""
        return self._convert(self._body["payload"])

    @cached_property
    def time(self) -> datetime:
        """The time that the query observed."""
        observed: datetime = native_time(self._body["as_of"]["time"])
        return observed

    @property
    def sequence(self) -> int:
        """The partition's newest commit that the query saw."""
        return int(self._body["as_of"]["sequence"])

    def convert(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """A payload of the same query, or some values of it, in native values."""
        return self._convert(payload)

    def __repr__(self) -> str:
        return f"QueryAnswer({self.outcome})"


class AnswerReader:
    """Turns the JSON of answers into native values, by the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.request_keys = {command.name: command.idempotency_key for command in plan.commands}
        self._commands: dict[str, dict[str, tuple[bool, Convert]]] = {}
        self._queries: dict[str, dict[str, tuple[bool, Convert]]] = {}
        self._events: dict[str, Convert] = {}

    @cached_property
    def _enums(self) -> dict[str, type[StrEnum]]:
        return enum_classes(self._plan.enum_variants())

    def command(self, name: str, raw: bytes) -> Answer | None:
        """The answer of that command; None if the plan knows no such outcome of it."""
        front = _front(raw)
        known = self._commands.get(name)
        if known is None:
            known = self._commands[name] = self._outcomes(name)
        found = known.get(front.outcome)
        return None if found is None else Answer(raw, front, *found)

    def known_command(self, name: str, raw: bytes) -> Answer:
        """The answer of that command, which the plan must know."""
        answer = self.command(name, raw)
        if answer is None:
            raise _too_old()
        return answer

    def query(self, name: str, raw: bytes) -> QueryAnswer | None:
        """The answer of that query; None if the plan knows no such outcome of it."""
        known = self._queries.get(name)
        if known is None:
            known = self._queries[name] = self._query_outcomes(name)
        body = msgspec.json.decode(raw)
        found = known.get(body["outcome"])
        return None if found is None else QueryAnswer(raw, body, *found)

    def known_query(self, name: str, raw: bytes) -> QueryAnswer:
        """The answer of that query, which the plan must know."""
        answer = self.query(name, raw)
        if answer is None:
            raise _too_old()
        return answer

    def event(self, name: str) -> Convert | None:
        """What makes native values of that event's fields; None if the plan does not know it."""
        convert = self._events.get(name)
        if convert is None:
            found = [event for event in self._plan.events if event.name == name]
            if not found:
                return None
            converters = {field.name: native(field.type, self._enums) for field in found[0].fields}
            convert = self._events[name] = lambda fields: _converted(converters, fields)
        return convert

    def known_event(self, name: str) -> Convert:
        """What makes native values of the fields of that event, which the plan must know."""
        convert = self.event(name)
        if convert is None:
            raise _too_old()
        return convert

    def _outcomes(self, name: str) -> dict[str, tuple[bool, Convert]]:
        outcomes = self._plan.command(name).outcomes if name in self.request_keys else ()
        return {outcome.name: (outcome.success, self._payload(outcome.payload)) for outcome in outcomes}

    def _row(self, entity_name: str, fields: tuple[str, ...]) -> Callable[[Any], dict[str, Any] | None]:
        types = self._plan.entity(entity_name).types
        converters = {name: native(types[name], self._enums) for name in fields}

        def convert(row: Any) -> dict[str, Any] | None:
            return None if row is None else _converted(converters, row)

        return convert

    def _payload(self, fields: tuple[PayloadField, ...]) -> Callable[[Any], dict[str, Any]]:
        converters: dict[str, Callable[[Any], Any]] = {}
        for part in fields:
            if part.entity:
                converters[part.name] = self._row(part.entity, (*self._plan.entity(part.entity).visible, "revision"))
            else:
                converters[part.name] = native(part.type, self._enums)
        return lambda payload: _converted(converters, payload)

    def _query_outcomes(self, name: str) -> dict[str, tuple[bool, Convert]]:
        outcomes: dict[str, tuple[bool, Convert]] = {}
        for query in self._plan.queries:
            if query.name == name:
                for missing in [binding.missing for binding in query.bindings if binding.missing is not None]:
                    outcomes[missing.name] = (False, self._query_payload(query, missing.payload))
                outcomes[query.outcome] = (True, self._query_payload(query, query.payload))
        return outcomes

    def _query_payload(self, query: QueryPlan, payload: tuple[QueryField, ...]) -> Convert:
        converters = {part.name: self._query_value(query, part) for part in payload}
        return lambda values: _converted(converters, values)

    def _query_value(self, query: QueryPlan, part: QueryField) -> Callable[[Any], Any]:
        if part.value is not None:
            return native(part.value.type, self._enums)
        if part.is_cursor:
            return lambda cursor: cursor
        binding = next(binding for binding in query.bindings if binding.name == part.binding)
        if binding.kind in ("one", "maybe", "many"):
            convert_row = self._row(binding.entity, part.fields)
            return _each(convert_row) if binding.kind == "many" else convert_row
        column = binding.by or binding.field
        if not column:
            return native(U64, self._enums)
        convert = native(self._plan.entity(binding.entity).types[column], self._enums)
        if binding.kind != "count":
            return convert
        return _each(lambda pair: {column: convert(pair[column]), "n": int(pair["n"])})


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda items: [convert(item) for item in items]


def _converted(converters: Mapping[str, Callable[[Any], Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the names that the plan knows; a contract that has grown may have more."""
    try:
        return {name: converters[name](value) for name, value in values.items() if name in converters}
    except (RiffError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise _too_old() from error


def _too_old() -> RiffError:
    return RiffError(
        "RDB-E-CLIENT-TOO-OLD", "the answer does not fit the contract that this client knows; connect again"
    )
