"""Where the cluster listens and how to get in, found the same way by every command and every script: what was asked for
(a flag, the environment, strata.toml), the records of the data folder, then those of the user. Files only; nobody is
asked, nothing is waited for.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from strata.client.leaders import split_addresses
from strata.config import Settings
from strata.datadir import write_private
from strata.errors import StorageError
from strata.network import is_loopback, join_address, split_address, write_endpoint
from strata.trust.access import OPEN, Access, find_access

__all__ = [
    "Endpoints",
    "announced",
    "find_cluster",
    "find_endpoints",
    "find_joined",
    "find_observatory",
    "folder_endpoints",
    "login_record",
    "telemetry_address",
    "user_record",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The coordinator (host:port), the dashboard (a URL), where telemetry goes (host:port), each empty when it is not
    known; and what to show there. `asked` is of a cluster that somebody named: no other will do."""

    grpc: str = ""
    http: str = ""
    telemetry: str = ""
    access: Access = OPEN
    asked: bool = False


def find_endpoints(settings: Settings) -> Endpoints:
    """The nearest cluster that is named anywhere, or what the defaults say."""
    return find_cluster(settings) or _guessed(settings)


def find_cluster(settings: Settings) -> Endpoints | None:
    """The nearest one that is named anywhere."""
    named = find_joined(settings) or _named(settings)
    if named is None and "data_dir" not in settings.given:  # who names a data folder means that one
        named = _of_user(settings)
    return named


def find_observatory(settings: Settings) -> Endpoints | None:
    """Whoever takes the metrics of a script, if any is named. What the environment says of a cluster is right for ranks
    of another launcher, too; ranks of a task are told theirs by the agent."""
    here = folder_endpoints(settings)
    if here is not None and here.telemetry:
        return here
    asked = settings.given & {"coordinator_addr", "telemetry_port"}
    if asked and settings.telemetry_port:  # 0 is any port, which a file names when it is taken
        return _guessed(settings)
    found = None if "coordinator_addr" in asked else _of_user(settings)
    return found if found is not None and found.telemetry else None


def telemetry_address(settings: Settings) -> str | None:
    """Where the observatory of this data folder takes telemetry, as far as its files tell."""
    here = folder_endpoints(settings)
    return here.telemetry or None if here else None


def _named(settings: Settings) -> Endpoints | None:
    here = folder_endpoints(settings)
    if "coordinator_addr" not in settings.given:
        return here
    if here is not None and _same(here.grpc, settings.coordinator_addr):
        return replace(here, grpc=settings.coordinator_addr, asked=True)
    return replace(_guessed(settings), asked=True)


def folder_endpoints(settings: Settings) -> Endpoints | None:
    """What the processes of the data folder say of themselves, under `strata up` or one by one."""
    said: dict[str, Any] = {}
    for name in ("endpoints.json", "coordinator.json", "observatory.json"):
        said |= _read(settings.data_dir / name)
    if not said.keys() & {"grpc", "http", "telemetry"}:
        return None
    return _said({"grpc": settings.coordinator_addr, **said}, find_access(settings))


def _guessed(settings: Settings) -> Endpoints:
    """Beside the coordinator, on the ports that the settings say."""
    access = find_access(settings)
    grpc = settings.coordinator_addr
    there = split_address(split_addresses(grpc)[0])[0]
    host = there if "coordinator_addr" in settings.given else settings.host
    scheme = "http" if access.is_plain(join_address(host, settings.http_port)) else "https"
    return Endpoints(
        grpc=grpc,
        http=f"{scheme}://{join_address(host, settings.http_port)}",
        telemetry=join_address(there, settings.telemetry_port),
        access=access,
    )


def _same(one: str, other: str) -> bool:
    """Whether two addresses are one server's, as far as their words tell."""
    if not one or "," in one + other:
        return one == other
    (host, port), (named, at) = split_address(one), split_address(other)
    return port == at and (host == named or (is_loopback(host) and is_loopback(named)))


# --- records of the user


def login_record() -> Path:
    """Where the cluster is kept that the user joined from this machine."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "strata" / "cluster.json"


def user_record() -> Path:
    """Where `strata up` notes its addresses for scripts of the same user in other folders."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime or Path.home() / ".config") / "strata" / "endpoints.json"


@contextmanager
def announced(endpoints: Mapping[str, str], data_dir: Path) -> Iterator[None]:
    """While the block runs, the user's scripts find these endpoints. Of two at a time the later one is found, and the
    earlier one again when that has ended."""
    file = user_record()
    earlier = _read_own(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_endpoint(file, {**endpoints, "data_dir": str(data_dir.resolve())})
    except (OSError, StorageError):  # a home without room or rights: scripts elsewhere must be told where to send
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            if _read(file).get("pid") == os.getpid():
                file.unlink()
                if _is_up(earlier):
                    write_private(file, json.dumps(earlier))


def _of_user(settings: Settings) -> Endpoints | None:
    """A `strata up` of the same user on this machine, or the cluster that the user joined."""
    found = _read_own(user_record())
    if _is_up(found):
        there = settings.but(data_dir=Path(str(found.get("data_dir", ""))))
        return _said(found, find_access(there))
    return _logged_in(settings, _read_own(login_record()))


def _is_up(record: Mapping[str, Any]) -> bool:
    return bool(record.get("telemetry")) and psutil.pid_exists(int(record.get("pid", 0)))


def find_joined(settings: Settings) -> Endpoints | None:
    """The cluster of STRATA_JOIN or --join, once the user has joined it."""
    kept = _read_own(login_record()) if settings.join is not None else {}
    ticket = settings.join.get_secret_value() if settings.join is not None else ""
    return _logged_in(settings, kept) if kept.get("ticket") == hashlib.sha256(ticket.encode()).hexdigest() else None


def _logged_in(settings: Settings, kept: Mapping[str, Any]) -> Endpoints | None:
    if not kept.get("grpc"):
        return None
    access = Access(token=str(kept.get("token", "")), roots=str(kept.get("roots", "")), insecure=settings.insecure)
    return replace(_said(kept, access), asked=True)


def _read_own(file: Path) -> dict[str, Any]:
    """Whoever could write it could have our metrics sent anywhere: it must be ours alone."""
    try:
        about = file.stat()
    except OSError:
        return {}
    return _read(file) if about.st_uid == os.getuid() and not about.st_mode & 0o022 else {}


def _said(record: Mapping[str, Any], access: Access) -> Endpoints:
    grpc, http, telemetry = (str(record.get(name, "")) for name in ("grpc", "http", "telemetry"))
    return Endpoints(grpc=grpc, http=http, telemetry=telemetry, access=access)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
