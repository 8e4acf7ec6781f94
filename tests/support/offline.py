"""What a run without a server has kept on disk."""

from strata.protocol.generated import telemetry_pb2 as tm
from strata.worker.run import Run

__all__ = ["kept_batches", "kept_media", "kept_points"]


def kept_batches(run: Run, suffix: str = "") -> list[tm.Batch]:
    folder = run.place.data_dir / "offline" / run.id / f"rank-{run.rank}{suffix}"
    return [tm.Batch.FromString(path.read_bytes()) for path in sorted(folder.glob("*.batch"))]


def kept_media(run: Run) -> list[tm.TextPoint]:
    """Pictures, tables and the like, with their files."""
    return [text for batch in kept_batches(run, "-media") for text in batch.texts]


def kept_points(run: Run) -> list[tuple[str, int, float]]:
    """Metric, step and value, in the order in which they were logged."""
    found = []
    for batch in kept_batches(run):
        names = {series.index: series.metric for series in batch.series}
        points = batch.points
        for index, step, value in zip(points.series, points.step, points.value, strict=True):
            found.append((names[index], step, value))
    return found
