"""One rank of an FSDP2 model that DCP saves or loads through Strata, or saves by itself: `dcp_ranks.py
save|die|load|plain FOLDER RENDEZVOUS RANK WORLD`.
"""

import gc
import os
import signal
import sys
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

from strata.integrations.dcp import StrataReader, StrataWriter

_STEP = {"save": 1, "die": 2}


class _Dying(StrataWriter):
    """Dies when it should write."""

    def write_data(self, plan: Any, planner: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def _whole(*shape: int) -> Any:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 7


def _state(mesh: Any, *, blank: bool) -> dict[str, Any]:
    """7 rows and 5 columns divide by no number of ranks; `columns` is cut the other way."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 2))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(_whole(3, 5)).square().mean().backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer)
    columns = distribute_tensor(_whole(6, 5), mesh, [Shard(1)])
    state = {"model": weights, "optimizer": moments, "columns": columns, "everywhere": _whole(4), "step": 1}
    if blank:
        with torch.no_grad():
            for tensor in (*weights.values(), columns, state["everywhere"]):
                tensor.zero_()
        state["step"] = 0
    return state


def main(mode: str, folder: str, rendezvous: str, rank: int, world: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    if mode == "load":
        found = _state(mesh, blank=True)
        dcp.load(found, storage_reader=StrataReader(folder))
        expected = _state(mesh, blank=False)
        for name, tensor in {**expected["model"], "columns": expected["columns"]}.items():
            got = found["columns"] if name == "columns" else found["model"][name]
            assert torch.allclose(got.full_tensor(), tensor.full_tensor()), name
        assert torch.equal(found["everywhere"], _whole(4))
        assert found["step"] == 1
    elif mode == "plain":
        dcp.save(_state(mesh, blank=False), checkpoint_id=folder)
    else:
        state = _state(mesh, blank=False)
        kind = _Dying if mode == "die" and rank == 1 else StrataWriter
        dcp.save(state, storage_writer=kind(folder, _STEP[mode]))
    dist.destroy_process_group()


if __name__ == "__main__":
    _, mode, folder, rendezvous, rank, world = sys.argv
    main(mode, folder, rendezvous, int(rank), int(world))
    # A group that a cycle of FSDP keeps until the interpreter ends may abort the process then (pytorch/pytorch#190489).
    gc.collect()
