"""`riffdb worker` as a process: how a turn is shown, how it is stopped, what ends it, what it takes from `riffdb.toml`.

A handler tells that it has begun and waits for leave through two named pipes, so that a test acts just then.
"""

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.surface.command_line import run_here
from tests.surface.http_server import new_work
from tests.surface.processes import Deployment, Done, Process, Server, deployed, run_riffdb

HANDLERS = """
import os
from pathlib import Path

HERE = Path(os.environ.get("PIPES", "."))


def wait(work):
    with (HERE / "begun").open("w") as begun:
        begun.write(f"{work.key}\\n")
    with (HERE / "leave").open("rb", buffering=0) as leave:
        leave.read(1)


async def fails(work):
    raise ValueError("a secret of the work")


def number(work):
    return 5


def unknown_input(work):
    return {"colour": "red"}


class Callable:
    async def __call__(self, work):
        assert work.tries == 1 and work.fields["revision"] == 1 and work.claimed["work"]["revision"] == 2


instance = Callable()
"""


@dataclass(frozen=True)
class Place:
    """A server on the queue whose workers look for work every second, and one organization's part of it."""

    deployment: Deployment
    server: Server
    organization: str

    def add(self, count: int = 1) -> list[str]:
        """Put items into the queue."""
        works = [new_work(organization_id=self.organization) for _ in range(count)]
        with self.server.client(self.deployment.producer) as client:
            for work in works:
                assert client.command("CreateWork", work).json["outcome"] == "Created"
        return [str(work["work_id"]) for work in works]

    def start(self, handler: str, *options: str, token: str = "", pipes: str = "") -> Process:
        """Start a worker that prints JSON."""
        arguments = ("--param", f"organization_id={self.organization}", "--handler", handler, "--json")
        return self.deployment.start(
            *("worker", "DueWorkItems", *arguments, *options),
            RIFFDB_TOKEN=token or self.deployment.scheduler,
            RIFFDB_SERVER=self.server.url,
            PIPES=pipes or ".",
        )

    def once(self, handler: str, *options: str) -> Done:
        """Run one turn to its end."""
        process = self.start(handler, "--once", *options)
        line = process.line()
        return Done(process.ended(), line, process.stderr)

    def commands_of(self, work: str) -> list[str]:
        """The commands that wrote an item."""
        done = run_here(
            *("history", "WorkItem", self.organization, work, "--json"),
            RIFFDB_SERVER=self.server.url,
            RIFFDB_TOKEN=self.deployment.operator,
        )
        return [json.loads(line)["command"] for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, Server]]:
    """A deployment and its server, with handlers of our own in the application."""
    with deployed(tmp_path_factory.mktemp("worker"), wait_seconds=1, in_flight=1) as deployment:
        (deployment.application / "ours.py").write_text(HANDLERS, "utf-8")
        yield deployment, deployment.serve()


@pytest.fixture
def place(running: tuple[Deployment, Server]) -> Place:
    """An organization of its own for each test."""
    return Place(*running, str(uuid4()))


