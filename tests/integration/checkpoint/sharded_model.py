"""A model under FSDP, as one of several real processes: `sharded_model.py save|load FOLDER RENDEZVOUS RANK WORLD`.

Every weight is a DTensor, of sizes that no number of ranks divides; what a rank should hold is known to all.
"""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from strata.checkpoint import CheckpointManager, StoreCommit
from strata.storage.uri import open_store


def make(mesh: Any, seed: int) -> dict[str, Any]:
    torch.manual_seed(seed)  # the same on every rank, whatever their number
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 2))
    whole = torch.randn(4, 11)
    fully_shard(model, mesh=mesh)
    return {
        "model": model.state_dict(),
        "columns": distribute_tensor(whole, mesh, [Shard(1)]),
        "everywhere": distribute_tensor(whole, mesh, [Replicate()]),
        "epoch": 3,
    }


def names(state: dict[str, Any]) -> dict[str, Any]:
    """As the manager names them: paths joined by '/'."""
    return {f"model/{name}": tensor for name, tensor in state["model"].items()} | {
        name: state[name] for name in ("columns", "everywhere")
    }


def main(mode: str, folder: str, rendezvous: str, rank: int, world: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    commit = StoreCommit(open_store(folder), rank=rank, ranks=tuple(range(world)), generation=1)
    coordinator = commit if world > 1 else None
    expected = make(mesh, seed=1)
    with CheckpointManager(folder, coordinator=coordinator, rank=rank, world_size=world) as manager:
        if mode == "save":
            manager.save_async(expected, step=1).result()
        else:
            fresh = make(mesh, seed=2)
            loaded = manager.load(1, into=names(fresh))
            assert loaded["epoch"] == 3
            assert loaded["columns"] is fresh["columns"]
            for name, tensor in names(fresh).items():
                assert torch.equal(tensor.to_local(), names(expected)[name].to_local()), f"{name} on rank {rank}"
            plain = manager.load(1, names=["columns"])["columns"]  # with no array to fill: this rank's even share
            assert plain.shape[0] == 4
            assert type(plain) is torch.Tensor
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
