"""Secret parts of commits: secret inputs and secret fields stand apart from the record, which keeps a salted hash.

So they can be erased while the chain of records still holds, and no view that shows a record can show them. Whoever has
the record alone cannot try values against it, for the salt goes with the texts. Absent: erasing, and showing any of it.
"""

from hashlib import sha256
from typing import Any

import msgspec

from riffdb.core.records import CommitRecord, SecretPart
from riffdb.database.admission import CommandRequest
from riffdb.engine import Evaluation
from riffdb.storage.protocol import Transaction

SALT_BYTES = 32


async def secret_part(
    transaction: Transaction, request: CommandRequest, evaluation: Evaluation, sequence: int
) -> SecretPart:
    """What the record of this sequence keeps apart."""
    rows = request.command.rows
    told = [change for change in evaluation.changes if change.slot < len(rows)]  # of tombstones a record tells nothing
    changes = [rows[slot].secret_change(before, after) for slot, _, before, after in told]
    salt = await transaction.entropy(SALT_BYTES)
    return SecretPart(request.partition, sequence, salt, request.secret_input, f"[{','.join(changes)}]")


def secret_hash(part: SecretPart | None) -> str:
    """What the record says of its secret part."""
    return (
        "" if part is None else sha256(b"\0".join((part.salt, part.input.encode(), part.changes.encode()))).hexdigest()
    )


async def is_same_input(
    transaction: Transaction, request: CommandRequest, record: CommitRecord, pending: SecretPart | None
) -> bool:
    """Whether a request has the input that the record tells of; `pending` is the record's secret part if it is not
    stored yet. What became secret since, or is no more, counts all the same. What was erased cannot be told apart."""
    is_alike = record.input_hash == request.input_hash
    if not (record.secret_hash or request.command.inputs.has_secrets):
        return is_alike
    part = pending
    if part is None and record.secret_hash:
        part = (await transaction.secrets(record.partition, [record.sequence])).get(record.sequence)
    given = _members(request.canonical, request.secret_input)
    if part is None and record.secret_hash:
        return is_alike or all(given.get(name) == value for name, value in _members(record.input).items())
    return given == _members(record.input, "{}" if part is None else part.input)


def _members(*texts: str) -> dict[str, Any]:
    """The members of canonical JSON objects."""
    members: dict[str, Any] = {}
    for text in texts:
        members |= msgspec.json.decode(text)
    return members
