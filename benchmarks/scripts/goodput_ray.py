"""The goodput job under Ray Train: `goodput_ray.py LEDGER` starts Ray on this machine and trains until it is ended.
When a worker dies, Ray starts all four anew from the newest checkpoint that was reported."""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.scripts.goodput_job import RANKS, SAVE_EVERY, Job, join


def train(config: dict[str, str]) -> None:
    import ray.train
    import torch
    from torch.nn.parallel import DistributedDataParallel

    sys.argv = ["goodput_ray.py", config["ledger"]]
    rank = ray.train.get_context().get_world_rank()
    job, step = Job(rank, join(rank)), 0
    newest = ray.train.get_checkpoint()
    if newest is not None:
        with newest.as_directory() as folder:
            found = torch.load(Path(folder) / "checkpoint.pt")
        step = found["step"]
        job.load(found)
    ddp = DistributedDataParallel(job.model, broadcast_buffers=False, init_sync=False)
    while True:
        job.step(step, ddp, job.optimizer, lambda: (RANKS, step + 1))  # noqa: B023
        step += 1
        if step % SAVE_EVERY == 0:
            with tempfile.TemporaryDirectory() as folder:
                saved = None
                if rank == 0:
                    torch.save({"step": step, **job.state()}, Path(folder) / "checkpoint.pt")
                    saved = ray.train.Checkpoint.from_directory(folder)
                ray.train.report({"step": step}, checkpoint=saved)


def main() -> None:
    import ray
    import ray.train
    from ray.train.torch import TorchTrainer

    ledger = Path(sys.argv[1]).resolve()
    ray.init(num_cpus=RANKS + 1, include_dashboard=False, log_to_driver=False)
    trainer = TorchTrainer(
        train,
        train_loop_config={"ledger": str(ledger)},
        scaling_config=ray.train.ScalingConfig(num_workers=RANKS),
        run_config=ray.train.RunConfig(
            storage_path=str(ledger.parent / "ray"),
            failure_config=ray.train.FailureConfig(max_failures=-1),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    main()
