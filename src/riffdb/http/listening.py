"""From `HOST:PORT` to a socket that listens.

The socket is made here and not by the HTTP server, so that port 0 can be told, a port in use is refused at once, and no
other process can share it. Without TLS only loopback is served, unless the caller says that a proxy stands in front.
"""

import errno
import socket
from ipaddress import ip_address

from riffdb.core.errors import RiffError

BACKLOG = 1024


def open_socket(listen: str, *, allow_public: bool) -> socket.socket:
    """A listening socket at `HOST:PORT` (port 0: any free one).

    `RDB-E-USAGE` if the address is not formed so, is none of this machine or is public without leave;
    `RDB-E-UNAVAILABLE` if the port is in use.
    """
    host, port = _parse(listen)
    family, address = _resolve(host, port)
    if not allow_public and not ip_address(address[0].partition("%")[0]).is_loopback:
        raise RiffError(
            "RDB-E-USAGE",
            f"{host} can be reached from other machines, and there is no TLS yet; "
            "listen on 127.0.0.1 and let a proxy with TLS stand in front",
        )
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _refusal(error, host, port) from error
    return listening


def url_of(listening: socket.socket) -> str:
    """The URL under which the socket is reached, with its real port."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _parse(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if is_bracketed else host
    digits = port.isascii() and port.isdecimal() and len(port) <= 5
    if not (colon and name and digits) or int(port) > 65_535 or is_bracketed != (":" in name):
        raise RiffError("RDB-E-USAGE", "the address to listen on must be HOST:PORT, such as 127.0.0.1:7433")
    return name, int(port)


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise RiffError("RDB-E-USAGE", f"{host} is no address and no name that can be resolved") from None
    family, _, _, _, address = found[0]
    return family, (str(address[0]), port)


def _refusal(error: OSError, host: str, port: int) -> RiffError:
    if error.errno == errno.EADDRINUSE:
        return RiffError(
            "RDB-E-UNAVAILABLE",
            f"port {port} of {host} is in use; stop the program that holds it, or listen on another port",
        )
    if error.errno == errno.EACCES:
        return RiffError("RDB-E-UNAVAILABLE", f"port {port} may not be used by this user; listen on one above 1023")
    if error.errno == errno.EADDRNOTAVAIL:
        return RiffError("RDB-E-USAGE", f"{host} is no address of this machine")
    return RiffError("RDB-E-UNAVAILABLE", f"cannot listen on port {port} of {host}: {error.strerror}")
