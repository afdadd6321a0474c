"""`riffdb query watch` as a user runs it: against a server that stops, dies and comes back, and into a pipe."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.surface.http_server import new_work
from tests.surface.processes import Deployment, Process, Server, deployed, run_riffdb


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """The queue, on a server whose heartbeat is a second."""
    with deployed(tmp_path) as deployment:
        with (deployment.application / "riffdb.toml").open("a", encoding="utf-8") as settings:
            settings.write("\n[limits]\nheartbeat_seconds = 1\nwatches_max = 2\n")
        yield deployment


class Watching:
    """A `riffdb query watch` for the items of an organization of its own."""

    def __init__(self, deployment: Deployment, server: Server, *options: str) -> None:
        self.organization = str(uuid4())
        self._token = deployment.operator
        params = json.dumps({"organization_id": self.organization})
        arguments = ("query", "watch", "DueWork", "--server", server.url, "--input", params, *options)
        self.process: Process = deployment.start(*arguments, RIFFDB_TOKEN=deployment.scheduler)

    def create(self, server: Server, **changes: object) -> None:
        """Commit an item that is due."""
        with server.client(self._token) as client:
            values = new_work(organization_id=self.organization, **changes)
            assert client.command("CreateWork", values).status == 200

    def event(self) -> Any:
        """The next event that is printed."""
        line = self.process.line()
        assert line, self.process.stderr
        return json.loads(line)


def test_events_are_lines_until_it_is_interrupted(deployment: Deployment) -> None:
    server = deployment.serve()
    watching = Watching(deployment, server, "--json")
    snapshot = watching.event()
    assert (snapshot["event"], snapshot["outcome"], snapshot["payload"]) == ("snapshot", "Due", {"items": []})
    watching.create(server)
    change = watching.event()
    assert (change["event"], [step["op"] for step in change["changes"]]) == ("change", ["insert"])
    watching.process.signal(signal.SIGINT)
    assert watching.process.ended() == 130
    assert watching.process.stderr.strip() == "interrupted"


def test_people_are_shown_what_changes(deployment: Deployment) -> None:
    server = deployment.serve()
    watching = Watching(deployment, server)
    assert watching.process.line().startswith("snapshot: Due as of 20")
    assert [watching.process.line() for _ in range(3)] == ["{", '  "items": []', "}"]
    identity = str(uuid4())
    watching.create(server, work_id=identity)
    assert watching.process.line().startswith("change: Due as of 20")
    line = watching.process.line()
    assert line.startswith("+ items[0] {")
    assert json.loads(line.removeprefix("+ items[0] "))["work_id"] == identity


def test_it_goes_on_after_the_server_was_killed(deployment: Deployment) -> None:
    server = deployment.serve()
    watching = Watching(deployment, server, "--json")
    assert watching.event()["event"] == "snapshot"
    watching.create(server)
    assert watching.event()["event"] == "change"
    server.process.signal(signal.SIGKILL)
    server.process.ended()
    again = deployment.serve(port=server.port)
    reset = watching.event()
    assert (reset["event"], len(reset["payload"]["items"])) == ("reset", 1)
    watching.create(again)
    assert watching.event()["event"] == "change"


def test_it_ends_when_nobody_reads(deployment: Deployment) -> None:
    watching = Watching(deployment, deployment.serve(), "--json")
    watching.event()
    watching.process.stop_reading()
    assert watching.process.ended() == 1
    assert watching.process.stderr == ""


def test_the_limits_of_the_configuration_hold(deployment: Deployment) -> None:
    server = deployment.serve()
    first = [Watching(deployment, server, "--json") for _ in range(2)]
    for watching in first:
        watching.event()
    params = json.dumps({"organization_id": str(uuid4())})
    with server.client(deployment.operator) as client:
        reply = client.call("POST", "/v1/queries/DueWork/watch", {"params": json.loads(params)})
        assert (reply.status, reply.json["code"]) == (429, "RDB-E-WATCHES")


def test_what_is_wrong_is_told_at_once(deployment: Deployment) -> None:
    server = deployment.serve()
    for name, params, code in [("Nothing", "{}", 5), ("DueWork", '{"organization_id": 1}', 1), ("DueWork", "{}", 1)]:
        done = run_riffdb(
            "query", "watch", name, "--input", params, "--server", server.url, RIFFDB_TOKEN=deployment.operator
        )
        assert (done.code, done.stdout) == (code, "")
        assert done.stderr.startswith("error[RDB-E-")
