"""Cursors: a place in the order of a query's rows, as a text that only this database makes and only this query takes.

A cursor holds the values of the columns that the rows are ordered by, signed together with the query's own hash, the
parameters and the incarnation, so that nobody can make one up and none is taken for another. It names a place, not a
row: it goes on where the row stood, whether it is there still or not. Absent: reading behind it.
"""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import CURSOR_TEXT_MAX
from riffdb.core.types import Type
from riffdb.core.values import decoder

_FORMAT = 1
_INCARNATION_BYTES = 16
_SIGNATURE_BYTES = 16
_HEAD_BYTES = 1 + _INCARNATION_BYTES

_bytes_of = decoder(Type("bytes", bound=CURSOR_TEXT_MAX), {})


@dataclass(frozen=True, slots=True)
class Signer:
    """What makes and checks the cursors of one database."""

    secret: bytes
    incarnation: str

    def cursor(self, context: bytes, position: Sequence[Any]) -> str:
        """The cursor of a place, for whoever asks the same again."""
        body = bytes([_FORMAT]) + UUID(self.incarnation).bytes + _packed(position)
        return urlsafe_b64encode(body + self._signature(context, body)).decode().rstrip("=")

    def position(self, context: bytes, text: str, path: str) -> tuple[Any, ...]:
        """The place of a cursor; `RDB-E-INPUT` with the path unless it was made here for the same context,
        `RDB-E-INCARNATION` if it was, in an earlier history of this database."""
        body, signature = _taken_apart(text, path)
        if not hmac.compare_digest(signature, self._signature(context, body)):
            raise input_error(
                path,
                "is no cursor of this query with these parameters; a cursor is given back as it came, with the "
                "parameters that it came with (`take` aside), or left out to begin anew",
            )
        if body[1:_HEAD_BYTES] != UUID(self.incarnation).bytes:
            raise RiffError(
                "RDB-E-INCARNATION",
                f"{path}: the cursor is of another history of this database, from before a restore; leave it out to "
                "begin anew",
                path=path,
            )
        return _unpacked(body[_HEAD_BYTES:])

    def _signature(self, context: bytes, body: bytes) -> bytes:
        signed = len(context).to_bytes(4, "big") + context + body
        return blake2b(signed, key=self.secret, digest_size=_SIGNATURE_BYTES, person=b"riffdb cursor").digest()


def context_of(query_hash: bytes, binding: str, order: Sequence[tuple[str, bool]], params: str) -> bytes:
    """What a cursor is bound to beside the incarnation: the query as it is declared, the binding, the columns that make
    the place, and the canonical parameters that choose the rows."""
    return json.dumps([query_hash.hex(), binding, list(order), params]).encode()


def _taken_apart(text: str, path: str) -> tuple[bytes, bytes]:
    try:
        content: bytes = _bytes_of(text, path)
    except RiffError:
        content = b""
    if len(content) <= _HEAD_BYTES + _SIGNATURE_BYTES or content[0] != _FORMAT:
        raise input_error(path, "is no cursor; give one back as an answer had it, or leave it out")
    return content[:-_SIGNATURE_BYTES], content[-_SIGNATURE_BYTES:]


def _packed(position: Sequence[Any]) -> bytes:
    """The values, a whole number as its digits, since a decimal has more of them than the packing takes."""
    return msgspec.msgpack.encode([str(value) if type(value) is int else [value] for value in position])


def _unpacked(packed: bytes) -> tuple[Any, ...]:
    values = msgspec.msgpack.decode(packed)
    return tuple(int(value) if isinstance(value, str) else value[0] for value in values)
