"""A server that answers as a script says, over real sockets: whole answers, half ones, none at all.

`GET /v1/contract` is answered with the plan unless the script says otherwise; every other request takes the next step.
"""

import json
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

from riffdb.plan import Plan
from riffdb.plan.plan import to_json


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def key(self) -> Any:
        """The request key in the body."""
        return json.loads(self.body)["input"]["request_key"]


@dataclass(frozen=True)
class Step:
    """What becomes of one request: the bytes that are sent, and whether the connection is closed then; before that the
    whole server may stop to listen, or let the client wait."""

    sent: bytes = b""
    closes: bool = True
    stops: bool = False
    delay_seconds: float = 0


DROP = Step()
DIE = Step(stops=True)
GARBAGE = Step(b"\x00\xff no HTTP at all\r\n\r\n")
HALF_HEAD = Step(b"HTTP/1.1 200 OK\r\nContent-Le")


def reply(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, closes: bool = False, said: int | None = None
) -> Step:
    """A response; `said` is the length that it announces, if not its own."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body) if said is None else said}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return Step("\r\n".join([*lines, "", ""]).encode() + body, closes)


def problem(code: str, status: int, **more: object) -> Step:
    """A problem of RiffDB, with a `Retry-After` of nothing."""
    body = {"code": code, "detail": "said so", "status": status} | more
    return reply(status, json.dumps(body).encode(), {"Retry-After": "0"})


def answer(outcome: str = "Created", *, replayed: bool = False) -> bytes:
    """The answer of a command, without a payload."""
    commit = {"partition": "p", "sequence": "1", "time": "2027-01-01T00:00:00.000000Z"}
    body = {"outcome": outcome, "payload": {}, "workflow_revisions": [], "commit": commit, "replayed": replayed}
    return json.dumps(body).encode()


ANSWER = reply(200, answer())


@dataclass
class ScriptedServer:
    """The server. `received` holds all requests but those for the contract."""

    plan: Plan
    script: deque[Step] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    contract: Step | None = None
    contracts_asked: int = 0
    url: str = ""
    listening: socket.socket | None = None
    open_connections: list[socket.socket] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def play(self, *steps: Step) -> None:
        """What the next requests meet."""
        self.script.extend(steps)

    def close_connections(self) -> None:
        """Close every connection that a client may have kept."""
        with self._lock:
            kept, self.open_connections = self.open_connections, []
        for connection in kept:
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def stop(self) -> None:
        """Listen no more."""
        if self.listening is not None:
            self.listening.shutdown(socket.SHUT_RDWR)
            self.listening.close()
            self.listening = None

    def serve(self, listening: socket.socket) -> None:
        """Accept connections until the listening socket is closed."""
        threads = []
        for number in range(1_000_000):
            try:
                connection, _ = listening.accept()
            except OSError:
                break
            with self._lock:
                self.open_connections.append(connection)
            threads.append(Thread(target=self._converse, args=(connection, number), daemon=True))
            threads[-1].start()
        self.close_connections()
        for thread in threads:
            thread.join(60)

    def _converse(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as incoming:
            try:
                while True:
                    request = _read(incoming, number)
                    if request is None:
                        return
                    step = self._step(request)
                    if step.stops:
                        self.stop()
                    Event().wait(step.delay_seconds)
                    connection.sendall(step.sent)
                    if step.closes:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
            except OSError:
                return  # the client, or the test, closed it

    def _step(self, request: Received) -> Step:
        if request.path == "/v1/contract":
            self.contracts_asked += 1
            return self.contract or reply(200, f'{{"plan":{to_json(self.plan)},"hash":""}}'.encode())
        self.received.append(request)
        return self.script.popleft() if self.script else reply(418, b"the script is over")


def _read(incoming: Any, number: int) -> Received | None:
    first = incoming.readline().decode()
    if not first:
        return None
    method, path, _ = first.split(" ")
    headers = {}
    while line := incoming.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Received(method, path, headers, incoming.read(int(headers.get("content-length", "0"))), number)


@contextmanager
def scripted(plan: Plan) -> Iterator[ScriptedServer]:
    """The server while the block runs."""
    server = ScriptedServer(plan)
    server.listening = listening = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    thread = Thread(target=server.serve, args=(listening,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
