"""Notes that a rank leaves to its agent, for what an exit code does not say, or not to an agent that did not start the
process: that its work is done, or that it goes because it was asked to.
"""

import contextlib
import os
from pathlib import Path

from strata.worker.environment import Place

__all__ = ["LEFT", "leave_note", "take_note_back"]

LEFT = ".left"
"""Ends the name of the note of a rank that went because it was asked to."""


def leave_note(place: Place, kind: str = "") -> None:
    """That the work is done, or, with LEFT, that the script goes because it was asked to."""
    note = _path(place, kind)
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(os.getpid()))


def take_note_back(place: Place) -> None:
    """Its work is not done: a rank that had said so begins another run."""
    with contextlib.suppress(OSError):
        _path(place).unlink(missing_ok=True)


def _path(place: Place, kind: str = "") -> Path:
    return place.data_dir / "agent" / "exits" / f"{place.incarnation}{kind}"
