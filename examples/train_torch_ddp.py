"""An ordinary PyTorch DDP script: nothing in it knows Strata.

torchrun --standalone --nproc-per-node 2 examples/train_torch_ddp.py
strata run --workers 2 examples/train_torch_ddp.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(10, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    truth = torch.arange(10.0)[:, None] / 10
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(200):
        x = torch.randn(32, 10, generator=generator)
        loss = torch.nn.functional.mse_loss(model(x), x @ truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.5f}")
    if dist.get_rank() == 0:
        print(f"done on {dist.get_world_size()} ranks: loss {loss.item():.3e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
