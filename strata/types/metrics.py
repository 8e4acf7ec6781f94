"""Points, the series they belong to, and how a run stands: the nouns of the metrics plane."""

import re
from enum import StrEnum
from typing import NamedTuple

from strata.errors import InvalidArgument
from strata.types.names import check_metric, check_name

__all__ = [
    "ACTIVE_WINDOW_S",
    "ATTEMPT_TAG",
    "MAX_STEP",
    "NO_DEVICE",
    "WORLDS",
    "WORLD_TAG",
    "RunState",
    "SeriesKey",
    "attempt_tags",
    "check_series",
    "turn_of",
]

NO_DEVICE = 65535
# Browsers count exactly up to 2**53; a step beyond it is a mistake, not progress.
MAX_STEP = 1 << 53
# A run whose writer says nothing but its points is active while the last one is younger than five minutes.
ACTIVE_WINDOW_S = 300.0
# A point says in its tags which attempt of its task measured it, and in which world of that attempt (it rises when a
# rank is replaced in place): metric_points is public and has no column for it.
ATTEMPT_TAG, WORLD_TAG = "strata_attempt", "strata_world"
WORLDS = 10_000  # of one attempt at most: attempt and world are one number, the turn
_ATTEMPT = re.compile(rf'"{ATTEMPT_TAG}":(\d{{1,5}})(?!\d)')
_WORLD = re.compile(rf'"{WORLD_TAG}":(\d{{1,4}})(?!\d)')
_MAX_HOST = 255


class SeriesKey(NamedTuple):
    """One metric of one run on one rank: the identity of a line in a chart."""

    run_id: str
    metric: str
    host: str = ""
    rank: int = 0
    device: int = NO_DEVICE


def attempt_tags(attempt: int, world: int = 0) -> str:
    """The tags of points that this attempt measured; 0 is none."""
    if attempt <= 0:
        return ""
    return f'{{"{ATTEMPT_TAG}":{attempt},"{WORLD_TAG}":{world}}}' if world else f'{{"{ATTEMPT_TAG}":{attempt}}}'


def turn_of(tags_json: str) -> int:
    """The attempt and world that these tags name as one number, 0 when they name none. Of two turns of a task the
    higher one came later."""
    attempt = _ATTEMPT.search(tags_json) if tags_json else None
    if attempt is None or not int(attempt[1]):
        return 0
    world = _WORLD.search(tags_json)
    return int(attempt[1]) * WORLDS + (int(world[1]) if world else 0)


def check_series(key: SeriesKey) -> SeriesKey:
    """Returns `key` when every part of it is sane, else raises InvalidArgument that names the part."""
    check_name("run_id", key.run_id)
    check_metric(key.metric)
    if len(key.host) > _MAX_HOST or not key.host.isprintable():
        raise InvalidArgument(f"host of metric {key.metric!r} has {len(key.host)} characters or unprintable ones")
    if not 0 <= key.rank < 1 << 32:
        raise InvalidArgument(f"rank of metric {key.metric!r} is {key.rank}, it must fit 32 bits")
    if not 0 <= key.device <= NO_DEVICE:
        raise InvalidArgument(f"device of metric {key.metric!r} is {key.device}, it must be 0 to {NO_DEVICE}")
    return key


class RunState(StrEnum):
    """How a run stands. LOST may become RUNNING again: it means silence, and nobody knows why."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    LOST = "lost"
