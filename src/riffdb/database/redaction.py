"""What no view of the log shows: secrets, and the owner and fencing token of a lease, wherever a record has them.

They are found by the contract that a record was written under: secret inputs and fields, operands of lease operations,
fields of a lease, and values of events that are computed from one of these. An owner is also hidden wherever else the
same text stands in the record. Revisions are no secret. Absent: what is shown of a record.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

from riffdb.database.contracts import Contract
from riffdb.plan.commands import BindStep, CommandPlan, EmitStep, LeaseStep, ReconstituteStep
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import Expression, Field, Input, Item, leaves
from riffdb.plan.parts import parts_of

REDACTED = "[redacted]"
_TELLING_LENGTH = 8
"""Shorter texts are no identity of anybody, and would be found everywhere."""


def hidden_fields(contract: Contract, entity: EntityPlan) -> frozenset[str]:
    """Fields whose values no view shows: secrets, and the owner and fencing token of a lease."""
    hidden = {part.name for part in entity.fields if part.secret}
    workflow = contract.plan.workflow_of(entity.name)
    if workflow is not None and workflow.lease is not None:
        hidden |= {workflow.lease.owner, workflow.lease.fencing_token}
    return frozenset(hidden)


@lru_cache(1_024)
def hidden_inputs(contract: Contract, command: str) -> frozenset[str]:
    """Inputs of a command that no view shows, by name: secrets, and operands of lease operations."""
    return frozenset(_hidden_inputs(contract, contract.plan.command(command)))


def redacted_change(contract: Contract, change: dict[str, Any]) -> dict[str, Any]:
    """A change of a record as it is shown, secret fields that changed among its fields."""
    hidden = hidden_fields(contract, contract.plan.entity(change["entity"]))
    fields = change["fields"] | dict.fromkeys(change.get("secret", ()))
    return {
        "entity": change["entity"],
        "key": change["key"],
        "before": change["before"],
        "after": change["after"],
        "fields": {name: REDACTED if name in hidden else value for name, value in fields.items()},
    }


def redacted_input(contract: Contract, command: str, given: dict[str, Any]) -> dict[str, Any]:
    """The input of a record as it is shown; a secret one is named and no more."""
    plan = contract.plan.command(command)
    hidden = hidden_inputs(contract, command)
    secrets = {part.name: REDACTED for part in plan.inputs if part.secret}
    shown: dict[str, Any] = {}
    for name, value in given.items():
        if name in hidden:
            shown[name] = REDACTED
        elif isinstance(value, list):
            shown[name] = [_without(item, hidden) for item in value]
        else:
            shown[name] = _without(value, hidden)
    return shown | secrets


def redacted_event(contract: Contract, command: str, event: dict[str, Any]) -> dict[str, Any]:
    """An event of a record as it is shown."""
    hidden = _hidden_of_events(contract, command).get(event["event"], frozenset())
    fields = {name: REDACTED if name in hidden else value for name, value in event["fields"].items()}
    return {"event": event["event"], "fields": fields}


def owners_in(contract: Contract, command: str, given: dict[str, Any], changes: Collection[dict[str, Any]]) -> set[str]:
    """The texts in a record that name the owner of a lease."""
    found = {given[name] for name in hidden_inputs(contract, command) if isinstance(given.get(name), str)}
    for change in changes:
        hidden = hidden_fields(contract, contract.plan.entity(change["entity"]))
        found |= {value for name, value in change["fields"].items() if name in hidden and isinstance(value, str)}
    return {text for text in found if len(text) >= _TELLING_LENGTH}


def without_texts(value: Any, texts: Collection[str]) -> Any:
    """A JSON value in which none of the texts stands as a value."""
    if isinstance(value, dict):
        return {name: without_texts(inner, texts) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_texts(inner, texts) for inner in value]
    return REDACTED if isinstance(value, str) and value in texts else value


def _without(value: Any, hidden: frozenset[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: REDACTED if name in hidden else inner for name, inner in value.items()}


def _hidden_inputs(contract: Contract, plan: CommandPlan) -> Iterator[str]:
    for part in plan.inputs:
        if part.secret:
            yield part.name
    for step in parts_of(plan.steps):
        if isinstance(step, LeaseStep):
            for operand in (step.owner, step.fencing_token):
                if operand is not None:
                    yield from (leaf.name for leaf in leaves(operand) if isinstance(leaf, Input | Item))
        elif isinstance(step, ReconstituteStep):
            yield from hidden_fields(contract, contract.plan.entity(step.entity))


@lru_cache(1_024)
def _hidden_of_events(contract: Contract, command: str) -> dict[str, frozenset[str]]:
    """By event, the fields that are computed from what is hidden."""
    plan = contract.plan.command(command)
    entities = {step.name: step.entity for step in parts_of(plan.steps) if isinstance(step, BindStep)}
    fields = {name: hidden_fields(contract, contract.plan.entity(entity)) for name, entity in entities.items()}
    inputs = hidden_inputs(contract, command)

    def is_hidden(expression: Expression) -> bool:
        return any(
            (isinstance(leaf, Input | Item) and leaf.name in inputs)
            or (isinstance(leaf, Field) and leaf.name in fields.get(leaf.binding, ()))
            for leaf in leaves(expression)
        )

    found: dict[str, frozenset[str]] = {}
    for step in parts_of(plan.steps):
        if isinstance(step, EmitStep):
            names = frozenset(part.name for part in step.payload if is_hidden(part.value))
            found[step.event] = found.get(step.event, frozenset()) | names
    return found
