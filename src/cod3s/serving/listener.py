"""The address that a server listens on: host and port in, an open socket and a link to it out."""

import socket

from cod3s.errors import Cod3sError


def listen(host: str, port: int) -> socket.socket:
    """A socket that holds the address from now on: a taken one is told before anything heavy is opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise Cod3sError(
            f"cannot listen on {host}, port {port}: {error.strerror}",
            hint="choose another with --port, or --port 0 for any that is free",
        ) from error


def link(host: str, listener: socket.socket) -> str:
    """Where a browser finds the server."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
