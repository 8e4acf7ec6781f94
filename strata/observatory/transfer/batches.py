"""Points from a file, gathered into batches whose ids depend on their place in it: a repeated import is recognised."""

import itertools
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
    rest = iter(points)
    for number in itertools.count():
        batch, known = Batch(batch_id=f"import-{name}-{number}"), dict[SeriesKey, int]()
        for point in itertools.islice(rest, _PER_BATCH):
            key = SeriesKey(run_id, point.metric, point.host, point.rank, NO_DEVICE)
            index = known.get(key)
            if index is None:
                check_series(key)
                index = known[key] = len(known)
                batch.series.add(index=index, **key._asdict())
            batch.points.series.append(index)
            batch.points.step.append(max(0, point.step))
            batch.points.event_time_ms.append(point.time_ms)
            batch.points.value.append(point.value)
        if not known:
            return
        yield batch
