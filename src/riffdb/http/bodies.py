"""The body of a request: bounded reading, and JSON that can be trusted to be what it looks like.

Nothing is kept of a body beyond its limit; the rest is drained, within a bound of its own, so that the client hears the
answer instead of a broken connection. A document nests boundedly, names nothing twice and holds valid Unicode only.
"""

import json
import re
from collections.abc import AsyncIterator, Collection
from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.json_depth import check_depth, outside_strings
from riffdb.core.limits import BODY_DRAIN_BYTES_MAX, JSON_DEPTH_MAX
from riffdb.core.suggestions import did_you_mean
from riffdb.http.rsgi import Headers, HTTPProtocol, ProtocolClosed


class Body:
    """The body of one request as it arrives. `is_done`: nothing more of it will be read."""

    __slots__ = ("_chunks", "_is_awaited", "_length", "_protocol", "_taken", "is_done")

    def __init__(self, headers: Headers, protocol: HTTPProtocol) -> None:
        length = headers.get("content-length")
        self._length = None if length is None else int(length)
        self._protocol = protocol
        self._chunks: AsyncIterator[bytes] | None = None
        self._taken = 0
        self._is_awaited = "expect" in headers
        self.is_done = length == "0" or (length is None and "transfer-encoding" not in headers)

    async def read(self, bytes_max: int) -> bytes:
        """All of it; `RDB-E-TOO-LARGE` as soon as it is known to be larger than `bytes_max`."""
        if self.is_done:
            return b""
        if self._length is None:
            return await self._collect(bytes_max)
        if self._length > bytes_max:
            raise _too_large(bytes_max)
        self.is_done = True
        try:
            return await self._protocol()
        except ProtocolClosed:
            raise RiffError("RDB-E-INPUT", "the body ended before its announced length", path="body") from None

    async def drain(self) -> None:
        """Read what is left and keep nothing, if it is within the bound; else leave it, and the connection ends."""
        is_too_long = self._length is not None and self._length > BODY_DRAIN_BYTES_MAX
        is_not_sent_yet = self._is_awaited and self._chunks is None
        if not (is_too_long or is_not_sent_yet):
            while not self.is_done and self._taken <= BODY_DRAIN_BYTES_MAX:
                await self._next()
        self.is_done = True

    async def _collect(self, bytes_max: int) -> bytes:
        chunks = []
        while chunk := await self._next():
            if self._taken > bytes_max:
                raise _too_large(bytes_max)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _next(self) -> bytes:
        """The next part; empty at the end, which is also what a broken connection gives."""
        if self._chunks is None:
            self._chunks = aiter(self._protocol)
        try:
            chunk = await anext(self._chunks)  # with a default, `anext` would await what granian cannot cancel
        except StopAsyncIteration:
            chunk = b""
        self._taken += len(chunk)
        self.is_done = not chunk
        return chunk


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that the body is; `RDB-E-INPUT` for anything else."""
    document = decoded(body, Any, JSON_DEPTH_MAX)
    if type(document) is not dict:
        raise _refused("must be a JSON object")
    _check_names(body, document)
    return document


def decoded(body: bytes, wanted: Any, depth_max: int) -> Any:
    """The body as a value of the wanted type; `RDB-E-INPUT` with the path of what is not as it must be."""
    try:
        check_depth(body, depth_max)
        return msgspec.json.decode(body, type=wanted)
    except msgspec.ValidationError as error:
        place = re.search(r"`\$\.([A-Za-z]\S*)`$", str(error))
        path = "body" if place is None else place[1]
        raise RiffError("RDB-E-INPUT", f"{path}: holds what is not read here", path=path) from None
    except ValueError as error:
        reason = str(error)
        raise _refused(f"must be JSON in UTF-8 ({reason[0].lower()}{reason[1:]})") from None


def only_member(body: bytes, name: str) -> dict[str, Any]:
    """The object that stands under `name`, which is all that the body may hold."""
    document = json_object(body)
    check_members(document, (name,))
    if name not in document:
        raise input_error(name, "is missing; the body must be an object that holds it")
    value = document[name]
    if type(value) is not dict:
        raise input_error(name, "must be a JSON object")
    return value


def check_members(document: dict[str, Any], known: Collection[str]) -> None:
    """Refuse a member that is none of the known ones."""
    for name in document:
        if name not in known:
            raise input_error(name, f"is no member of this body{did_you_mean(name, known)}")


def _check_names(body: bytes, document: dict[str, Any]) -> None:
    """Refuse an object that names a member twice: as many colons outside strings as members, or one got lost."""
    names = _count_names(document)
    if body.count(b":") == names or outside_strings(body).count(b":") == names:
        return
    json.loads(body, object_pairs_hook=_refuse_twice)
    raise AssertionError("a body that lost a member names one twice")


def _count_names(value: Any) -> int:
    if type(value) is dict:
        return len(value) + sum([_count_names(part) for part in value.values() if type(part) in (dict, list)])
    return sum([_count_names(part) for part in value if type(part) in (dict, list)])


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            raise input_error(name, "is given twice")
        seen.add(name)


def _refused(reason: str) -> RiffError:
    return RiffError("RDB-E-INPUT", f"the body {reason}", path="body")


def _too_large(bytes_max: int) -> RiffError:
    return RiffError("RDB-E-TOO-LARGE", f"the body is larger than {bytes_max} bytes; send less at once")
