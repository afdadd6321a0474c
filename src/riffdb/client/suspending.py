"""Exchanges over aiohttp, for one event loop; the session is made at the first request.

A connection that could not be made is `NotSentError`; whatever breaks later is `BrokenError`, since the request may
have arrived.
"""

import asyncio

import aiohttp
from yarl import URL

from riffdb.client.calls import AsyncClient
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
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        url = URL(self._url + request.path, encoded=True)
        try:
            # Errors of aiohttp may hold the request's headers, and so the token: they stay here.
            timeout = aiohttp.ClientTimeout(total=self._timeout_seconds + request.wait_seconds)
            async with self._session.request(
                request.method, url, data=request.body, allow_redirects=False, timeout=timeout
            ) as response:
                body = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise NotSentError(f"{error.host}:{error.port} cannot be reached ({error.strerror or error})") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            what = str(error) or type(error).__name__
            raise BrokenError(f"the connection broke before the answer came ({what})") from None
        return Response(response.status, body, retry_after_seconds(response.headers.get("Retry-After")))

    async def pause(self, seconds: float) -> None:
        """Suspend for that long."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def connect(
    url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS, budget: RetryBudget | None = None
) -> AsyncClient:
    """Reach a server from this event loop; nothing is sent before the first call."""
    return AsyncClient(RemoteTransport(SuspendingExchange(url, token, timeout_seconds), budget or RetryBudget()))
