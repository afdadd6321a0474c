"""What the server refuses, with which status and which problem; and that a connection is of use afterwards."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from riffdb.core.codes import CODES
from riffdb.core.limits import BODY_BYTES_MAX, BODY_DRAIN_BYTES_MAX
from riffdb.plan.plan import to_json
from riffdb.storage.memory import MemoryStore
from tests.surface.http_server import QUEUE_PLAN, UNKNOWN_TOKEN, HttpClient, HttpServer, Reply, new_work, running

COMMAND = "/v1/commands/CreateWork"


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with running() as here:
        yield here.server


@pytest.fixture
def client(server: HttpServer) -> Iterator[HttpClient]:
    with server.client() as client:
        yield client


def problem(reply: Reply, code: str) -> Any:
    """The problem that the reply is, which must be of that code and of the code's status."""
    found = reply.json
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.status, found["status"], found["code"]) == (CODES[code].status, CODES[code].status, code)
    assert found["type"] == f"urn:riffdb:error:{code}"
    assert found["title"] and found["detail"]
    return found


def test_no_token_is_as_good_as_a_wrong_one(server: HttpServer, client: HttpClient) -> None:
    gone = server.token("WorkScheduler")
    identity = server.run(server.database.authenticate(gone, "test")).capability
    client.call("POST", f"/v1/admin/capabilities/{identity}/revoke")
    for token in (None, UNKNOWN_TOKEN, gone, "", "rdb_", "rdb_x", UNKNOWN_TOKEN[:-1] + "0", "not a token", "x" * 5000):
        reply = client.call("POST", COMMAND, {"input": new_work()}, token=token or None)
        problem(reply, "RDB-E-UNAUTHENTICATED")
        assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["", "Bearer", "Basic {}", "Bearer  ", "{}", "Bearer\t{}", "Bearer {}, Bearer {}"])
def test_only_a_bearer_header_is_read(server: HttpServer, client: HttpClient, value: str) -> None:
    headers = {"Authorization": value.replace("{}", server.operator)}
    problem(client.call("GET", "/v1/contract", token=None, headers=headers), "RDB-E-UNAUTHENTICATED")


def test_the_scheme_is_written_in_any_case(server: HttpServer, client: HttpClient) -> None:
    for scheme in ("bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {server.operator}"}
        assert client.call("GET", "/v1/contract", token=None, headers=headers).status == 200


def test_two_tokens_are_refused(server: HttpServer) -> None:
    lines = ["GET /v1/contract HTTP/1.1", "Host: here", *[f"Authorization: Bearer {server.operator}"] * 2]
    assert exchange(server, lines).startswith(b"HTTP/1.1 401 ")


def test_a_token_in_the_url_is_not_looked_at(server: HttpServer, client: HttpClient) -> None:
    for name in ("token", "access_token", "authorization"):
        reply = client.call("GET", f"/v1/contract?{name}={server.operator}", token=None)
        problem(reply, "RDB-E-UNAUTHENTICATED")


def test_an_expired_token_is_refused() -> None:
    clock = [1_800_000_000_000_000]
    with running(MemoryStore(lambda: clock[0])) as here:
        token = here.server.token("WorkScheduler", expires_seconds=60)
        clock[0] += 61_000_000
        with here.server.client(token) as client:
            found = problem(client.call("GET", "/v1/contract"), "RDB-E-UNAUTHENTICATED")
    assert "expired" in found["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"input":{}}', b"x" * (BODY_BYTES_MAX + 1)])
def test_a_name_that_is_not_granted_and_one_that_is_not_there_answer_alike(
    server: HttpServer, client: HttpClient, body: bytes
) -> None:
    for path in (COMMAND, f"{COMMAND}/resolve"):
        replies = [
            client.call("POST", address, raw=body, token=server.worker)
            for address in (path, path.replace("CreateWork", "NoSuchName"))
        ]
        assert problem(replies[0], "RDB-E-FORBIDDEN") == problem(replies[1], "RDB-E-FORBIDDEN")
    problem(client.call("POST", "/v1/queries/NoSuchName", raw=body, token=server.worker), "RDB-E-FORBIDDEN")


def test_an_operator_is_told_that_a_name_is_not_there(client: HttpClient) -> None:
    assert "`CreateWork`" in problem(client.command("CreateWorc", {}), "RDB-E-NOT-FOUND")["detail"]
    problem(client.call("POST", "/v1/queries/X", {"params": {}}), "RDB-E-NOT-FOUND")
    problem(client.call("POST", "/v1/commands/X/resolve", {"input": {}}), "RDB-E-NOT-FOUND")
    problem(client.call("GET", "/v1/history/X/1"), "RDB-E-NOT-FOUND")
    problem(client.call("GET", f"/v1/history/WorkItem/{uuid4()}/{uuid4()}"), "RDB-E-NOT-FOUND")
    problem(client.call("POST", f"/v1/admin/capabilities/{uuid4()}/revoke"), "RDB-E-NOT-FOUND")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/history/WorkItem/1/2"),
        ("GET", "/v1/history/NoSuchEntity/1"),
        ("POST", "/v1/admin/deploy"),
        ("POST", "/v1/admin/capabilities"),
        ("POST", f"/v1/admin/capabilities/{uuid4()}/revoke"),
    ],
)
def test_operators_routes_are_for_operators(server: HttpServer, client: HttpClient, method: str, path: str) -> None:
    problem(client.call(method, path, raw=b"{", token=server.worker), "RDB-E-FORBIDDEN")


