"""The live view: what came in since the last tick goes into the cache and onto the stream, in that order and at once.

So the cache is always the state as of the last published event: a snapshot plus later deltas is exact.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from strata.observatory.answers.series import NewSeries
from strata.observatory.answers.stream import RunsMeta
from strata.observatory.batch.columns import Columns
from strata.observatory.live.attempts import AttemptBook, Begun
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.decimate import Floats, Ints, order_of
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.summaries import RunSummaries
from strata.observatory.records.encoding import encode
from strata.observatory.records.fill import fill
from strata.observatory.stream.broadcaster import Broadcaster
from strata.observatory.stream.ring import RunPart

__all__ = ["LiveView", "NewPoints"]

_log = logging.getLogger(__name__)
# Rows of ended runs are given away by the dozen: a search among ten thousand must not come with every new series.
_SLACK = 20
# Of JSON: a step, a time and a value; the brackets and the number around those of one series; a run.
_POINT_BYTES, _SPAN_BYTES, _RUN_BYTES = 40, 16, 700


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
        names = ("numbers", "steps", "times", "values")
        return NewPoints(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class LiveView:
    """Owns the order of things; the cache, the run book and the stream are only ever changed from here."""

    def __init__(
        self, series: SeriesTable, cache: SeriesCache, runs: RunBook, stream: Broadcaster, snapshots: SnapshotBuilder
    ) -> None:
        self.series = series
        self.cache = cache
        self.runs = runs
        self.stream = stream
        self.snapshots = snapshots
        self._pending: list[NewPoints] = []
        self._pending_end = 0
        self._announced: set[int] = set()
        self._wide: set[int] = set()
        self._widened: set[bool] = set()  # by this tick: whether pages had been told of some of their series
        # False until what earlier processes accepted is loaded: before, any run here may be the end of a longer one.
        self.is_whole = False
        self.applied_offset = 0
        self.unshown_points = 0
        self.observers: list[Callable[[NewPoints], None]] = []
        self.attempts = AttemptBook(series)
        self.summaries = RunSummaries(series, cache.tally)
        runs.attempts_of = self.attempts.of_run
        runs.wide_of = series.wide_of
        self.starts_end = (
            0  # the place in the spool of the last attempt that began: before it the store knows too little
        )
        # Series with superseded points that are still counted: the store knows what is left of them.
        self.outdated: set[int] = set()
        self.on_outdated: Callable[[], None] = lambda: None
        self.on_superseded: list[Callable[[Sequence[Begun]], None]] = []

    def take(self, columns: Columns, end: int) -> None:
        """An accepted batch; `end` is its place in the spool."""
        self._pending_end = end
        if self.runs.deleted:  # accepted a moment before its run was deleted
            columns = columns.without(self.runs.deleted)
        if columns.attempts:
            self.tick()
            self.starts_end = end
            self.supersede(self.attempts.begin(columns.attempts))
        points = self.shown(columns)
        if points is not None:
            self._pending.append(points)
        for run in columns.runs:
            self.runs.take(run)
        for value in columns.summaries:
            self.summaries.take(value.run_id, value.name, value.value_json, value.event_time_ms)
        for run_id in columns.alive:
            self.runs.alive(run_id)

    def shown(self, columns: Columns, chosen: list[int] | None = None) -> NewPoints | None:
        """Its points, of the chosen series or of all, but those that are superseded already: they are only counted."""
        if not columns.num_points:
            return None
        numbers = self.series.intern_all(columns.heads)[columns.series]
        points = NewPoints(numbers, columns.steps, columns.times, columns.values)
        hidden = self.attempts.hidden(columns)
        if hidden is None and chosen is None:
            return points
        mine = np.isin(numbers, chosen) if chosen is not None else np.ones(len(numbers), bool)
        if hidden is not None:
            self.series.add_hidden(numbers[mine & hidden])
            self.recount({head.key.run_id for head in columns.heads})
            mine &= ~hidden
        left = points.take(np.flatnonzero(mine))
        return left if len(left) else None

    def supersede(self, begun: Sequence[Begun]) -> None:
        """Series that have points at these steps leave the cache: what is left of them is read from the store."""
        for tell in self.on_superseded:
            tell(begun)
        outdated: set[int] = set()
        for one in begun:
            numbers = np.array(one.numbers, np.int64)
            numbers = numbers[~self.series.of_host(numbers) & (self.cache.tally.totals(numbers) > 0)]
            outdated.update(number for number in numbers.tolist() if self.cache.top_step(number) >= one.step)
        if outdated:
            self._evict(sorted(outdated))
            self.outdated |= outdated
            self.on_outdated()

    def recount(self, run_ids: Iterable[str]) -> None:
        """The figures of runs, from what is known of their series now."""
        for run_id in run_ids:
            numbers = np.array(self.series.of_run(run_id), np.int64)
            if len(numbers) == 0:
                continue
            counted = self.cache.tally.many(numbers.tolist())
            steps = counted["step"][(counted["total"] > 0) & ~self.series.of_host(numbers)]
            top = int(steps.max()) if len(steps) else None
            self.runs.recount(run_id, int(counted["total"].sum()), top, self.series.num_hidden(run_id))

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
        points = points.take(order_of(points.numbers))
        self._pending = []
        self.make_room(self.cache.count_new(points.numbers))
        self.unshown_points += self.cache.apply(points.numbers, points.steps, points.times, points.values)
        self.stream.publish_delta(self._parts(points))
        self._tell_wide()
        for observe in self.observers:
            observe(points)
        return len(points)

    def replace(self, numbers: list[int], load: Callable[[], None], later: NewPoints | None) -> None:
        """Puts what the store says of some series in place of what is known: `load` fills the cache, `later` is what
        the store did not have yet."""
        self._evict(numbers)
        self.cache.tally.forget(numbers)
        load()
        if later is not None:
            self.cache.apply(later.numbers, later.steps, later.times, later.values)

    def drop(self, run_ids: Sequence[str]) -> None:
        """Runs that are no more: open pages are told, and what still comes of them is shown to nobody."""
        self.tick()
        for run_id in run_ids:
            self._evict(self.series.of_run(run_id))
            self.attempts.forget(run_id)
            self.summaries.forget(run_id)
            self.runs.delete(run_id)
        self.publish_runs(deleted=run_ids)

    def publish_runs(self, deleted: Sequence[str] = ()) -> None:
        """Ten thousand runs are megabytes: a sparse client, which knows them by its snapshot, gets what is new."""
        runs, changed = self.runs.news()
        gone = list(deleted)
        self.stream.publish_runs(
            RunsMeta(runs=changed, deleted=gone, partial=True),
            lambda: RunsMeta(runs=self.runs.all(), deleted=gone, partial=False),
            _RUN_BYTES * len(runs),
        )

    def make_room(self, wanted: int, keep: Collection[int] = ()) -> None:
        """Gives rows away until `wanted` are free: of ended runs first, then of the others, each time those of the
        series that were fed or looked at longest ago, and never one of `keep`. Their points are in the store."""
        missing = wanted - self.cache.num_free
        if missing <= 0:
            return
        numbers, used_at = self.cache.held()
        if keep:
            free = ~np.isin(numbers, list(keep))
            numbers, used_at = numbers[free], used_at[free]
        owners = self.series.run_numbers(numbers)
        active = self.runs.active()
        lively = np.isin(owners, [run for run in np.unique(owners).tolist() if self.series.run_id(run) in active])
        order = np.lexsort((used_at, lively))
        count = max(missing, min(self.cache.max_series // _SLACK, int((~lively).sum())))
        self._evict(numbers[order[:count]].tolist())
        _log.debug("%d series left the live cache; the store has them", count)

    def _evict(self, numbers: list[int]) -> None:
        self.cache.evict(numbers)
        self.snapshots.forget(numbers)

    def _parts(self, points: NewPoints) -> dict[str, RunPart]:
        """The delta, run by run; also the moment at which a series is announced and its run's figures move."""
        spans = _Spans(points, np.flatnonzero(np.diff(points.numbers, prepend=-1)), self.series)
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
        if not self.runs.is_active(run_id):  # a page that was opened meanwhile may have been told of other runs only
            self._announced.difference_update(self.series.of_run(run_id))
        fresh = [place for place, number in enumerate(numbers) if number not in self._announced]
        self._announced.update(numbers)
        self.runs.seen(run_id, *spans.figures(chosen))
        if fresh:
            self.runs.set_series(run_id, len(self.series.of_run(run_id)))
        before = spans.totals_before(chosen[fresh], self.cache)
        heads = [self._head(numbers[place], total) for place, total in zip(fresh, before, strict=True)]
        thinned = self.series.is_thinned(spans.numbers[chosen])
        thin = None
        if thinned.any():
            new = set(self.series.groups(spans.numbers[chosen[thinned]]).tolist()) - self._wide
            self._wide |= new
            self._widened |= {len(fresh) < len(numbers)} if new else set()
            kept = [head for head, place in zip(heads, fresh, strict=True) if not thinned[place]]
            thin = self._share(kept, spans, chosen[~thinned])
        return self._share(heads, spans, chosen, thin)

    @staticmethod
    def _share(heads: list[NewSeries], spans: "_Spans", chosen: Ints, thin: RunPart | None = None) -> RunPart:
        return RunPart(encode(heads)[1:-1], lambda: encode(spans.items(chosen))[1:-1], spans.num_bytes(chosen), thin)

    def _tell_wide(self) -> None:
        """Pages hear of metrics that have become wide. Those that were told of their series must not wait for more."""
        widened, self._widened = self._widened, set()
        if any(widened):
            self.stream.resync("a metric has so many ranks now that a page is sent a few of them")
        elif widened:
            self.publish_runs()

    def _head(self, number: int, total_points: int) -> NewSeries:
        key, unit = self.series.key(number), self.series.unit(number)
        return fill(NewSeries, key, id=number, unit=unit, total_points=total_points)


