"""What `strata doctor` looks at, one function per question. Each answers with a sentence, and says what to do where
something is wrong. Nothing is changed, but for a small object that is written to the checkpoint store and removed.
"""

import importlib.metadata
import importlib.util
import os
import platform
import resource
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from strata import __version__
from strata.cli.extras import require_server
from strata.cli.show import size
from strata.client.endpoints import find_cluster
from strata.client.rest import Rest
from strata.config import Settings, check_storage, environment
from strata.datadir import network_file_system
from strata.errors import MissingExtra, ObservatoryUnavailable, StrataError
from strata.network import check_free
from strata.storage.base import honours_create
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store

__all__ = ["Finding", "check_all"]

_LITTLE_DISK = 5 << 30
_NO_DISK = 256 << 20
_FEW_FILES = 4_096  # every rank holds a few, every browser one
_CLOCK_S = 2.0
_SILENCE_S = 3.0  # after which whoever holds the page's port is taken for somebody else
_PATIENCE: dict[str, Any] = {"max_retries": 1, "retry_timeout_s": 5.0, "request_timeout_s": 10.0}
_EXTRAS = {"data": ("pyarrow", "PIL"), "s3": ("obstore",), "postgres": ("asyncpg",), "mcp": ("mcp",)}
_EXTRAS |= {name: (name,) for name in ("torch", "jax", "ray")}
# Packages of the engine, a row per kind. All write into one folder; whichever is removed takes others' files along.
_ENGINES = (("strata-engine",), ("chdb-core-lite",), ("chdb-core", "chdb"))

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`todo` is empty when nothing is to be done."""

    check: str
    status: Status
    found: str
    todo: str = ""


def _ok(check: str, found: str) -> Finding:
    return Finding(check=check, status="ok", found=found)


def _from(check: str, error: StrataError, status: Status = "failed") -> Finding:
    return Finding(check=check, status=status, found=error.message, todo=error.hint)


def check_python(settings: Settings) -> Iterator[Finding]:
    """The interpreter and the extras that it has."""
    yield _ok("version", f"strata {__version__}, Python {platform.python_version()}, {sys.executable}")
    try:
        require_server(with_engine=settings.ch_host is None)
        yield _ok("extra server", "installed: `strata up` can run here")
    except MissingExtra as error:
        yield _from("extra server", error, "warning")
    if settings.ch_host is None:
        yield from _engine()
    there = [name for name, modules in _EXTRAS.items() if all(map(importlib.util.find_spec, modules))]
    yield _ok("other extras", ", ".join(_with_version(name) for name in there) or "none")


def _engine() -> Iterator[Finding]:
    """Which package of the engine is there, or which ones are in each other's way. None is what is said before."""
    rows = [[name for name in row if _version(name)] for row in _ENGINES]
    there = [name for row in rows for name in row]
    if sum(map(bool, rows)) > 1:
        told = f"{', '.join(there)} write into the same folder, chdb: what is in it is of the last one installed"
        todo = f"pip uninstall -y {' '.join(there)}, then pip install ./engine in a checkout of Strata"
        yield Finding(check="engine", status="warning", found=told, todo=todo)
    elif there:
        yield _ok("engine", ", ".join(f"{name} {_version(name)}" for name in there))


def _with_version(name: str) -> str:
    version = _version(name) if len(_EXTRAS[name]) == 1 else ""
    return f"{name} {version}" if version else name


