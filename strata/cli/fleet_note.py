"""With which agents a task was run, kept in the data folder: `strata resume` asks for the same ones again."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from strata.cli.fleet import FleetRequest

__all__ = ["note_fleet", "noted_fleet"]


def note_fleet(data_dir: Path, task_id: str, request: FleetRequest, checkpoints: str) -> None:
    """`checkpoints` is where this fleet's tasks save. For the owner's eyes: an option may hold what is not for all."""
    file = _file(data_dir, task_id)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o600)
    shared = str(request.shared_dir.resolve()) if request.shared_dir else None
    file.write_text(json.dumps({**asdict(request), "shared_dir": shared, "checkpoints": checkpoints}))


def noted_fleet(data_dir: Path, task_id: str) -> FleetRequest | None:
    """None for a task that ran on agents which were there already, or was submitted elsewhere."""
    try:
        noted = json.loads(_file(data_dir, task_id).read_text())
    except (OSError, ValueError):
        return None
    shared = noted["shared_dir"]
    request = FleetRequest(**{**noted, "options": tuple(noted["options"]), "shared_dir": None})
    return replace(request, shared_dir=Path(shared)) if shared else request


def _file(data_dir: Path, task_id: str) -> Path:
    return data_dir / "fleets" / f"{task_id}.json"
