"""Lightning on Strata: metrics of every rank, checkpoints in Strata's verified store, a stop at a step that all ranks
agree on, and a resume that goes on as if nothing had happened.
"""

import os
import signal
import threading
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath
from typing import Any

from strata.checkpoint import CheckpointManager
from strata.checkpoint.layout import parse_step, step_path
from strata.errors import CheckpointNotFound, InvalidConfig, MissingExtra
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.worker.elastic.keepers import RandomKeeper, RandomState
from strata.worker.environment import checkpoint_path
from strata.worker.owner import RunOwner
from strata.worker.run import Run, current_run

try:
    import torch
    from lightning.fabric.plugins.environments import TorchElasticEnvironment
    from lightning.fabric.utilities.apply_func import move_data_to_device
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.loggers import Logger
    from lightning.pytorch.plugins.io import CheckpointIO
    from lightning.pytorch.strategies import Strategy
    from lightning.pytorch.utilities import CombinedLoader
    from torch.utils.data import DataLoader
except ImportError as error:
    raise MissingExtra("lightning", "lightning") from error

from strata.integrations.torch_world import TorchRandom

__all__ = ["StrataCallback", "StrataCheckpointIO", "StrataEnvironment", "StrataLogger"]

_OWN = "strata"  # this rank's part of a checkpoint


class StrataEnvironment(TorchElasticEnvironment):  # type: ignore[misc]  # lightning is not installed where types are checked
    """`Trainer(plugins=[env], devices=env.num_devices, num_nodes=env.num_nodes)`: the ranks as `strata run` and
    torchrun have started them. One process without a launcher is a world of one."""

    def __init__(self) -> None:
        self.num_devices = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.num_nodes, rest = divmod(self.world_size(), self.num_devices)
        if rest:
            raise InvalidConfig(
                f"{self.num_devices} of {self.world_size()} ranks are on this host, Lightning wants as many on each",
                hint="Choose a number of workers that the hosts share evenly.",
            )

    def world_size(self) -> int:
        return int(os.environ.get("WORLD_SIZE", "1"))

    def global_rank(self) -> int:
        return int(os.environ.get("RANK", "0"))

    def local_rank(self) -> int:
        return int(os.environ.get("LOCAL_RANK", "0"))

    def node_rank(self) -> int:
        return self.global_rank() // self.num_devices