def _version(package: str) -> str:
    """Empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def check_machine(settings: Settings) -> Iterator[Finding]:
    """Cores, memory, open files and GPUs."""
    import psutil

    from strata.agent.gpus import Gpus
    from strata.agent.nvml import Nvml

    memory = psutil.virtual_memory()
    cores = len(os.sched_getaffinity(0))
    yield _ok("machine", f"{cores} cores, {size(memory.available)} of {size(memory.total)} memory free")
    gpus = Gpus(Nvml(), os.environ.get("CUDA_VISIBLE_DEVICES")).usage()
    each = ", ".join(f"GPU {gpu.gpu_id} with {size(gpu.memory_total_bytes)}" for gpu in gpus)
    yield _ok("GPUs", each or "none that NVIDIA's driver (libnvidia-ml.so.1) and CUDA_VISIBLE_DEVICES show")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FEW_FILES:
        told = f"a process may open {soft} files"
        yield Finding(check="open files", status="warning", found=told, todo=f"ulimit -n {min(65_536, hard)}")
    else:
        yield _ok("open files", f"{soft} per process")


def check_data_folder(settings: Settings) -> Iterator[Finding]:
    """Whether state can be kept in the data folder: it is ours, on a local disk, and there is room."""
    folder = settings.data_dir.resolve()
    holder = next(path for path in (folder, *folder.parents) if path.exists())
    if not holder.is_dir() or not os.access(holder, os.W_OK | os.X_OK):
        told = f"{folder} cannot be written by this user"
        yield Finding(check="data folder", status="failed", found=told, todo="Give another one with --data-dir.")
        return
    kind = network_file_system(holder)
    if kind:
        todo = "Put --data-dir on a local disk; checkpoints may stay where they are."
        yield Finding(check="data folder", status="failed", found=f"{folder} is on {kind}, a network", todo=todo)
        return
    free = shutil.disk_usage(holder).free
    told = f"{folder}, {size(free)} free"
    if free >= _LITTLE_DISK:
        yield _ok("data folder", told)
    else:
        todo = "Free space, or choose another disk with --data-dir."
        yield Finding(check="data folder", status="failed" if free < _NO_DISK else "warning", found=told, todo=todo)


def check_cluster(settings: Settings) -> Iterator[Finding]:
    """The Strata of this folder if one runs, with its version and clock; else whether its ports are free."""
    api = Rest(settings, timeout_s=_SILENCE_S)
    try:
        status = api.get("/api/status")
    except ObservatoryUnavailable as error:
        if find_cluster(settings) is not None:
            yield _from("cluster", error)
        else:
            yield _ok("cluster", "none runs in this folder; `strata up` starts one")
        yield from _ports(settings)
        return
    except StrataError as error:
        yield _from("cluster", error)
        return
    if not status["connected"]:
        told = f"{api.url} answers, but has no coordinator at {status['address']}"
        yield Finding(check="cluster", status="failed", found=told, todo="strata logs --source coordinator")
    elif status["version"] != __version__:
        todo = "Install the same version on all hosts."
        yield Finding(check="cluster", status="warning", found=f"{api.url} runs {status['version']}", todo=todo)
    else:
        yield _ok("cluster", f"{api.url}, coordinator {status['address']}")
    yield _clock(api)


def _clock(api: Rest) -> Finding:
    asked = time.time()
    status = api.get("/api/status")
    ahead = status["started_at"] + status["uptime"] - (asked + time.time()) / 2
    told = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this host's"
    if abs(ahead) > _CLOCK_S:
        return Finding(check="clock", status="warning", found=f"the cluster's is {told}", todo="Run chrony or ntpd.")
    return _ok("clock", "the cluster's and this host's agree")


def _ports(settings: Settings) -> Iterator[Finding]:
    ports = {"grpc": settings.grpc_port, "http": settings.http_port, "telemetry": settings.telemetry_port}
    for name, port in ports.items():
        try:
            check_free(settings.host, port, flag=f"--{name}-port")
            yield _ok(f"{name} port", f"{port} is free" if port else "any free one")
        except StrataError as error:
            yield _from(f"{name} port", error)


def check_checkpoints(settings: Settings) -> Iterator[Finding]:
    """Whether the checkpoint store takes an object, gives it back, and refuses to create it twice."""
    check_storage(settings)
    bucket = settings.checkpoint_bucket
    if settings.storage_backend == "local" and not bucket:
        yield _ok("checkpoints", f"{settings.data_dir.resolve() / 'checkpoints'}; hosts that train together share it")
        return
    remote = settings.storage_backend == "s3"
    address = bucket if not remote or "://" in bucket else f"s3://{bucket}"
    patience = replace(StorageOptions.from_environment(environment()), **_PATIENCE)
    store = open_store(address, patience)
    key, content = f"strata-doctor/{secrets.token_hex(8)}", secrets.token_bytes(64)
    honours = honours_create(store, key, content)
    same = store.get(key) == content
    store.delete(key)
    if not same:
        todo = "Do not use this store."
        yield Finding(check="checkpoints", status="failed", found=f"{address} gives back other bytes", todo=todo)
    elif not honours:
        told = f"{address} lets two writers create one key"
        todo = "Several ranks need a coordinator to save there; prefer a bucket that knows If-None-Match."
        yield Finding(check="checkpoints", status="warning", found=told, todo=todo)
    else:
        yield _ok("checkpoints", f"{address}: written, read back and removed")


def check_metric_store(settings: Settings) -> Iterator[Finding]:
    """The ClickHouse server, where one is set."""
    if settings.ch_host is None:
        yield _ok("metric store", "the engine that is built in")
        return
    from strata.observatory.store.config import StoreConfig
    from strata.observatory.store.engine import Engine
    from strata.observatory.store.failures import to_error

    config = StoreConfig.from_settings(settings)
    try:
        engine = Engine(config)
        version = engine.command("SELECT version()")
        engine.close()
    except StrataError:
        raise
    except Exception as error:  # clickhouse-connect has many kinds, of its own and of urllib3
        said = to_error(error).message
        todo = "Check CH_HOST, CH_PORT, CH_PROTOCOL, CH_USER and CH_PASSWORD."
        yield Finding(check="metric store", status="failed", found=f"{config.label}: {said}", todo=todo)
        return
    yield _ok("metric store", f"{config.label}, version {version}")


_CHECKS: dict[str, Callable[[Settings], Iterator[Finding]]] = {
    "version": check_python,
    "machine": check_machine,
    "data folder": check_data_folder,
    "cluster": check_cluster,
    "checkpoints": check_checkpoints,
    "metric store": check_metric_store,
}


def check_all(settings: Settings) -> Iterator[Finding]:
    """One check that cannot be made does not take the others with it."""
    for name, check in _CHECKS.items():
        try:
            yield from list(check(settings))
        except StrataError as error:
            yield _from(name, error)
