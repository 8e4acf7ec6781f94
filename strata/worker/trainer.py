"""The built-in `training` task: `python -m strata.worker.trainer` really trains a small model on the task's dataset,
data-parallel over its ranks, with checkpoints, metrics and exact resumption.
"""

import hashlib
import logging
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from strata.checkpoint.manager import CheckpointManager
from strata.checkpoint.restorer import Recovery
from strata.data.blocks import INDEX
from strata.data.loader import Loader
from strata.data.plan import StaticPlan
from strata.data.table.columns import Columns, join
from strata.errors import InvalidArgument, PeerLost
from strata.worker.media.unfit import shown
from strata.worker.model import Model, learn_scheme
from strata.worker.plan import SharePlan, owners, shares_of
from strata.worker.run import Run, init
from strata.worker.session import FENCED_EXIT

__all__ = ["Trainer", "TrainingConfig", "main"]

_log = logging.getLogger("strata.trainer")

_LOOK_ROWS = 16_384
_LEDGER = 32  # bytes
_PEER_WAIT_S = 30.0
_ABOVE_ZERO = ("learning_rate", "batch_size", "epochs", "hidden_size")
_BELOW = 2**63  # a seed may be large; more is a mistake of whoever wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """The task's config, checked. `pause_s` slows every step down, for demonstrations."""

    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 32
    epochs: int = 3
    hidden_size: int = 32
    seed: int = 0
    checkpoint_every: int = 0  # steps; 0 = four times per epoch
    pause_s: float = 0.0

    @classmethod
    def of(cls, given: dict[str, Any]) -> "TrainingConfig":
        """Other keys of a task's config are the user's own business."""
        defaults = cls()
        names = [name for name in cls.__dataclass_fields__ if name in given]
        values: dict[str, Any] = {name: _number(name, given[name], type(getattr(defaults, name))) for name in names}
        return cls(**values)


def _number(name: str, given: Any, kind: type[float]) -> float:
    """JSON has one kind of number, and shells only texts: 32, 32.0 and "32" are the same."""
    try:
        number = kind(given)
        fits = not math.isnan(number) and (kind is float or isinstance(given, str) or number == given)
    except (TypeError, ValueError, OverflowError):  # OverflowError: infinity as a whole number, 10**400 as any
        fits = False
    word = "whole number" if kind is int else "number"
    if not fits:
        raise InvalidArgument(f"{name} is {shown(given)}, it must be a {word}")
    if not 0 <= number < _BELOW or (number == 0 and name in _ABOVE_ZERO):
        least = "above 0" if name in _ABOVE_ZERO else "from 0 on"
        raise InvalidArgument(f"{name} is {shown(given)}, it must be a {word} {least}, and below {_BELOW:,}")
    return number


