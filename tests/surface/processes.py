"""The real processes of RiffDB, as a user starts them: one-shot commands, `riffdb serve`, workers.

`deployed` gives a database file with the queue of the examples on it, and ends whatever was started there, each by its
own pid. A process is waited for by what it prints or by its end; the limit below only stops a test that would hang.
"""

import json
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import riffdb
from tests import faulty_disk
from tests.surface.http_server import HttpClient

ROOT = Path(__file__).parent.parent.parent
QUEUE = ROOT / "examples" / "queue"
RIFFDB = Path(sys.executable).with_name("riffdb")
PATIENCE_SECONDS = 120
COMPLETE = 2
"""The ordinal of `WorkState.Complete` in the file."""


@dataclass(frozen=True)
class Application:
    """An example, the roles of it that queue work and work on it, and how a worker of it is started."""

    folder: Path
    producer: str
    scheduler: str
    schedule: str
    partition: str
    handler: str


WORK_QUEUE = Application(QUEUE, "WorkProducer", "WorkScheduler", "DueWorkItems", "organization_id", "handlers:complete")
PIPELINES = Application(
    ROOT / "examples" / "pipeline", "Pusher", "PipelineWorker", "RunPipelines", "repository_id", "handlers:run"
)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.stdout)


def run_riffdb(*arguments: str | Path, cwd: Path = ROOT, stdin: str = "", **environment: str) -> Done:
    """Run `riffdb` to its end; no other `RIFFDB_…` variable than the given ones is set."""
    done = subprocess.run(
        [RIFFDB, *arguments],
        cwd=cwd,
        env=_environment(environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RIFFDB_")} | dict(more)


class Process:
    """A `riffdb` that runs until it is told to stop; its stdout is read line by line, its stderr goes to a file."""

    def __init__(
        self,
        log: Path,
        arguments: tuple[str | Path, ...],
        cwd: Path,
        environment: Mapping[str, str],
        files_max: int | None = None,
        program: tuple[str | Path, ...] = (RIFFDB,),
    ) -> None:
        self._log = log
        bounded = [] if files_max is None else ["sh", "-c", f'ulimit -n {files_max}; exec "$@"', "sh"]
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*bounded, *program, *arguments],
                cwd=cwd,
                env=_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        assert self._process.stdout is not None
        self._stdout = self._process.stdout
        self._unread = b""

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """What it wrote to stderr so far."""
        return self._log.read_text(encoding="utf-8")

    def line(self) -> str:
        """The next line of stdout, waited for; empty when it ended."""
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._stdout], [], [], PATIENCE_SECONDS)
            assert ready, f"process {self.pid} prints nothing more; its stderr:\n{self.stderr}"
            piece = os.read(self._stdout.fileno(), 65_536)
            if not piece:
                return ""
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def stop_reading(self) -> None:
        """Let nobody read what it prints from now on."""
        self._stdout.close()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self._process.wait(PATIENCE_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self) -> int:
        """Tell it to stop; its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def end(self) -> None:
        """End it in any case, and let go of it."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._stdout.close()


