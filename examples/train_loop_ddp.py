"""PyTorch DDP with the loop that resumes: four lines of Strata. Kill any process of it, at any time:

strata run --workers 2 examples/train_loop_ddp.py
torchrun --nproc-per-node 2 examples/train_loop_ddp.py
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import strata


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = torch.nn.Linear(20, 64), torch.nn.BatchNorm1d(64), torch.nn.Dropout(0.1), torch.nn.Linear(64, 1)
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)

    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    with strata.training(**parts, total=options.steps, every=options.every, seed=1) as job:
        for step in job:
            x = torch.randn(32, 20)  # each rank's own numbers, which go on after a restart
            loss = torch.nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True) / 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            job.log(loss=loss.item())
            print(f"rank {job.rank} step {step} loss {loss.item().hex()}", flush=True)
            time.sleep(options.pause)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
