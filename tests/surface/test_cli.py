"""The command line against a server, and against a file that somebody holds: documents and exit codes.

What needs no server is in the transcripts of `tests/cases/cli`.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import riffdb
from riffdb.core.codes import CODES
from tests.surface.command_line import run_here
from tests.surface.http_server import HttpServer, new_work, running
from tests.surface.processes import QUEUE, RIFFDB, Deployment, Done, deployed, run_riffdb

PROBLEM = {"type", "title", "status", "code", "detail", "retryable"}


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    """A server with the queue deployed."""
    with running() as here:
        yield here.server


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A file with the queue deployed."""
    with deployed(tmp_path_factory.mktemp("cli")) as deployment:
        yield deployment


def ask(server: HttpServer, *arguments: str, token: str | None = None) -> Done:
    """Run a command line against the server, as an operator unless another token is given."""
    held = server.operator if token is None else token
    return run_here(*arguments, RIFFDB_SERVER=server.url, RIFFDB_TOKEN=held)


def check_problem(done: Done, code: str) -> None:
    """With `--json`, stdout is the problem and stderr the words; the exit code is that of the table."""
    assert done.code == CODES[code].exit, done
    assert done.stdout.count("\n") == 1
    assert done.json.keys() >= PROBLEM
    assert done.json["code"] == code
    assert f"error[{code}]: " in done.stderr


def new_input(**changes: object) -> str:
    """The inputs of `CreateWork` for a new item."""
    return json.dumps(new_work(**changes))


def test_a_command_prints_the_answer_of_http_byte_for_byte(server: HttpServer) -> None:
    work = new_work()
    done = ask(server, "command", "run", "CreateWork", "--input", json.dumps(work), "--json")
    with server.client() as client:
        again = client.command("CreateWork", work)
    assert done.code == 0
    assert done.stdout.encode() == again.body.replace(b'"replayed":true', b'"replayed":false') + b"\n"


def test_a_query_prints_the_answer_of_http(server: HttpServer) -> None:
    params = {"organization_id": str(uuid4())}
    done = ask(server, "query", "run", "DueWork", "--input", json.dumps(params), "--json")
    assert (done.code, done.stderr) == (0, "")
    assert done.json.keys() == {"outcome", "payload", "as_of"}
    assert done.json["payload"] == {"items": []}


def test_history_is_one_document_a_line_newest_last(server: HttpServer) -> None:
    work = new_work()
    assert ask(server, "command", "run", "CreateWork", "--input", json.dumps(work)).code == 0
    claim = {key: work[key] for key in ("organization_id", "work_id")}
    claim |= {"owner_id": str(uuid4()), "duration": 60, "expected_revision": 1}
    assert ask(server, "command", "run", "ClaimWork", "--input", json.dumps(claim)).code == 0
    done = ask(server, "history", "WorkItem", str(work["organization_id"]), str(work["work_id"]), "--json")
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(entry["command"], entry["outcome"]) for entry in entries] == [
        ("CreateWork", "Created"),
        ("ClaimWork", "Claimed"),
    ]
    fields = {"sequence", "time", "command", "outcome", "principal", "revision", "changes"}
    assert [entry.keys() for entry in entries] == [fields, fields]


def test_a_capability_is_created_used_and_revoked(server: HttpServer) -> None:
    created = ask(server, "capability", "create", "--role", "WorkProducer", "--expires", "1h", "--json")
    assert created.json.keys() == {"id", "token", "role", "expires_at"}
    assert created.json["expires_at"].endswith("Z")
    run = ("command", "run", "CreateWork", "--json", "--input")
    assert ask(server, *run, new_input(), token=created.json["token"]).code == 0
    assert ask(server, "capability", "revoke", created.json["id"], "--json").code == 0
    check_problem(ask(server, *run, new_input(), token=created.json["token"]), "RDB-E-UNAUTHENTICATED")


def test_deploy_reaches_a_server(server: HttpServer) -> None:
    done = ask(server, "deploy", str(QUEUE), "--json")
    assert done.json.keys() == {"outcome", "contract", "version", "hash", "changes"}
    assert (done.json["outcome"], done.json["contract"], done.json["version"]) == ("unchanged", "WorkQueue", 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("command", "run", "CreateWork", "--input", "{}"), "RDB-E-INPUT"),
        (("command", "run", "CreateWrk"), "RDB-E-NOT-FOUND"),
        (("command", "run", "\udcff"), "RDB-E-INPUT"),
        (("query", "run", "Due"), "RDB-E-NOT-FOUND"),
        (("history", "WorkItems", "1", "2"), "RDB-E-NOT-FOUND"),
        (("history", "WorkItem", str(uuid4()), str(uuid4())), "RDB-E-NOT-FOUND"),
        (("history", "WorkItem", "1", "\udcff"), "RDB-E-INPUT"),
        (("capability", "create", "--role", "WorkProducers"), "RDB-E-INPUT"),
        (("capability", "revoke", str(uuid4())), "RDB-E-NOT-FOUND"),
        (("worker", "Due", "--once"), "RDB-E-NOT-FOUND"),
    ],
)
def test_an_operator_is_told_what_is_wrong(server: HttpServer, arguments: tuple[str, ...], code: str) -> None:
    check_problem(ask(server, *arguments, "--json"), code)


