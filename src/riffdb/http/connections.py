"""The socket under a response that lasts, found by its two ends: the HTTP server shows it to nobody.

The server takes whatever it is given to send and keeps it, so a reader that is slow or gone would fill the memory; the
socket tells whether anything can be sent, ends a connection whose other side takes nothing, and forgets it when that
side has vanished without a word. A descriptor that is looked at may be closed and used anew at any moment, so each is
duplicated first and judged by its duplicate. Linux alone.
"""

import asyncio
import os
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address

SEND_BUFFER_BYTES = 1 << 16
"""What the system keeps for a reader that is behind, twice, on top of what the server has just been given."""

NEARBY = 64
"""How many descriptors are looked at before all of them are listed, which takes long where there are many."""


class Connection:
    """One connection of the server, for as long as it is not closed here."""

    def __init__(self, duplicate: socket.socket, patience_seconds: float) -> None:
        self._socket = duplicate
        self._patience_seconds = patience_seconds
        self._is_over = False
        self._waiting: asyncio.Future[bool] | None = None
        self._poll = select.poll()
        self._poll.register(duplicate, select.POLLOUT)
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(patience_seconds * 750))

    async def writable(self) -> bool:
        """Whether something can be sent, once it can; False if it cannot for too long, or at `give_up`."""
        if self._poll.poll(0):
            return True
        if self._is_over:
            return False
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        self._waiting = waiting
        loop.add_writer(self._socket, _resolve, waiting, True)
        timer = loop.call_later(self._patience_seconds, _resolve, waiting, False)
        try:
            return await waiting
        finally:
            timer.cancel()
            loop.remove_writer(self._socket)
            self._waiting = None

    def give_up(self) -> None:
        """Let nobody wait until something can be sent."""
        self._is_over = True
        if self._waiting is not None:
            _resolve(self._waiting, False)

    def abort(self) -> None:
        """End the connection at once, with what it has not sent."""
        with suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection, which goes on."""
        self._socket.close()


def connection_from(client: str, local_port: int, patience_seconds: float) -> Connection | None:
    """The connection of a client (`HOST:PORT`) to a port of this process; None if it has ended.

    `patience_seconds`: for how long what was sent may stay without a sign from the other side.
    """
    host, _, port = client.rpartition(":")
    wanted = (ip_address(host.strip("[]")), int(port))
    for number in _likely_first():
        duplicate = _duplicate(number)
        if duplicate is None:
            continue
        try:
            if duplicate.getsockname()[1] == local_port and _peer(duplicate) == wanted:
                return Connection(duplicate, patience_seconds)
        except OSError:  # it is not connected, or no longer
            pass
        duplicate.close()
    return None


def _likely_first() -> Iterator[int]:
    """All descriptors, those first that lie right below the lowest free one, as a connection does that is new."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    yield from range(free - 1, max(free - NEARBY, 0), -1)
    yield from sorted(map(int, os.listdir("/proc/self/fd")), reverse=True)


def _duplicate(number: int) -> socket.socket | None:
    """A socket of its own for the descriptor, if it is one of an internet socket."""
    try:
        duplicate = os.dup(number)
    except OSError:
        return None
    try:
        found = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return None
    if found.family in (socket.AF_INET, socket.AF_INET6):
        return found
    found.close()
    return None


def _peer(connected: socket.socket) -> tuple[object, int]:
    host, port = connected.getpeername()[:2]
    return ip_address(host.partition("%")[0]), port


def _resolve(waiting: "asyncio.Future[bool]", is_writable: bool) -> None:
    if not waiting.done():
        waiting.set_result(is_writable)
