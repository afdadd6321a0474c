"""Answers as a Python caller holds them: native values, quiet in `repr`.

The JSON of an answer is the same from every edge; with the plan, its strings become UUIDs, times, integers and enums.
`repr` tells the outcome and never a value, since payloads may hold lease owners and tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.types import TIMESTAMP
from riffdb.core.values import enum_classes, native
from riffdb.plan import Plan
from riffdb.plan.commands import PayloadField

_time = native(TIMESTAMP, {})


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


class Answer:
    """A command's answer, made of its JSON when it is asked for.

    `is_success` tells a `return` from a declared failure; `raw` is the JSON as it came.
    """

    def __init__(self, raw: bytes, body: dict[str, Any], is_success: bool, convert: Convert) -> None:
        self.raw = raw
        self.outcome: str = body["outcome"]
        self.is_success = is_success
        self.replayed: bool = body["replayed"]
        self._body = body
        self._convert = convert

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
        return None if commit is None else Commit(commit["partition"], int(commit["sequence"]), _time(commit["time"]))

    def __repr__(self) -> str:
        return f"Answer({self.outcome}{', replayed' if self.replayed else ''})"


class QueryAnswer:
    """A query's answer, with the time and the commit sequence that it was read at; `raw` is the JSON as it came."""

    def __init__(self, raw: bytes, body: dict[str, Any], convert: Convert) -> None:
        self.raw = raw
        self.outcome: str = body["outcome"]
        self._body = body
        self._convert = convert

    @cached_property
    def payload(self) -> Mapping[str, Any]:
        """The payload in native values, by name."""
        return self._convert(self._body["payload"])

    @cached_property
    def time(self) -> datetime:
        """The time that the query observed."""
        observed: datetime = _time(self._body["as_of"]["time"])
        return observed

    @property
    def sequence(self) -> int:
        """The partition's newest commit that the query saw."""
        return int(self._body["as_of"]["sequence"])

    def __repr__(self) -> str:
        return f"QueryAnswer({self.outcome})"


class AnswerReader:
    """Turns the JSON of answers into native values, by the plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.request_keys = {command.name: command.idempotency_key for command in plan.commands}
        self._commands: dict[str, dict[str, tuple[bool, Convert]]] = {}
        self._queries: dict[str, Convert] = {}

    @cached_property
    def _enums(self) -> dict[str, type[StrEnum]]:
        return enum_classes(self._plan.enum_variants())

    def command(self, name: str, raw: bytes) -> Answer:
        """The answer of that command; `RDB-E-UNAVAILABLE` if the plan does not know its outcome."""
        body = msgspec.json.decode(raw)
        known = self._commands.get(name)
        if known is None:
            outcomes = self._plan.command(name).outcomes
            known = self._commands[name] = {
                outcome.name: (outcome.success, self._payload(outcome.payload)) for outcome in outcomes
            }
        if body["outcome"] not in known:
            raise RiffError("RDB-E-UNAVAILABLE", "the server's contract has changed; connect again")
        return Answer(raw, body, *known[body["outcome"]])

    def query(self, name: str, raw: bytes) -> QueryAnswer:
        """The answer of that query."""
        convert = self._queries.get(name)
        if convert is None:
            convert = self._queries[name] = self._query_payload(name)
        return QueryAnswer(raw, msgspec.json.decode(raw), convert)

    def _row(self, entity_name: str, fields: tuple[str, ...]) -> Callable[[Any], dict[str, Any] | None]:
        types = self._plan.entity(entity_name).types
        converters = {name: native(types[name], self._enums) for name in fields}

        def convert(row: Any) -> dict[str, Any] | None:
            return None if row is None else {name: converters[name](value) for name, value in row.items()}

        return convert

    def _payload(self, fields: tuple[PayloadField, ...]) -> Callable[[Any], dict[str, Any]]:
        converters: dict[str, Callable[[Any], Any]] = {}
        for part in fields:
            if part.entity:
                converters[part.name] = self._row(part.entity, (*self._plan.entity(part.entity).visible, "revision"))
            else:
                converters[part.name] = native(part.type, self._enums)
        return lambda payload: {name: converters[name](value) for name, value in payload.items()}

    def _query_payload(self, name: str) -> Callable[[Any], dict[str, Any]]:
        plan = self._plan.query(name)
        entities = {binding.name: binding.entity for binding in plan.bindings}
        converters = {part.name: self._row(entities[part.binding], part.fields) for part in plan.payload}
        return lambda payload: {part: [converters[part](item) for item in items] for part, items in payload.items()}
