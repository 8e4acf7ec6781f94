"""Points from a file, gathered into batches whose ids depend on their place in it: a repeated import is recognised."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE, SeriesKey, check_series

__all__ = ["ImportedPoint", "to_batches"]

_PER_BATCH = 20_000


class ImportedPoint(NamedTuple):
    """One point as a file has it."""

    metric: str
    step: int
    time_ms: int
    value: float
    rank: int = 0
    host: str = ""


def to_batches(points: Iterable[ImportedPoint], run_id: str, source: str) -> Iterator[Batch]:
    """`source` names what was read (file and size): with the batch's number it makes its id."""
    name = blake2b(f"{run_id}\0{source}".encode(), digest_size=12).hexdigest()
    batch, known, number = Batch(), dict[SeriesKey, int](), 0
    for point in points:
        key = SeriesKey(run_id, point.metric, point.host, point.rank, NO_DEVICE)
        index = known.get(key)
        if index is None:
            check_series(key)
            index = known[key] = len(known)
            batch.series.add(
                index=index, run_id=run_id, metric=key.metric, host=key.host, rank=key.rank, device=NO_DEVICE
            )
        batch.points.series.append(index)
        batch.points.step.append(max(0, point.step))
        batch.points.event_time_ms.append(point.time_ms)
        batch.points.value.append(point.value)
        if len(batch.points.value) >= _PER_BATCH:
            batch.batch_id = f"import-{name}-{number}"
            yield batch
            batch, known, number = Batch(), {}, number + 1
    if batch.points.value:
        batch.batch_id = f"import-{name}-{number}"
        yield batch
