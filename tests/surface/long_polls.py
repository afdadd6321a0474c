"""Long polls over bare connections, and what they cost a server: what is sent, what comes back, the processor time."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from tests.surface.http_server import TIMEOUT_SECONDS


def ask(connection: socket.socket, path: str, token: str, body: Mapping[str, object]) -> None:
    """Send a request, whose answer may take its time."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(content)}"
    connection.sendall(f"{head}\r\n\r\n".encode() + content)


def answer(connection: socket.socket) -> Any:
    """The JSON of the response that comes."""
    received = b""
    while b"\r\n\r\n" not in received or not received.endswith(b"}"):
        piece = connection.recv(65_536)
        assert piece, f"the connection ended after {received!r}"
        received += piece
    return json.loads(received.partition(b"\r\n\r\n")[2])


def until(condition: Callable[[], bool]) -> None:
    """Return once it holds; the limit only stops a test that would hang."""
    for _ in range(int(TIMEOUT_SECONDS / 0.01)):
        if condition():
            return
        Event().wait(0.01)
    raise AssertionError("it never came to be")


def cpu_seconds(pid: int) -> float:
    """What the process took of the processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
