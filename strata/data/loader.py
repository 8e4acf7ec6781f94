"""Loader: a dataset as an endless source of shuffled, columnar batches that any number of processes share.

Global batch t is the same whatever the world size; the state is one position, so a job resumes anywhere with one seek.
"""

import copy
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack

from strata.ambient import ambient
from strata.data.blocks import INDEX, BlockSource
from strata.data.config import LoaderConfig, LoaderOptions, check_batch_size
from strata.data.manifest import Dataset, Manifest, open_manifest
from strata.data.plan import PlanSource, StaticPlan, choose_lanes, choose_window, plan_source
from strata.data.preview import Preview, preview_rows
from strata.data.stats import LoaderStats, SkipLog
from strata.data.stream import BatchStream, Span, transformed
from strata.data.table.columns import Columns, num_rows
from strata.data.watch import read_watcher
from strata.errors import InvalidArgument, Refused
from strata.sharding.cursor import SyncCursor
from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.order import EpochOrder
from strata.sharding.skips import Skips
from strata.types.forks import ForkedData

__all__ = ["Loader"]

_log = logging.getLogger(__name__)


class Loader:
    """`for batch in Loader("data/*.parquet", batch_size=32, rank=0, world_size=4): …` reads the rest of one epoch.

    A batch is a dict of NumPy arrays. Breaking off and iterating again goes on with the next batch; `set_epoch` starts
    over. `batch_size` is per declared worker. Not thread-safe: one consumer per loader.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        plan: PlanSource | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        self.config = LoaderConfig(**options)
        self.batch_size = check_batch_size(batch_size)
        self._has_plan = plan is not None
        self._source = plan or self._chosen_source()
        self._skipped = SkipLog()
        self._name = dataset if isinstance(dataset, str) else ""
        self._registered = False
        self._announced: tuple[str, tuple[int, ...]] | None = None
        self.manifest = self._opened(dataset)
        on_bad = self._skipped if self.config.on_error == "skip" else None
        self._blocks = BlockSource(self.manifest, self.config.columns, on_bad)
        self._epoch, self._offset, self._skips, self._fork = 0, 0, Skips(), ""
        self._num_batches, self._num_samples, self._wait_s = 0, 0, 0.0
        self._stream: BatchStream | None = None
        self._last: Columns = {}
        self.order, self.lanes = self._ordered(*self._chosen_lanes())

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to."""
        return self._place()[0]

    @property
    def position(self) -> int:
        """How many samples of the epoch, over all workers, come before the next batch."""
        return self.order.position_of(self._place()[1])

    @property
    def lane_rows(self) -> tuple[int, ...]:
        """How many rows of the newest batch each of the `lanes` gave. They stand in this order, unless some were
        skipped."""
        start = self._offset - self.order.per_lane
        return tuple(self.order.num_rows(lane, start) for lane in self.lanes)

    @property
    def stats(self) -> LoaderStats:
        return LoaderStats(
            num_batches=self._num_batches,
            num_samples=self._num_samples,
            num_padded=self.order.num_padded,
            num_dropped=self.order.num_dropped,
            num_skipped=self._skipped.count,
            wait_s=self._wait_s,
            ahead_bytes=self._stream.ahead_bytes if self._stream else 0,
            last_errors=self._skipped.last(),
        )

    def __len__(self) -> int:
        """Batches of a whole epoch, the same for every worker."""
        return self.order.num_steps

    def __iter__(self) -> Iterator[Columns]:
        return self.batches()

    def batches(self, first: int = 0, stride: int = 1) -> Iterator[Columns]:
        """The rest of the epoch. With `first` and `stride`, only step `first` and every `stride`-th after it, for pools
        of workers."""
        self.close()
        self.announce()
        self._epoch, self._offset = self._place()
        for start, num_steps in self._skips.segments(self.order, self._epoch, self._offset):
            span = Span(
                epoch=self._epoch,
                offset=start,
                lanes=self.lanes,
                first=first,
                stride=stride,
                num_steps=num_steps,
            )
            stream = self._stream = BatchStream(
                self.order, self._blocks, span, self.config.num_threads, self.config.prefetch_bytes
            )
            yield from self._of_stream(stream, span)
            if stream is not self._stream:
                return  # repositioned in mid-epoch: this iteration is over, a new one starts at the new place
            first = first - num_steps if first >= num_steps else (first - num_steps) % stride
        self._epoch, self._offset = self._epoch + 1, 0

    def _of_stream(self, stream: BatchStream, span: Span) -> Iterator[Columns]:
        config = self.config
        try:
            batches = transformed(self._visible(iter(stream)), config.transform, config.num_threads)
            for number, batch in enumerate(self._timed(batches)):
                if stream is not self._stream:
                    return
                self._offset = span.offset + (span.first + number * span.stride + 1) * self.order.per_lane
                self._num_batches += 1
                self._num_samples += num_rows(batch)
                self._tell()
                yield batch
        finally:
            stream.close()

    def announce(self) -> None:
        """Tells the cluster which samples this process reads. The first batch does so by itself; a loader that is
        handed on to other processes must be announced before."""
        watcher, reading = read_watcher(), (self.order.spec.digest, self.lanes)
        if watcher is not None and self._registered and reading != self._announced:
            self._announced = reading
            watcher.begins(self._name, self.order.layout, self.lanes)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was handed out: under 300 bytes of JSON, free of ranks and workers."""
        epoch, offset = self._place()
        return self.state_of(epoch, offset)

    def state_at(self, num_batches: int) -> dict[str, Any]:
        """The state after this many batches from here, for callers that count batches themselves."""
        epoch, offset = self._place()
        while num_batches >= (left := self.steps_left(epoch, offset)):
            num_batches, epoch, offset = num_batches - left, epoch + 1, 0
        return self.state_of(*self._skips.place(self.order, *self.place_after(epoch, offset, num_batches)))

    def steps_left(self, epoch: int, offset: int) -> int:
        """How many batches the rest of an epoch has from a lane offset on."""
        return sum(segment.num_steps for segment in self._skips.segments(self.order, epoch, offset))

    def place_after(self, epoch: int, offset: int, num_batches: int) -> tuple[int, int]:
        """(epoch, lane offset) after so many batches of the epoch from here; its end, if it has fewer."""
        return self._skips.after(self.order, epoch, offset, num_batches)

    def state_of(self, epoch: int, offset: int) -> dict[str, Any]:
        """The state when every lane has given `offset` samples of an epoch, its end included."""
        spec = self.order.spec
        cursor = SyncCursor(digest=spec.digest, seed=spec.seed, epoch=epoch, position=self.order.position_of(offset))
        state = {**cursor.to_dict(), "num_lanes": spec.num_lanes, "window": spec.window}
        state["global_batch"] = self.order.global_batch
        forked = {"skips": self._skips.to_state(), "fork": self._fork} if self._fork or self._skips.all else {}
        return state | forked

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a saved position; the saved lanes and window are taken over, so that the order stays the same."""
        cursor = SyncCursor.from_dict(state)
        lanes, window = int(state.get("num_lanes", 0)), int(state.get("window", 0))
        if lanes < 1 or self._global_batch() % lanes:
            raise Refused(
                f"the saved order has {lanes} lanes, the global batch here is {self._global_batch()}",
                hint="batch_size × worker_count must stay a multiple of the lanes: pass the worker_count of before.",
            )
        cursor.check(self._spec(lanes, window).digest)
        if (lanes, window) != (self.order.spec.num_lanes, self.order.spec.window):
            self.order, self.lanes = self._ordered(lanes, window)
        self.close()
        self._epoch, self._offset = cursor.epoch, self.order.offset_of(cursor.position)
        self._skips, self._fork = Skips.from_state(state.get("skips", [])), str(state.get("fork", ""))
        self._skips.check(self.order, self._epoch, self._offset)
        self._leave_out(state)

    def _leave_out(self, state: Mapping[str, Any]) -> None:
        """In a fork that begins here: the batches that it is to leave out are known from now on."""
        forked: ForkedData | None = ambient.forked
        if forked is None or not forked.skip or forked.name == self._fork:
            return
        before = int(state.get("global_batch", self.order.global_batch))
        if before != self.order.global_batch:
            raise Refused(
                f"the global batch was {before} and is {self.order.global_batch}: the batches to leave out are others",
                hint="Fork with the same batch_size and worker_count, or without --skip.",
            )
        self._fork = forked.name
        self._skips = self._skips.without(self.order, (self._epoch, self._offset), forked.skip)
        _log.info("left out of the data, as [epoch, first sample, end]: %s", self._skips.to_state())

    def set_epoch(self, epoch: int) -> None:
        """To the start of an epoch."""
        if epoch < 0:
            raise InvalidArgument(f"epoch cannot be negative: {epoch}")
        self.close()
        self._epoch, self._offset = epoch, 0

    def join(self) -> None:
        """A loader that was made before its run began reads its rank's part from now on. One that knows its part, or
        was read from already, stays as it is."""
        source = self._chosen_source()
        if self._has_plan or source is not plan_source() or source is self._source or self._num_batches:
            return
        self._source = source
        self.order, self.lanes = self._ordered(*self._chosen_lanes())

    def sample(self, num_rows: int = 4) -> Preview:
        """The first rows of the newest batch, made small: what this worker reads now."""
        return preview_rows(self._last, num_rows, self.manifest, self._epoch, self.position)

    def twin(self) -> "Loader":
        """A second loader with the same order at the same place, for another thread. This loader does not follow its
        batches."""
        twin = copy.copy(self)
        twin._stream = None
        twin._blocks = BlockSource(self.manifest, self.config.columns, self._blocks.on_bad)
        twin.order = EpochOrder(self.order.layout, self.order.global_batch, self.order.tail)
        return twin

    def close(self) -> None:
        """Stops reading ahead. Iterating again starts it again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _chosen_source(self) -> PlanSource:
        given = self.config
        told = plan_source()
        if told is not None and given.world_size == 1 and given.worker_count is None:
            return told
        return StaticPlan(given.rank, given.world_size, given.worker_count)

    def _opened(self, dataset: Dataset) -> Manifest:
        found = self._source.resolve(dataset) if isinstance(dataset, str) else None
        self._registered = found is not None
        if found is not None:
            shuffle = found.shuffle if self.config.shuffle is None else self.config.shuffle
            seed = found.seed if self.config.seed is None else self.config.seed
            self.config = replace(self.config, shuffle=shuffle, seed=seed, format=self.config.format or found.format)
            dataset = found.path
        config = self.config
        on_bad = self._skipped if config.on_error == "skip" else None
        return open_manifest(dataset, config.format, config.columns, config.cache_dir, on_bad)

    def _chosen_lanes(self) -> tuple[int, int]:
        config, workers = self.config, self._source.worker_count
        if config.num_lanes is not None:
            lanes = config.num_lanes
        elif config.shuffle is False:
            lanes = next(d for d in range(1, self._global_batch() + 1) if not self._global_batch() % d and d >= workers)
        else:
            lanes = choose_lanes(self.manifest, self._global_batch(), workers, config.memory_bytes)
        return lanes, config.window or choose_window(self.manifest, lanes, workers, config.memory_bytes)

    def _global_batch(self) -> int:
        return self.batch_size * self._source.worker_count

    def _spec(self, num_lanes: int, window: int) -> OrderSpec:
        return OrderSpec(
            manifest=self.manifest.digest,
            seed=self.config.seed or 0,
            num_lanes=num_lanes,
            window=window,
            shuffle=self.config.shuffle is not False,
        )

    def _ordered(self, num_lanes: int, window: int) -> tuple[EpochOrder, tuple[int, ...]]:
        layout = LaneLayout(self.manifest.sizes, self._spec(num_lanes, window))
        order = EpochOrder(layout, self._global_batch(), self.config.tail)
        if not order.num_steps:
            raise InvalidArgument(
                f"tail='drop' leaves nothing: {layout.num_samples} samples are less than one global batch of "
                f"{self._global_batch()}",
                hint="Use a smaller batch_size, or tail='ragged' or 'pad'.",
            )
        return order, self._source.plan(self._name, num_lanes)

    def _place(self) -> tuple[int, int]:
        """(epoch, lane offset) of the next batch: the end of an epoch is the start of the next."""
        return self._skips.place(self.order, self._epoch, self._offset)

    def _tell(self) -> None:
        watcher = read_watcher()
        if watcher is not None and self._registered:
            read = self.order.position_of(self._offset) * len(self.lanes) // self.order.spec.num_lanes
            watcher.handed_out(self._name, read, self.sample)

    def _timed(self, batches: Iterator[Columns]) -> Iterator[Columns]:
        while True:
            begin = time.perf_counter()
            batch = next(batches, None)
            self._wait_s += time.perf_counter() - begin
            if batch is None:
                return
            yield batch

    def _visible(self, batches: Iterator[Columns]) -> Iterator[Columns]:
        for batch in batches:
            self._last = batch
            yield batch if self.config.with_index else {name: batch[name] for name in batch if name != INDEX}
