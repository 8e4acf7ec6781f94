"""The live view: what came in since the last tick goes into the cache and onto the stream, in that order and at once.

So the cache is always the state as of the last published event: a snapshot plus later deltas is exact.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strata.observatory.broadcaster import Broadcaster
from strata.observatory.cache import SeriesCache
from strata.observatory.decimate import Floats, Ints
from strata.observatory.encoding import encode
from strata.observatory.ingest.batch import Columns
from strata.observatory.ring import RunPart
from strata.observatory.runs import RunBook
from strata.observatory.series import SeriesTable
from strata.observatory.snapshot import SnapshotBuilder, series_head

__all__ = ["LiveView", "NewPoints"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewPoints:
    """Points with their series' numbers, those of one series in order of arrival."""

    numbers: Ints
    steps: Ints
    times: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Ints) -> "NewPoints":
        return NewPoints(self.numbers[rows], self.steps[rows], self.times[rows], self.values[rows])

    @staticmethod
    def joined(parts: Sequence["NewPoints"]) -> "NewPoints":
        return NewPoints(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.values for part in parts]),
        )


class LiveView:
    """Owns the order of things; the cache, the run book and the stream are only ever changed from here."""

    def __init__(
        self, series: SeriesTable, cache: SeriesCache, runs: RunBook, stream: Broadcaster, snapshots: SnapshotBuilder
    ) -> None:
        self.series = series
        self.cache = cache
        self.runs = runs
        self.stream = stream
        self._snapshots = snapshots
        self._pending: list[NewPoints] = []
        self._pending_end = 0
        self._announced: set[int] = set()
        self._touched: OrderedDict[str, None] = OrderedDict()
        self._partial: set[str] = set()
        self.cold: set[str] = set()
        # False until what earlier processes accepted is loaded: before, any run here may be the end of a longer one.
        self.is_whole = False
        self.applied_offset = 0
        self.unshown_points = 0
        self.observers: list[Callable[[NewPoints], None]] = []

    def take(self, columns: Columns, end: int) -> None:
        """An accepted batch; `end` is its place in the spool."""
        self._pending_end = end
        if self.runs.deleted:  # accepted a moment before its run was deleted
            columns = columns.without(self.runs.deleted)
        if columns.num_points:
            numbers = self.series.intern_all(columns.heads)
            self._pending.append(NewPoints(numbers[columns.series], columns.steps, columns.times, columns.values))
        for run in columns.runs:
            details = {"name": run.name, "project": run.project, "task_id": run.task_id, "status": run.status}
            self.runs.describe(run.run_id, details, run.config_json)

    def take_foreign(self, points: NewPoints) -> None:
        """Rows that somebody else wrote into the store. Shown at once: a load after this must not find them pending."""
        self._pending.append(points)
        self.tick()

    def tick(self) -> int:
        """Applies and publishes what is pending; returns how many points it was."""
        self.applied_offset = max(self.applied_offset, self._pending_end)
        if not self._pending:
            return 0
        # By series, each in order of arrival: the cache, the delta and the observers all want it so.
        points = NewPoints.joined(self._pending)
        points = points.take(np.argsort(points.numbers, kind="stable"))
        self._pending = []
        self._apply(points)
        self.stream.publish_delta(self._parts(points))
        for observe in self.observers:
            observe(points)
        return len(points)

    def replace(self, run_id: str, load: Callable[[], None], later: NewPoints | None) -> None:
        """Puts a run's history into the cache: `load` fills its rows, `later` is what the store did not have yet."""
        numbers = self.series.of_run(run_id)
        self._snapshots.forget(numbers)
        self.cache.evict(numbers)  # also series that only live points have made so far: `later` brings them again
        load()
        if later is not None and len(later):
            self.cache.apply(later.numbers, later.steps, later.times, later.values)
        self.cold.discard(run_id)
        self._partial.discard(run_id)
        self._touch(run_id)

    def drop(self, run_ids: Sequence[str]) -> None:
        """Runs that are no more: open pages are told, and what still comes of them is shown to nobody."""
        self.tick()
        for run_id in run_ids:
            self._evict(run_id)
            self.cold.discard(run_id)
            self._partial.discard(run_id)
            self.runs.delete(run_id)
        self.publish_runs(deleted=run_ids)

    def publish_runs(self, deleted: Sequence[str] = ()) -> None:
        infos = [info.to_dict() for info in self.runs.all()]
        self.stream.publish("runs_meta", {"runs": infos, "deleted": list(deleted)}, topic="metrics")

    def partial_runs(self) -> set[str]:
        """Runs of which the cache shows only the newest points; the loader should fetch the rest."""
        return set(self._partial)

    def make_room(self, wanted: int) -> bool:
        """Evicts runs that are not active, the least recently fed first. False when not enough could be freed."""
        active = self.runs.active()
        for run_id in [run for run in self._touched if run not in active]:
            if self.cache.num_free >= wanted:
                return True
            self._evict(run_id)
            _log.info("run %s left the live cache; the store still has it", run_id)
        return self.cache.num_free >= wanted

    def _evict(self, run_id: str) -> None:
        numbers = self.series.of_run(run_id)
        self.cache.evict(numbers)
        self._snapshots.forget(numbers)
        self._touched.pop(run_id, None)
        self.cold.add(run_id)

    def _apply(self, points: NewPoints) -> None:
        if self.cold:
            runs = {self.series.key(int(number)).run_id for number in np.unique(points.numbers)}
            self._partial |= runs & self.cold
        homeless = self.cache.apply(points.numbers, points.steps, points.times, points.values)
        if len(homeless):
            self.make_room(len(np.unique(points.numbers[homeless])))
            rest = self.cache.apply(
                points.numbers[homeless], points.steps[homeless], points.times[homeless], points.values[homeless]
            )
            self.unshown_points += len(rest)

    def _parts(self, points: NewPoints) -> dict[str, RunPart]:
        """The delta, run by run; also the moment at which a series is announced and its run's figures move."""
        spans = _Spans(points, np.flatnonzero(np.diff(points.numbers, prepend=-1)))
        owners = self.series.run_numbers(spans.numbers)
        by_run = np.argsort(owners, kind="stable")
        cuts = np.flatnonzero(np.diff(owners[by_run], prepend=-1)).tolist()
        return {
            self.series.run_id(int(owners[by_run[start]])): self._part(spans, by_run[start:end])
            for start, end in zip(cuts, [*cuts[1:], len(by_run)], strict=True)
        }

    def _part(self, spans: "_Spans", chosen: Ints) -> RunPart:
        """One run's share; `chosen` are its spans."""
        numbers = spans.numbers[chosen].tolist()
        run_id = self.series.key(numbers[0]).run_id
        fresh = [number for number in numbers if number not in self._announced]
        self._announced.update(fresh)
        self.runs.seen(run_id, *spans.figures(chosen))
        if fresh:
            self.runs.set_series(run_id, len(self.series.of_run(run_id)))
        self._touch(run_id)
        heads = [series_head(self.series, number) for number in fresh]
        return RunPart(encode(heads)[1:-1], encode(spans.items(chosen))[1:-1])

    def _touch(self, run_id: str) -> None:
        self._touched[run_id] = None
        self._touched.move_to_end(run_id)


class _Spans:
    """The points of a tick, series by series: each a stretch of sorted columns."""

    def __init__(self, points: NewPoints, starts: Ints) -> None:
        self.numbers = points.numbers[starts]
        self._starts = starts
        self._ends = np.append(starts[1:], len(points))
        self._first = np.minimum.reduceat(points.times, starts)
        self._last = np.maximum.reduceat(points.times, starts)
        self._top = np.maximum.reduceat(points.steps, starts)
        self._columns = points.steps.tolist(), points.times.tolist(), points.values.tolist()

    def figures(self, chosen: Ints) -> tuple[int, int, int, int]:
        """First and last time, highest step and number of points of some spans."""
        count = int((self._ends[chosen] - self._starts[chosen]).sum())
        return int(self._first[chosen].min()), int(self._last[chosen].max()), int(self._top[chosen].max()), count

    def items(self, chosen: Ints) -> list[list[object]]:
        """As the stream shows them: number, steps, times, values."""
        steps, times, values = self._columns
        return [
            [number, steps[start:end], times[start:end], values[start:end]]
            for number, start, end in zip(
                self.numbers[chosen].tolist(), self._starts[chosen].tolist(), self._ends[chosen].tolist(), strict=True
            )
        ]
