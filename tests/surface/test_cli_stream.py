"""`riffdb stream` on a file and on a server: documents, what people are shown, exit codes, every wrong argument."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import riffdb
from riffdb.core.codes import CODES
from tests.surface.command_line import run_here
from tests.surface.completing import complete, completed
from tests.surface.http_server import HttpServer, running
from tests.surface.processes import QUEUE, Done

TOKEN = "A" * 32


class Reader:
    """Someone who types `riffdb stream` on a file or a server, and can let items be completed there."""

    def __init__(self, kind: str, folder: Path, server: HttpServer) -> None:
        self.organization = str(uuid4())
        self.is_remote = kind == "server"
        self._url, self._server = f"sqlite:{folder}/work.db", server

    def complete(self, times: int = 1) -> list[str]:
        """Complete so many items; their ids."""
        if self.is_remote:
            with self._server.client() as client:
                return [completed(client, self.organization) for _ in range(times)]
        with riffdb.open(self._url) as client:
            return [
                complete(lambda name, inputs: client.command(name, **inputs).outcome, self.organization)
                for _ in range(times)
            ]

    def type(self, verb: str, *arguments: str, role: str = "", consumer: str = "mailer") -> Done:
        """Run one command of `stream`."""
        named = ("--param", f"organization_id={self.organization}", "--consumer", consumer)
        line = ("stream", verb, "WorkActivity", *named, *arguments)
        if not self.is_remote:
            return run_here(*line, *(("--role", role) if role else ()), RIFFDB_DB=self._url)
        token = self._server.token(role) if role else self._server.operator
        return run_here(*line, RIFFDB_SERVER=self._server.url, RIFFDB_TOKEN=token)

    def next(self, *arguments: str, **more: str) -> list[dict[str, Any]]:
        """The deliveries that `next` prints."""
        done = self.type("next", *arguments, "--json", **more)
        assert (done.code, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        assert done.json.keys() == {"incarnation", "deliveries"}
        return [delivery | {"incarnation": done.json["incarnation"]} for delivery in done.json["deliveries"]]

    def settle(self, verb: str, delivery: dict[str, Any], *arguments: str, **more: str) -> Done:
        """Settle a delivery."""
        return self.type(verb, "--event", delivery["event_id"], "--token", delivery["token"], *arguments, **more)


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with running() as here:
        yield here.server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    assert run_here("deploy", QUEUE, "--db", f"sqlite:{folder}/work.db").code == 0
    return folder


@pytest.fixture(params=["file", "server"])
def reader(request: pytest.FixtureRequest, folder: Path, server: HttpServer) -> Reader:
    return Reader(request.param, folder, server)


def check_problem(done: Done, code: str) -> dict[str, Any]:
    """With `--json`, stdout is the problem and stderr the words; the exit code is that of the table."""
    assert done.code == CODES[code].exit, done
    assert done.json["code"] == code
    assert f"error[{code}]: " in done.stderr
    problem: dict[str, Any] = done.json
    return problem


def test_a_delivery_is_taken_and_settled(reader: Reader) -> None:
    first, second = reader.complete(2)
    (delivery,) = reader.next()
    assert delivery.keys() == {"event_id", "event", "attempt", "token", "time", "fields", "incarnation"}
    assert (delivery["attempt"], delivery["fields"]["work_id"]) == (1, first)
    done = reader.settle("extend", delivery, "--seconds", "60", "--json")
    assert (done.code, done.json) == (0, {"disposition": "Applied"})
    assert reader.settle("nack", delivery, "--json").json == {"disposition": "Applied"}
    again, other = reader.next("--max", "8", "--lease-seconds", "900", "--wait", "5")
    assert (again["event_id"], again["attempt"], other["fields"]["work_id"]) == (delivery["event_id"], 2, second)
    stale = reader.settle("ack", delivery, "--json")
    assert (stale.code, stale.json) == (0, {"disposition": "StateChanged"}), "an answer, no error"
    done = reader.settle("ack", again, "--incarnation", again["incarnation"])
    assert (done.code, done.stdout) == (0, "Applied\n")
    assert reader.settle("nack", other, "--delay", "3600").stdout == "Applied\n"
    assert reader.next() == []


def test_a_new_consumer_begins_where_it_is_told(reader: Reader) -> None:
    reader.complete()
    assert reader.next("--from", "now", consumer="late") == []
    assert len(reader.next("--from", "start")) == 1


def test_people_are_shown_what_they_need(reader: Reader) -> None:
    nothing = reader.type("next", "--wait", "0")
    assert (nothing.code, nothing.stdout, nothing.stderr) == (0, "", "nothing to deliver\n")
    (work,) = reader.complete()
    done = reader.type("next")
    first, *rest = done.stdout.splitlines()
    assert first.startswith("3:") and "  WorkCompleted, attempt 1, 20" in first
    assert json.loads("\n".join(rest[:-1])) == {
        "organization_id": reader.organization,
        "work_id": work,
        "revision": "3",
    }
    delivery = {"event_id": first.split()[0], "token": rest[-1].removeprefix("token: ")}
    assert reader.settle("ack", delivery).stdout == "Applied\n", "all that is needed is shown"
    status = reader.type("status")
    assert (status.code, status.stderr) == (0, "")
    lines = dict(line.split(": ", 1) for line in status.stdout.splitlines())
    assert lines["unsettled"] == "0"
    assert lines["oldest unsettled"] == "none"
    assert {"checkpoint", "lag events", "lag seconds", "dead letters"} <= lines.keys()


def test_what_operators_do(reader: Reader) -> None:
    reader.complete()
    attempts = []
    for _ in range(10):
        (delivery,) = reader.next()
        attempts.append(delivery["attempt"])
        assert reader.settle("nack", delivery).code == 0
    assert attempts == list(range(1, 11))
    assert reader.next() == []
    status = reader.type("status", "--json").json
    assert (status["dead_letters"], status["unsettled"]) == (1, 0)
    assert reader.type("redrive", "--all", "--json").code == 0
    (redriven,) = reader.next()
    assert redriven["attempt"] == 11
    assert reader.settle("ack", redriven).stdout == "Applied\n"
    done = reader.type("seek", "--to", "start")
    assert (done.code, done.stderr) == (0, "")
    assert [delivery["attempt"] for delivery in reader.next()] == [12]
    check_problem(reader.type("redrive", "--event", "77:1", "--json"), "RDB-E-NOT-FOUND")
    assert reader.type("retire", "--json").code == 0
    check_problem(reader.type("status", "--json"), "RDB-E-NOT-FOUND")
    assert [delivery["attempt"] for delivery in reader.next()] == [13], "it is made anew"


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        ("next", ["--max", "0"], "max_items 1 8"),
        ("next", ["--max", "9"], "max_items 1 8"),
        ("next", ["--lease-seconds", "4"], "delivery_lease_seconds 5 900"),
        ("next", ["--lease-seconds", "901"], "delivery_lease_seconds 5 900"),
        ("next", ["--wait", "-1"], "wait_seconds 30"),
        ("next", ["--wait", "31"], "wait_seconds 30"),
        ("next", ["--from", "end"], "start now"),
        ("next", ["--param", "colour=red"], "colour"),
        ("nack", ["--event", "1:1", "--token", TOKEN, "--delay", "3601"], "delay_seconds 3600"),
        ("nack", ["--event", "1:1", "--token", TOKEN, "--delay", "-1"], "delay_seconds 3600"),
        ("extend", ["--event", "1:1", "--token", TOKEN, "--seconds", "901"], "seconds 5 900"),
        ("ack", ["--event", "one", "--token", TOKEN], "event_id"),
        ("seek", ["--to", "tomorrow"], "to start now"),
        ("redrive", ["--event", "one"], "event_id"),
    ],
)
def test_a_wrong_value_is_refused_with_its_bounds(reader: Reader, verb: str, arguments: list[str], words: str) -> None:
    reader.next()
    problem = check_problem(reader.type(verb, *arguments, "--json"), "RDB-E-INPUT")
    for word in words.split():
        assert word in problem["detail"].replace(",", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("next WorkActivity", "--consumer"),
        ("next WorkActivity --consumer c --max many", "--max"),
        ("next WorkActivity --consumer c --wait soon", "--wait"),
        ("next WorkActivity --consumer c --param organization_id", "--param takes name=value"),
        ("next WorkActivity --consumer c --param a=1 --param a=2", "gives `a` twice"),
        ("next --consumer c", "STREAM"),
        ("ack WorkActivity --consumer c --event 1:0", "--token"),
        ("ack WorkActivity --consumer c --token t", "--event"),
        ("ack WorkActivity --consumer c --event 1:0 --token t --delay 5", "--delay"),
        ("extend WorkActivity --consumer c --event 1:0 --token t", "--seconds"),
        ("seek WorkActivity --consumer c", "--to"),
        ("redrive WorkActivity --consumer c", "--event ID and --all"),
        ("redrive WorkActivity --consumer c --event 1:0 --all", "--event ID and --all"),
        ("retire WorkActivity", "--consumer"),
        ("forget WorkActivity", "forget"),
    ],
)
def test_a_wrong_line_is_refused_before_anything_is_opened(line: str, words: str) -> None:
    done = run_here("stream", *line.split(), "--db", "sqlite:none/none.db")
    assert done.code == 2
    assert words in done.stderr
    assert "there is no database" not in done.stderr


def test_authority_is_that_of_http(reader: Reader) -> None:
    assert reader.type("next", role="WorkFollower").code == 0
    check_problem(reader.type("next", "--json", role="WorkProducer"), "RDB-E-FORBIDDEN")
    delivery = {"event_id": "1:1", "token": TOKEN}
    incarnation = ("--incarnation", str(uuid4()))
    check_problem(reader.settle("ack", delivery, *incarnation, "--json"), "RDB-E-INCARNATION")
    check_problem(reader.settle("ack", delivery, "--json", role="WorkProducer"), "RDB-E-FORBIDDEN")
    if reader.is_remote:
        check_problem(reader.type("seek", "--to", "now", "--json", role="WorkFollower"), "RDB-E-FORBIDDEN")


def test_a_stream_that_is_not_there_is_exit_5(server: HttpServer) -> None:
    line = ("stream", "next", "WorkActivty", "--consumer", "c", "--json")
    problem = check_problem(run_here(*line, RIFFDB_SERVER=server.url, RIFFDB_TOKEN=server.operator), "RDB-E-NOT-FOUND")
    assert "did you mean `WorkActivity`?" in problem["detail"]