class Pipes:
    """The two named pipes of one worker's handlers, open for both directions, so that no end waits for the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        for name in ("begun", "leave"):
            os.mkfifo(folder / name)
        self._begun = os.fdopen(os.open(folder / "begun", os.O_RDWR), "r+b", buffering=0)
        self._leave = os.fdopen(os.open(folder / "leave", os.O_RDWR), "r+b", buffering=0)

    def wait(self) -> None:
        """Return when one more handler has begun."""
        assert self._begun.readline().startswith(b"sched_")

    def let_go(self) -> None:
        """Let one more handler go on."""
        self._leave.write(b".")

    def close(self) -> None:
        """Close both."""
        self._begun.close()
        self._leave.close()


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    """Pipes in a folder of their own."""
    pipes = Pipes(tmp_path)
    yield pipes
    pipes.close()


def turn(process: Process) -> Any:
    """The next turn that a worker prints."""
    line = process.line()
    assert line, (process.ended(), process.stderr)
    return json.loads(line)


@pytest.mark.parametrize("handler", ["handlers:complete", "ours:instance"])
def test_one_turn(place: Place, handler: str) -> None:
    (work,) = place.add()
    done = place.once(handler)
    key = f"{place.organization}/{work}"
    assert done.json == {"result": "Completed", "key": key, "outcome": "Completed", "delay_seconds": None}
    assert (done.code, done.stderr) == (0, "")
    idle = place.once(handler)
    assert idle.json == {"result": "Idle", "key": None, "outcome": None, "delay_seconds": None}
    assert (idle.code, idle.stderr) == (0, "")


@pytest.mark.parametrize(
    ("handler", "failure", "cause", "detail"),
    [
        ("ours:fails", "HandlerError", "ValueError", r"the handler raised ValueError at ours\.py:\d+"),
        ("ours:number", "HandlerError", "TypeError", "a handler returns a mapping .*"),
        (
            "ours:unknown_input",
            "Permanent",
            None,
            "the handler gave another input than CompleteWork leaves to it: nothing",
        ),
    ],
)
def test_a_handler_that_fails_gives_the_item_back_by_the_contracts_command(
    place: Place, handler: str, failure: str, cause: str | None, detail: str
) -> None:
    (work,) = place.add()
    done = place.once(handler)
    assert (done.code, done.json["result"], done.json["failure"], done.json["cause"]) == (1, "Failed", failure, cause)
    assert done.json["delay_seconds"] >= 1
    assert re.fullmatch(detail, done.json["detail"])
    assert "secret" not in done.stdout + done.stderr
    assert place.commands_of(work) == ["CreateWork", "ClaimWork", "FailWork"]


def test_people_read_a_line_a_turn(place: Place) -> None:
    place.add(2)
    run = ("worker", "DueWorkItems", "--once", "--param", f"organization_id={place.organization}", "--handler")
    variables = {"RIFFDB_SERVER": place.server.url, "RIFFDB_TOKEN": place.deployment.scheduler}
    well = run_riffdb(*run, "handlers:complete", cwd=place.deployment.application, **variables)
    assert (well.code, well.stdout) == (0, "")
    assert re.fullmatch(r"Completed [0-9a-f-]{36}/[0-9a-f-]{36}: Completed\n", well.stderr)
    badly = run_riffdb(*run, "ours:fails", cwd=place.deployment.application, **variables)
    assert (badly.code, badly.stdout) == (1, "")
    assert re.fullmatch(r"Failed \S{73}: the handler raised ValueError at ours\.py:\d+\n", badly.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_turn_finish(place: Place, pipes: Pipes, number: signal.Signals) -> None:
    works = place.add(2)
    worker = place.start("ours:wait", pipes=pipes.folder)
    pipes.wait()
    os.kill(worker.pid, number)
    pipes.let_go()
    assert turn(worker)["result"] == "Completed"
    assert worker.line() == ""
    assert worker.ended() == 0
    assert sorted(len(place.commands_of(work)) for work in works) == [1, 4]  # one was let alone


def test_an_idle_worker_ends_at_once(place: Place) -> None:
    place.add()
    worker = place.start("handlers:complete")
    assert turn(worker)["result"] == "Completed"
    assert worker.stop() == 0
    assert worker.stderr.splitlines()[0].startswith("working on DueWorkItems as ")


def test_a_second_signal_ends_the_turn_between_two_operations(place: Place, pipes: Pipes) -> None:
    (work,) = place.add()
    worker = place.start("ours:wait", pipes=pipes.folder)
    pipes.wait()
    for number in (signal.SIGTERM, signal.SIGINT):  # two of one kind may become one
        os.kill(worker.pid, number)
    wait_for_default(worker)
    pipes.let_go()
    told = turn(worker)
    assert (told["result"], told["failure"]) == ("Failed", "Cancelled")
    assert worker.ended() == 130
    assert place.commands_of(work) == ["CreateWork", "ClaimWork", "ReleaseWork"]


def test_a_third_signal_ends_the_process(place: Place, pipes: Pipes) -> None:
    place.add()
    worker = place.start("ours:wait", pipes=pipes.folder)
    pipes.wait()
    for number in (signal.SIGTERM, signal.SIGINT):  # two of one kind may become one
        os.kill(worker.pid, number)
    wait_for_default(worker)
    os.kill(worker.pid, signal.SIGTERM)
    assert worker.ended() == -signal.SIGTERM


def wait_for_default(worker: Process) -> None:
    """Return when the worker has taken two signals: it then leaves the next one to the system."""
    mask = 1 << signal.SIGTERM - 1
    status = Path(f"/proc/{worker.pid}/status")
    while int(status.read_text("utf-8").partition("SigCgt:")[2].split()[0], 16) & mask:
        os.sched_yield()


def test_a_worker_goes_on_when_nobody_reads_its_lines(place: Place) -> None:
    place.add()
    worker = place.start("handlers:complete")
    assert turn(worker)["result"] == "Completed"
    worker.stop_reading()
    (work,) = place.add()
    while place.commands_of(work)[-1] != "ReleaseWork":
        assert worker.is_running
    assert worker.stop() == 0


def test_a_revoked_capability_ends_the_worker_and_says_so(place: Place, pipes: Pipes, tmp_path: Path) -> None:
    variables = {"RIFFDB_SERVER": place.server.url, "RIFFDB_TOKEN": place.deployment.operator}
    created = run_here("capability", "create", "--role", "WorkScheduler", "--json", **variables).json
    elsewhere = Place(place.deployment, place.server, str(uuid4()))
    elsewhere.add()
    idle = elsewhere.start("handlers:complete", token=created["token"])
    assert turn(idle)["result"] == "Completed"
    works = place.add(3)
    wide = tmp_path / "riffdb.toml"
    wide.write_text(
        (place.deployment.application / "riffdb.toml").read_text("utf-8").replace("in_flight = 1", "in_flight = 4")
    )
    busy = place.start("ours:wait", "--application", str(tmp_path), token=created["token"], pipes=pipes.folder)
    for _ in works:
        pipes.wait()
    assert run_here("capability", "revoke", created["id"], **variables).code == 0
    for _ in works:
        pipes.let_go()
    for worker in (idle, busy):
        assert worker.ended() == 8
        assert "error[RDB-E-UNAUTHENTICATED]: the worker ends: " in worker.stderr
        assert "Traceback" not in worker.stderr


def test_a_worker_outlives_its_server(tmp_path: Path) -> None:
    with deployed(tmp_path, wait_seconds=0) as deployment:
        server = deployment.serve()
        place = Place(deployment, server, str(uuid4()))
        place.add()
        worker = place.start("handlers:complete")
        assert turn(worker)["result"] == "Completed"
        assert server.process.stop() == 0
        told = turn(worker)
        assert (told["result"], told["key"], told["cause"]) == ("Failed", None, "RDB-E-UNAVAILABLE")
        again = Place(deployment, deployment.serve(port=server.port), place.organization)
        (work,) = again.add()
        while told["result"] == "Failed":
            told = turn(worker)
        assert (told["result"], told["key"]) == ("Completed", f"{place.organization}/{work}")
        assert worker.stop() == 0


def test_a_lease_of_no_setting_fits_the_contract_and_one_that_is_set_must(tmp_path: Path) -> None:
    with deployed(tmp_path, wait_seconds=0) as deployment:
        settings, contract = deployment.application / "riffdb.toml", deployment.application / "work.riff"
        text = settings.read_text("utf-8")
        contract.write_text(contract.read_text("utf-8").replace("(5, 900)", "(5, 20)"), "utf-8")
        organization = str(uuid4())
        run = ("worker", "DueWorkItems", "--param", f"organization_id={organization}", "--once")
        database = f"sqlite:{tmp_path}/short.db"
        settings.write_text(re.sub("(?m)^lease_seconds.*\n", "", text), "utf-8")
        assert run_here("deploy", deployment.application, "--db", database).code == 0
        for options in ((), ("--application", str(deployment.application))):
            work = json.dumps(new_work(organization_id=organization))
            assert run_here("command", "run", "CreateWork", "--input", work, "--db", database).code == 0
            assert run_riffdb(*run, "--db", database, *options, cwd=tmp_path).code == 0
        settings.write_text(re.sub("(?m)^lease_seconds.*", "lease_seconds = 60", text), "utf-8")
        refused = run_riffdb(*run, "--db", database, cwd=deployment.application)
        line = settings.read_text("utf-8").splitlines().index("lease_seconds = 60") + 1
        assert refused.code == 2
        assert refused.stderr == (
            f"error[RDB-E-USAGE]: riffdb.toml:{line}: `lease_seconds` of `DueWorkItems` must lie between 5 and 20,"
            " the bounds of its lease\n"
        )


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("raise ValueError('a secret')", r"importing `broken` raised ValueError at broken\.py:1"),
        ("import sys; sys.exit(0)", r"importing `broken` raised SystemExit at broken\.py:1"),
        ("import no_such_module", "there is no module `no_such_module` here or installed"),
        ("def (", r"importing `broken` raised SyntaxError.*"),
        ("works = 5", "`broken` has no function `work`"),
        ("def wrok(item): ...", "`broken` has no function `work`; did you mean `wrok`?"),
    ],
)
def test_a_handler_that_cannot_be_loaded(place: Place, tmp_path: Path, text: str, detail: str) -> None:
    (tmp_path / "broken.py").write_text(text, "utf-8")
    variables = {"RIFFDB_SERVER": place.server.url, "RIFFDB_TOKEN": place.deployment.scheduler}
    done = run_riffdb("worker", "DueWorkItems", "--once", "--handler", "broken:work", cwd=tmp_path, **variables)
    assert (done.code, done.stdout) == (2, "")
    assert re.fullmatch(rf"error\[RDB-E-USAGE\]: --handler: {detail.replace('?', '[?]')}\n", done.stderr)


def test_a_handler_is_found_in_the_application(place: Place, tmp_path: Path) -> None:
    place.add()
    variables = {"RIFFDB_SERVER": place.server.url, "RIFFDB_TOKEN": place.deployment.scheduler}
    run = ("worker", "DueWorkItems", "--once", "--json", "--param", f"organization_id={place.organization}")
    options = ("--application", place.deployment.application, "--handler", "ours:instance")
    done = run_riffdb(*run, *options, cwd=tmp_path, **variables)
    assert (done.code, done.json["result"]) == (0, "Completed")


@pytest.fixture
def particular(tmp_path: Path) -> Path:
    """An application whose business command has an input of its own, and a role that cannot release."""
    made = run_here("new", tmp_path / "particular")
    assert made.code == 0
    work = tmp_path / "particular" / "work.riff"
    text = work.read_text("utf-8")
    before, command, after = text.partition("command CompleteWork {\n")
    text = f'{before}{command}    input note: string<9>\n    input colour: string<9> = "red"\n{after}'
    work.write_text(f"{text}\nrole Half {{ query DueWork command ClaimWork, CompleteWork, FailWork }}\n", "utf-8")
    assert run_here("deploy", work.parent, "--db", f"sqlite:{tmp_path}/work.db").code == 0
    return tmp_path / "work.db"


def test_a_worker_without_the_handler_that_it_needs_claims_nothing(particular: Path) -> None:
    param = f"organization_id={uuid4()}"
    done = run_here("worker", "DueWorkItems", "--once", "--param", param, "--db", f"sqlite:{particular}")
    assert (done.code, done.stdout) == (2, "")
    message = "CompleteWork takes `note` from a handler; give --handler module:function"
    assert done.stderr == f"error[RDB-E-USAGE]: {message}\n"


def test_a_role_that_lacks_a_name_of_the_schedule_is_told_what_it_takes(particular: Path) -> None:
    done = run_here("worker", "DueWorkItems", "--once", "--role", "Half", "--db", f"sqlite:{particular}")
    reason = (
        "the contract has no schedule of that name; a role sees one only if it lists its source and all of its commands"
    )
    assert (done.code, done.stdout, done.stderr) == (5, "", f"error[RDB-E-NOT-FOUND]: {reason}\n")
