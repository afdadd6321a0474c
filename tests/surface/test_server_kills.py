"""A server that dies of SIGKILL around a commit: what it acknowledged is there, what it did not settles to one row.

Clients keep the bytes of every answer that they got. The next server takes the file over from the dead process, and
must answer each key with those bytes again. Workers and clients that were at work meanwhile go on with it.
"""

import http.client
import json
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from uuid import UUID, uuid4

import pytest

import riffdb
from tests.surface.http_server import new_work
from tests.surface.processes import COMPLETE, Deployment, Server, as_replay, deployed

ITEMS = 40
NTH = 7
"""The commit or answer at which the server dies; with four callers, forty commands take at least ten commits."""

ASKING_MAX = 200
KEPT_OF_ONE_CALLER = {"commit.before": NTH - 1, "commit.after": NTH, "answer.sent": NTH}
Work = dict[str, object]


def acknowledged(server: Server, token: str, works: Sequence[Work]) -> dict[str, bytes]:
    """Create the items one after the other until the server is gone; the answers that arrived whole, by key."""
    answers: dict[str, bytes] = {}
    with server.client(token) as client:
        for work in works:
            try:
                reply = client.command("CreateWork", work)
            except (OSError, http.client.HTTPException):
                break
            assert reply.status == 200, reply.body
            answers[str(work["request_key"])] = reply.body
    return answers


def from_callers(server: Server, token: str, works: Sequence[Work], callers: int) -> dict[str, bytes]:
    """`acknowledged`, from several callers at once."""
    with ThreadPoolExecutor(callers) as pool:
        shares = [works[number::callers] for number in range(callers)]
        found = list(pool.map(lambda share: acknowledged(server, token, share), shares))
    return {key: answer for answers in found for key, answer in answers.items()}


def kept(deployment: Deployment) -> dict[str, int]:
    """The sequence of each key that the file has a commit for."""
    return dict(deployment.rows("SELECT key, sequence FROM riffdb_commit WHERE command = 'CreateWork'"))


@pytest.mark.parametrize("callers", [1, 4])
@pytest.mark.parametrize("label", ["commit.before", "commit.after", "answer.sent"])
def test_what_was_acknowledged_is_there_and_the_rest_settles_once(tmp_path: Path, label: str, callers: int) -> None:
    organization = uuid4()
    works = [new_work(organization_id=str(organization)) for _ in range(ITEMS)]
    with deployed(tmp_path) as deployment:
        server = deployment.serve(f"{label}:kill:{NTH}")
        answers = from_callers(server, deployment.producer, works, callers)
        assert server.process.ended() == -signal.SIGKILL
        assert server.process.stderr.endswith(f"failpoint {label}: kill at hit {NTH}\n")
        before = kept(deployment)
        assert answers.keys() <= before.keys()
        if label == "commit.after":
            assert len(before) > len(answers)
        if callers == 1:
            assert len(before) == KEPT_OF_ONE_CALLER[label]
            assert len(answers) in ((NTH - 1, NTH) if label == "answer.sent" else (NTH - 1,))

        successor = deployment.take_over(server)
        settled = from_callers(successor, deployment.producer, works, callers)
        again = from_callers(successor, deployment.producer, works, callers)
        assert successor.process.stop() == 0
        for key, answer in answers.items():
            assert settled[key] == as_replay(answer)
        assert again == {key: as_replay(answer) for key, answer in settled.items()}
        executed = {key for key, answer in settled.items() if not json.loads(answer)["replayed"]}
        assert executed == settled.keys() - before.keys()
        assert {json.loads(answer)["outcome"] for answer in settled.values()} == {"Created"}

        sequences = {key: int(json.loads(answer)["commit"]["sequence"]) for key, answer in settled.items()}
        assert kept(deployment) == sequences
        assert sorted(sequences.values()) == list(range(1, ITEMS + 1))
        rows = deployment.rows("SELECT work_id, revision FROM work_item WHERE organization_id = ?", organization.bytes)
        assert sorted(rows) == sorted((UUID(str(work["work_id"])).bytes, 1) for work in works)
        deployment.check_file()


