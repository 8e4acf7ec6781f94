"""PyTorch FSDP2 with the loop that resumes: each rank saves and loads its own shards, at any number of ranks.

strata run --workers 2 examples/train_loop_fsdp.py
torchrun --nproc-per-node 2 examples/train_loop_fsdp.py
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import strata


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 65), torch.nn.Tanh(), torch.nn.Linear(65, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    with strata.training(model=model, optimizer=optimizer, total=options.steps, every=options.every) as job:
        for step in job:
            x = torch.randn(32, 20, generator=torch.Generator().manual_seed(step * 1000 + job.rank))
            loss = torch.nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True) / 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            job.log(loss=loss.item())
            print(f"rank {job.rank} step {step} loss {loss.item().hex()}", flush=True)
            time.sleep(options.pause)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