class Trainer:
    """One rank of the job. `train` returns when all epochs are done, or when a stop was asked for and saved."""

    def __init__(self, run: Run, config: TrainingConfig) -> None:
        self._run = run
        self._config = config
        if not run.place.dataset_id:
            raise InvalidArgument("the task names no dataset_id", hint="The built-in trainer trains on a dataset.")
        self._plan = SharePlan(run.place)
        self._loader = Loader(run.place.dataset_id, config.batch_size, plan=self._plan, with_index=True)
        self._gang = run.gang
        self._owners = owners(run.world_size, self._plan.worker_count)
        look = _first_look(self._loader)
        scheme = learn_scheme(look, list(self._loader.manifest.schema), dict(run.config))
        self._model = Model(scheme, config.hidden_size, config.seed)
        steps_per_epoch = len(self._loader)
        self.total_steps = steps_per_epoch * config.epochs
        self._every = config.checkpoint_every or max(1, steps_per_epoch // 4)
        self._step = 0
        self._saved_step = 0
        # A chain of hashes per share over every sample of it, in order.
        self._ledgers = dict.fromkeys(self._plan.shares, bytes(_LEDGER))
        if run.rank == 0:
            goal = f"{scheme.num_classes} classes" if scheme.num_classes else "a quantity"
            _log.info(
                "%d samples, %d features, target %r (%s); %d epochs of %d steps on %d ranks",
                self._loader.manifest.num_samples,
                len(scheme.mean),
                scheme.target,
                goal,
                config.epochs,
                steps_per_epoch,
                run.world_size,
            )

    def train(self) -> None:
        with self._run.checkpoints() as checkpoints:
            self._resume(checkpoints)
            while self._loader.epoch < self._config.epochs and self._step < self.total_steps:
                if self._train_epoch(checkpoints):
                    _log.info("stopped at step %d, which is saved", self._step)
                    return
                self._run.barrier(f"epoch-{self._loader.epoch}", self._step)
            checkpoints.wait()
            if self._step != self._saved_step:
                self._save(checkpoints, wait=True)
        self._run.progress(self._step, percent=100.0)
        digest = hashlib.sha256(b"".join(value.tobytes() for value in self._model.params.values())).hexdigest()
        ledgers = " ".join(ledger.hex()[:16] for ledger in self._ledgers.values())
        _log.info("done after %d steps; weights %s, ledger %s", self._step, digest[:16], ledgers)

    def _train_epoch(self, checkpoints: CheckpointManager) -> bool:
        """True when a stop was asked for."""
        epoch = self._loader.epoch
        began = time.perf_counter()
        for batch in self._loader:
            stop = self._train_step(batch, epoch)
            ended = time.perf_counter()
            self._report(epoch, ended - began)
            began = ended  # reading, saving and pausing are part of a step, or the throughput would flatter
            checkpoints.check()
            if stop:
                checkpoints.wait()
                self._save(checkpoints, wait=True)
                return True
            if self._step % self._every == 0:
                self._save(checkpoints, wait=False)
            if self._config.pause_s:
                time.sleep(self._config.pause_s)
        return False

    def _train_step(self, batch: Columns, epoch: int) -> bool:
        stop_asked = self._run.stop_asked or self._run.should_stop()
        parts = []
        for share, rows in self._split(batch):
            numbers = rows[INDEX].astype("<i8")
            self._ledgers[share] = hashlib.sha256(self._ledgers[share] + numbers.tobytes()).digest()
            gradient, loss, right = self._model.gradient(rows)
            parts.append(np.concatenate([gradient, [loss, right, float(len(numbers)), float(stop_asked)]]))
        total = self._gang.sum_shares(parts, self._owners)
        self._loss, self._right, self._rows, stop = (float(item) for item in total[-4:])
        self._model.apply(total[:-4] / self._rows, self._config.learning_rate, self._config.momentum)
        self._step += 1
        self._run.progress(self._step, epoch=epoch, percent=100.0 * self._step / self.total_steps)
        return stop > 0  # the sum is the same everywhere: all ranks stop after the same step

    def _split(self, batch: Columns) -> Iterator[tuple[int, Columns]]:
        """The batch by share: the very rows, in the very order, that one rank has of it when all workers are there."""
        shares = self._plan.shares
        if len(shares) == 1:
            yield shares[0], batch
            return
        of_lane = self._plan.share_of_lane(self._loader.order.spec.num_lanes)
        of_row = np.repeat([of_lane[lane] for lane in self._loader.lanes], self._loader.lane_rows)
        for share in shares:
            yield share, {name: values[of_row == share] for name, values in batch.items()}

    def _report(self, epoch: int, took_s: float) -> None:
        """Every rank its own step time, for the straggler view; what is true of all of them, rank 0."""
        run = self._run
        values = {"step_time": took_s}
        if run.rank == 0:
            values |= {
                "loss": self._loss / self._rows,
                "accuracy": self._right / self._rows,
                "throughput/samples_per_sec": self._rows / max(took_s, 1e-9),
                "lr": self._config.learning_rate,
                "epoch": epoch,
                "progress/percent": 100.0 * self._step / self.total_steps,
            }
        run.log(values, step=self._step)

    # --- checkpoints

    def _save(self, checkpoints: CheckpointManager, *, wait: bool) -> None:
        """Rank 0 saves the model, which all ranks have alike; every rank saves the ledgers of its shares."""
        self._saved_step = self._step
        cursor = self._loader.state_dict()
        state: dict[str, Any] = {"ledger": np.frombuffer(b"".join(self._ledgers.values()), dtype=np.uint8)}
        if self._run.rank == 0:
            state |= {"model": self._model.state(), "cursor": cursor}
        with self._run.section("checkpoint"):
            handle = checkpoints.save_async(state, self._step, int(cursor["epoch"]), data_state=cursor)
            if wait:
                handle.result()

    def _resume(self, checkpoints: CheckpointManager) -> None:
        """All ranks go back to the newest checkpoint that all of them can read."""
        found = checkpoints.recover()
        if found is None:
            return
        step = found.info.step
        state = found.state if self._run.rank == 0 else checkpoints.load(step, rank=0)
        self._ledgers = self._saved_ledgers(checkpoints, found)
        self._model.load(state["model"])
        self._loader.load_state_dict(state["cursor"])
        self._step = self._saved_step = step
        self._run.progress(step, epoch=self._loader.epoch, percent=100.0 * step / self.total_steps)
        if self._run.rank == 0:
            _log.info("resumed from step %d", step)

    def _saved_ledgers(self, checkpoints: CheckpointManager, found: Recovery) -> dict[int, bytes]:
        """Of this rank's shares, which other ranks had when the world was of another size."""
        size = found.world_size
        had = owners(size, self._plan.worker_count)
        saved = {}
        for rank in {had[share] for share in self._plan.shares}:
            loaded = checkpoints.load(found.info.step, names=["ledger"], rank=rank, world_size=size)["ledger"].tobytes()
            for place, share in enumerate(shares_of(rank, size, self._plan.worker_count)):
                saved[share] = loaded[_LEDGER * place : _LEDGER * (place + 1)]
        return {share: saved[share] for share in self._plan.shares}


def _first_look(loader: Loader) -> Columns:
    """The first rows in the order of the files: the same on every rank, whatever it reads later."""
    looker = Loader(loader.manifest, batch_size=4_096, plan=StaticPlan(), shuffle=False)
    batches = list(islice(iter(looker), _LOOK_ROWS // 4_096))
    looker.close()
    return join(batches)


class _Lines(logging.Formatter):
    """The agent takes the level from the line's first word; what says nothing is info."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno == logging.INFO else f"{record.levelname} {text}"


def main() -> int:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    run = init()
    try:
        config = TrainingConfig.of(dict(run.config))
    except InvalidArgument as error:
        # In argparse's words and with its code: the agent finds the reason, and nobody starts it again.
        sys.stderr.write(f"training: error: {error}\n")
        return 2
    try:
        Trainer(run, config).train()
    except PeerLost as error:
        _log.warning("%s; waiting to be started anew", error)
        time.sleep(_PEER_WAIT_S)  # the agent ends this process; an exit now would only blur who died first
        return FENCED_EXIT
    run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
