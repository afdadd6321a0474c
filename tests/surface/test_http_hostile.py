"""Whatever comes in, nothing of it ends as a fault of the server: random bytes, documents, addresses and headers."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffdb.plan.plan import to_json
from tests.surface.http_server import QUEUE_PLAN, HttpClient, HttpServer, Reply, new_work, running

ADDRESSES = (
    "/v1/commands/CreateWork",
    "/v1/commands/ClaimWork",
    "/v1/commands/CreateWork/resolve",
    "/v1/queries/DueWork",
    "/v1/admin/capabilities",
    "/v1/admin/deploy",
    "/v1/admin/capabilities/x/revoke",
    "/v1/admin/queries/DueWork/explain",
)
GOOD_BODY = json.dumps({"input": new_work()}).encode()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["2026-01-01T00:00:00Z", "00000000-0000-7000-8000-000000000000", "1", "WorkScheduler"])
)
names = st.sampled_from([*new_work(), "owner_id", "duration", "role", "operator", "plan", "limit"]) | st.text(
    max_size=9
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6), max_leaves=12
)
bodies = st.fixed_dictionaries({}, optional=dict.fromkeys(("input", "params", "plan", "role"), documents))
anything = st.binary(max_size=200) | (bodies | documents).map(lambda document: json.dumps(document).encode())
"""Surrogates among the texts are escaped by `json.dumps`, so lone ones are sent too."""


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with running() as here:
        yield here.server


@pytest.fixture(scope="module")
def client(server: HttpServer) -> Iterator[HttpClient]:
    with server.client() as client:
        yield client


def check(reply: Reply) -> None:
    """The reply is an answer or a problem that tells the caller's mistake."""
    assert reply.status < 500
    if reply.status >= 400:
        assert reply.json["status"] == reply.status
        assert reply.json["code"].startswith("RDB-E-")
    if reply.status == 400:
        assert isinstance(reply.json["path"], str)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(address=st.sampled_from(ADDRESSES), body=anything, by_chunks=st.booleans())
def test_any_body(client: HttpClient, address: str, body: bytes, by_chunks: bool) -> None:
    raw: Any = iter([body[:7], body[7:]]) if by_chunks and len(body) > 7 else body
    check(client.call("POST", address, raw=raw))


@settings(max_examples=300)
@given(position=st.integers(0, len(GOOD_BODY) - 1), cut=st.integers(0, 3), patch=st.binary(max_size=3))
def test_a_right_body_with_some_bytes_changed(client: HttpClient, position: int, cut: int, patch: bytes) -> None:
    body = GOOD_BODY[:position] + patch + GOOD_BODY[position + cut :]
    check(client.call("POST", "/v1/commands/CreateWork", raw=body))


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a document."""
    yield place
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, part in parts:
        yield from places(part, (*place, name))


PLAN = to_json(QUEUE_PLAN)
PLACES = [place for place in places(json.loads(PLAN)) if place]


@settings(max_examples=150)
@given(place=st.sampled_from(PLACES), replacement=scalars | st.just([]) | st.just({}) | st.just("delete"))
def test_a_plan_with_one_part_changed(client: HttpClient, place: tuple[Any, ...], replacement: object) -> None:
    plan = json.loads(PLAN)
    parent = plan
    for name in place[:-1]:
        parent = parent[name]
    if replacement == "delete":
        del parent[place[-1]]
    else:
        parent[place[-1]] = replacement
    check(client.call("POST", "/v1/admin/deploy", {"plan": plan}))


@settings(max_examples=200)
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
    start=st.sampled_from(["/", "/v1/", "/v1/commands/", "/v1/history/", "/v1/history/WorkItem/", "/v1/admin/"]),
    rest=st.text(max_size=30),
    safe=st.sampled_from(["", "/", "/?&="]),
)
def test_any_address(client: HttpClient, method: str, start: str, rest: str, safe: str) -> None:
    reply = client.call(method, start + quote(rest.encode(errors="surrogatepass"), safe=safe), raw=b"{}")
    assert reply.status < 500


@settings(max_examples=100)
@given(value=st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80))
def test_any_authorization(client: HttpClient, value: str) -> None:
    for header in (value, f"Bearer {value}", f"Bearer rdb_{value}"):
        reply = client.call("GET", "/v1/contract", token=None, headers={"Authorization": header})
        assert reply.status == 401
