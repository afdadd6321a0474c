"""`make demo`: the queue of `examples/queue` on real parts, one worker killed in mid-turn, told with figures.

Everything runs as a user would run it: the `riffdb` command, an SQLite file, a server, worker processes. Every claim of
the story is checked against the database; the exit code is 0 only if all of them are true.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

import riffdb

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".demo"
FILE = FOLDER / "work.db"
DATABASE = f"sqlite:{FILE}"
ITEMS = 200
DEADLINE_SECONDS = 100
COMPLETE = 2
"""The ordinal of `WorkState.Complete`."""


class UntrueError(Exception):
    """A claim of the story did not hold."""


@dataclass
class Story:
    """What is told, with the time since the beginning; and the processes that are part of it."""

    began: float = field(default_factory=time.monotonic)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def tell(self, text: str) -> None:
        """One line of the story."""
        print(f"[{time.monotonic() - self.began:5.1f} s] {text}", flush=True)

    def claim(self, holds: bool, text: str) -> None:
        """A claim that has been checked; the story ends at one that does not hold."""
        if not holds:
            raise UntrueError(text)
        self.tell(f"  ✓ {text}")

    def start(self, log: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a `riffdb` process whose stdout is read by the story and whose stderr goes to a log beside the file."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("RIFFDB_")}
        with (FOLDER / log).open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "riffdb", *arguments],
                env=variables | environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.processes.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> int:
        """Tell a process to stop; its exit code."""
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=30)

    def stop(self) -> None:
        """End what is still running."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something is true of the database."""
        while not holds():
            if time.monotonic() - self.began > DEADLINE_SECONDS:
                raise UntrueError(f"{what} within {DEADLINE_SECONDS} seconds")
            time.sleep(0.1)


def riffdb_json(*arguments: str) -> dict[str, str]:
    """The JSON document that a `riffdb` command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "riffdb", *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    document: dict[str, str] = json.loads(done.stdout)
    return document


def figure(sql: str, *values: object) -> int:
    """One number out of the file, read with Python's own SQLite while the server runs."""
    with closing(sqlite3.connect(f"file:{FILE}?mode=ro", uri=True)) as connection:
        return int(connection.execute(sql, values).fetchone()[0])


def completed() -> int:
    """How many items the database says are complete."""
    return figure("SELECT count(*) FROM work_item WHERE state = ?", COMPLETE)


def commits(command: str, outcome: str, work_id: UUID | None = None) -> int:
    """How often a command was committed with an outcome, for one item or for all."""
    sql = "SELECT count(*) FROM riffdb_commit WHERE command = ? AND outcome = ?"
    if work_id is None:
        return figure(sql, command, outcome)
    return figure(f"{sql} AND json_extract(input, '$.work_id') = ?", command, outcome, str(work_id))


@dataclass(frozen=True)
class Tokens:
    """What the producer and the workers know the server by."""

    producer: str
    scheduler: str
    operator: str


def deploy(story: Story) -> Tokens:
    """Compile the contract, put it on a new file, and make the three tokens."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    riffdb_json("check", "examples/queue")
    deployed = riffdb_json("deploy", "examples/queue", "--db", DATABASE)
    story.tell(f"{deployed['contract']} version {deployed['version']} is proven sound and deployed on {FILE.name}")

    def create(*grant: str) -> str:
        return riffdb_json("capability", "create", *grant, "--db", DATABASE)["token"]

    tokens = Tokens(create("--role", "WorkProducer"), create("--role", "WorkScheduler"), create("--operator"))
    story.tell("three tokens made: one may only create work, one may only do it, one is the operator's")
    return tokens


def serve(story: Story) -> str:
    """Start the server; its address."""
    server = story.start("serve.log", "serve", "--db", DATABASE, "--listen", "127.0.0.1:0", "--json")
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise UntrueError("the server starts")
    address: str = json.loads(line)["listening"]
    story.tell(f"riffdb serve listens on {address}")
    return address


def enqueue(story: Story, address: str, tokens: Tokens, organization: UUID) -> list[UUID]:
    """Create the items over HTTP; their ids."""
    items = [uuid7() for _ in range(ITEMS)]
    now = datetime.now(UTC)
    with riffdb.connect(address, tokens.producer) as client:
        for item in items:
            answer = client.command("CreateWork", organization_id=organization, work_id=item, due_at=now)
            story_holds = answer.outcome == "Created"
            if not story_holds:
                raise UntrueError(f"item {item} is created, not {answer.outcome}")
    story.tell(f"{ITEMS} items enqueued over HTTP")
    return items


def start_workers(
    story: Story, address: str, tokens: Tokens, organization: UUID, owners: list[UUID], flaky: UUID
) -> list[subprocess.Popen[str]]:
    """Start the worker processes as a user would; the first will hold the fifth item that it gets."""
    workers = []
    for number, owner in enumerate(owners, 1):
        options = ["--server", address, "--param", f"organization_id={organization}", "--owner", str(owner)]
        handler = ["--handler", "tools.demo_handlers:work", "--application", "examples/queue"]
        part = {"DEMO_HOLD": "5"} if number == 1 else {}
        environment = {"RIFFDB_TOKEN": tokens.scheduler, "DEMO_FLAKY": str(flaky), **part}
        workers.append(story.start(f"worker-{number}.log", "worker", "DueWorkItems", *options, *handler, **environment))
    story.tell(f"{len(workers)} worker processes started")
    return workers


def kill_in_mid_turn(story: Story, worker: subprocess.Popen[str]) -> dict[str, str]:
    """Wait until the worker's handler says what it holds, then SIGKILL the process; what it held."""
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise UntrueError("the first worker claims an item")
    held: dict[str, str] = json.loads(line)
    worker.send_signal(signal.SIGKILL)
    if worker.wait() != -signal.SIGKILL:
        raise UntrueError("the first worker died of SIGKILL")
    story.tell(
        f"worker 1 held item …{held['work_id'][-6:]} with fence {held['fence']} and was killed (SIGKILL) at work on it"
    )
    return held