def test_the_same_key_with_another_input_is_refused(client: HttpClient) -> None:
    work = new_work()
    client.command("CreateWork", work)
    found = problem(client.command("CreateWork", work | {"work_id": str(uuid4())}), "RDB-E-IDEMPOTENCY-REUSED")
    assert found["key"] == work["request_key"]
    assert found["retryable"] is False


def test_a_key_that_is_not_recorded_is_absent(client: HttpClient) -> None:
    reply = client.call(
        "POST", f"{COMMAND}/resolve", {"input": {"request_key": "never", "organization_id": str(uuid4())}}
    )
    problem(reply, "RDB-E-ABSENT")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"work_id": "not-a-uuid"}, "work_id"),
        ({"work_id": None}, "work_id"),
        ({"work_id": [1]}, "work_id"),
        ({"request_key": ""}, "request_key"),
        ({"request_key": "x" * 129}, "request_key"),
        ({"request_key": "\0"}, "request_key"),
        ({"due_at": "yesterday"}, "due_at"),
        ({"due_at": "2026-13-01T00:00:00Z"}, "due_at"),
        ({"due_at": 1e300}, "due_at"),
        ({"due_att": "2026-01-01T00:00:00Z"}, "due_att"),
        ({"": 1}, ""),
        ({"x" * 10_000: 1}, "x" * 10_000),
    ],
)
def test_a_wrong_value_gives_its_path(client: HttpClient, changes: dict[str, object], path: str) -> None:
    found = problem(client.command("CreateWork", new_work(**changes)), "RDB-E-INPUT")
    assert found["path"] == path
    assert "not-a-uuid" not in found["detail"]


def test_a_missing_value_gives_its_path(client: HttpClient) -> None:
    work = new_work()
    del work["due_at"]
    assert problem(client.command("CreateWork", work), "RDB-E-INPUT")["path"] == "due_at"
    reply = client.call("POST", "/v1/queries/DueWork", {"params": {"limit": 101, "organization_id": str(uuid4())}})
    assert problem(reply, "RDB-E-INPUT")["path"] == "limit"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b'"input"', "body"),
        (b"null", "body"),
        (b'{"input":{}} x', "body"),
        (b'{"input":{"a":NaN}}', "body"),
        (b'{"input":{"a":1e999}}', "body"),
        (b'{"input":{"a":' + b"1" * 5000 + b"}}", "body"),
        (b'{"input":{"a":"\xff"}}', "body"),
        (b'{"input":{"a":"\\ud800"}}', "body"),
        (b'{"input":{"\\ud800":1}}', "body"),
        (b'\xef\xbb\xbf{"input":{}}', "body"),
        ('{"input":{}}'.encode("utf-16"), "body"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "body"),
        (b"[" * 5000, "body"),
        (b'{"input":' * 5000, "body"),
        (b'{"input":{"a":' + b"[" * 63 + b"]" * 63 + b"}}", "body"),
        (b"{}", "input"),
        (b'{"input":[]}', "input"),
        (b'{"input":null}', "input"),
        (b'{"input":{},"inptu":{}}', "inptu"),
        (b'{"input":{},"input":{}}', "input"),
        (b'{"input":{"due_at":1,"due_at":1}}', "due_at"),
        (b'{"input":{"due_at" :"1:2","due_at": "\\":"}}', "due_at"),
        (b'{"input":{"a":[[{"b":1,"b":2}]]}}', "b"),
        (b'{"input":{"a":' + b"[" * 62 + b"]" * 62 + b"}}", "a"),
    ],
    ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else value,
)
def test_a_body_that_is_not_what_it_must_be(client: HttpClient, body: bytes, path: str) -> None:
    assert problem(client.call("POST", COMMAND, raw=body), "RDB-E-INPUT")["path"] == path
    assert client.command("CreateWork", new_work()).status == 200


