"""Strata's data as a torch IterableDataset: whole batches of tensors, for DataLoader and StatefulDataLoader.

Use it with `batch_size=None`. The batches and their order are the same for every num_workers: worker w of n makes every
n-th batch. The state names a position and no topology.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Unpack

from strata.data import Columns, Loader, Manifest, PlanSource
from strata.data.config import LoaderOptions
from strata.errors import InvalidArgument, MissingExtra

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise MissingExtra("torch", "torch") from error

__all__ = ["StrataDataset", "to_tensors"]

_STEPS = "skip"


def to_tensors(batch: Columns) -> dict[str, Any]:
    """Numbers as tensors that share their memory; texts, bytes and ragged rows as lists."""
    return {
        name: torch.from_numpy(values) if values.dtype.kind in "biuf" else values.tolist()
        for name, values in batch.items()
    }


class StrataDataset(IterableDataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """`DataLoader(StrataDataset("data/*.parquet", 32), batch_size=None, num_workers=4)`.

    Every `iter()` of the DataLoader is one epoch: the next one, or after `set_epoch` or `load_state_dict` the one they
    name. Call `set_epoch` yourself when you seed torch alike before every epoch. `num_workers` pays off for transforms
    (decoding images); the files are read well by the loader's own threads with num_workers=0.
    """

    def __init__(
        self,
        dataset: str | PathLike[str] | Sequence[str] | Manifest,
        batch_size: int,
        *,
        plan: PlanSource | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        super().__init__()
        self._arguments = (dataset, batch_size, plan, options)
        self._loader = Loader(dataset, batch_size, plan=plan, **options)
        self._loader.announce()  # here, since the workers of a DataLoader cannot
        self._epoch, self._offset, self._skip = self._loader.epoch, self._offset_of(self._loader.position), 0
        self._iterated = False
        self._shared = _SharedEpoch(self._epoch)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        info = get_worker_info()
        worker, stride = (0, 1) if info is None else (info.id, info.num_workers)
        epoch = self._shared.begin()
        if epoch != self._epoch or self._iterated:
            self._epoch, self._offset, self._skip = epoch, 0, 0
        self._iterated = True
        # A restored worker state says how many steps its next one is away; else worker w begins at step w.
        skip = self._skip or worker
        return self._steps(skip, stride)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch of this process, and how far away its next one is."""
        return {**self._loader.state_of(self._epoch, self._offset), _STEPS: self._skip}

    def state_at(self, num_batches: int) -> dict[str, Any]:
        """The state after this many batches of this epoch: for a plain DataLoader, whose workers cannot be asked."""
        return self._loader.state_of(*self._loader.place_after(self._epoch, self._offset, num_batches))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes a state of this class, of Loader, or a whole StatefulDataLoader state of any number of workers."""
        found = _newest(state) if "kind" not in state else dict(state)
        self._loader.load_state_dict(found)
        self._skip = int(found.get(_STEPS, 0))
        self._epoch, self._offset = int(found["epoch"]), self._offset_of(int(found["position"]))
        self._iterated = False
        self._shared.set(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads this epoch from its start; also reaches workers that stay alive between epochs."""
        if epoch < 0:
            raise InvalidArgument(f"epoch cannot be negative: {epoch}")
        self._epoch, self._offset, self._skip = epoch, 0, 0
        self._shared.set(epoch)

    def __getstate__(self) -> dict[str, Any]:
        """For spawned workers: they open the files themselves, and read them in the same order."""
        kept = {name: value for name, value in self.__dict__.items() if name != "_loader"}
        return kept | {"_order": self._loader.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        order = state.pop("_order")
        self.__dict__.update(state)
        dataset, batch_size, plan, options = self._arguments
        self._loader = Loader(dataset, batch_size, plan=plan, **options)
        self._loader.load_state_dict(order)

    def _steps(self, skip: int, stride: int) -> Iterator[dict[str, Any]]:
        if self._loader.steps_left(self._epoch, self._offset) <= skip:
            return
        self._loader.load_state_dict(self._loader.state_of(self._epoch, self._offset))
        start = self._offset
        for number, batch in enumerate(self._loader.batches(skip, stride)):
            _, self._offset = self._loader.place_after(self._epoch, start, skip + number * stride + 1)
            self._skip = stride - 1
            yield to_tensors(batch)

    def _offset_of(self, position: int) -> int:
        return self._loader.order.offset_of(position)


class _SharedEpoch:
    """The epoch of a dataset, in one 64-bit word that all its processes share: (epoch, iteration, nonce).

    `iteration` tells one iter() of a DataLoader from the next (all its workers have the same base seed), 0 is none yet;
    `nonce` changes when the main process sets the epoch. The word is read and written whole, and all workers of one
    iteration write the same into it, so it needs no lock.
    """

    def __init__(self, epoch: int) -> None:
        self._word = torch.zeros(1, dtype=torch.int64).share_memory_()
        self._begun: tuple[int, int, int] | None = None
        self._write(epoch, 0, 0)

    def begin(self) -> int:
        """Starts an iteration: the epoch that was set, or the one after the last iteration's."""
        epoch, known, nonce = self._read()
        mine = _iteration()
        joins_others = known == mine and self._begun != (epoch, known, nonce)
        if known and not joins_others:
            epoch += 1
        self._begun = (epoch, mine, nonce)
        self._write(*self._begun)
        return epoch

    def set(self, epoch: int) -> None:
        _, _, nonce = self._read()
        self._begun = None
        if get_worker_info() is None:
            self._write(epoch, 0, (nonce + 1) % 256)
        else:
            # A worker that restores its own state takes part in the iteration that started it.
            self._write(epoch, _iteration(), nonce)

    def _read(self) -> tuple[int, int, int]:
        word = int(self._word[0])
        return word >> 40, word >> 8 & 0xFFFFFFFF, word & 0xFF

    def _write(self, epoch: int, iteration: int, nonce: int) -> None:
        self._word[0] = epoch << 40 | iteration << 8 | nonce


def _iteration() -> int:
    info = get_worker_info()
    return 1 if info is None else (info.seed - info.id) % 0xFFFFFFFF + 1


def _newest(state: Any) -> dict[str, Any]:
    """The furthest position anywhere in a StatefulDataLoader's state: batches are handed out in order."""
    found = [dict(item) for item in _walk(state) if item.get("kind") == "sync"]
    if not found:
        raise InvalidArgument("no position of a StrataDataset is in this state")
    newest = max(found, key=lambda item: (item["epoch"], item["position"]))
    newest.pop(_STEPS, None)
    return newest


def _walk(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _walk(item)
