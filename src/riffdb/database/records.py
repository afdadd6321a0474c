"""What a command leaves behind: the answer's text, the changes, the commit record, the chain.

Pure: from a sealed evaluation to texts. The answer's text stops before `"replayed"`, so that a replay is the same bytes
but for that one word. Each change names the commit that wrote the row before, so that a history walks a chain and
needs no index.
"""

from hashlib import sha256

import msgspec

from riffdb.core.keys import partition_text
from riffdb.core.records import CommitRecord, Head
from riffdb.core.values import timestamp_text
from riffdb.database.admission import CommandRequest
from riffdb.database.codecs import RowCodec, json_text, object_text
from riffdb.engine import Change, Evaluation

EMPTY_CHAIN = bytes(32)

_encode = msgspec.json.Encoder().encode


def answer_text(request: CommandRequest, evaluation: Evaluation, sequence: int, time: int) -> str:
    """The answer of a committed command, up to its end, where `replayed` follows."""
    partition = json_text(partition_text(request.partition))
    commit = f'{{"partition":{partition},"sequence":"{sequence}","time":"{timestamp_text(time)}"}}'
    return _answer(request, evaluation, commit)


def unrecorded_text(request: CommandRequest, evaluation: Evaluation) -> str:
    """The answer of a command that only read and left no record."""
    return _answer(request, evaluation, "null")


def _answer(request: CommandRequest, evaluation: Evaluation, commit: str) -> str:
    """Names of a contract are identifiers, so they stand in JSON as they are."""
    payload = request.command.encode_payloads[evaluation.outcome](evaluation.payload)
    revisions = ",".join(
        [f'{{"binding":"{binding}","revision":"{revision}"}}' for binding, revision in evaluation.revisions]
    )
    return (
        f'{{"outcome":"{evaluation.outcome}","payload":{payload},"workflow_revisions":[{revisions}],"commit":{commit}'
    )


def whole_answer(text: str, replayed: bool) -> bytes:
    """The bytes that the caller gets."""
    return f'{text},"replayed":{"true" if replayed else "false"}}}'.encode()


def commit_record(
    request: CommandRequest, evaluation: Evaluation, head: Head, sequence: int, time: int
) -> CommitRecord:
    """The record that follows `head` in the request's partition."""
    caller, contract = request.caller, request.contract
    changes = [_change(request.command.rows[change.slot], change) for change in evaluation.changes]
    events = [
        f'{{"event":"{name}","fields":{contract.event_encoders[name](values)}}}' for name, values in evaluation.events
    ]
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
        changes=f"[{','.join(changes)}]",
        events=f"[{','.join(events)}]",
        chain=head.chain,
    )
    return chained(unchained)


def _change(rows: RowCodec, change: Change) -> str:
    before, after = change.before, change.after
    facts = [
        f'"entity":"{rows.entity}"',
        f'"key":{rows.key(change.key)}',
        '"before":null' if before is None else f'"before":"{before[rows.revision_position]}"',
        '"after":null' if after is None else f'"after":"{after[rows.revision_position]}"',
        '"previous":null' if before is None else f'"previous":"{before[rows.sequence_position]}"',
        f'"fields":{rows.changed(before, after)}',
    ]
    return object_text(facts)


def chained(unchained: CommitRecord) -> CommitRecord:
    """The record with its chain hash in the place of its predecessor's: SHA-256 over the record as it was given, a JSON
    list of its fields in order (bytes in base64), the predecessor's chain hash last."""
    return CommitRecord(*unchained[:-1], sha256(_encode(unchained)).digest())
