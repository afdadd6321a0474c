"""What a command leaves behind: the answer's text, the changes, the commit record, the chain.

Pure: from a sealed evaluation to texts. The answer's text stops before `"replayed"`, so that a replay is the same bytes
but for that one word. Each change names the commit that wrote the row before, so that a history walks a chain and
needs no index.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from riffdb.core.keys import partition_text
from riffdb.core.layout import TOMBSTONE_FENCE, TOMBSTONE_SEQUENCE
from riffdb.core.records import CommitRecord, Head
from riffdb.core.values import timestamp_text
from riffdb.database.admission import CommandRequest
from riffdb.database.codecs import json_text
from riffdb.engine import Evaluation

EMPTY_CHAIN = bytes(32)


def unrecorded_text(request: CommandRequest, evaluation: Evaluation) -> str:
    """The answer of a command that only read and left no record."""
    return _answer(request, evaluation, "null")


def _answer(request: CommandRequest, evaluation: Evaluation, commit: str) -> str:
    """An answer up to its end, where `replayed` follows. Names of a contract are identifiers, so they stand in JSON as
    they are."""
    outcome, values, _, _, revisions = evaluation
    payload = request.command.encode_payloads[outcome](values)
    told = ",".join([f'{{"binding":"{binding}","revision":"{revision}"}}' for binding, revision in revisions])
    return f'{{"outcome":"{outcome}","payload":{payload},"workflow_revisions":[{told}],"commit":{commit}'


@lru_cache(1_024)
def _partition_json(partition: bytes) -> str:
    return json_text(partition_text(partition))


def whole_answer(text: str, replayed: bool) -> bytes:
    """The bytes that the caller gets."""
    return f'{text},"replayed":{"true" if replayed else "false"}}}'.encode()


def commit_record(
    request: CommandRequest,
    evaluation: Evaluation,
    head: Head | CommitRecord,
    sequence: int,
    time: int,
    secret_hash: str,
) -> CommitRecord:
    """The record that follows `head` in the request's partition; the hash is that of what is kept apart from it."""
    caller, contract, rows = request.caller, request.contract, request.command.rows
    partition, identity = request.partition, request.identity
    commit = f'{{"partition":{_partition_json(partition)},"sequence":"{sequence}","time":"{timestamp_text(time)}"}}'
    answer = _answer(request, evaluation, commit)
    changes = []
    ended = None
    for slot, key, before, after in evaluation.changes:
        if slot < len(rows):
            changes.append(rows[slot].change(key, before, after, ended))
            ended = None
        elif before is not None:  # a tombstone, which stands right before the row that goes on from it
            ended = before[TOMBSTONE_SEQUENCE]
        elif after is not None and (fence := after[TOMBSTONE_FENCE]) is not None:  # right behind its deletion
            changes[-1] = f'{changes[-1][:-1]},"fence":"{fence}"}}'
    events = [
        f'{{"event":"{name}","fields":{contract.event_encoders[name](values)}}}' for name, values in evaluation.events
    ]
    return chained(
        (
            partition,
            sequence,
            time,
            request.command.plan.name,
            None if identity is None else identity[2],
            request.input_hash,
            request.canonical,
            request.sealed,
            secret_hash,
            evaluation.outcome,
            answer,
            caller.principal,
            caller.capability,
            caller.role,
            caller.ingress,
            contract.plan.version,
            contract.hash,
            f"[{','.join(changes)}]",
            f"[{','.join(events)}]",
            head.chain,
        )
    )


def chained(unchained: tuple[Any, ...]) -> CommitRecord:
    """The record of these fields with its chain hash in the place of its predecessor's.

    It is the SHA-256 of the fields in order, the predecessor's chain hash last, with a NUL between them, which stands
    in no text: bytes in hexadecimal, numbers in decimal, a missing key as nothing (no key is empty).
    """
    (
        partition,
        sequence,
        time,
        command,
        key,
        input_hash,
        inputs,
        sealed,
        secret_hash,
        outcome,
        answer,
        principal,
        capability,
        role,
        ingress,
        version,
        plan_hash,
        changes,
        events,
        chain,
    ) = unchained
    text = (
        f"{partition.hex()}\0{sequence}\0{time}\0{command}\0{key or ''}\0{input_hash.hex()}\0{inputs}\0{sealed}"
        f"\0{secret_hash}\0{outcome}\0{answer}\0{principal}\0{capability}\0{role}\0{ingress}\0{version}"
        f"\0{plan_hash.hex()}\0{changes}\0{events}\0{chain.hex()}"
    )
    # `tuple.__new__` takes a fraction of the time of a named tuple's own constructor.
    return tuple.__new__(CommitRecord, (*unchained[:-1], sha256(text.encode()).digest()))
