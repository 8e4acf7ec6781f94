"""The script's own torch.distributed group as the way in which ranks exchange states and numbers."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

__all__ = ["TorchGroup", "torch_group"]


class TorchGroup:
    """Implements strata.checkpoint's Exchange."""

    def __init__(self) -> None:
        on_gpu = dist.get_backend() == "nccl"
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        total = torch.from_numpy(np.array(values, dtype=np.float64)).to(self._device)
        dist.all_reduce(total)
        found: NDArray[np.float64] = total.cpu().numpy()
        return found

    def share(self, source: int, takers: Sequence[int], pieces: Sequence[memoryview]) -> memoryview | None:
        """All ranks take part; torch has a faster way to all than to some."""
        size = torch.tensor([sum(map(len, pieces))], device=self._device)
        dist.broadcast(size, source)
        whole = np.empty(int(size.item()), dtype=np.uint8)
        is_source = dist.get_rank() == source
        if is_source:
            np.concatenate([np.frombuffer(piece, dtype=np.uint8) for piece in pieces], out=whole)
        data = torch.from_numpy(whole).to(self._device)
        dist.broadcast(data, source)
        return None if is_source or dist.get_rank() not in takers else memoryview(data.cpu().numpy())


def torch_group(rank: int, world_size: int) -> TorchGroup | None:
    """None while the script has set up no group, or one of other ranks than the run's."""
    if not dist.is_available() or not dist.is_initialized():
        return None
    same = (dist.get_rank(), dist.get_world_size()) == (rank, world_size)
    return TorchGroup() if same else None
