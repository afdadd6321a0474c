"""Exchanges over aiohttp, for one event loop; the session is made at the first request.

A connection that could not be made is `NotSentError`; whatever breaks later is `BrokenError`, since the request may
have arrived.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import aiohttp
from yarl import URL

from riffdb.client.calls import AsyncClient
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


class SuspendingExchange:
    """Suspends while it waits."""

    def __init__(self, url: str, token: str, timeout_seconds: float) -> None:
        server_address(url)
        self._url = url.rstrip("/")
        self._headers = request_headers(token)
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def exchange(self, request: Request) -> Response:
        """The response of the server."""
        session, url = self._opened(), URL(self._url + request.path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds + request.wait_seconds)
        with _told():
            async with session.request(
                request.method, url, data=request.body, allow_redirects=False, timeout=timeout
            ) as response:
                body = await response.read()
        return Response(response.status, body, retry_after_seconds(response.headers.get("Retry-After")))

    async def begin(self, request: Request) -> Response | Pieces:
        """The pieces of an answer that lasts, or the whole response of a refusal."""
        last = {} if request.last_event_id is None else {"Last-Event-ID": request.last_event_id}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_seconds, sock_read=SILENCE_SECONDS_MAX)
        with _told():
            response = await self._opened().request(
                request.method,
                URL(self._url + request.path, encoded=True),
                data=request.body,
                headers=last,
                allow_redirects=False,
                timeout=timeout,
            )
            if response.status == HTTPStatus.OK:
                return SuspendingPieces(response)
            body = await response.read()
        return Response(response.status, body, retry_after_seconds(response.headers.get("Retry-After")))

    async def pause(self, seconds: float) -> None:
        """Suspend for that long."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=0),  # a watch takes one for as long as it lasts
            )
        return self._session


class SuspendingPieces:
    """The body of an answer that lasts; a `read` suspends its task."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        with _told():
            return await self._response.content.readany()

    def close(self) -> None:
        """End the connection."""
        self._response.close()


@contextmanager
def _told() -> Iterator[None]:
    """Errors of aiohttp may hold the request's headers, and so the token: they stay here."""
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise NotSentError(f"{error.host}:{error.port} cannot be reached ({error.strerror or error})") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        what = str(error) or type(error).__name__
        raise BrokenError(f"the connection broke before the answer came ({what})") from None


def connect(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> AsyncClient:
    """Reach a server from this event loop; nothing is sent before the first call."""
    return AsyncClient(RemoteTransport(SuspendingExchange(url, token, timeout_seconds), budget or RetryBudget()))