def late_writes(
    story: Story, address: str, tokens: Tokens, held: dict[str, str], organization: UUID, owner: UUID
) -> None:
    """What the dead worker would send if it woke up now."""
    with riffdb.connect(address, tokens.scheduler) as client:
        evidence = {"organization_id": organization, "work_id": UUID(held["work_id"]), "owner_id": owner}
        late = client.command(
            "CompleteWork", **evidence, token=int(held["fence"]), expected_revision=int(held["revision"])
        )
        story.claim(
            late.outcome == "WorkStale", f"its late CompleteWork with the old revision is refused: {late.outcome}"
        )
        revision = figure("SELECT revision FROM work_item WHERE work_id = ?", UUID(held["work_id"]).bytes)
        late = client.command("CompleteWork", **evidence, token=int(held["fence"]), expected_revision=revision)
        story.claim(late.outcome == "WrongHolder", f"and with the newest revision but its old token: {late.outcome}")


def check_figures(story: Story, items: list[UUID], victim: UUID, flaky: UUID) -> None:
    """What the database says after it all."""
    story.claim(completed() == ITEMS, f"{completed()} of {ITEMS} items are complete")
    distinct = figure(
        "SELECT count(DISTINCT json_extract(input, '$.work_id')) FROM riffdb_commit"
        " WHERE command = 'CompleteWork' AND outcome = 'Completed'"
    )
    done = commits("CompleteWork", "Completed")
    story.claim(
        done == distinct == len(items), f"{done} commits of CompleteWork for {distinct} items: each exactly once"
    )
    fence = figure("SELECT lease_fence FROM work_item WHERE work_id = ?", victim.bytes)
    story.claim(fence == 2, f"the dead worker's item was taken over with fence {fence}, higher than its 1")
    failed = commits("FailWork", "Retried", flaky)
    attempts = figure("SELECT lease_attempts FROM work_item WHERE work_id = ?", flaky.bytes)
    story.claim(
        failed == 2 and attempts == 3,
        f"the item whose handler failed twice went through FailWork {failed} times and succeeded at attempt {attempts}",
    )


def show_history(story: Story, address: str, tokens: Tokens, organization: UUID, victim: UUID) -> None:
    """The provenance of the item that was taken over."""
    story.tell("who did what to the item that was taken over (riffdb history WorkItem …):")
    with riffdb.connect(address, tokens.operator) as client:
        for entry in client.history("WorkItem", organization, victim):
            print(
                f"             {entry['time']}  revision {entry['revision']}  {entry['command']} -> {entry['outcome']}"
            )


def play(story: Story) -> None:
    """The story, from beginning to end."""
    organization, owners = uuid7(), [uuid7() for _ in range(3)]
    tokens = deploy(story)
    address = serve(story)
    items = enqueue(story, address, tokens, organization)
    flaky = items[ITEMS // 2]
    victim_worker, *workers = start_workers(story, address, tokens, organization, owners, flaky)
    held = kill_in_mid_turn(story, victim_worker)
    victim = UUID(held["work_id"])
    story.tell("the others go on; what the dead one held is free again when its lease of 10 seconds has run out")
    story.until(lambda: completed() == ITEMS, f"all {ITEMS} items are completed")
    story.tell("all work is done; now what the database says:")
    check_figures(story, items, victim, flaky)
    late_writes(story, address, tokens, held, organization, owners[0])
    show_history(story, address, tokens, organization, victim)
    ends = [story.end(process) for process in (*workers, story.processes[0])]
    story.claim(not any(ends), "told to stop, the workers and the server ended cleanly")
    story.tell(f"done. Look around: sqlite3 {FILE.relative_to(ROOT)}; read on: docs/tutorial/first-application.md")


def main() -> int:
    """Play the story; 0 if all of it is true."""
    story = Story()
    with ExitStack() as stack:
        stack.callback(story.stop)
        try:
            play(story)
        except UntrueError as untrue:
            story.tell(f"  ✗ not true: {untrue}")
            return 1
        except riffdb.RiffError as error:
            story.tell(f"  ✗ {error.code}: {error.message}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
