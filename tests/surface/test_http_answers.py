"""What the server answers to who asks rightly: commands, replays, queries, the contract, operators' acts, health."""

import json
from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.plan.narrowing import narrowed
from riffdb.plan.plan import from_json, to_json
from tests.surface.http_server import QUEUE_PLAN, HttpServer, new_work, running


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with running() as here:
        yield here.server


def test_a_command_is_answered_with_its_position(server: HttpServer) -> None:
    work = new_work()
    with server.client() as client:
        reply = client.command("CreateWork", work)
    assert reply.status == 200
    answer = reply.json
    assert list(answer) == ["outcome", "payload", "workflow_revisions", "commit", "replayed"]
    assert answer["outcome"] == "Created"
    assert answer["payload"]["work"]["work_id"] == work["work_id"]
    assert answer["workflow_revisions"] == [{"binding": "work", "revision": "1"}]
    assert answer["commit"]["partition"] == work["organization_id"]
    assert answer["commit"]["sequence"] == "1"
    assert answer["replayed"] is False


def test_a_replay_and_a_resolve_are_the_same_bytes_but_for_replayed(server: HttpServer) -> None:
    work = new_work()
    key = {name: work[name] for name in ("request_key", "organization_id")}
    other_operator = server.token("")
    with server.client() as client:
        first = client.command("CreateWork", work)
        again = client.command("CreateWork", work)
        elsewhere = client.command("CreateWork", work, token=other_operator)
        resolved = client.call("POST", "/v1/commands/CreateWork/resolve", {"input": key})
    assert first.body.endswith(b',"replayed":false}')
    expected = first.body.replace(b'"replayed":false}', b'"replayed":true}')
    assert [again.body, elsewhere.body, resolved.body] == [expected] * 3


def test_a_declared_failure_is_an_answer(server: HttpServer) -> None:
    work = new_work()
    with server.client() as client:
        client.command("CreateWork", work)
        reply = client.command("CreateWork", work | {"request_key": "another"})
    assert (reply.status, reply.json["outcome"]) == (200, "AlreadyExists")
    assert reply.json["workflow_revisions"] == []


def test_a_worker_runs_what_its_role_grants(server: HttpServer) -> None:
    work = new_work()
    with server.client() as client:
        client.command("CreateWork", work)
    with server.client(server.worker) as client:
        params = {"organization_id": work["organization_id"]}
        due = client.call("POST", "/v1/queries/DueWork", {"params": params})
        claimed = client.command(
            "ClaimWork",
            {
                "request_key": "claim",
                "organization_id": work["organization_id"],
                "work_id": work["work_id"],
                "owner_id": str(uuid4()),
                "duration": 30,
                "expected_revision": due.json["payload"]["items"][0]["revision"],
            },
        )
    assert due.json["outcome"] == "Due"
    assert due.json["as_of"]["sequence"] == "1"
    assert claimed.json["outcome"] == "Claimed"
    assert claimed.json["payload"]["work"]["lease_fence"] == "1"


def test_names_may_be_percent_encoded(server: HttpServer) -> None:
    with server.client() as client:
        assert client.call("POST", "/v1/commands/%43reateWork", {"input": new_work()}).status == 200


def test_answers_are_never_cached_or_sniffed_and_name_no_version(server: HttpServer) -> None:
    with server.client() as client:
        for reply in (client.command("CreateWork", new_work()), client.command("Nothing", {})):
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["server"] == "riffdb"
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("path", "status"), [("/healthz", "alive"), ("/readyz", "ready")])
def test_health_needs_no_token(server: HttpServer, path: str, status: str) -> None:
    with server.client() as client:
        reply = client.call("GET", path, token=None)
        head = client.call("HEAD", path, token=None)
    assert (reply.status, reply.json) == (200, {"status": status})
    assert (head.status, head.body) == (200, b"")


def test_the_contract_is_narrowed_to_the_role(server: HttpServer) -> None:
    with server.client() as client:
        whole = client.call("GET", "/v1/contract").json
        narrow = client.call("GET", "/v1/contract", token=server.worker).json
    assert from_json(json.dumps(whole["plan"])) == QUEUE_PLAN
    assert from_json(json.dumps(narrow["plan"])) == narrowed(QUEUE_PLAN, "WorkScheduler")
    assert whole["hash"] == narrow["hash"] == server.database.contract.hash.hex()
    assert "CreateWork" not in json.dumps(narrow)


