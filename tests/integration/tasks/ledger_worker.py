"""One rank of the jobs in test_ledger.py: notes which samples it read, and saves the note as its model.

Run as `ledger_worker.py loader|queue FOLDER`. What the model "learned" is the list of samples in its checkpoint.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import strata
from strata.data import Columns, Loader, QueueConfig, QueueLoader
from strata.data.blocks import INDEX
from strata.errors import CheckpointAborted, PeerLost
from strata.worker.session import FENCED_EXIT

BATCH, EPOCHS, EVERY = 8, 2, 4


class Ledger:
    """Rows of (epoch, step, sample): in memory what the model has seen, on disk what was ever read."""

    def __init__(self, path: Path, attempt: int) -> None:
        self.rows = np.empty((0, 3), dtype=np.int64)
        self._attempt = attempt
        self._log = path.open("a")

    def add(self, epoch: int, step: int, batch: Columns) -> None:
        numbers = batch[INDEX]
        rows = np.column_stack([np.full(len(numbers), epoch), np.full(len(numbers), step), numbers])
        self.rows = np.concatenate([self.rows, rows])
        line = {"attempt": self._attempt, "epoch": epoch, "step": step, "samples": numbers.tolist()}
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()


class Job:
    def __init__(self, folder: Path) -> None:
        self.run = strata.init()
        self.pause_s = float(self.run.config.get("pause_s", 0.02))
        self.ledger = Ledger(folder / f"read-{self.run.rank}.jsonl", self.run.place.attempt)
        self.checkpoints = self.run.checkpoints(str(folder / "checkpoints"))
        self.step = 0

    def resume(self) -> Any:
        """All ranks go on from the newest checkpoint that all can load; the position in the data, or None."""
        found = self.checkpoints.recover()
        if found is None:
            return None
        state, self.step = found.state, found.info.step
        self.ledger.rows = state["ledger"].reshape(-1, 3)
        return json.loads(state["cursor"].tobytes())

    def agree(self, value: int) -> int:
        return sum(self.run.gang.gather(value))

    def save(self, epoch: int, cursor: Any) -> None:
        noted = np.frombuffer(json.dumps(cursor).encode(), dtype=np.uint8)
        self.checkpoints.save({"ledger": self.ledger.rows.ravel(), "cursor": noted}, self.step, epoch)

    def train(self) -> None:
        """Synchronous: a global batch per step."""
        loader = Loader(self.run.place.dataset_id, BATCH, with_index=True)
        cursor = self.resume()
        if cursor is not None:
            loader.load_state_dict(cursor)
        while loader.epoch < EPOCHS:
            epoch = loader.epoch
            for batch in loader:
                self.step += 1
                self.ledger.add(epoch, self.step, batch)
                self.agree(1)
                if self.step % EVERY == 0:
                    self.save(epoch, loader.state_dict())
                self.run.progress(self.step)
                time.sleep(self.pause_s)
        if self.step % EVERY:
            self.save(EPOCHS, loader.state_dict())

    def drain(self) -> None:
        """Queue mode: in each round the higher ranks read more; they meet only to save."""
        loader = QueueLoader(self.run.place.dataset_id, BATCH, QueueConfig(with_index=True, wait_s=0.0))
        resumed = self.resume()
        loader.restore(self.step if resumed is not None else None)
        while self.agree(loader.epoch < EPOCHS):
            self.step += 1
            batches = iter(loader) if loader.epoch < EPOCHS else iter(())
            for _ in range(self.run.rank + 1):
                epoch = loader.epoch
                batch = next(batches, None)
                if batch is None:
                    break
                self.ledger.add(epoch, self.step, batch)
                time.sleep(self.pause_s)
            loader.stage(self.step)
            self.save(loader.epoch, {})
            self.run.progress(self.step)


def main(mode: str, folder: str) -> int:
    try:
        job = Job(Path(folder))
        job.train() if mode == "loader" else job.drain()
        job.checkpoints.close()
    except (PeerLost, CheckpointAborted) as error:
        sys.stderr.write(f"{error}; waiting to be started anew\n")
        time.sleep(30)
        return FENCED_EXIT
    job.run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
