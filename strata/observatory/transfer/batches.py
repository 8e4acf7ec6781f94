"""Points from a file, gathered into batches whose ids depend on their place in it: a repeated import is recognised."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote

from strata.errors import DataError, InvalidArgument
from strata.observatory.batch.door import LATEST_MS
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import MAX_STEP, NO_DEVICE, SeriesKey, check_series
from strata.types.shown import check_text

__all__ = ["Had", "ImportedPoint", "check_had", "to_batches"]

_PER_BATCH = 20_000
_MAX_UNIT = 64  # a longer one is refused with all its batch
_WORD = 1 << 64  # ClickHouse sums steps modulo this


class ImportedPoint(NamedTuple):
    """One point as a file has it."""

    metric: str
    step: int
    time_ms: int
    value: float
    rank: int = 0
    host: str = ""
    device: int = NO_DEVICE
    unit: str = ""


class Had(NamedTuple):
    """What the store had of one series: how many points, and the sum of their steps."""

    points: int
    steps: int


def check_had(points: Iterable[ImportedPoint], run_id: str, had: Mapping[SeriesKey, Had]) -> None:
    """The points that the store had are passed over by their number: they must be the first ones of these files, or an
    import would leave out what is new. Raises DataError when they are others."""
    if not had:
        return
    left = {key: stored.points for key, stored in had.items()}
    sums = dict.fromkeys(had, 0)
    seen = set[SeriesKey]()
    for key, point in _sane(points, run_id, Counter()):
        if key in left:
            seen.add(key)
            if left[key] > 0:
                left[key] -= 1
                sums[key] += point.step
    for key in sorted(seen):
        if left[key] or (sums[key] - had[key].steps) % _WORD:
            raise DataError(
                f"run {run_id} has {had[key].points:,} points of {key.metric}, which are not the first ones here",
                hint="Import all files of the run at once, delete the run first, or give another name with --run.",
            )


def to_batches(
    points: Iterable[ImportedPoint], run_id: str, source: str, had: Counter[SeriesKey], unread: Counter[str]
) -> Iterator[Batch]:
    """`source` names what was read (file and size): with the batch's number it makes its id. Of each series the first
    `had[series]` points are passed over, and counted down: of a file that has grown the store has them. What cannot be
    kept is counted in `unread`, by what it was."""
    passed = "".join(f"\0{key}{count}" for key, count in sorted(had.items()))
    name = blake2b(f"{run_id}\0{source}{passed}".encode(errors="replace"), digest_size=12).hexdigest()
    sane = _sane(points, run_id, unread)
    rest = ((key, point) for key, point in sane if not _passed(key, had))
    for number in itertools.count():
        batch, known = Batch(batch_id=f"import-{name}-{number}"), dict[SeriesKey, int]()
        for key, point in itertools.islice(rest, _PER_BATCH):
            index = known.get(key)
            if index is None:
                index = known[key] = len(known)
                batch.series.add(index=index, unit=point.unit, **key._asdict())
            batch.points.series.append(index)
            batch.points.step.append(point.step)
            batch.points.event_time_ms.append(point.time_ms)
            batch.points.value.append(point.value)
        if not known:
            return
        yield batch


def _sane(
    points: Iterable[ImportedPoint], run_id: str, unread: Counter[str]
) -> Iterator[tuple[SeriesKey, ImportedPoint]]:
    """Points that a batch can hold. One bad name, step or time never takes the others with it."""
    known: dict[tuple[str, str, int, int], SeriesKey | None] = {}
    for point in points:
        series = point.metric, point.host, point.rank, point.device
        if series not in known:
            known[series] = _key(run_id, point, unread)
        key = known[series]
        if key is None:
            unread["points of these"] += 1
        elif not 0 <= point.step <= MAX_STEP:
            unread["points whose step is below 0, or too large"] += 1
        elif not 0 <= point.time_ms < LATEST_MS:
            unread["points before 1970 or after 2200"] += 1
        else:
            yield key, point if point.time_ms else point._replace(time_ms=1)  # it has none, and 0 is refused


def _key(run_id: str, point: ImportedPoint, unread: Counter[str]) -> SeriesKey | None:
    """Other trackers take any name: what ours may not hold stands as in a URL, `acc (top-1)` as `acc %28top-1%29`."""
    name = quote(point.metric, safe="/:@%+ ", errors="backslashreplace")
    name = name if not name or name[0].isalnum() or name[0] == "_" else f"_{name}"
    key = SeriesKey(run_id, name, point.host, point.rank, point.device)
    try:
        check_series(key)
        check_text("unit", point.unit, _MAX_UNIT)
        point.host.encode()
    except (InvalidArgument, UnicodeEncodeError) as error:
        unread[str(error).splitlines()[0]] += 1
        return None
    if name != point.metric:
        unread[f"the name {point.metric[:80]!r}, which is {name[:80]!r} here"] += 1
    return key


def _passed(key: SeriesKey, had: Counter[SeriesKey]) -> bool:
    if had[key] <= 0:
        return False
    had[key] -= 1
    return True