def test_a_long_string_is_not_taken_for_brackets(client: HttpClient) -> None:
    found = problem(client.command("CreateWork", new_work(request_key="[" * 100 + '"\\{' * 10)), "RDB-E-INPUT")
    assert found["path"] == "request_key"
    assert client.command("CreateWork", new_work(request_key='["\\{' * 30)).status == 200


def test_colons_in_values_do_not_look_like_members(client: HttpClient) -> None:
    assert client.command("CreateWork", new_work(request_key='a:b"c":\\"d":')).status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=latin-1", "", "nonsense"])
def test_the_content_type_does_not_matter(client: HttpClient, content_type: str) -> None:
    reply = client.command("CreateWork", new_work(), headers={"Content-Type": content_type})
    assert reply.status == 200


def padded(size: int) -> bytes:
    """A right body of that many bytes."""
    body = json.dumps({"input": new_work()}).encode()
    return body + b" " * (size - len(body))


def chunks(body: bytes) -> Iterator[bytes]:
    """The body in parts, so that it is sent without its length."""
    return (body[start : start + 50_000] for start in range(0, len(body), 50_000))


def test_a_body_at_the_limit_is_read_and_one_byte_more_is_not(client: HttpClient) -> None:
    for form in (bytes, chunks):
        assert client.call("POST", COMMAND, raw=form(padded(BODY_BYTES_MAX))).status == 200
        found = problem(client.call("POST", COMMAND, raw=form(padded(BODY_BYTES_MAX + 1))), "RDB-E-TOO-LARGE")
        assert str(BODY_BYTES_MAX) in found["detail"]
        assert client.command("CreateWork", new_work()).status == 200


def test_what_is_over_the_limit_is_drained_so_that_the_answer_is_heard(client: HttpClient) -> None:
    part = b"x" * (1 << 20)
    sizes = [8, BODY_DRAIN_BYTES_MAX // len(part) - 1]
    for count in sizes:
        problem(client.call("POST", COMMAND, raw=iter([part] * count)), "RDB-E-TOO-LARGE")
    reply = client.call("POST", COMMAND, raw=iter([part] * 8), token=None)
    problem(reply, "RDB-E-UNAUTHENTICATED")
    assert client.command("CreateWork", new_work()).status == 200


def exchange(server: HttpServer, lines: list[str], body: bytes = b"") -> bytes:
    """What comes back for a request of these lines, until the server ends the connection."""
    with server.socket() as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)
        received = b""
        while part := connection.recv(65_536):
            received += part
    return received


def test_a_client_that_asks_first_is_refused_before_it_sends(server: HttpServer) -> None:
    lines = [f"POST {COMMAND} HTTP/1.1", "Host: here", "Expect: 100-continue", f"Content-Length: {BODY_BYTES_MAX + 1}"]
    allowed = [*lines, f"Authorization: Bearer {server.operator}"]
    assert exchange(server, lines).startswith(b"HTTP/1.1 401 ")
    assert exchange(server, allowed).startswith(b"HTTP/1.1 413 ")


def test_a_body_beyond_the_drain_is_not_waited_for(server: HttpServer) -> None:
    lines = [f"POST {COMMAND} HTTP/1.1", "Host: here", f"Content-Length: {BODY_DRAIN_BYTES_MAX + 1}"]
    assert exchange(server, lines).startswith(b"HTTP/1.1 401 ")


