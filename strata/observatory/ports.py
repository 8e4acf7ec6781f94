"""Listening sockets with errors that help: a port that is taken is named with its flag and, if visible, its owner."""

import errno
import json
import os
import socket
from pathlib import Path

import psutil

from strata.errors import InvalidConfig

__all__ = ["bind", "check_free", "shown_address", "write_endpoints"]

ENDPOINTS_FILE = "observatory.json"


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


def write_endpoints(data_dir: Path, *, http: str, telemetry: str) -> Path:
    """Tells the supervisor where we listen. Atomic: a reader sees all of it or none."""
    target = data_dir / ENDPOINTS_FILE
    staged = data_dir / f"{ENDPOINTS_FILE}.{os.getpid()}"
    staged.write_text(json.dumps({"http": http, "telemetry": telemetry, "pid": os.getpid()}))
    staged.replace(target)
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
