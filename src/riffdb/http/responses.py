"""What goes back over the wire: answers as they are, errors as RFC 9457 problems.

The status of an error is that of the table of codes; nothing here chooses one. Every response forbids caching and
sniffing, and none tells the server's version.
"""

import json
from dataclasses import dataclass
from typing import Any

from riffdb.core.errors import RiffError

Headers = list[tuple[str, str]]


def _headers(content_type: str) -> Headers:
    return [
        ("content-type", content_type),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("server", "riffdb"),
    ]


_JSON = _headers("application/json")
_LINES = _headers("application/x-ndjson")
_PROBLEM = _headers("application/problem+json")
EVENTS = [*_headers("text/event-stream"), ("x-accel-buffering", "no")]
"""The headers of an answer that lasts; the last one asks a proxy to hold nothing back."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response. `code` is the error's, empty for an answer."""

    status: int
    headers: Headers
    body: bytes
    code: str = ""


def answer(body: bytes, status: int = 200) -> Response:
    """JSON bytes, passed on as they are."""
    return Response(status, _JSON, body)


def json_answer(value: object, status: int = 200) -> Response:
    """A value as JSON."""
    return answer(_encode(value), status)


def lines_answer(values: list[dict[str, Any]]) -> Response:
    """One JSON document a line."""
    return Response(200, _LINES, b"".join(_encode(value) + b"\n" for value in values))


def problem(error: RiffError) -> Response:
    """The problem that tells of an error, with the headers that its status asks for."""
    status = error.facts.status
    headers = list(_PROBLEM)
    if status == 401:
        headers.append(("www-authenticate", "Bearer"))
    elif status == 405:
        headers.append(("allow", str(error.detail["allow"])))
    elif status in (429, 503):
        headers.append(("retry-after", str(error.detail.get("retry_after", 1))))
    return Response(status, headers, problem_json(error), error.code)


def problem_json(error: RiffError) -> bytes:
    """The problem document alone."""
    return _encode(error.to_json())


def _encode(value: object) -> bytes:
    # ASCII with escapes: a name that a caller sent and gets back as a path must never fail to encode.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
