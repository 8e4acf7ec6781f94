"""Where each thing of a checkpoint lies: the same keys in a folder and in a bucket.

STRATA.json                                          names the format; created once, which tests conditional writes
pins/step-000000001000.json                          retention never removes this step
step-000000001000/COMMIT.json                        created once; the checkpoint exists when it exists
step-000000001000/a-<attempt>/rank-00003.safetensors one object per rank and attempt
step-000000001000/a-<attempt>/rank-00003.json        the rank's manifest: its vote
"""

import operator
import re
from typing import Any

from strata.errors import InvalidArgument
from strata.types.names import check_name

__all__ = [
    "FORMAT_KEY",
    "PINS",
    "attempt_folder",
    "check_whole",
    "commit_key",
    "data_key",
    "manifest_key",
    "parse_attempt",
    "parse_step",
    "pin_key",
    "step_folder",
    "step_path",
]

FORMAT_KEY = "STRATA.json"
PINS = "pins/"
_STEP = re.compile(r"step-(\d{12})\Z")
_ATTEMPT = re.compile(r"a-([A-Za-z0-9][A-Za-z0-9._-]*)\Z")
_MAX_STEP = 10**12 - 1


def check_whole(what: str, value: Any) -> int:
    """Returns a step or an epoch as Python's own int, whichever library counts: JSON knows no other."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{what} is {value!r}; it must be a whole number") from None
    if not 0 <= number <= _MAX_STEP:
        raise InvalidArgument(f"{what} is {number}; allowed are 0 to {_MAX_STEP}")
    return number


def step_folder(step: int) -> str:
    """Zero-padded, so that one listing of the store is in the order of the steps."""
    return f"step-{check_whole('step', step):012d}/"


def step_path(uri: str, step: int) -> str:
    """The folder of a step in the store `uri`, as the checkpoint's record names it."""
    return f"{uri}/{step_folder(step).rstrip('/')}"


def parse_step(folder: str) -> int | None:
    """The step of a folder or key name, or None when the name is somebody else's."""
    found = _STEP.match(folder.rstrip("/"))
    return int(found[1]) if found else None


def commit_key(step: int) -> str:
    return f"{step_folder(step)}COMMIT.json"


def attempt_folder(step: int, attempt: str) -> str:
    return f"{step_folder(step)}a-{check_name('attempt', attempt)}/"


def parse_attempt(folder: str) -> str | None:
    found = _ATTEMPT.match(folder.rstrip("/").rpartition("/")[2])
    return found[1] if found else None


def data_key(step: int, attempt: str, rank: int) -> str:
    return f"{attempt_folder(step, attempt)}rank-{rank:05d}.safetensors"


def manifest_key(step: int, attempt: str, rank: int) -> str:
    return f"{attempt_folder(step, attempt)}rank-{rank:05d}.json"


def pin_key(step: int) -> str:
    return f"{PINS}{step_folder(step).rstrip('/')}.json"
