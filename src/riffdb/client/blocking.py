"""Exchanges over `http.client`: blocking, usable from many threads, with connections kept in a small pool.

A kept connection is looked at before it is used again: on one that the server has closed meanwhile there is something
to read. One that it closes at that very moment shows as `BrokenError`, since it cannot be told from an answer that was
lost; whoever sends decides what may be sent again.
"""

import http.client
import select
import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from threading import Lock

from riffdb.client.calls import Client
from riffdb.client.exchanges import (
    SILENCE_SECONDS_MAX,
    TIMEOUT_SECONDS,
    BrokenError,
    NotSentError,
    Pieces,
    Request,
    Response,
    RetryBudget,
)
from riffdb.client.remote import RemoteTransport, request_headers, retry_after_seconds, server_address

PIECE_BYTES_MAX = 1 << 16


class BlockingExchange:
    """Never suspends: each method returns when it is done."""

    def __init__(self, url: str, token: str, timeout_seconds: float) -> None:
        parts = server_address(url)
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._headers = request_headers(token)
        self._timeout_seconds = timeout_seconds
        self._idle: deque[http.client.HTTPConnection] = deque()

    async def exchange(self, request: Request) -> Response:
        """The response of the server."""
        connection = self._kept() or self._connect()
        try:
            connection.sock.settimeout(self._timeout_seconds + request.wait_seconds)
            connection.request(request.method, request.path, body=request.body, headers=self._headers)
            response = connection.getresponse()
            body = response.read()
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | http.client.HTTPException):
                raise BrokenError(f"the connection broke before the answer came ({_reason(error)})") from error
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Response(response.status, body, retry_after_seconds(response.getheader("Retry-After")))

    async def begin(self, request: Request) -> Response | Pieces:
        """The pieces of an answer that lasts, on a connection of its own, or the whole response of a refusal."""
        connection = self._connect()
        last = {} if request.last_event_id is None else {"Last-Event-ID": request.last_event_id}
        try:
            connection.request(request.method, request.path, body=request.body, headers=self._headers | last)
            response = connection.getresponse()
            if response.status == HTTPStatus.OK:
                return BlockingPieces(connection, response)
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BrokenError(f"the connection broke before the answer came ({_reason(error)})") from error
        except BaseException:
            connection.close()
            raise
        connection.close()
        return Response(response.status, body, retry_after_seconds(response.getheader("Retry-After")))

    async def pause(self, seconds: float) -> None:
        """Block for that long."""
        time.sleep(seconds)

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _kept(self) -> http.client.HTTPConnection | None:
        """An idle connection on which nothing has come, such as its end."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_secure:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_seconds, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)
        try:
            connection.connect()
        except OSError as error:
            raise NotSentError(f"{self._host}:{connection.port} cannot be reached ({_reason(error)})") from error
        return connection


class BlockingPieces:
    """The body of an answer that lasts; a `read` blocks its thread."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._socket: socket.socket = connection.sock
        self._socket.settimeout(SILENCE_SECONDS_MAX)
        self._reading = Lock()

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        try:
            with self._reading:
                return self._response.read1(PIECE_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise BrokenError(f"the connection broke ({_reason(error)})") from error

    def close(self) -> None:
        """End the connection: a `read` that waits on another thread ends first."""
        with suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._reading:
            self._response.close()
            self._connection.close()


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def connect(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> Client:
    """Reach a server; nothing is sent before the first call."""
    return Client(RemoteTransport(BlockingExchange(url, token, timeout_seconds), budget or RetryBudget()))