def test_a_key_with_another_input(server: HttpServer) -> None:
    work = new_work()
    assert ask(server, "command", "run", "CreateWork", "--input", json.dumps(work)).code == 0
    other = json.dumps(work | {"due_at": "2030-01-01T00:00:00Z"})
    check_problem(ask(server, "command", "run", "CreateWork", "--input", other, "--json"), "RDB-E-IDEMPOTENCY-REUSED")


def test_a_declared_failure_exits_7_and_is_data(server: HttpServer) -> None:
    work = new_work()
    assert ask(server, "command", "run", "CreateWork", "--input", json.dumps(work)).code == 0
    again = json.dumps(work | {"request_key": "another"})
    done = ask(server, "command", "run", "CreateWork", "--input", again, "--json")
    assert (done.code, done.json["outcome"], done.stderr) == (7, "AlreadyExists", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("command", "run", "ClaimWork"),
        ("command", "run", "NoSuchCommand"),
        ("query", "run", "DueWork"),
        ("history", "WorkItem", str(uuid4()), str(uuid4())),
        ("capability", "create", "--operator"),
        ("capability", "revoke", str(uuid4())),
        ("deploy", str(QUEUE)),
    ],
)
def test_what_a_role_has_not_is_forbidden(server: HttpServer, arguments: tuple[str, ...]) -> None:
    producer = server.token("WorkProducer")
    check_problem(ask(server, *arguments, "--json", token=producer), "RDB-E-FORBIDDEN")


@pytest.mark.parametrize("token", ["", "rdb_unknown", "two words", "a\nb", "\udcff", "é"])
def test_a_token_that_is_none(server: HttpServer, token: str) -> None:
    for verb in (("query", "run", "DueWork"), ("worker", "DueWorkItems", "--once")):
        done = ask(server, *verb, "--json", token=token)
        check_problem(done, "RDB-E-UNAUTHENTICATED")
        assert not token or token not in done.stderr + done.stdout


@pytest.mark.parametrize("address", ["", "here", "http://", "http://a b", "http://a..b", "http://\udcff", "ftp://a"])
def test_an_address_that_is_none(address: str) -> None:
    for verb in (("query", "run", "DueWork"), ("worker", "DueWorkItems", "--once")):
        check_problem(run_here(*verb, "--server", address, "--json", RIFFDB_TOKEN="rdb_x"), "RDB-E-USAGE")


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    done = run_here("query", "run", "DueWork", "--server", address, "--json", RIFFDB_TOKEN="rdb_x")
    check_problem(done, "RDB-E-UNAVAILABLE")


def test_a_port_in_use(server: HttpServer, deployment: Deployment) -> None:
    done = run_here("serve", "--db", deployment.url, "--listen", f"127.0.0.1:{server.port}", "--json")
    check_problem(done, "RDB-E-UNAVAILABLE")
    assert f"port {server.port}" in done.stderr


def test_a_file_that_a_server_holds_names_its_pid_and_the_way_round(deployment: Deployment) -> None:
    server = deployment.serve()
    for arguments in (
        ("command", "run", "CreateWork"),
        ("query", "run", "DueWork"),
        ("deploy", str(QUEUE)),
        ("serve",),
        ("worker", "DueWorkItems"),
        ("history", "WorkItem", "1"),
        ("capability", "create", "--operator"),
    ):
        done = run_here(*arguments, "--db", deployment.url, "--json")
        check_problem(done, "RDB-E-LOCKED")
        assert done.json["pid"] == server.process.pid
        assert f"process {server.process.pid};" in done.stderr
        assert "--server" in done.stderr
    assert server.process.stop() == 0