@dataclass(frozen=True)
class Server:
    """A `riffdb serve` that answers."""

    process: Process
    url: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    @contextmanager
    def client(self, token: str) -> Iterator[HttpClient]:
        """One plain HTTP connection."""
        client = HttpClient("127.0.0.1", self.port, token)
        try:
            yield client
        finally:
            client.connection.close()

    @contextmanager
    def socket(self) -> Iterator[socket.socket]:
        """A bare connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS) as connection:
            yield connection


class Deployment:
    """A database file with an application deployed on it, and the processes that were started for it."""

    def __init__(self, folder: Path, kind: Application = WORK_QUEUE) -> None:
        self.folder = folder
        self.kind = kind
        self.application = folder / kind.folder.name
        self.file = folder / "work.db"
        self.url = f"sqlite:{self.file}"
        self._processes: list[Process] = []
        with riffdb.open(self.url, self.application) as client:
            self.operator = client.create_capability(role="")["token"]
            self.producer = client.create_capability(role=kind.producer)["token"]
            self.scheduler = client.create_capability(role=kind.scheduler)["token"]

    def token(self, role: str, **restrictions: Any) -> str:
        """One more token, made while no server holds the file; an empty role is an operator's."""
        with riffdb.open(self.url) as client:
            return str(client.create_capability(role=role, **restrictions)["token"])

    def start(
        self,
        *arguments: str | Path,
        files_max: int | None = None,
        program: tuple[str | Path, ...] = (RIFFDB,),
        **environment: str,
    ) -> Process:
        """Start `riffdb` in the application's folder; `files_max` bounds the files that it may have open."""
        log = self.folder / f"stderr-{len(self._processes)}.txt"
        process = Process(log, arguments, self.application, environment, files_max, program)
        self._processes.append(process)
        return process

    @contextmanager
    def serving(self, failpoint: str = "", **options: Any) -> Iterator[Server]:
        """As `serve`, for a block, at whose end the server is ended in any case."""
        server = self.serve(failpoint, **options)
        try:
            yield server
        finally:
            server.process.end()

    @property
    def fault(self) -> Path:
        """The file that says how the disk of `serve` with `faulty` fails, for as long as it is there."""
        return self.folder / "fault"

    def serve(
        self, failpoint: str = "", *, port: int = 0, files_max: int | None = None, faulty: bool = False
    ) -> Server:
        """Start the server, with a failpoint armed in it if one is given, and wait until it answers."""
        options = ("--allow-failpoints",) if failpoint else ()
        variables = {"RIFFDB_FAILPOINT": failpoint} if failpoint else {}
        arguments = ("serve", "--db", self.url, "--listen", f"127.0.0.1:{port}", "--json", *options)
        program: tuple[str | Path, ...] = (RIFFDB,)
        if faulty:
            program = (sys.executable, "-m", "tests.faulty_disk")
            variables |= {faulty_disk.VARIABLE: str(self.fault), "PYTHONPATH": str(ROOT)}
        process = self.start(*arguments, files_max=files_max, program=program, **variables)
        line = process.line()
        assert '"listening"' in line, process.stderr
        ready = json.loads(line)
        assert ready["pid"] == process.pid
        return Server(process, ready["listening"])

    def take_over(self, dead: Server) -> Server:
        """Start the next server on the port of a dead one, which still seems to hold the file."""
        assert self.holder == str(dead.process.pid)
        successor = self.serve(port=dead.port)
        assert self.holder == str(successor.process.pid)
        return successor

    def check_file(self) -> None:
        """The file is whole, and each partition's log is numbered from 1 without a gap, in the order of time."""
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        for partition, newest in self.rows("SELECT partition, sequence FROM riffdb_head"):
            log = self.rows("SELECT sequence, time FROM riffdb_commit WHERE partition = ? ORDER BY position", partition)
            assert [sequence for sequence, _ in log] == list(range(1, newest + 1))
            assert sorted({time for _, time in log}) == [time for _, time in log]

    def worker(self, server: Server, partition: str, *options: str, owner: str, failpoint: str = "") -> Process:
        """Start a worker of the schedule on one partition's items; it prints one JSON document a turn."""
        variables = {"RIFFDB_TOKEN": self.scheduler} | ({"RIFFDB_FAILPOINT": failpoint} if failpoint else {})
        kind = self.kind
        param = f"{kind.partition}={partition}"
        arguments = ("--server", server.url, "--param", param, "--owner", owner, "--handler", kind.handler, "--json")
        return self.start("worker", kind.schedule, *arguments, *options, **variables)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What SQL finds in the file, read with Python's own SQLite, whoever holds the file."""
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def figure(self, sql: str, *values: object) -> Any:
        """The one value that SQL finds in the file."""
        return self.rows(sql, *values)[0][0]

    @property
    def holder(self) -> str:
        """The pid that the lock beside the file names."""
        return Path(f"{self.file}-riffdb.lock").read_text(encoding="utf-8").strip()

    def end(self) -> None:
        """End what was started here and still runs."""
        for process in self._processes:
            process.end()


@contextmanager
def deployed(folder: Path, kind: Application = WORK_QUEUE, **policy: int) -> Iterator[Deployment]:
    """A deployment of an application in `folder`; `policy` replaces settings of its schedule."""
    application = folder / kind.folder.name
    shutil.copytree(kind.folder, application, ignore=shutil.ignore_patterns("__pycache__"))
    settings = application / "riffdb.toml"
    text = settings.read_text(encoding="utf-8")
    for name, value in policy.items():
        text, count = re.subn(rf"^{name} = \d+", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1, f"the schedule of {application.name} has no setting {name}"
    settings.write_text(text, encoding="utf-8")
    deployment = Deployment(folder, kind)
    try:
        yield deployment
    finally:
        deployment.end()


def as_replay(answer: bytes) -> bytes:
    """The bytes of an answer as every later caller with the same key and input must get them."""
    stored, colon, replayed = answer.rpartition(b'"replayed":')
    assert colon, answer
    assert replayed in (b"true}", b"false}")
    return stored + colon + b"true}"
