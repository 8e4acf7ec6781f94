"""Listening, with errors that help: a port that is taken is named with its flag and, if visible, its owner. An address
that others can reach needs a token and an explicit flag.
"""

import errno
import ipaddress
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil

from strata.errors import InvalidConfig, StorageError

__all__ = ["bind", "check_exposure", "check_free", "is_loopback", "shown_address", "write_endpoint"]


def is_loopback(host: str) -> bool:
    """Whether a bind address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, *, token: str | None, insecure: bool) -> None:
    """Refuses a bind that others can reach without TLS unless it was asked for by name, and always without a token."""
    if is_loopback(host):
        return
    if not insecure:
        raise InvalidConfig(
            f"host = {host!r} would serve the network without TLS",
            hint="Put a TLS proxy before 127.0.0.1, or accept it with STRATA_INSECURE=1.",
        )
    if not token:
        raise InvalidConfig(
            f"host = {host!r} needs a token", hint="Set STRATA_TOKEN, or write one to <data-dir>/token (mode 0600)."
        )


def bind(host: str, port: int, *, flag: str) -> socket.socket:
    """A bound, non-blocking TCP socket; port 0 asks the system for a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _refusal(host, port, flag, error) from None
    sock.setblocking(False)
    return sock


def check_free(host: str, port: int, *, flag: str) -> None:
    """Raises like `bind`; for servers that open their own sockets and say less."""
    if port:
        bind(host, port, flag=flag).close()


def shown_address(sock: socket.socket) -> str:
    """host:port as others should dial it."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
    return InvalidConfig(f"cannot listen on {host}:{port}: {error.strerror}", hint=f"Check --host and {flag}.")


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
