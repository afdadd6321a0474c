"""The server: one process, one event loop, which is ours; granian speaks the protocol and nothing else.

`serve` adds what a process of its own needs, the signals; `serve_until` is the server itself. The stop is graceful: no
new connection, bodies still under way are refused, what was admitted finishes and is answered. The caller opens and
closes the database. Absent: printing, TLS, a second process.

Granian's threads outlive `serve` by a moment in which they may still enter Python, and tearing the interpreter down
just then aborts the process; a process that served leaves by `os._exit`, as `riffdb` does.
"""

import asyncio
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from granian.constants import HTTPModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]  # how granian itself takes a socket
from granian.server.embed import Server

from riffdb.core.errors import RiffError
from riffdb.core.limits import (
    BODY_BYTES_MAX,
    BODY_WAIT_SECONDS_MAX,
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    HEARTBEAT_SECONDS,
    WATCHES_MAX,
)
from riffdb.database.database import Database
from riffdb.http.edge import Edge
from riffdb.http.listening import BACKLOG, open_socket, url_of

LINGER_SECONDS_MAX = 3
"""How long a stop waits for connections to take their last answers, and for those that were never a whole request."""

FILES_RESERVED = 128
"""File descriptors that connections leave to the store and to Python."""

_FILES_WANTED = CONNECTIONS_MAX + WATCHES_MAX
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Incremental: anything else would close the handlers that the process has. Granian's records go to the root logger.
_LOGGING = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {"_granian": {}}}


async def serve(
    database: Database,
    listen: str,
    *,
    on_ready: Callable[[str], None],
    body_bytes_max: int = BODY_BYTES_MAX,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    watches_max: int = WATCHES_MAX,
    allow_public: bool = False,
) -> None:
    """Serve the database at `HOST:PORT` until SIGTERM or SIGINT; a second signal ends the process at once.

    `on_ready` is called with the URL when connections are answered. `RDB-E-USAGE` and `RDB-E-UNAVAILABLE` before that
    for an address that cannot be listened on; the store's failure is raised once it has been answered.
    """
    stop = asyncio.Event()
    _raise_files_max()
    with _stopping_signals(stop):
        await serve_until(
            stop,
            database,
            listen,
            on_ready=on_ready,
            body_bytes_max=body_bytes_max,
            heartbeat_seconds=heartbeat_seconds,
            watches_max=watches_max,
            allow_public=allow_public,
        )


async def serve_until(
    stop: asyncio.Event,
    database: Database,
    listen: str,
    *,
    on_ready: Callable[[str], None],
    body_bytes_max: int = BODY_BYTES_MAX,
    body_wait_seconds_max: int = BODY_WAIT_SECONDS_MAX,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    watches_max: int = WATCHES_MAX,
    allow_public: bool = False,
) -> None:
    """Serve until `stop` is set; as `serve`, but without signals, so that any thread's loop can run it."""
    listening = open_socket(listen, allow_public=allow_public)
    url, address = url_of(listening), listening.getsockname()
    database.watches.watches_max = min(watches_max, _files_free() // 3)
    edge = Edge(
        database,
        stop,
        port=address[1],
        body_bytes_max=body_bytes_max,
        body_wait_seconds_max=body_wait_seconds_max,
        heartbeat_seconds=heartbeat_seconds,
    )
    transport = _Transport(edge, listening, database.watches.watches_max)
    loop = asyncio.get_running_loop()
    transporting = loop.create_task(transport.serve())
    watching = loop.create_task(edge.watch())
    try:
        await _while_alive(transporting, _first_answer(address))
        on_ready(url)
        await _while_alive(transporting, stop.wait())
    finally:
        watching.cancel()
        transport.end()
        await edge.finish()
        await asyncio.wait([transporting], timeout=LINGER_SECONDS_MAX)
        transporting.cancel()
        listening.close()
    if database.failure is not None:
        raise database.failure


class _Transport(Server):
    """Granian's embedded server over a socket of ours: it would share the port with others and tell none for port 0."""

    def __init__(self, edge: Edge, listening: socket.socket, watches_max: int) -> None:
        super().__init__(
            target=edge,
            http=HTTPModes.http1,
            websockets=False,
            http1_settings=HTTP1Settings(max_buffer_size=HEAD_BYTES_MAX),
            backlog=BACKLOG,
            backpressure=max(1, min(CONNECTIONS_MAX, _files_free() - watches_max)),
            log_dictconfig=_LOGGING,
            log_level=LogLevels.error,
        )
        self._listening = listening

    def _init_shared_socket(self) -> None:
        holder: Any = SocketHolder
        self._shd = holder(self._listening.detach(), False, BACKLOG)

    def end(self) -> None:
        """Accept no more connections, and end each that is there after its request."""
        self.interrupt_signal = True
        self.main_loop_interrupt.set()


def _files_free() -> int:
    """How many descriptors connections may take, one each and two where a watch lasts, so that the store never lacks
    one; connections beyond that wait."""
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _FILES_WANTED if files_max < 0 else files_max - FILES_RESERVED


def _raise_files_max() -> None:
    """Ask for the descriptors that all connections need, as far as the system lets this process have them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_WANTED + FILES_RESERVED
    wanted = wanted if hard < 0 else min(hard, wanted)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _while_alive(transporting: asyncio.Task[Any], waiting: Coroutine[Any, Any, object]) -> None:
    """Wait, and raise if the transport ends first, which it never does by itself."""
    task = asyncio.ensure_future(waiting)
    try:
        await asyncio.wait([task, transporting], return_when=asyncio.FIRST_COMPLETED)
        if transporting.done():
            raise RiffError("RDB-E-UNAVAILABLE", "the HTTP server ended by itself") from transporting.exception()
        task.result()
    finally:
        task.cancel()


async def _first_answer(address: tuple[Any, ...]) -> None:
    """Return when the server answers: the socket takes connections before anybody accepts them."""
    reader, writer = await asyncio.open_connection(address[0], address[1])
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if not (await reader.read()).startswith(b"HTTP/1.1 200 "):
            raise RiffError("RDB-E-UNAVAILABLE", "the HTTP server does not answer on its own address")
    finally:
        writer.close()


@contextmanager
def _stopping_signals(stop: asyncio.Event) -> Iterator[None]:
    """Within, the first signal sets `stop`, and the next one does what the system does by default."""
    loop = asyncio.get_running_loop()

    def stop_once() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop_once)
    try:
        yield
    finally:
        for number, earlier in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, earlier)
