"""Addresses and listening, with errors that help: a port that is taken is named with its flag and, if visible, its
owner.
"""

import contextlib
import errno
import ipaddress
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil

from strata.errors import InvalidConfig, StorageError

__all__ = [
    "bind",
    "check_free",
    "is_loopback",
    "is_wildcard",
    "join_address",
    "reachable_host",
    "split_address",
    "write_endpoint",
]


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_wildcard(host: str) -> bool:
    """Whether a bind address means every interface."""
    return host.strip("[]") in ("0.0.0.0", "::", "")  # noqa: S104  # compared


def split_address(address: str) -> tuple[str, int]:
    """Host without brackets, and port. Raises ValueError for what is no host:port."""
    host, colon, port = address.removeprefix("http://").removeprefix("https://").rstrip("/").rpartition(":")
    if not colon:
        raise ValueError(f"{address!r} is not host:port")
    return host.strip("[]"), int(port)


def join_address(host: str, port: int) -> str:
    """host:port as it is dialled, an IPv6 address in brackets."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable_host(host: str, advertise: str | None) -> str:
    """The name or address under which others find a server that listens on `host`: what was told, or else, of one that
    listens everywhere, the address of the interface that leads outside."""
    if is_loopback(host):
        return host.strip("[]")
    return (advertise or (_outer_address(host) if is_wildcard(host) else host)).strip("[]")


def _outer_address(host: str) -> str:
    """Connecting a datagram socket sends nothing; it only makes the system choose the interface."""
    for family, outside in ((socket.AF_INET6, "2001:db8::1"), (socket.AF_INET, "192.0.2.1")):
        if (family == socket.AF_INET6) is (":" in host):
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((outside, 9))
                return str(probe.getsockname()[0])
    return socket.gethostname()


def bind(host: str, port: int, *, flag: str) -> socket.socket:
    """A bound, non-blocking TCP socket; port 0 asks the system for a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as error:
        sock.close()
        raise _refusal(host, port, flag, error) from None
    sock.setblocking(False)
    return sock


def check_free(host: str, port: int, *, flag: str) -> None:
    """Raises like `bind`; for servers that open their own sockets and say less."""
    if port:
        bind(host, port, flag=flag).close()


def write_endpoint(target: Path, endpoints: Mapping[str, str]) -> Path:
    """Tells a supervisor where a process listens, with its pid. Atomic: a reader sees all of it or none."""
    staged = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        staged.write_text(json.dumps({**endpoints, "pid": os.getpid()}))
        staged.replace(target)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise StorageError(
            f"{target} cannot be written: {error.strerror}", hint="Make room, or mend the disk."
        ) from None
    return target


def _refusal(host: str, port: int, flag: str, error: OSError) -> InvalidConfig:
    if error.errno == errno.EADDRINUSE:
        owner = _owner(port)
        taken = f"port {port} is taken" + (f" by {owner}" if owner else "")
        return InvalidConfig(taken, hint=f"Stop that process, or choose another with {flag} (0 = any free one).")
    if error.errno == errno.EACCES:
        return InvalidConfig(f"port {port} may not be opened by this user", hint=f"Choose one above 1023 with {flag}.")
    return InvalidConfig(
        f"cannot listen on {join_address(host, port)}: {error.strerror}", hint=f"Check --host and {flag}."
    )


def _owner(port: int) -> str:
    """`name (pid 123)`, or nothing when the system does not tell us (another user's process)."""
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and getattr(connection.laddr, "port", None) == port
            if listens and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return ""
    return ""
