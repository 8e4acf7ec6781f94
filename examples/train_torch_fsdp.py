"""FSDP2 with torch's own distributed checkpoints, in Strata's store: verified, asynchronous, for any number of ranks.

strata run --workers 2 examples/train_torch_fsdp.py --pause 0.05
torchrun --standalone --nproc-per-node 2 examples/train_torch_fsdp.py
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

import strata
from strata.integrations.dcp import StrataReader, StrataWriter


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    dist.init_process_group("cpu:gloo")
    saving = dist.new_group(backend="gloo")  # of its own: saves talk while the training does
    run = strata.init(project="fsdp")
    folder = run.checkpoints().path
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    reader = StrataReader(folder)  # the newest checkpoint, if there is one
    start = reader.step or 0
    if start:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        dcp.load(state, storage_reader=reader)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    print(f"rank {run.rank} of {run.world_size} goes on after step {start}")

    pending = None
    for step in range(start + 1, options.steps + 1):
        batch = torch.Generator().manual_seed(step * run.world_size + run.rank)
        x = torch.randn(32, 20, generator=batch)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True) / 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log({"loss": loss.item()}, step=step)
        time.sleep(options.pause)
        stopping = run.should_stop()  # for all ranks at the same step
        if step % options.every == 0 or step == options.steps or stopping:
            if pending is not None:
                pending.result()
            weights, moments = get_state_dict(model, optimizer)
            state = {"model": weights, "optimizer": moments}
            writer = StrataWriter(folder, step, keep_count=3)
            pending = dcp.async_save(state, storage_writer=writer, process_group=saving)
        if stopping:
            break
    if pending is not None:
        pending.result()
    print(f"rank {run.rank} done, loss {loss.item()!r}")
    run.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
