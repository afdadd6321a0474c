"""What a command leaves behind: the answer's text, the changes, the commit record, the chain.

Pure: from a sealed evaluation to texts. The answer's text stops before `"replayed"`, so that a replay is the same bytes
but for that one word. Each change names the commit that wrote the row before, so that a history walks a chain and
needs no index.
"""

from hashlib import sha256
from typing import Any

import msgspec

from riffdb.core.keys import partition_text
from riffdb.core.records import CommitRecord, Head
from riffdb.core.values import timestamp_text
from riffdb.database.admission import CommandRequest
from riffdb.database.codecs import RowCodec
from riffdb.engine import Change, Evaluation

EMPTY_CHAIN = bytes(32)

_encode = msgspec.json.Encoder().encode


def _json(value: Any) -> str:
    return _encode(value).decode()


def answer_text(request: CommandRequest, evaluation: Evaluation, sequence: int, time: int) -> str:
    """The answer of a committed command, up to its end, where `replayed` follows."""
    partition = partition_text(request.partition)
    return _answer(
        request,
        evaluation,
        {"partition": partition, "sequence": str(sequence), "time": timestamp_text(time)},
    )


def unrecorded_text(request: CommandRequest, evaluation: Evaluation) -> str:
    """The answer of a command that only read and left no record."""
    return _answer(request, evaluation, None)


def _answer(request: CommandRequest, evaluation: Evaluation, commit: dict[str, str] | None) -> str:
    answer = {
        "outcome": evaluation.outcome,
        "payload": request.command.encode_payloads[evaluation.outcome](evaluation.payload),
        "workflow_revisions": [
            {"binding": binding, "revision": str(revision)} for binding, revision in evaluation.revisions
        ],
        "commit": commit,
    }
    return _json(answer)[:-1]


def whole_answer(text: str, replayed: bool) -> bytes:
    """The bytes that the caller gets."""
    return f'{text},"replayed":{"true" if replayed else "false"}}}'.encode()


def commit_record(
    request: CommandRequest, evaluation: Evaluation, head: Head, sequence: int, time: int
) -> CommitRecord:
    """The record that follows `head` in the request's partition."""
    caller, contract = request.caller, request.contract
    changes = [_change(request.command.rows[change.slot], change) for change in evaluation.changes]
    events = [{"event": name, "fields": contract.event_encoders[name](values)} for name, values in evaluation.events]
    unchained = CommitRecord(
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
        chain=head.chain,
    )
    return chained(unchained)


def _change(rows: RowCodec, change: Change) -> dict[str, Any]:
    before, after = change.before, change.after
    return {
        "entity": rows.entity,
        "key": rows.key(change.key),
        "before": None if before is None else str(before[rows.revision_position]),
        "after": None if after is None else str(after[rows.revision_position]),
        "previous": None if before is None else str(before[rows.sequence_position]),
        "fields": rows.changed(before, after),
    }


def chained(unchained: CommitRecord) -> CommitRecord:
    """The record with its chain hash in the place of its predecessor's: SHA-256 over the record as it was given, a JSON
    list of its fields in order (bytes in base64), the predecessor's chain hash last."""
    return CommitRecord(*unchained[:-1], sha256(_encode(unchained)).digest())
