"""Takes runs or single points out of a batch that was not spooled yet, so that what lies on disk is what will be
stored.
"""

from collections.abc import Set
from typing import Any

from strata.protocol.generated.telemetry_pb2 import Batch, Points

__all__ = ["strip_points", "strip_runs"]


def strip_runs(message: Batch, runs: Set[str]) -> int:
    """Removes points and descriptions of these runs; log lines stay, they are of tasks. Returns the points removed."""
    gone = {one.index for one in message.series if one.run_id in runs}
    points = message.points
    removed = [at for at, series in enumerate(points.series) if series in gone]
    strip_points(message, set(removed))
    series = [one for one in message.series if one.run_id not in runs]
    del message.series[:]
    message.series.extend(series)
    rows: Any
    for rows in (message.runs, message.summaries, message.texts):
        kept = [row for row in rows if row.run_id not in runs]
        del rows[:]
        rows.extend(kept)
    return len(removed)


def strip_points(message: Batch, removed: Set[int]) -> None:
    """Removes the points at these places."""
    points = message.points
    kept = [at for at in range(len(points.series)) if at not in removed]
    message.points.CopyFrom(
        Points(
            series=[points.series[at] for at in kept],
            step=[points.step[at] for at in kept],
            event_time_ms=[points.event_time_ms[at] for at in kept],
            value=[points.value[at] for at in kept],
        )
    )
