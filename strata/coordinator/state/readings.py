"""What loaders say they read: lanes of a dataset, by group and rank. The coordinator cuts lanes with the loader's own
LaneLayout, so what is shown is what is read, sample by sample. Pure; changes only by events.

A task's rank keeps its reading while its process is dead: a replacement goes on with the same lanes. A plain worker's
reading ends with it, and a task's with the task.
"""

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.cluster import events as e
from strata.cluster.members import Worker
from strata.coordinator.state import commands as c
from strata.coordinator.state.datasets import Datasets
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.errors import InvalidArgument
from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.spans import NO_SPANS, Spans, cut, joined
from strata.types.plain import shared
from strata.types.tasks import TaskStatus

__all__ = ["Reader", "Readings"]

_MAX_BLOCKS = 4_000_000
_MAX_SIZES_BYTES = 1 << 20  # deflated: far more than the blocks of any dataset that was ever seen
_MAX_LANES = 100_000
_MAX_CUTS = 8  # loaders of one process with different orders over one dataset

_Cut = tuple[str, str, int, bool]  # dataset, manifest, num_lanes, shuffle


@dataclass(slots=True, kw_only=True)
class Reader:
    """One rank of a group and what its loaders read of one dataset; `num_shards` are those it reads samples of."""

    worker_id: str
    incarnation: str
    cuts: dict[_Cut, tuple[int, ...]] = field(default_factory=dict)
    spans: Spans
    num_shards: int = 0