def test_a_body_that_ends_early_is_no_fault(server: HttpServer) -> None:
    for length in ("Content-Length: 500", "Transfer-Encoding: chunked"):
        with server.socket() as connection:
            lines = [f"POST {COMMAND} HTTP/1.1", "Host: here", length, f"Authorization: Bearer {server.operator}"]
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + b'10\r\n{"input"')
            connection.shutdown(1)
            status = connection.recv(65_536)[:13]
        assert status in (b"", b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", COMMAND, "POST"),
        ("HEAD", COMMAND, "POST"),
        ("OPTIONS", COMMAND, "POST"),
        ("PUT", "/v1/queries/DueWork", "POST"),
        ("DELETE", "/v1/contract", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("BREW", "/v1/history/WorkItem/1/2", "GET, HEAD"),
        ("post", COMMAND, "POST"),
    ],
)
def test_another_method_is_told_which_to_use(client: HttpClient, method: str, path: str, allowed: str) -> None:
    reply = client.call(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        problem(reply, "RDB-E-METHOD")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/commands",
        "/v1/commands/",
        f"{COMMAND}/",
        f"{COMMAND}/x",
        "/v1/commands/a/resolve/",
        "//healthz",
        "/v1/admin/capabilities/a/b/revoke",
        "/V1/contract",
        "/v1/contract%00",
        "/v1/../healthz",
        "/%ff",
        "/healthz%0a",
    ],
)
def test_other_addresses_are_not_there(client: HttpClient, path: str) -> None:
    for token in ("", None):
        problem(client.call("POST", path, token=token), "RDB-E-NOT-FOUND")


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({}, "role"),
        ({"role": ""}, "role"),
        ({"role": 1}, "role"),
        ({"role": "WorkSchedulr"}, "role"),
        ({"role": "WorkScheduler", "operator": True}, "role"),
        ({"operator": 1}, "operator"),
        ({"operator": "true"}, "operator"),
        ({"operator": True, "expires_seconds": 0}, "expires_seconds"),
        ({"operator": True, "expires_seconds": -5}, "expires_seconds"),
        ({"operator": True, "expires_seconds": 1.5}, "expires_seconds"),
        ({"operator": True, "expires_seconds": 10**18}, "expires_seconds"),
        ({"operator": True, "principal": ""}, "principal"),
        ({"operator": True, "principal": "a\nb"}, "principal"),
        ({"operator": True, "principal": "x" * 257}, "principal"),
        ({"operator": True, "principal": {}}, "principal"),
        ({"operator": True, "partition": "not-a-uuid"}, "partition"),
        ({"operator": True, "partition": {"a": []}}, "partition"),
        ({"operator": True, "roles": []}, "roles"),
    ],
)
def test_a_capability_that_is_not_well_asked_for(client: HttpClient, wanted: dict[str, object], path: str) -> None:
    assert problem(client.call("POST", "/v1/admin/capabilities", wanted), "RDB-E-INPUT")["path"] == path


def test_a_plan_that_is_none(client: HttpClient) -> None:
    plan = json.loads(to_json(QUEUE_PLAN))
    command = plan["commands"][0]
    wrong: list[tuple[object, str]] = [
        ({}, "body"),
        ({"plan": None}, "plan"),
        ({"plan": plan, "more": 1}, "body"),
        ({"plan": plan | {"version": "x"}}, "plan.version"),
        ({"plan": plan | {"unheard_of": 1}}, "plan"),
        ({"plan": plan | {"commands": [command | {"unheard_of": 1}]}}, "plan"),
        ({"plan": plan | {"commands": [command | {"partition": 1}]}}, "plan.commands[0].partition"),
        ({"plan": plan | {"queries": []}}, "plan"),
        *(({"plan": {name: plan[name] for name in plan if name != gone}}, "plan") for gone in ("entities", "enums")),
    ]
    for body, path in wrong:
        assert problem(client.call("POST", "/v1/admin/deploy", body), "RDB-E-INPUT")["path"].startswith(path)
    deep = b'{"plan":' + b"[" * 5000 + b"]" * 5000 + b"}"
    problem(client.call("POST", "/v1/admin/deploy", raw=deep), "RDB-E-INPUT")
    assert client.call("GET", "/v1/contract").json["plan"] == plan


def test_a_change_that_the_rows_do_not_allow(client: HttpClient) -> None:
    plan = json.loads(to_json(QUEUE_PLAN))
    plan["contract"] = "AnotherContract"
    problem(client.call("POST", "/v1/admin/deploy", {"plan": plan}), "RDB-E-APPROVAL")


def test_a_key_that_does_not_fit_the_entity(client: HttpClient) -> None:
    for key in ("", "1", f"{uuid4()}", f"{uuid4()}/", f"{uuid4()}/x", f"{uuid4()}/{uuid4()}/1", "%00/%00"):
        problem(client.call("GET", f"/v1/history/WorkItem/{key}"), "RDB-E-INPUT")


def test_malformed_http_never_reaches_the_edge(server: HttpServer) -> None:
    assert exchange(server, ["nonsense"]).startswith(b"HTTP/1.1 400 ")
    assert exchange(server, ["GET /healthz HTTP/1.1", "Host: x", f"X: {'a' * 500_000}"]).startswith(b"HTTP/1.1 431 ")
    both = ["POST /healthz HTTP/1.1", "Content-Length: 1", "Content-Length: 2"]
    assert exchange(server, both).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "", "86400001", "1" * 30])
def test_a_time_that_cannot_be_is_refused(server: HttpServer, value: str) -> None:
    with server.client() as client:
        reply = client.call("GET", "/v1/contract", headers={"riffdb-timeout-ms": value})
        assert (reply.status, reply.json["code"], reply.json["path"]) == (400, "RDB-E-INPUT", "riffdb-timeout-ms")
        assert client.call("GET", "/v1/contract", headers={"riffdb-timeout-ms": "86400000"}).status == 200