def test_an_operator_creates_and_revokes_a_capability(server: HttpServer) -> None:
    organization = str(uuid4())
    wanted = {
        "role": "WorkScheduler",
        "principal": "worker:night",
        "partition": organization,
        "expires_seconds": "3600",
    }
    with server.client() as client:
        created = client.call("POST", "/v1/admin/capabilities", wanted)
        token = created.json["token"]
        inside = {"params": {"organization_id": organization}}
        outside = {"params": {"organization_id": str(uuid4())}}
        seen = [client.call("POST", "/v1/queries/DueWork", body, token=token).status for body in (inside, outside)]
        path = f"/v1/admin/capabilities/{created.json['id']}/revoke"
        revoked = client.call("POST", path)
        again = client.call("POST", path, {})
        refused = client.call("POST", "/v1/queries/DueWork", inside, token=token)
    assert created.status == 201
    assert list(created.json) == ["id", "token", "role", "expires_at"]
    assert created.json["role"] == "WorkScheduler"
    assert created.json["expires_at"].endswith("Z")
    assert seen == [200, 403]
    assert revoked.json["principal"] == "worker:night"
    assert revoked.json["revoked_at"] is not None
    assert again.body == revoked.body
    assert refused.status == 401


def test_an_operators_token_is_made_by_saying_so(server: HttpServer) -> None:
    with server.client() as client:
        created = client.call("POST", "/v1/admin/capabilities", {"operator": True})
        reply = client.call("GET", "/v1/contract", token=created.json["token"])
    assert (created.json["role"], created.json["expires_at"]) == (None, None)
    assert len(reply.json["plan"]["commands"]) == len(QUEUE_PLAN.commands)


def test_history_is_one_commit_a_line_newest_last(server: HttpServer) -> None:
    work = new_work()
    with server.client() as client:
        client.command("CreateWork", work)
        client.command("CreateWork", work | {"request_key": "another"})
        client.command(
            "ClaimWork",
            {name: work[name] for name in ("organization_id", "work_id")}
            | {"request_key": "claim", "owner_id": str(uuid4()), "duration": 30, "expected_revision": 1},
        )
        path = f"/v1/history/WorkItem/{work['organization_id']}/{work['work_id']}"
        reply = client.call("GET", path)
        by_table = client.call("GET", path.replace("WorkItem", "work_item"))
    assert reply.headers["content-type"] == "application/x-ndjson"
    entries = [json.loads(line) for line in reply.body.splitlines()]
    assert [(entry["command"], entry["revision"]) for entry in entries] == [("CreateWork", "1"), ("ClaimWork", "2")]
    assert entries[1]["changes"]["lease_fence"] == "[redacted]"
    assert by_table.body == reply.body


NOTES = """
contract Notes version 1 {
  entity Note {
    key (shelf: uuid, name: string<40>, page: u64)
    field text: string<40>
  }
  command Write {
    input request_key: string<40>
    input shelf: uuid
    input name: string<40>
    input page: u64
    idempotency_key request_key
    create Note(shelf, name, page) as note else Taken {}
    set note.text = "x"
    return Written {}
  }
}
"""


def test_a_key_may_hold_what_means_something_in_an_address() -> None:
    plan = compile("notes", (Source("notes.riff", NOTES),)).plan
    assert plan is not None
    shelf = str(uuid4())
    with running(plan=plan) as here, here.server.client() as client:
        for name in ("plain", "a/b", "/", "a//b/", "", "100%", "%41", "a?b#c", "ü", " ", "..", "\n"):
            written = client.command("Write", {"request_key": name or "-", "shelf": shelf, "name": name, "page": 1})
            assert written.json["outcome"] == "Written"
            reply = client.call("GET", f"/v1/history/Note/{shelf}/{quote(name, safe='')}/1")
            assert (reply.status, reply.json["changes"]["name"]) == (200, name)


def test_the_deployed_contract_may_be_deployed_again(server: HttpServer) -> None:
    with server.client() as client:
        reply = client.call("POST", "/v1/admin/deploy", {"plan": json.loads(to_json(QUEUE_PLAN))})
    assert (reply.status, reply.json["outcome"]) == (200, "unchanged")
    assert reply.json["hash"] == server.database.contract.hash.hex()


def test_a_contract_that_grew_is_served_at_once() -> None:
    plan = json.loads(to_json(QUEUE_PLAN))
    smaller = {name: part for name, part in plan.items() if name not in ("queries", "schedules", "roles")}
    with running() as here, here.server.client() as client:
        worker = here.server.worker
        params = {"params": {"organization_id": str(uuid4())}}
        deployed = [client.call("POST", "/v1/admin/deploy", {"plan": smaller}).json["outcome"]]
        gone = client.call("POST", "/v1/queries/DueWork", params)
        no_longer_a_role = client.call("POST", "/v1/queries/DueWork", params, token=worker)
        nothing = client.call("GET", "/v1/contract", token=worker)
        deployed.append(client.call("POST", "/v1/admin/deploy", {"plan": plan}).json["outcome"])
        back = client.call("POST", "/v1/queries/DueWork", params)
    assert deployed == ["updated", "updated"]
    assert (gone.status, no_longer_a_role.status, back.status) == (404, 403, 200)
    assert "commands" not in nothing.json["plan"]
