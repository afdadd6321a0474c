"""Exchanges over aiohttp, for one event loop; the session is made at the first request.

A connection that could not be made is `NotSentError`; whatever breaks later is `BrokenError`, since the request may
have arrived.
"""

import asyncio

import aiohttp

from riffdb.client.remote import BrokenError, NotSentError, Request, Response, retry_after_seconds, server_address


class SuspendingExchange:
    """Suspends while it waits."""

    def __init__(self, url: str, token: str, timeout_seconds: float) -> None:
        server_address(url)
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def exchange(self, request: Request) -> Response:
        """The response of the server."""
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=self._timeout)
        try:
            async with self._session.request(request.method, self._url + request.path, data=request.body) as response:
                body = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise NotSentError from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise BrokenError from error
        return Response(response.status, body, retry_after_seconds(response.headers.get("Retry-After")))

    async def pause(self, seconds: float) -> None:
        """Suspend for that long."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None