class Readings:
    """Readers by (group, dataset) and rank."""

    def __init__(self, membership: Membership, datasets: Datasets) -> None:
        self._membership = membership
        self._datasets = datasets
        self._layouts: dict[_Cut, tuple[LaneLayout, str]] = {}
        self._readers: dict[tuple[str, str], dict[int, Reader]] = {}

    # --- reading

    def of(self, task_id: str, dataset_id: str) -> dict[int, Reader]:
        """The group's readers of a dataset by rank; empty when no loader has said that it reads it."""
        return self._readers.get((task_id, dataset_id), {})

    def groups(self, dataset_id: str) -> list[str]:
        """The groups whose loaders read a dataset, the newest last."""
        return [task_id for task_id, name in self._readers if name == dataset_id]

    def datasets_of(self, task_id: str) -> list[str]:
        return [name for group, name in self._readers if group == task_id]

    # --- deciding

    def announce(self, command: c.AnnounceReading, now: Now, emit: c.Emit) -> bool:
        """Returns False when the worker must send the sizes of its blocks."""
        worker = self._membership.authorize(command.caller, now)
        self._membership.pulses.touch(worker.worker_id, now)
        event = self._plan(command, worker)
        if event is not None and not self._is_known(event):
            emit(event)
        return event is not None

    def _plan(self, command: c.AnnounceReading, worker: Worker) -> e.ReadingAnnounced | None:
        """None when this cut is not known and the command does not describe it."""
        spec = self._datasets.spec(command.dataset_id)
        if not 1 <= command.num_lanes <= _MAX_LANES or len(command.manifest) > 128:
            raise InvalidArgument(f"num_lanes must be 1 to {_MAX_LANES}: {command.num_lanes}")
        lanes = tuple(sorted(set(command.lanes)))
        if lanes and not 0 <= lanes[0] <= lanes[-1] < command.num_lanes:
            raise InvalidArgument(f"lanes must be 0 to {command.num_lanes - 1}: {lanes[0]} to {lanes[-1]}")
        known = (command.dataset_id, command.manifest, command.num_lanes, command.shuffle) in self._layouts
        if not known:
            if not command.sizes:
                return None
            total = int(_sizes(command.sizes).sum())
            if total != spec.total_samples:
                raise InvalidArgument(
                    f"dataset {spec.dataset_id!r} is registered with {spec.total_samples} samples, its files hold "
                    f"{total}",
                    hint="Register the files as they are under a new id, or the page cannot show who reads what.",
                )
        sizes = "" if known else base64.b64encode(command.sizes).decode()
        told = {**shared(e.ReadingAnnounced, worker), **shared(e.ReadingAnnounced, command)}
        return e.ReadingAnnounced(**{**told, "lanes": lanes, "sizes": sizes})

    def _is_known(self, event: e.ReadingAnnounced) -> bool:
        reader = self.of(event.task_id, event.dataset_id).get(event.rank)
        return (
            reader is not None
            and (reader.worker_id, reader.incarnation) == (event.worker_id, event.incarnation)
            and reader.cuts.get(_cut_of(event)) == event.lanes
        )

    # --- evolving

    def evolve(self, event: e.Event) -> None:
        match event:
            case e.ReadingAnnounced():
                self._on_announced(event)
            case e.MembersLost() if not event.task_id:
                gone = set(event.worker_ids)
                for key in [key for key in self._readers if not key[0]]:
                    left = {rank: one for rank, one in self._readers[key].items() if one.worker_id not in gone}
                    self._replace(key, left)
            case e.TaskChanged() if TaskStatus(event.status).final:
                for key in [key for key in self._readers if key[0] == event.task_id]:
                    self._replace(key, {})
            case e.QueueOpened():
                self._replace((event.task_id, event.dataset_id), {})
            case _:
                pass

    def _on_announced(self, event: e.ReadingAnnounced) -> None:
        key, cut_ = (event.task_id, event.dataset_id), _cut_of(event)
        if event.sizes:
            self._learn(cut_, event.sizes)
        readers = self._readers.setdefault(key, {})
        reader = readers.get(event.rank)
        if reader is None or reader.incarnation != event.incarnation or reader.worker_id != event.worker_id:
            reader = Reader(worker_id=event.worker_id, incarnation=event.incarnation, spans=NO_SPANS)
            readers[event.rank] = reader
        reader.cuts.pop(cut_, None)
        reader.cuts[cut_] = event.lanes
        while len(reader.cuts) > _MAX_CUTS:
            del reader.cuts[next(iter(reader.cuts))]
        with self._datasets.timer():
            self._measure(event.dataset_id, reader)
        if event.worker_id in self._membership.workers:
            self._membership.pulses.note_change([event.worker_id])  # how many shards it reads is one of its vitals

    def _learn(self, cut_: _Cut, sizes: str) -> None:
        _, manifest, num_lanes, shuffle = cut_
        spec = OrderSpec(manifest=manifest, seed=0, num_lanes=num_lanes, shuffle=shuffle)
        self._layouts[cut_] = LaneLayout(_sizes(base64.b64decode(sizes)), spec), sizes

    def _measure(self, dataset_id: str, reader: Reader) -> None:
        parts = [self._layouts[cut_][0].samples_of(lanes) for cut_, lanes in reader.cuts.items()]
        starts, stops = (np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "stops"))
        reader.spans = joined(starts, stops)
        reader.num_shards = cut(reader.spans, self._datasets.spec(dataset_id).shard_size).num_shards

    def _replace(self, key: tuple[str, str], readers: dict[int, Reader]) -> None:
        if readers:
            self._readers[key] = readers
        elif self._readers.pop(key, None) is not None:
            used = {cut_ for group in self._readers.values() for reader in group.values() for cut_ in reader.cuts}
            self._layouts = {cut_: layout for cut_, layout in self._layouts.items() if cut_ in used}

    # --- snapshots

    def dump(self) -> dict[str, Any]:
        return {
            "layouts": [[*cut_, sizes] for cut_, (_, sizes) in self._layouts.items()],
            "readers": [
                {
                    "task_id": task_id,
                    "dataset_id": dataset_id,
                    "rank": rank,
                    "worker_id": reader.worker_id,
                    "incarnation": reader.incarnation,
                    "cuts": [[*cut_[1:], list(lanes)] for cut_, lanes in reader.cuts.items()],
                }
                for (task_id, dataset_id), group in self._readers.items()
                for rank, reader in group.items()
            ],
        }

    def load(self, dumped: dict[str, Any]) -> None:
        for dataset_id, manifest, num_lanes, shuffle, sizes in dumped["layouts"]:
            self._learn((dataset_id, manifest, num_lanes, shuffle), sizes)
        for item in dumped["readers"]:
            for manifest, num_lanes, shuffle, lanes in item["cuts"]:
                values = {name: value for name, value in item.items() if name != "cuts"}
                cut_ = {"manifest": manifest, "num_lanes": num_lanes, "shuffle": shuffle}
                self._on_announced(e.ReadingAnnounced(**values, **cut_, lanes=tuple(lanes), sizes=""))


def _cut_of(event: e.ReadingAnnounced) -> _Cut:
    return event.dataset_id, event.manifest, event.num_lanes, event.shuffle


def _sizes(deflated: bytes) -> NDArray[np.int64]:
    """The samples of each block. A few bytes cannot become gigabytes: no more is inflated than is allowed."""
    if len(deflated) > _MAX_SIZES_BYTES:
        raise InvalidArgument(f"the sizes of blocks take {len(deflated)} bytes, at most {_MAX_SIZES_BYTES} are taken")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(deflated, 8 * _MAX_BLOCKS)
    except zlib.error as error:
        raise InvalidArgument(f"the sizes of blocks cannot be inflated: {error}") from error
    if inflater.unconsumed_tail or not inflater.eof or not raw or len(raw) % 8:
        raise InvalidArgument(f"the sizes of blocks must be 1 to {_MAX_BLOCKS} 64-bit numbers, deflated")
    sizes = np.frombuffer(raw, dtype="<i8").astype(np.int64)
    if int(sizes.min()) < 0 or int(sizes.max()) > 1 << 40:
        raise InvalidArgument(f"a block cannot hold {int(sizes.min())} or {int(sizes.max())} samples")
    return sizes
