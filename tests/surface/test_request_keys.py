"""One request key stands for one execution: whoever sends it again, from wherever, at once or after a restart.

The same input gives the same bytes but for `replayed`; another input is refused and changes nothing.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest

from tests.surface.http_server import Reply, new_work
from tests.surface.processes import PATIENCE_SECONDS, Deployment, Server, as_replay, deployed, run_riffdb

CALLERS = 32
Work = dict[str, object]


@dataclass(frozen=True)
class Place:
    """A server, its file, and two producers of one role."""

    deployment: Deployment
    server: Server
    producers: tuple[str, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with deployed(tmp_path_factory.mktemp("keys")) as deployment:
        producers = deployment.producer, deployment.token("WorkProducer")
        yield Place(deployment, deployment.serve(), producers)


def race(place: Place, works: Sequence[Work]) -> list[Reply]:
    """Send all at the same moment, each on a connection of its own, in turn from either producer."""
    start = Barrier(len(works))

    def call(number: int) -> Reply:
        with place.server.client(place.producers[number % 2]) as client:
            client.connection.connect()
            start.wait(PATIENCE_SECONDS)
            return client.command("CreateWork", works[number])

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(call, range(len(works))))


def contents(deployment: Deployment) -> list[Any]:
    """All that a command could change in the file."""
    tables = ("work_item", "riffdb_commit", "riffdb_head")
    return [deployment.rows(f"SELECT * FROM {table}") for table in tables]


def commits(deployment: Deployment, work: Work) -> list[Any]:
    """What the log says under the key of a command, and the rows that it made."""
    return [
        deployment.rows("SELECT input, outcome FROM riffdb_commit WHERE key = ?", work["request_key"]),
        deployment.rows(
            "SELECT work_id, revision FROM work_item WHERE organization_id = ?",
            UUID(str(work["organization_id"])).bytes,
        ),
    ]


def refused(reply: Reply) -> bool:
    """Whether the reply is the problem of a key that was used with another input."""
    assert reply.status in (200, 409)
    return reply.status == 409 and reply.json["code"] == "RDB-E-IDEMPOTENCY-REUSED"


def test_of_32_callers_with_one_key_one_is_executed_and_all_get_its_answer(place: Place) -> None:
    work = new_work()
    replies = race(place, [work] * CALLERS)
    assert [reply.status for reply in replies] == [200] * CALLERS
    assert sorted(reply.json["replayed"] for reply in replies) == [False] + [True] * (CALLERS - 1)
    assert len({as_replay(reply.body) for reply in replies}) == 1
    log, rows = commits(place.deployment, work)
    assert [outcome for _, outcome in log] == ["Created"]
    assert rows == [(UUID(str(work["work_id"])).bytes, 1)]


def test_of_two_inputs_that_race_under_one_key_one_wins_and_the_other_is_refused(place: Place) -> None:
    works = [new_work(), new_work()]
    works[1] |= {name: works[0][name] for name in ("request_key", "organization_id")}
    order = [0, 0, 1, 1] * (CALLERS // 4)
    replies = race(place, [works[number] for number in order])
    log, rows = commits(place.deployment, works[0])
    assert len(log) == 1
    winner = [str(work["work_id"]) for work in works].index(json.loads(log[0][0])["work_id"])
    assert rows == [(UUID(str(works[winner]["work_id"])).bytes, 1)]
    assert [refused(reply) for reply in replies] == [number != winner for number in order]
    assert len({as_replay(reply.body) for reply in replies if not refused(reply)}) == 1


@pytest.mark.parametrize("changed", ["work_id", "due_at"])
def test_another_input_under_a_used_key_changes_nothing(place: Place, changed: str) -> None:
    work = new_work()
    with place.server.client(place.producers[0]) as client:
        first = client.command("CreateWork", work)
        before = contents(place.deployment)
        other = work | {changed: new_work(due_at="2027-01-01T00:00:00Z")[changed]}
        assert refused(client.command("CreateWork", other))
        assert refused(client.command("CreateWork", other, token=place.producers[1]))
        again = client.command("CreateWork", work)
    assert contents(place.deployment) == before
    assert again.body == as_replay(first.body)


def test_the_command_line_replays_with_the_same_bytes_and_ends_with_6_at_another_input(place: Place) -> None:
    work = new_work()

    def run(values: Work) -> Any:
        arguments = ("command", "run", "CreateWork", "--input", json.dumps(values), "--json")
        return run_riffdb(*arguments, "--server", place.server.url, RIFFDB_TOKEN=place.producers[1])

    with place.server.client(place.producers[0]) as client:
        first = client.command("CreateWork", work)
    before = contents(place.deployment)
    again, other = run(work), run(work | {"due_at": "2027-01-01T00:00:00Z"})
    assert (again.code, again.stdout.encode()) == (0, as_replay(first.body) + b"\n")
    assert (other.code, other.json["code"]) == (6, "RDB-E-IDEMPOTENCY-REUSED")
    assert "ask again" not in other.stderr
    assert contents(place.deployment) == before


def test_after_a_restart_another_token_and_the_file_itself_give_the_same_bytes(tmp_path: Path) -> None:
    work, other = new_work(), new_work()
    other |= {name: work[name] for name in ("request_key", "organization_id")}
    with deployed(tmp_path) as deployment:
        late = deployment.token("WorkProducer")
        server = deployment.serve()
        with server.client(deployment.producer) as client:
            first = client.command("CreateWork", work)
        assert server.process.stop() == 0

        before = contents(deployment)
        arguments = ("command", "run", "CreateWork", "--db", deployment.url, "--json")
        opened = run_riffdb(*arguments, "--input", json.dumps(work))
        wrong = run_riffdb(*arguments, "--input", json.dumps(other))
        with deployment.serve().client(late) as client:
            again = client.command("CreateWork", work)
            assert refused(client.command("CreateWork", other))
        assert contents(deployment) == before
    assert again.body == as_replay(first.body)
    assert (opened.code, opened.stdout.encode()) == (0, as_replay(first.body) + b"\n")
    assert (wrong.code, wrong.json["code"]) == (6, "RDB-E-IDEMPOTENCY-REUSED")
