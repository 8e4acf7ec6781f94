"""The built-in trainer with a pause after every step, until the file exists that is its argument. Beside it rank 0
notes when each step of its attempt was done."""

import logging
import sys
import time
from pathlib import Path

from strata.worker.run import init
from strata.worker.trainer import Trainer, TrainingConfig

_FAST = Path(sys.argv[1])


class Paced(Trainer):
    def _report(self, epoch: int, took_s: float) -> None:
        super()._report(epoch, took_s)
        if self._run.rank == 0:
            with _FAST.with_name(f"steps-{self._run.place.attempt}").open("a") as notes:
                notes.write(f"{time.time()}\n")
        if not _FAST.exists():
            time.sleep(0.02)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    run = init()
    Paced(run, TrainingConfig.of(dict(run.config))).train()
    run.finish()
