"""Checks that an installation holds what a server needs, before a process of ours dies of a missing import."""

import importlib.util

from strata.errors import MissingExtra

__all__ = ["ENGINE_MODULE", "SERVER_MODULES", "require_data", "require_server"]

ENGINE_MODULE = "chdb"
# The modules of the extra `lean` in pyproject.toml.
SERVER_MODULES = (
    "clickhouse_connect",
    "cryptography",
    "fastapi",
    "grpc_health",
    "grpc_reflection",
    "httptools",
    "orjson",
    "prometheus_client",
    "uvicorn",
    "uvloop",
)


def require_server(*, with_engine: bool) -> None:
    """Raises MissingExtra that names what is missing and the command that installs it. The engine is needed where no
    ClickHouse server is set."""
    needed = (ENGINE_MODULE, *SERVER_MODULES) if with_engine else SERVER_MODULES
    missing = [name for name in needed if not _is_there(name)]
    if missing:
        raise MissingExtra(", ".join(missing), "server" if ENGINE_MODULE in missing else "lean")


def require_data() -> None:
    """For those who train here on Parquet, before anything is started for it."""
    if not _is_there("pyarrow"):
        raise MissingExtra("pyarrow", "data")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: somebody has put None in its place
        return False
