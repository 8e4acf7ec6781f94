"""Checks that an installation holds what a server needs, before a process of ours dies of a missing import."""

import importlib.util

from strata.errors import MissingExtra

__all__ = ["SERVER_MODULES", "require_server"]

# The modules of the extra `server` in pyproject.toml.
SERVER_MODULES = (
    "chdb",
    "clickhouse_connect",
    "cryptography",
    "fastapi",
    "grpc_health",
    "grpc_reflection",
    "httptools",
    "orjson",
    "prometheus_client",
    "pyarrow",
    "uvicorn",
    "uvloop",
)


def require_server() -> None:
    """Raises MissingExtra that names what is missing and the command that installs it."""
    missing = [name for name in SERVER_MODULES if not _is_there(name)]
    if missing:
        raise MissingExtra(", ".join(missing), "server")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: somebody has put None in its place
        return False
