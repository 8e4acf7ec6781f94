"""Points, the series they belong to, and how a run stands: the nouns of the metrics plane."""

from enum import StrEnum
from typing import NamedTuple

from strata.errors import InvalidArgument
from strata.types.names import check_metric, check_name

__all__ = ["ACTIVE_WINDOW_S", "MAX_STEP", "NO_DEVICE", "RunState", "SeriesKey", "check_series"]

NO_DEVICE = 65535
# Browsers count exactly up to 2**53; a step beyond it is a mistake, not progress.
MAX_STEP = 1 << 53
# A run whose writer says nothing but its points is active while the last one is younger than five minutes.
ACTIVE_WINDOW_S = 300.0
_MAX_HOST = 255


class SeriesKey(NamedTuple):
    """One metric of one run on one rank: the identity of a line in a chart."""

    run_id: str
    metric: str
    host: str = ""
    rank: int = 0
    device: int = NO_DEVICE


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
