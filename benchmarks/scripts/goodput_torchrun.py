"""The goodput job under `torchrun --max-restarts`, with the save that most scripts have: torch.save by rank 0."""

import os
import sys
from pathlib import Path

from benchmarks.scripts.goodput_job import RANKS, SAVE_EVERY, Job, join

_RANK = int(os.environ["RANK"])
_LEDGER = join(_RANK)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def main() -> None:
    checkpoint = Path(sys.argv[1]).with_name("checkpoint.pt")
    dist.init_process_group("gloo")
    job, step = Job(_RANK, _LEDGER), 0
    if checkpoint.exists():
        found = torch.load(checkpoint)
        step = found["step"]
        job.load(found)
    ddp = DistributedDataParallel(job.model, broadcast_buffers=False, init_sync=False)
    while True:
        job.step(step, ddp, job.optimizer, lambda: (RANKS, step + 1))  # noqa: B023
        step += 1
        if step % SAVE_EVERY == 0 and _RANK == 0:
            staged = checkpoint.with_suffix(".new")
            torch.save({"step": step, **job.state()}, staged)
            staged.replace(checkpoint)


if __name__ == "__main__":
    main()
