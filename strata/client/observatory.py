"""Which observatory takes the metrics of a script: that of its data folder, the one that its environment names, or the
`strata up` that the same user runs elsewhere on this machine. Files only; nobody is asked, nothing is waited for.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from strata.client.channel import known_token
from strata.client.leaders import split_addresses
from strata.config import Settings
from strata.network import write_endpoint

__all__ = ["Observatory", "announced", "find_observatory", "telemetry_address", "user_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observatory:
    """Where telemetry goes (host:port), the dashboard's address if it is known, and the token to send along."""

    telemetry: str
    http: str = ""
    token: str = ""


def find_observatory(settings: Settings) -> Observatory | None:
    """The nearest one that is named anywhere. What the environment says of a cluster is right for ranks of another
    launcher, too; ranks of a task are told theirs by the agent."""
    token = known_token(settings)
    here = _of_folder(settings)
    if here:
        return Observatory(telemetry=str(here["telemetry"]), http=str(here.get("http", "")), token=token)
    if settings.model_fields_set & {"coordinator_addr", "telemetry_port"}:
        host = split_addresses(settings.coordinator_addr)[0].rpartition(":")[0]
        http = f"http://{host}:{settings.http_port}"
        return Observatory(telemetry=f"{host}:{settings.telemetry_port}", http=http, token=token)
    return _of_user(settings)


def telemetry_address(settings: Settings) -> str | None:
    """Where the observatory of this data folder takes telemetry, as far as its files tell."""
    here = _of_folder(settings)
    return str(here["telemetry"]) if here else None


def _of_folder(settings: Settings) -> dict[str, Any]:
    """What the data folder says of its observatory: of one under `strata up`, or of one alone."""
    said = (_read(settings.data_dir / name) for name in ("endpoints.json", "observatory.json"))
    return next((found for found in said if found.get("telemetry")), {})


def user_record() -> Path:
    """Where `strata up` notes its addresses for scripts of the same user in other folders."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime or Path.home() / ".config") / "strata" / "endpoints.json"


@contextmanager
def announced(endpoints: Mapping[str, str], data_dir: Path) -> Iterator[None]:
    """While the block runs, the user's scripts find these endpoints. Of two at a time the later one is found."""
    file = user_record()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_endpoint(file, {**endpoints, "data_dir": str(data_dir.resolve())})
    except OSError:  # a home that cannot be written to: scripts in other folders must be told where to send
        yield
        return
    try:
        yield
    finally:
        if _read(file).get("pid") == os.getpid():
            file.unlink(missing_ok=True)


def _of_user(settings: Settings) -> Observatory | None:
    file = user_record()
    try:
        about = file.stat()
    except OSError:
        return None
    # Whoever could write it could have our metrics sent anywhere: it must be ours alone.
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        return None
    found = _read(file)
    if not found.get("telemetry") or not psutil.pid_exists(int(found.get("pid", 0))):
        return None
    token = known_token(settings.model_copy(update={"data_dir": Path(str(found.get("data_dir", "")))}))
    return Observatory(telemetry=str(found["telemetry"]), http=str(found.get("http", "")), token=token)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
