"""`strata sync`: what runs kept on disk while there was no observatory goes to one, and is removed once accepted."""

from dataclasses import dataclass
from pathlib import Path

from strata.client.endpoints import Endpoints, find_observatory
from strata.client.spill import offline_folder
from strata.client.telemetry import send_folder
from strata.config import Settings, load_settings
from strata.errors import NotFound, ObservatoryUnavailable
from strata.trust.access import find_access

__all__ = ["SyncedRun", "sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedRun:
    """One run and how many of its batches went out."""

    run_id: str
    num_batches: int


def sync(run_id: str | None = None, *, address: str | None = None, settings: Settings | None = None) -> list[SyncedRun]:
    """Sends one offline run, or all of the data folder. Safe to repeat: a batch that arrived already counts once."""
    settings = settings or load_settings()
    given = Endpoints(telemetry=address, access=find_access(settings)) if address else None
    target = given or find_observatory(settings)
    if target is None:
        raise ObservatoryUnavailable("no observatory is known here", hint="Start one with `strata up`, or name it.")
    root = settings.data_dir / "offline"
    runs = [run_id] if run_id else sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    return [_send_run(settings, name, target) for name in runs]


def _send_run(settings: Settings, run_id: str, target: Endpoints) -> SyncedRun:
    folder: Path = offline_folder(settings.data_dir, run_id)
    if not folder.is_dir():
        raise NotFound(f"no offline run {run_id!r} in {settings.data_dir}")
    ranks = sorted(path for path in folder.iterdir() if path.is_dir())
    count = sum(send_folder(path, target.telemetry, target.access) for path in ranks)
    for path in ranks:
        if not any(path.iterdir()):
            path.rmdir()
    if not any(folder.iterdir()):
        folder.rmdir()
    return SyncedRun(run_id=run_id, num_batches=count)