def create(client: riffdb.Client, organization: str) -> str:
    """Create an item, asking again with the key that the client tells where it gives up; the item's id."""
    work = new_work(organization_id=organization)
    del work["request_key"]
    for _ in range(ASKING_MAX):
        try:
            answer = client.command("CreateWork", **work)
        except riffdb.RiffError as error:
            gave_up = error
        else:
            assert answer.outcome == "Created"
            return str(work["work_id"])
        assert gave_up.code in ("RDB-E-UNAVAILABLE", "RDB-E-OUTCOME-UNKNOWN")
        assert work.setdefault("request_key", gave_up.key) == gave_up.key is not None
    raise AssertionError("the server did not come back")


def create_until(restarted: Event, client: riffdb.Client, organization: str) -> list[str]:
    """Create items until one was created by the restarted server; their ids."""
    created = []
    is_last = False
    while not is_last:
        is_last = restarted.is_set()
        created.append(create(client, organization))
    return created


def test_workers_and_clients_go_on_after_the_server_died_in_the_middle_of_turns(tmp_path: Path) -> None:
    organizations = [str(uuid4()), str(uuid4())]
    works = [new_work(organization_id=organizations[number]) for number in (0, 1, 1, 1, 1, 1, 1)]
    with deployed(tmp_path, lease_seconds=5, in_flight=1) as deployment, ThreadPoolExecutor(1) as pool:
        with riffdb.open(deployment.url) as embedded:
            for work in works:
                embedded.command("CreateWork", **work)
        server = deployment.serve("commit.after:kill:13")
        restarted = Event()
        workers = []
        with riffdb.connect(server.url, deployment.producer) as client:
            client.plan()
            for organization in organizations:  # the one item of the first is done before the second begins
                workers.append(deployment.worker(server, organization, owner=str(uuid4())))
                assert workers[-1].line(), workers[-1].stderr
            creating = pool.submit(create_until, restarted, client, organizations[0])
            assert server.process.ended() == -signal.SIGKILL
            assert deployment.figure("SELECT count(*) FROM work_item WHERE state != ?", COMPLETE) > 0
            successor = deployment.take_over(server)
            restarted.set()
            items = [str(work["work_id"]) for work in works] + creating.result()
        for organization, worker in zip(organizations, workers, strict=True):
            left = "SELECT count(*) FROM work_item WHERE organization_id = ? AND state != ?"
            while deployment.figure(left, UUID(organization).bytes, COMPLETE):
                assert worker.line(), worker.stderr
        for worker in workers:
            assert worker.stop() == 0, worker.stderr
        assert successor.process.stop() == 0
        completed = deployment.rows(
            "SELECT json_extract(input, '$.work_id') FROM riffdb_commit"
            " WHERE command = 'CompleteWork' AND outcome = 'Completed'"
        )
        assert sorted(completed) == sorted((item,) for item in items)
        assert deployment.figure("SELECT count(*) FROM work_item") == len(items)
        deployment.check_file()


def test_a_server_whose_file_was_moved_away_acknowledges_nothing_and_ends(tmp_path: Path) -> None:
    before, meanwhile = new_work(), new_work()
    with deployed(tmp_path) as deployment:
        with deployment.serving() as server, server.client(deployment.producer) as client:
            stored = client.command("CreateWork", before)
            elsewhere = deployment.file.rename(tmp_path / "elsewhere")
            reply = client.command("CreateWork", meanwhile)
            assert server.process.ended() == 9
            assert "work.db was moved, deleted or replaced" in server.process.stderr
        elsewhere.rename(deployment.file)
        with deployment.serving() as server, server.client(deployment.producer) as client:
            again, settled = client.command("CreateWork", before), client.command("CreateWork", meanwhile)
    assert (reply.status, reply.json["code"]) == (503, "RDB-E-OUTCOME-UNKNOWN")
    assert reply.json["key"] == meanwhile["request_key"]
    assert again.body == as_replay(stored.body)
    assert settled.json["outcome"] == "Created"
    deployment.check_file()
