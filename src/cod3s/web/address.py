"""The address of a server, and the names and origins from which browsers may use it."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from cod3s.errors import Cod3sError

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_HOST = "*"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Open it first: a port that is taken is reported before anything heavy is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise Cod3sError(
            f"cannot listen on {host}, port {port}: {error.strerror}",
            hint="choose another port with --port, or --port 0 for any free port",
        ) from error


def link(host: str, listener: socket.socket) -> str:
    """The URL that opens the server in a browser."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def stays_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host in LOCAL_HOSTS


@dataclass(frozen=True)
class Access:
    """Who may use a server: the host names it answers to, and the foreign origins that may send requests.

    Without the check of hosts, a page could point its domain name at this machine (DNS rebinding) and read the
    server's replies. Without the check of origins, it could make the user's browser rate or generate.
    """

    hosts: frozenset[str] = LOCAL_HOSTS
    any_address: bool = False  # also answer to every IP address: rebinding needs a name
    public: frozenset[str] = frozenset()  # names that a proxy in front may have replaced in the Host header
    origins: frozenset[str] = frozenset()

    def allows_host(self, header: str) -> bool:
        """Whether the server answers to this Host header; only old command-line clients send none."""
        name = _host_name(header)
        if not header or ANY_HOST in self.hosts or name in self.hosts:
            return True
        with suppress(ValueError):
            return self.any_address and bool(ip_address(name))
        return False

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of `origin` may change something or start work; only browsers send an origin."""
        address = urlsplit(origin).netloc.lower()
        same = bool(address) and address == host.lower()
        return not origin or same or origin in self.origins or _host_name(address) in self.public


def access_for(host: str, *, allowed_hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> Access:
    """The access to a server on `host`, which may also be reached by `allowed_hosts`, for example via a proxy."""
    public = frozenset(name.lower() for name in allowed_hosts)
    everywhere = host in ("0.0.0.0", "::", "")
    names = LOCAL_HOSTS | public | {socket.gethostname().lower() if everywhere else host.lower()}
    return Access(names, everywhere, public, frozenset(origins))


def _host_name(header: str) -> str:
    """The name in a Host header or in the address of an origin, without port and brackets."""
    name = header.strip().lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
