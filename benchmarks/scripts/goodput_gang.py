"""The goodput job as a plain script of Strata with checkpoints: when a rank dies, all start anew from the newest."""

import os

from benchmarks.scripts.goodput_job import RANKS, SAVE_EVERY, Job, join

_RANK = int(os.environ["RANK"])
_LEDGER = join(_RANK)

import numpy as np  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import strata  # noqa: E402


def main() -> None:
    run = strata.init()
    dist.init_process_group("gloo")
    job, step = Job(_RANK, _LEDGER), 0
    with run.checkpoints() as checkpoints:
        found = checkpoints.recover()
        if found is not None:
            step = found.info.step
            job.load(found.state["job"] if _RANK == 0 else checkpoints.load(step, rank=0)["job"])
        ddp = DistributedDataParallel(job.model, broadcast_buffers=False, init_sync=False)
        while not run.should_stop():
            job.step(step, ddp, job.optimizer, lambda: (RANKS, step + 1))  # noqa: B023
            step += 1
            run.progress(step)
            if step % SAVE_EVERY == 0:  # all ranks have the same state: one saves it
                checkpoints.save_async({"step": np.int64(step), **({"job": job.state()} if _RANK == 0 else {})}, step)


if __name__ == "__main__":
    main()