class _Spans:
    """The points of a tick, series by series: each a stretch of sorted columns."""

    def __init__(self, points: NewPoints, starts: Ints, series: SeriesTable) -> None:
        self.numbers = points.numbers[starts]
        self._starts = starts
        self._ends = np.append(starts[1:], len(points))
        self._first = np.minimum.reduceat(points.times, starts)
        self._last = np.maximum.reduceat(points.times, starts)
        self._top = np.where(series.of_host(self.numbers), -1, np.maximum.reduceat(points.steps, starts))
        self._points = points

    def figures(self, chosen: Ints) -> tuple[int, int, int | None, int]:
        """First and last time, highest step (if any was logged) and number of points of some spans."""
        count = int((self._ends[chosen] - self._starts[chosen]).sum())
        top = int(self._top[chosen].max())
        return int(self._first[chosen].min()), int(self._last[chosen].max()), None if top < 0 else top, count

    def totals_before(self, chosen: Ints, cache: SeriesCache) -> list[int]:
        """How many points each of these series had before the tick, once the cache has them."""
        sizes = self._ends[chosen] - self._starts[chosen]
        before: list[int] = (cache.tally.totals(self.numbers[chosen]) - sizes).tolist()
        return before

    def num_bytes(self, chosen: Ints) -> int:
        """Of `items` as JSON, nearly."""
        return _POINT_BYTES * int((self._ends[chosen] - self._starts[chosen]).sum()) + _SPAN_BYTES * len(chosen)

    def items(self, chosen: Ints) -> list[list[object]]:
        """As the stream shows them: number, steps, times, values."""
        if len(chosen) == 0:
            return []
        places = zip(self._starts[chosen].tolist(), self._ends[chosen].tolist(), strict=True)
        mine = self._points.take(np.concatenate([np.arange(start, end) for start, end in places]))
        steps, times, values = mine.steps.tolist(), mine.times.tolist(), mine.values.tolist()
        ends = np.cumsum(self._ends[chosen] - self._starts[chosen]).tolist()
        return [
            [number, steps[start:end], times[start:end], values[start:end]]
            for number, start, end in zip(self.numbers[chosen].tolist(), [0, *ends[:-1]], ends, strict=True)
        ]