def test_an_unknown_outcome_names_the_key_that_settles_it(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment:
        server = deployment.serve("commit.after:kill")
        work = new_work()
        del work["request_key"]
        run = ("command", "run", "CreateWork", "--server", server.url, "--json", "--input")
        done = run_here(*run, json.dumps(work), RIFFDB_TOKEN=deployment.producer)
        check_problem(done, "RDB-E-OUTCOME-UNKNOWN")
        key = done.json["key"]
        assert f"ask again with the same key: {key}\n" in done.stderr
        assert server.process.ended() == -signal.SIGKILL
        deployment.serve(port=server.port)
        again = run_here(*run, json.dumps(work | {"request_key": key}), RIFFDB_TOKEN=deployment.producer)
        assert (again.code, again.json["outcome"], again.json["replayed"]) == (0, "Created", True)


def test_whoever_interrupts_a_command_is_told_the_key(deployment: Deployment) -> None:
    work = new_work()
    del work["request_key"]
    arguments = ["command", "run", "CreateWork", "--db", deployment.url, "--input", json.dumps(work)]
    with subprocess.Popen(
        [RIFFDB, *arguments],
        env=os.environ | {"RIFFDB_FAILPOINT": "commit.before:pause"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGCONT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (130, "")
    key = stderr.partition("ask again with the same key: ")[2].split()[0]
    again = run_here(*arguments[:-1], json.dumps(work | {"request_key": key}))
    assert again.code == 0, (stderr, again)


def test_an_interrupt_before_anything_is_done(tmp_path: Path) -> None:
    place = tmp_path / "input.json"
    os.mkfifo(place)
    arguments = ["command", "run", "CreateWork", "--db", "memory:", "--input", f"@{place}"]
    with (
        subprocess.Popen([RIFFDB, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        place.open("wb"),  # opens when the process reads
    ):
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_ends_well(deployment: Deployment, number: signal.Signals) -> None:
    server = deployment.serve()
    os.kill(server.process.pid, number)
    assert server.process.ended() == 0
    assert server.process.stderr == ""


def test_a_server_says_once_where_it_listens(deployment: Deployment) -> None:
    for options in ((), ("--json",)):
        process = deployment.start("serve", "--listen", "127.0.0.1:0", *options, RIFFDB_DB=deployment.url)
        line = process.line()
        assert process.stop() == 0
        assert process.line() == ""
        assert process.stderr == ""
        if options:
            assert json.loads(line) == {"listening": json.loads(line)["listening"], "pid": process.pid}
        else:
            assert line.startswith("RiffDB listens on http://127.0.0.1:")


def test_a_server_takes_flags_then_variables_then_the_file(tmp_path: Path) -> None:
    with deployed(tmp_path) as deployment:
        settings = deployment.application / "riffdb.toml"
        text = settings.read_text("utf-8")
        lines = '\n[server]\ndb = "sqlite:../work.db"\nlisten = "127.0.0.1:0"\n[limits]\nbody_bytes_max = 1024\n'
        settings.write_text(text + lines, "utf-8")
        inside = deployment.start("serve", "--json")
        address = json.loads(inside.line())["listening"]
        too_long = new_input(request_key="k" * 1024)
        run = ("command", "run", "CreateWork", "--json", "--input", too_long)
        done = run_here(*run, "--server", address, RIFFDB_TOKEN=deployment.producer)
        check_problem(done, "RDB-E-TOO-LARGE")
        assert inside.stop() == 0

        busy = settings.read_text("utf-8").replace("127.0.0.1:0", address.removeprefix("http://"))
        settings.write_text(busy, "utf-8")
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            refused = run_riffdb("serve", "--application", deployment.application, cwd=tmp_path)
            assert refused.code == 9, refused  # the file's address, and its database relative to it
            by_variable = deployment.start("serve", "--json", RIFFDB_LISTEN="127.0.0.1:0")
            assert by_variable.line()
            assert by_variable.stop() == 0
            by_flag = deployment.start("serve", "--json", "--listen", "127.0.0.1:0", RIFFDB_LISTEN="nowhere")
            assert by_flag.line()
            assert by_flag.stop() == 0
        other = run_riffdb("serve", cwd=deployment.application, RIFFDB_DB=f"sqlite:{tmp_path}/gone.db")
        assert (other.code, "gone.db" in other.stderr) == (2, True)


def test_check_json_has_every_field(tmp_path: Path) -> None:
    (tmp_path / "riffdb.toml").write_text('[application]\nname = "case"\n', "utf-8")
    (tmp_path / "a.riff").write_text("contract Café version 1 {\n  enum A { B }\n  enum A { B }\n}\n", "utf-8")
    done = run_here("check", tmp_path, "--json")
    assert (done.code, done.stderr, done.json["ok"]) == (3, "", False)
    place = {"file", "line", "column", "end_line", "end_column"}
    for diagnostic in done.json["diagnostics"]:
        assert diagnostic.keys() == {"code", "severity", "message", "related", "fix"} | place
        for related in diagnostic["related"]:
            assert related.keys() == {"message"} | place


def test_commands_of_one_process_do_not_disturb_the_next(deployment: Deployment) -> None:
    with riffdb.open(deployment.url):
        done = run_here("query", "run", "DueWork", "--db", deployment.url)
        assert done.code == 9
        assert "is open in this process" in done.stderr
    organization = json.dumps({"organization_id": str(uuid4())})
    assert run_here("query", "run", "DueWork", "--db", deployment.url, "--input", organization).code == 0
