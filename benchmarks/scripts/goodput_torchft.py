"""The goodput job under torchft: four replica groups of one rank, each started by a torchrun of its own. After a kill
the others go on with three quarters of the batch, until the newcomer has taken the state from one of them."""

import os
from datetime import timedelta

from benchmarks.scripts.goodput_job import Job, join

_RANK = int(os.environ["REPLICA_GROUP_ID"])
_LEDGER = join(_RANK)

import torchft  # noqa: E402


def main() -> None:
    job = Job(_RANK, _LEDGER)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=timedelta(seconds=5)),
        min_replica_size=1,
        state_dict=job.state,
        load_state_dict=job.load,
        replica_id=f"goodput_{_RANK}",
        timeout=timedelta(seconds=30),
    )
    ddp = torchft.DistributedDataParallel(manager, job.model, broadcast_buffers=False)
    optimizer = torchft.Optimizer(manager, job.optimizer)
    while True:
        step = manager.current_step()

        def done(step: int = step) -> tuple[int, int]:
            """A newcomer takes over the others' step while it makes this one: its own samples are not in it."""
            now = manager.current_step()
            return (manager.num_participants() if now > step else 0), now

        job.step(step, ddp, optimizer, done)


if __name__ == "__main__":
    main()
