"""With which agents a task was run, kept in the data folder: `strata resume` asks for the same ones again."""

import json
from dataclasses import replace
from pathlib import Path

from strata.cli.fleet import FleetRequest
from strata.types.plain import from_plain, to_plain

__all__ = ["note_fleet", "noted_fleet"]


def note_fleet(data_dir: Path, task_id: str, request: FleetRequest, checkpoints: str) -> None:
    """`checkpoints` is where this fleet's tasks save. For the owner's eyes: an option may hold what is not for all."""
    file = _file(data_dir, task_id)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o600)
    shared = str(request.shared_dir.resolve()) if request.shared_dir else None
    file.write_text(json.dumps({**to_plain(request), "shared_dir": shared, "checkpoints": checkpoints}))


def noted_fleet(data_dir: Path, task_id: str) -> FleetRequest | None:
    """None for a task that ran on agents which were there already, or was submitted elsewhere."""
    try:
        noted = from_plain(FleetRequest, json.loads(_file(data_dir, task_id).read_text()))
    except (OSError, ValueError):
        return None
    return replace(noted, shared_dir=Path(noted.shared_dir)) if noted.shared_dir else noted


def _file(data_dir: Path, task_id: str) -> Path:
    return data_dir / "fleets" / f"{task_id}.json"
