"""QueueLoader: batches for workers of uneven speed. Each takes the next shard when it is done with the last one.

Every sample counts exactly once per epoch in what is committed; who reads it, and in which batch, depends on speed. For
the same batches whatever happens, use Loader.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.data.blocks import INDEX, BlockSource
from strata.data.config import check_batch_size
from strata.data.manifest import Dataset, open_manifest
from strata.data.plan import plan_source
from strata.data.preview import Preview, preview_rows
from strata.data.queue import LocalQueue, LocalSource, QueueSource, queue_source
from strata.data.stats import SkipLog
from strata.data.table.columns import Columns, join, num_rows, take
from strata.data.watch import read_watcher
from strata.errors import DeadlineExceeded, InvalidArgument, Refused, UnknownDataset
from strata.sharding.queue import START, QueueOrder
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus

__all__ = ["QueueConfig", "QueueLoader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """How to read. `auto_commit`: what a batch held counts when the next one is asked for; without it, `commit` or a
    checkpoint that was announced by `stage` makes it count. `wait_s` bounds the wait for other workers; with 0 an
    iteration ends when there is nothing to read just now, for workers that meet each other between iterations."""

    format: str | None = None
    columns: tuple[str, ...] | list[str] | None = None
    shuffle: bool = True
    seed: int = 0
    auto_commit: bool = False
    with_index: bool = False
    skip_bad: bool = False
    transform: Callable[[Columns], Columns] | None = None
    cache_dir: Path | str | None = None
    poll_s: float = 0.2
    wait_s: float = 1800.0

    def __post_init__(self) -> None:
        if self.poll_s <= 0 or self.wait_s < 0:
            raise InvalidArgument(f"poll_s must be above 0 and wait_s not below: {self.poll_s}, {self.wait_s}")


@dataclass(slots=True)
class _Open:
    """A lease and how far it was handed out. `rows` are what is left of it, at `places` of its order."""

    lease: QueueLease
    row: int
    columns: Columns
    places: NDArray[np.int64]
    taken: int = 0
    staged: bool = False

    @property
    def complete(self) -> bool:
        return self.row == self.lease.num_rows

    def take(self, count: int) -> Columns:
        part = take(self.columns, slice(self.taken, self.taken + count))
        self.taken += num_rows(part)
        # What could not be read and was skipped goes with the sample before it.
        self.row = int(self.places[self.taken]) if self.taken < len(self.places) else self.lease.num_rows
        self.staged = False
        if self.complete:
            self.columns, self.places = {}, self.places[:0]
        return part


class QueueLoader:
    """`for batch in QueueLoader("my-dataset", 32, QueueConfig(auto_commit=True)): …` reads until the epoch is over.

    In a task the dataset is a registered one; alone, files. Write `while loader.epoch < epochs:
    for batch in loader: …`: an iteration ends with the epoch, or before, when it is time to commit. Not thread-safe.
    """

    def __init__(
        self, dataset: Dataset, batch_size: int, config: QueueConfig | None = None, *, queue: QueueSource | None = None
    ) -> None:
        self.batch_size = check_batch_size(batch_size)
        self.config = config or QueueConfig()
        self.skipped = SkipLog()
        self._local: LocalQueue | None = None
        source = queue or queue_source()
        if source is None or isinstance(source, LocalSource):
            self._open_files(dataset, source)
        else:
            self._open_registered(dataset, source)
        on_bad = self.skipped if self.config.skip_bad else None
        self._blocks = BlockSource(self.manifest, self.config.columns, on_bad)
        self._open: dict[int, _Open] = {}
        self.epoch = 0
        self._ended: int | None = None  # the epoch whose end was reached, but not yet committed by all
        self.num_committed: int | None = None  # of the epoch, over all workers, as last heard
        self._last: Columns = {}
        self._num_read = 0  # of the epoch, by this worker

    def __iter__(self) -> Iterator[Columns]:
        waited_s = 0.0
        while True:
            parts, status = self._collect()
            if parts:
                waited_s = 0.0
                self._ended = None
                self._last = join(parts)
                self._tell()
                yield self._visible(self._last)
                if self.config.auto_commit:
                    self.commit()
            if status is QueueStatus.FINISHED:
                self.epoch += 1
                self._num_read = 0
                return
            if status is QueueStatus.LEASED:
                continue
            if not self.config.wait_s:
                return
            if status is QueueStatus.DRAINED and not self.config.auto_commit and self._should_end():
                return
            waited_s = self._wait(waited_s)

    def commit(self) -> None:
        """Everything that was handed out counts, whatever happens next."""
        grant = self._queue.commit(self.dataset_id, self.epoch, self.progress())
        self._hear(grant)

    def stage(self, step: int) -> None:
        """Everything that was handed out is part of the checkpoint of `step`: it counts when that is committed. Before
        the state is saved, on every rank."""
        self._queue.commit(self.dataset_id, self.epoch, self.progress(), step)
        for item in self._open.values():
            item.staged = True

    def restore(self, step: int | None) -> None:
        """After a restart, on every rank, before the first batch: the queue goes on from the checkpoint of `step`."""
        self._open.clear()
        self._ended = None
        self.epoch = self._queue.restore(self.dataset_id, START if step is None else step).epoch

    def progress(self) -> tuple[LeaseProgress, ...]:
        """How far this worker is: advisory until it is committed."""
        return tuple(LeaseProgress(lease_id=number, row=item.row) for number, item in self._open.items())

    def sample(self, num_rows: int = 4) -> Preview:
        """The first rows of the batch that was handed out last: what this worker reads now, in small."""
        return preview_rows(self._last, num_rows, self.manifest, self.epoch, self.num_committed or 0)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch, for a process on its own. With a coordinator, use `stage`."""
        return {**self._own().state_dict(self.progress()), "manifest": self.manifest.digest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        own = self._own()
        if state.get("manifest") != self.manifest.digest:
            raise Refused(
                f"the saved position belongs to other data: {state.get('manifest')}, not {self.manifest.digest}"
            )
        own.load_state_dict(state)
        self._open.clear()
        self._ended = None
        self.epoch = int(state["epoch"])

    def _own(self) -> LocalQueue:
        if self._local is None:
            raise Refused(
                "the coordinator keeps the position of this queue",
                hint="Call stage(step) before a checkpoint is saved, and restore(step) after it was loaded.",
            )
        return self._local

    # --- opening

    def _open_files(self, dataset: Dataset, source: LocalSource | None) -> None:
        self.manifest = open_manifest(dataset, self.config.format, self.config.columns, self.config.cache_dir)
        if source is None:
            source = LocalQueue.of(self.manifest, seed=self.config.seed, shuffle=self.config.shuffle).source()
        self._local, self._order = source.queue, source.queue.order
        self.dataset_id: str = self._order.dataset
        self._queue: QueueSource = source

    def _open_registered(self, dataset: Dataset, source: QueueSource) -> None:
        plan = plan_source()
        found = plan.resolve(dataset) if plan is not None and isinstance(dataset, str) else None
        if found is None or not isinstance(dataset, str):
            raise UnknownDataset(
                f"{dataset if isinstance(dataset, str) else type(dataset).__name__!r} is not a registered dataset",
                hint="Workers that share a queue need one the coordinator knows: register it. To read files in this "
                "process alone, pass queue=LocalQueue.of(build_manifest(files)).source().",
            )
        self.manifest = open_manifest(
            found.path, self.config.format or found.format, self.config.columns, self.config.cache_dir
        )
        unknown = np.empty(0, dtype=np.int64)  # how it is cut into shards is the coordinator's business
        self._order = QueueOrder(dataset=dataset, seed=found.seed, shuffle=found.shuffle, sizes=unknown)
        self.dataset_id = dataset
        self._queue = source

    # --- reading

    def _collect(self) -> tuple[list[Columns], QueueStatus]:
        """Up to a batch of rows, and the queue's last answer when it was asked for more."""
        parts: list[Columns] = []
        room = self.batch_size
        while room:
            current = next((item for item in self._open.values() if not item.complete), None)
            if current is None:
                grant = self._queue.claim(self.dataset_id, self.epoch, self.progress())
                self._hear(grant)
                if grant.lease is None:
                    return parts, grant.status
                self._open[grant.lease.lease_id] = self._read(grant.lease)
                continue
            part = current.take(room)
            if num_rows(part):
                parts.append(part)
            room -= num_rows(part)
        return parts, QueueStatus.LEASED

    def _hear(self, grant: QueueGrant) -> None:
        """Drops leases that are committed to their end."""
        held = {item.lease_id for item in grant.held}
        self._open = {number: item for number, item in self._open.items() if number in held}
        self.num_committed = grant.num_committed

    def _read(self, lease: QueueLease) -> _Open:
        manifest, stop = self.manifest, lease.start_index + lease.num_rows
        if stop > manifest.num_samples:
            raise Refused(
                f"the queue lends samples up to {stop}, the files hold {manifest.num_samples}",
                hint="Register the dataset with the number of samples that its files have.",
            )
        numbers = manifest.blocks_between(lease.start_index, stop)
        blocks = [self._blocks.shared(number).columns for number in numbers]
        columns = join([block for block in blocks if num_rows(block)]) if any(map(num_rows, blocks)) else {}
        wanted = self._order.rows(lease)
        known = columns[INDEX] if columns else np.empty(0, dtype=np.int64)
        rows = np.searchsorted(known, wanted)
        present = np.isin(wanted, known)
        places = lease.row + np.flatnonzero(present)
        return _Open(lease, lease.row, take(columns, rows[present]), places)

    def _tell(self) -> None:
        self._num_read += num_rows(self._last)
        watcher = read_watcher()
        if watcher is not None and self._local is None:
            watcher.handed_out(self.dataset_id, self._num_read, self.sample)

    def _visible(self, batch: Columns) -> Columns:
        if not self.config.with_index:
            batch = {name: values for name, values in batch.items() if name != INDEX}
        return self.config.transform(batch) if self.config.transform else batch

    # --- waiting for others

    def _should_end(self) -> bool:
        """Whether the iteration should end because all shards are read and all workers must now commit. It ends once,
        also for a worker that got nothing to read; when it is asked again it waits for the others."""
        if self._ended != self.epoch:
            self._ended = self.epoch
            return True
        if any(not item.staged for item in self._open.values()):
            raise Refused(
                f"epoch {self.epoch} is read to its end, but what this worker has read is not committed",
                hint="Call commit(), or stage(step) and save a checkpoint, after the last batch.",
            )
        return False

    def _wait(self, waited_s: float) -> float:
        if waited_s >= self.config.wait_s:
            raise DeadlineExceeded(
                f"epoch {self.epoch}: other workers have neither committed nor given back their shards for "
                f"{waited_s:g} s",
                hint="Every worker must commit what it has read; wait_s bounds the wait.",
            )
        time.sleep(self.config.poll_s)
        return waited_s + self.config.poll_s
