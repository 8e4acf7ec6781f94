"""Telemetry batches: a new one, what one holds, and the two halves of one that was refused as a whole."""

import uuid
from collections.abc import Sequence

from strata.protocol.generated import telemetry_pb2 as tm

__all__ = ["halves", "new_batch", "num_lines", "num_logged", "num_points", "what_is_in"]

_ROWS = ("logs", "runs", "samples", "events", "checkpoints", "summaries", "texts")


def new_batch() -> tm.Batch:
    return tm.Batch(batch_id=uuid.uuid4().hex)


def num_points(batch: tm.Batch) -> int:
    return len(batch.points.value)


def num_logged(batch: tm.Batch) -> int:
    """Points, texts and media: what a script would miss."""
    return num_points(batch) + len(batch.texts)


def num_lines(batch: tm.Batch) -> int:
    return len(batch.logs)


def what_is_in(batch: tm.Batch) -> str:
    """A few words for a log line: the metric of a lone point, or how much there is."""
    if num_points(batch) == 1 and batch.series:
        return f"metric {batch.series[0].metric[:80]!a} at step {batch.points.step[0]}"
    if num_logged(batch) == 1 and batch.texts:
        return f"{batch.texts[0].kind} {batch.texts[0].metric[:80]!a} at step {batch.texts[0].step}"
    rows = [f"{count} {name}" for name in _ROWS if (count := len(getattr(batch, name)))]
    return ", ".join([*([f"{num_points(batch)} points"] if num_points(batch) else []), *rows]) or "nothing"


def halves(batch: tm.Batch) -> tuple[tm.Batch, tm.Batch] | None:
    """Two batches that together hold what this one does, None when it holds one thing only. Their ids follow from its
    id, so that a half which is sent again counts once."""
    sizes = [num_points(batch), *(len(getattr(batch, name)) for name in _ROWS)]
    if sum(sizes) < 2:
        return None
    middle, before = sum(sizes) // 2, 0
    first, second = tm.Batch(batch_id=f"{batch.batch_id}.0"), tm.Batch(batch_id=f"{batch.batch_id}.1")
    first.dropped_points, first.dropped_logs = batch.dropped_points, batch.dropped_logs
    for name, size in zip(("points", *_ROWS), sizes, strict=True):
        cut = min(max(middle - before, 0), size)
        before += size
        if name == "points":
            _copy_points(batch, first, range(cut))
            _copy_points(batch, second, range(cut, size))
        else:
            rows = getattr(batch, name)
            getattr(first, name).extend(rows[:cut])
            getattr(second, name).extend(rows[cut:])
    return first, second


def _copy_points(source: tm.Batch, target: tm.Batch, rows: Sequence[int]) -> None:
    """With the series that they need, and no others: one of those may be what was refused."""
    points = source.points
    used = {points.series[row] for row in rows}
    target.series.extend(series for series in source.series if series.index in used)
    target.points.series.extend(points.series[row] for row in rows)
    target.points.step.extend(points.step[row] for row in rows)
    if points.event_time_ms:
        target.points.event_time_ms.extend(points.event_time_ms[row] for row in rows)
    target.points.value.extend(points.value[row] for row in rows)
