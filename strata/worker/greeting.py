"""What a script's own run says on the terminal: where to look at it, or where it is kept and how it is sent."""

import os
import shlex
import sys

from strata.client.endpoints import Endpoints
from strata.datadir import nearest_folder
from strata.worker.environment import Place

__all__ = ["greet", "how_to_send", "whisper"]


def greet(place: Place, observatory: Endpoints | None) -> None:
    """One line: the run's id and its page, or where it is kept and how it is sent."""
    if observatory is None:
        whisper(place, f"run {place.run_id}: no observatory is known here; {how_to_send(place)}")
    else:
        page = f"{observatory.http}/ui/runs/{place.run_id}" if observatory.http else f"sent to {observatory.telemetry}"
        whisper(place, f"run {place.run_id}: {page}")


def how_to_send(place: Place) -> str:
    folder = place.data_dir
    found = nearest_folder(folder / "offline" / place.run_id)
    if not os.access(found, os.W_OK | os.X_OK):  # said before the script has trained for a night
        return f"its points cannot be kept either, as {found} cannot be written; STRATA_DATA_DIR names another folder"
    command = shlex.join(["strata", "sync", place.run_id, "--data-dir", str(folder)])
    return f"its points are kept in {folder / 'offline' / place.run_id} until `{command}` sends them"


def whisper(place: Place, line: str) -> None:
    """Said by one rank of all, unless the settings ask for quiet."""
    if place.rank == 0 and not place.settings.quiet and sys.stderr is not None:
        sys.stderr.write(f"strata: {line}\n")
        sys.stderr.flush()
