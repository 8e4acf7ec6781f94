"""Hugging Face Accelerate on Strata: a tracker, and its save_state and load_state through Strata's verified store."""

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

from strata.errors import InvalidConfig, MissingExtra, StrataError
from strata.integrations.folders import FolderStore
from strata.worker.elastic.keepers import RandomKeeper, RandomState
from strata.worker.run import Run, current_run

try:
    from accelerate import Accelerator
    from accelerate.tracking import GeneralTracker
    from accelerate.utils import DistributedType
except ImportError as error:
    raise MissingExtra("accelerate", "accelerate") from error

from strata.integrations.torch_world import TorchRandom

__all__ = ["StrataState", "StrataTracker"]

_log = logging.getLogger(__name__)

_OWN_WAYS = (DistributedType.FSDP, DistributedType.DEEPSPEED, DistributedType.MEGATRON_LM)


class StrataTracker(GeneralTracker):  # type: ignore[misc]  # accelerate is not installed where types are checked
    """`Accelerator(log_with=StrataTracker())`. Accelerate logs on rank 0 only; `strata.log` is for every rank."""

    name = "strata"
    requires_logging_directory = False

    def __init__(self) -> None:
        super().__init__()
        self._run = current_run()

    @property
    def tracker(self) -> Run:
        return self._run

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        self._run.update(config=values)

    def log(self, values: Mapping[str, Any], step: int | None = None, **_: Any) -> None:
        self._run.log(values, step)

    def finish(self) -> None:
        self._run.finish()


class StrataState(AbstractContextManager["StrataState"]):
    """Saves and loads what the accelerator has prepared and registered, in `path` (default: the run's own folder or
    bucket). All calls are for all ranks. Use it as a context manager, or call `close`."""

    def __init__(
        self, accelerator: Accelerator, path: str | PathLike[str] | None = None, *, keep_count: int | None = 5
    ) -> None:
        if accelerator.distributed_type in _OWN_WAYS:
            raise InvalidConfig(
                f"{accelerator.distributed_type.value} spreads a checkpoint over the ranks' disks in a way of its own",
                hint="Use DDP, or save by strata.integrations.dcp.",
            )
        self._accelerator = accelerator
        self._run = current_run()
        self._store = FolderStore(path, keep_count=keep_count)
        self._randoms: tuple[RandomState, ...] = (RandomKeeper(), TorchRandom())
        self._loaded = 0  # the step to go on from, as long as its epoch has not begun

    def load(self) -> int:
        """Loads the newest good checkpoint and returns its step; 0 when there is none."""
        found = self._store.restore(self._accelerator.wait_for_everyone)
        if found is None:
            return 0
        self._loaded, folder = found
        self._accelerator.load_state(fspath(folder))
        self._store.clear()
        return self._loaded

    def batches(self, loader: Any, epoch: int) -> Iterator[Any]:
        """The batches of this epoch which are still to be trained. The first of them finds the random numbers as they
        were at the save: making the iterator has drawn from them. With use_seedable_sampler the order is the same."""
        skip, self._loaded = max(0, self._loaded - epoch * len(loader)), 0
        if not skip:
            loader.set_epoch(epoch)
            yield from loader
            return
        loaded = [source.get() for source in self._randoms]
        rest = self._accelerator.skip_first_batches(loader, skip)
        rest.set_epoch(epoch)
        for number, batch in enumerate(rest):
            if number == 0:
                for source, state in zip(self._randoms, loaded, strict=True):
                    source.set(state)
            yield batch

    def should_stop(self, step: int, *, epoch: int | None = None, percent: float | None = None) -> bool:
        """Says how far the training is; True from the step on that all ranks agree to save and to leave at."""
        self._run.progress(step, epoch=epoch, percent=percent)
        return self._run.should_stop()

    def save(self, step: int, epoch: int = 0) -> None:
        """Log the step before: one that is saved is never trained again."""
        with tempfile.TemporaryDirectory(prefix="strata-") as name:  # of this rank alone: whose file is whose is clear
            folder = Path(name)
            self._accelerator.save_state(name)
            files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            self._store.save(folder, files, step, epoch)

    def close(self) -> None:
        """Returns when all saves are durable, or raises what went wrong."""
        self._store.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Also where the script leaves by sys.exit, as one does that was asked to stop: a last save that failed must
        not look like one that is there."""
        try:
            self.close()
        except StrataError:
            if error is None or isinstance(error, SystemExit):
                raise
            _log.exception("a background save failed as well")
