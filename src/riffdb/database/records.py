"""What a command leaves behind: the answer's text, the changes, the commit record, the chain.

Pure: from a sealed evaluation to texts. The answer's text stops before `"replayed"`, so that a replay is the same bytes
but for that one word. Each change names the commit that wrote the row before, so that a history walks a chain and
needs no index.
"""

import json
from hashlib import sha256
from typing import Any

from riffdb.core.keys import partition_text
from riffdb.core.records import CommitRecord, Head
from riffdb.core.values import timestamp_text
from riffdb.database.admission import CommandRequest
from riffdb.database.contracts import Contract
from riffdb.engine import Change, Evaluation
from riffdb.plan.declarations import EntityPlan

EMPTY_CHAIN = bytes(32)

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def answer_text(request: CommandRequest, evaluation: Evaluation, sequence: int, time: int) -> str:
    """The answer of a committed command, up to its commit position."""
    position = {
        "partition": partition_text(request.partition),
        "sequence": str(sequence),
        "time": timestamp_text(time),
    }
    commit = _json(position)
    return _answer(request, evaluation, commit)


def unrecorded_text(request: CommandRequest, evaluation: Evaluation) -> str:
    """The answer of a command that only read and left no record."""
    return _answer(request, evaluation, "null")


def _answer(request: CommandRequest, evaluation: Evaluation, commit: str) -> str:
    payload = request.command.encode_payloads[evaluation.outcome](evaluation.payload)
    revisions = [{"binding": binding, "revision": str(revision)} for binding, revision in evaluation.revisions]
    return (
        f'{{"outcome":{_json(evaluation.outcome)},"payload":{_json(payload)},'
        f'"workflow_revisions":{_json(revisions)},"commit":{commit}'
    )


def whole_answer(text: str, replayed: bool) -> bytes:
    """The bytes that the caller gets."""
    return f'{text},"replayed":{"true" if replayed else "false"}}}'.encode()


def commit_record(
    request: CommandRequest, evaluation: Evaluation, head: Head, sequence: int, time: int
) -> CommitRecord:
    """The record that follows `head` in the request's partition."""
    caller, contract = request.caller, request.contract
    changes = [_change(contract, request.command.entities[change.slot], change) for change in evaluation.changes]
    events = [{"event": name, "fields": contract.event_encoders[name](values)} for name, values in evaluation.events]
    return chained(
        head,
        partition=request.partition,
        sequence=sequence,
        time=time,
        command=request.command.plan.name,
        key=None if request.identity is None else request.identity[2],
        input_hash=request.input_hash,
        input=request.canonical,
        outcome=evaluation.outcome,
        answer=answer_text(request, evaluation, sequence, time),
        principal=caller.principal,
        capability=caller.capability,
        role=caller.role,
        ingress=caller.ingress,
        contract_version=contract.plan.version,
        plan_hash=contract.hash,
        changes=_json(changes) if changes else "[]",
        events=_json(events) if events else "[]",
    )


def _change(contract: Contract, entity: EntityPlan, change: Change) -> dict[str, Any]:
    before, after = change.before, change.after
    revision, sequence = len(entity.columns), len(entity.columns) + 1
    encoders = contract.field_encoders[entity.name]
    key = contract.wire_key(entity, dict(zip(entity.storage_key, change.key, strict=True)))
    fields = {}
    if after is not None:
        fields = {
            name: encode(after[position])
            for name, position, encode in encoders
            if before is None or before[position] != after[position]
        }
    return {
        "entity": entity.name,
        "key": key,
        "before": None if before is None else str(before[revision]),
        "after": None if after is None else str(after[revision]),
        "previous": None if before is None else str(before[sequence]),
        "fields": fields,
    }


def chained(head: Head, **facts: Any) -> CommitRecord:
    """A commit record whose chain hash covers the head's chain and every other fact of the record."""
    form = [head.chain.hex(), *(fact.hex() if isinstance(fact, bytes) else fact for fact in facts.values())]
    return CommitRecord(**facts, chain=sha256(_json(form).encode()).digest())
