"""What of granian's RSGI the edge rests on, as types: a request's scope, its headers, and the protocol that answers it.

Granian's own stubs leave some of it out. Anything that is not here is not used, so that another server could give it.
"""

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # public by the RSGI specification

__all__ = ["HTTPProtocol", "Headers", "ProtocolClosed", "Scope", "StreamTransport"]


class Headers(Protocol):
    """The request's headers; names in lower case. A value that is not visible ASCII counts as missing."""

    def __contains__(self, name: str) -> bool: ...

    def get(self, name: str) -> str | None:
        """The first value of a header."""
        ...

    def get_all(self, name: str) -> list[str]:
        """Every value of a header."""
        ...


class Scope(Protocol):
    """The request line and headers; `path` is percent-decoded, `client` is HOST:PORT."""

    @property
    def method(self) -> str: ...

    @property
    def client(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def query_string(self) -> str: ...

    @property
    def headers(self) -> Headers: ...


class StreamTransport(Protocol):
    """The body of a response that lasts."""

    async def send_bytes(self, data: bytes) -> None:
        """Keep these bytes until they are sent, however long that takes; `ProtocolClosed` if they cannot be."""
        ...


class HTTPProtocol(Protocol):
    """The body, whole (called) or in chunks (iterated), and the way to answer."""

    async def __call__(self) -> bytes: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def client_disconnect(self) -> Awaitable[None]:
        """Ends when the connection does, before the answer is whole."""
        ...

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Hand the whole response to the transport."""
        ...

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> StreamTransport:
        """Begin a response that lasts; it ends when the application does."""
        ...