class StrataLogger(Logger):  # type: ignore[misc]
    """Metrics of all ranks (each has a curve of its own), hyperparameters as the run's config."""

    def __init__(self) -> None:
        super().__init__()
        self.experiment: Run = current_run()

    @property
    def name(self) -> str:
        return self.experiment.project

    @property
    def version(self) -> str:
        return self.experiment.id

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        self.experiment.log(metrics, step)

    def log_hyperparams(self, params: Mapping[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        if self.experiment.rank == 0:
            self.experiment.update(config=params)


class StrataCheckpointIO(CheckpointIO):  # type: ignore[misc]
    """`Trainer(plugins=[store], callbacks=[StrataCallback()])`, `trainer.fit(model, ckpt_path=store.newest())`.

    Saves behind the training, in `path` (default: the run's own folder or bucket), under the global step. Rank 0 writes
    what Lightning gives, the others what is theirs: a checkpoint exists when all are in it. Which ones are kept is
    ModelCheckpoint's affair, but for the newest, which stays until there is a newer one.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self._run = current_run()
        self._path = fspath(path) if path is not None else checkpoint_path(self._run.place)
        self._open: CheckpointManager | None = None
        self._logging = threading.Condition()
        self._logged = -1  # the last saved step whose metrics were logged, too
        self._steps: dict[str, int] = {}  # by Lightning's name of a checkpoint
        self._saved = self._committed = -1
        self._unwanted: set[int] = set()
        self._recovered: tuple[int, Any] | None = None

    @property
    def _manager(self) -> CheckpointManager:
        if self._open is None:
            self._open = CheckpointManager(
                self._path, keep_count=None, before_vote=self._before_vote, observer=self._observe
            )
        return self._open

    def newest(self) -> str | None:
        """For `ckpt_path`: the newest good checkpoint that all ranks can load, or None. Collective."""
        found = self._manager.recover()
        if found is None:
            return None
        self._saved = self._logged = self._committed = found.info.step
        self._recovered = found.info.step, found.state
        return step_path(self._manager.path, found.info.step)

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | PathLike[str], storage_options: Any = None
    ) -> None:
        """Of rank 0: Lightning asks no other."""
        if storage_options is not None:
            raise InvalidConfig("storage_options are TorchCheckpointIO's", hint="Options of the store are in .env.")
        if _OWN not in checkpoint:
            raise InvalidConfig(
                f"{fspath(path)} is a checkpoint without the part of Strata's callback",
                hint="Trainer(callbacks=[StrataCallback()]), and no save_weights_only: one cannot resume from weights.",
            )
        self._steps[fspath(path)] = checkpoint["global_step"]
        self.save_part(checkpoint, {"path": fspath(path)})

    def save_part(self, checkpoint: dict[str, Any], metadata: Mapping[str, Any] | None = None) -> None:
        """This rank's part of the checkpoint that all ranks save now. A step that is there is not saved again."""
        step = checkpoint["global_step"]
        if step == self._saved:
            return
        self._saved = step
        self._manager.save_async(checkpoint, step, checkpoint["epoch"], metadata=metadata)
        self._sweep()

    def release(self) -> None:
        """Says that the metrics of all steps so far were logged. Lightning saves a step before it logs it, and a step
        that is committed is never trained again: until now nobody may count on it."""
        with self._logging:
            self._logged = self._saved
            self._logging.notify_all()

    def load_checkpoint(
        self, path: str | PathLike[str], map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        step = self._step_of(fspath(path))
        known, self._recovered = self._recovered, None
        own: Any = known[1] if known is not None and known[0] == step else self._manager.load(step)
        whole: dict[str, Any] = own if self._run.rank == 0 else self._manager.load(step, rank=0)
        whole[_OWN] = own[_OWN]
        return whole if map_location is None else move_data_to_device(whole, map_location)

    def remove_checkpoint(self, path: str | PathLike[str]) -> None:
        """Of rank 0. The bytes go when a newer checkpoint is durable, and no other name is left for them."""
        step = self._steps.pop(fspath(path), None)
        if step is not None and step not in self._steps.values():
            self._unwanted.add(step)
        self._sweep()

    def teardown(self) -> None:
        """Returns when all saves are durable, or raises what went wrong."""
        self.release()
        if self._open is not None:
            self._open.wait()
            self._sweep()
            manager, self._open = self._open, None
            manager.close()

    def _sweep(self) -> None:
        for step in [step for step in self._unwanted if step < self._committed]:
            with suppress(CheckpointNotFound):  # somebody was quicker
                self._manager.remove(step)
            self._unwanted.discard(step)

    def _step_of(self, path: str) -> int:
        step = parse_step(path.rstrip("/").rpartition("/")[2])
        if step is None:
            step = self._steps.get(path)
        if step is None:
            step = next((info.step for info in self._manager.list() if info.metadata.get("path") == path), None)
        if step is None:
            raise CheckpointNotFound(f"{self._manager.path} has no checkpoint that was saved as {path}")
        return step

    def _before_vote(self, step: int) -> None:
        with self._logging:
            self._logging.wait_for(lambda: self._logged >= step)
        RunOwner(self._run).before_vote(step)

    def _observe(self, info: CheckpointInfo) -> None:
        if info.status is CheckpointStatus.COMPLETED:
            self._committed = max(self._committed, info.step)


class StrataCallback(Callback):  # type: ignore[misc]
    """Tells how far the training is, saves and leaves at the agreed step of a stop or of a notice, and brings each
    rank's random numbers back. Belongs beside a StrataCheckpointIO."""

    def __init__(self) -> None:
        self._run = current_run()
        self._on_term = signal.getsignal(signal.SIGTERM)
        self._randoms: dict[str, RandomState] = {"python": RandomKeeper(), "torch": TorchRandom()}
        self._restored: dict[str, Any] | None = None
        self._step = 0
        self._total = float("inf")

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        strategy = trainer.strategy
        if type(strategy).save_checkpoint is not Strategy.save_checkpoint:
            raise InvalidConfig(
                f"{type(strategy).__name__} writes checkpoints by itself, not through a CheckpointIO",
                hint="Use ddp or one device, or save by strata.integrations.dcp.",
            )
        self._store_of(trainer)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[_OWN] = {
            "random": {name: source.get() for name, source in self._randoms.items()},
            "rank": self._run.rank,
            "within_epoch": not trainer.is_last_batch,
        }
        if trainer.is_last_batch:
            _end_loaders(trainer.train_dataloader, checkpoint["loops"]["fit_loop"]["state_dict"])
        if not trainer.is_global_zero:
            part = {name: checkpoint[name] for name in ("global_step", "epoch", _OWN)}
            self._store_of(trainer).save_part(part)

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        own = checkpoint.get(_OWN)
        if own is not None and own["rank"] == self._run.rank:  # a rank that was not there then keeps its own
            self._restored = own

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._restore()  # what an epoch begins with draws from here: its order, its workers' seeds

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._restored is not None:
            self._restore_again(trainer)
            self._restored = None
        self._step, self._total = trainer.global_step, trainer.estimated_stepping_batches
        if self._run.session is not None:
            signal.signal(signal.SIGTERM, self._on_term)  # Lightning's own ends a rank where it stands

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._store_of(trainer).release()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._store_of(trainer).release()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step == self._step:
            return  # gradients are still being accumulated
        self._step = trainer.global_step
        percent = 100 * self._step / self._total if 0 < self._total < float("inf") else None
        self._run.progress(self._step, epoch=trainer.current_epoch, percent=percent)
        if self._run.should_stop():
            self._leave(trainer)

    def _leave(self, trainer: Trainer) -> None:
        """Saves the step at which all ranks are, and ends the training here, whatever minimum it was given."""
        trainer.save_checkpoint(step_path("stop", self._step))
        trainer.should_stop = True
        trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
        trainer.limit_val_batches = 0  # Lightning validates when it stops early

    def _restore_again(self, trainer: Trainer) -> None:
        """Making the loader's iterator anew has drawn from the random numbers: more often than it would have, within an
        epoch, and at the end of one where the loader has a state of its own."""
        assert self._restored is not None
        if self._restored["within_epoch"]:
            self._restore()
        elif _resume_at_their_end(trainer.train_dataloader):
            self._restore()
            _draw_as_new(trainer.train_dataloader)

    def _restore(self) -> None:
        if self._restored is not None:
            for name, source in self._randoms.items():
                source.set(self._restored["random"][name])

    def _store_of(self, trainer: Trainer) -> StrataCheckpointIO:
        store = trainer.strategy.checkpoint_io
        if not isinstance(store, StrataCheckpointIO):
            raise InvalidConfig(
                f"StrataCallback is used with {type(store).__name__}", hint="Trainer(plugins=[StrataCheckpointIO()])."
            )
        return store


def _end_loaders(loaders: Any, state: dict[str, Any]) -> None:
    """Lightning asks no loader for more than its last batch, so torchdata's does not know that it is at its end, and
    would begin with an empty epoch when it is resumed. Where samplers are told their epoch there is nothing to know."""
    if all(hasattr(getattr(loader, "sampler", None), "set_epoch") for loader in CombinedLoader(loaders).flattened):
        state.pop("combined_loader", None)
    for one in state.get("combined_loader", ()):
        if "_iterator_finished" in one:
            one["_iterator_finished"] = True


def _draw_as_new(loaders: Any) -> None:
    """What an epoch's new iterators draw. A stateful loader that is resumed at its end has made two of them."""
    for loader in CombinedLoader(loaders).flattened:
        if isinstance(loader, DataLoader) and loader.generator is None:
            torch.empty((), dtype=torch.int64).random_()


def _resume_at_their_end(loaders: Any) -> bool:
    return all(hasattr(loader, "load_state_dict") for loader in CombinedLoader(loaders).flattened)
