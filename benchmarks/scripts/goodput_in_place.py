"""The goodput job under `@strata.elastic`: survivors of a kill keep their processes, a spare takes the dead rank's
place."""

import os

from benchmarks.scripts.goodput_job import RANKS, SAVE_EVERY, Job, join

_RANK = int(os.environ["RANK"])
_LEDGER = join(_RANK)

import torch  # noqa: E402, F401  # the decorator sets up what the script has imported

import strata  # noqa: E402


def main() -> None:
    job = Job(_RANK, _LEDGER)

    @strata.elastic(every=SAVE_EVERY)
    def train(world) -> None:  # type: ignore[no-untyped-def]
        step = world.restore(model=job.model, optimizer=job.optimizer).step
        ddp = world.wrap(job.model, broadcast_buffers=False)
        while not strata.should_stop():
            job.step(step, ddp, job.optimizer, lambda: (RANKS, step + 1))  # noqa: B023
            step += 1
            world.commit(step)

    train()


if __name__ == "__main__":
    main()
