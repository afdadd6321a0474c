"""Exchanges over `http.client`: blocking, usable from many threads, with connections kept in a small pool.

A kept connection is looked at before it is used again: on one that the server has closed meanwhile there is something
to read. One that it closes at that very moment shows as `BrokenError`, since it cannot be told from an answer that was
lost; whoever sends decides what may be sent again.
"""

import http.client
import select
import ssl
import time
from collections import deque

from riffdb.client.calls import Client
from riffdb.client.remote import (
    TIMEOUT_SECONDS,
    BrokenError,
    NotSentError,
    RemoteTransport,
    Request,
    Response,
    RetryBudget,
    request_headers,
    retry_after_seconds,
    server_address,
)


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


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def connect(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> Client:
    """Reach a server; nothing is sent before the first call."""
    return Client(RemoteTransport(BlockingExchange(url, token, timeout_seconds), budget or RetryBudget()))
