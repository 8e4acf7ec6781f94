"""The job of the goodput benchmark: four ranks, 50 MB of parameters, steps of about 50 ms. All systems train it.

Four ranks share the cores of one small machine, so most of a step is a sleep that stands for a GPU's work, and a tenth
of the parameters is trained (as in a fine-tuning): their gradients are really summed and an optimizer really steps. All
50 MB are state: they are saved, restored and sent to newcomers.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.scripts.goodput_ledger import Line

__all__ = ["RANKS", "SAVE_EVERY", "Job", "join"]

RANKS = 4
SAVE_EVERY = 100  # steps between two checkpoints, in every system that saves some
_SAMPLES = 8  # of one rank in one step
_PAUSE_S = 0.035
_WIDTH = 1100
_FROZEN, _TRAINED = 9, 1  # layers of 4.84 MB each


def join(rank: int) -> int:
    """This process is that rank from now on. Called before torch is imported; returns the open ledger."""
    ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"rank {rank} {os.getpid()}\n".encode())
    return ledger


class Job:
    """Model and optimizer of one rank, and its steps."""

    def __init__(self, rank: int, ledger: int) -> None:
        import torch  # after `join`: an import takes seconds, in which the rank may be killed, too

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._torch = torch
        self._rank = rank
        self._ledger = ledger
        self.model = _model(torch)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.SGD(trained, lr=1e-4, momentum=0.9)

    def step(self, step: int, forward: Callable[..., Any], optimizer: Any, done: Callable[[], tuple[int, int]]) -> None:
        """Trains the step after `step` and writes it down. `done()` says by how many the sum of the gradients was
        divided (0: the optimizer has not stepped, nothing is done), and which step that was."""
        torch, began = self._torch, time.time()
        optimizer.zero_grad()
        samples = torch.Generator().manual_seed(step * RANKS + self._rank)
        x = torch.randn(_SAMPLES, _WIDTH, generator=samples)
        time.sleep(_PAUSE_S)
        forward(x, torch.eye(RANKS)[self._rank] * (step + 1)).backward()
        optimizer.step()
        count, finished = done()
        if not count:
            return
        entered = (self.model.entered.grad * count).round().long()
        self.model.total += entered.sum()
        # Before anybody can say that the step is in the state: a line too many is found by its successor, one too few
        # would look like lost samples.
        line = Line(
            began=began,
            ended=time.time(),
            rank=self._rank,
            step=finished,
            entered=tuple(entered.tolist()),
            total=int(self.model.total),
        )
        os.write(self._ledger, str(line).encode())

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def _model(torch: Any) -> Any:
    class Model(torch.nn.Module):  # type: ignore[misc]  # torch is imported late
        def __init__(self) -> None:
            super().__init__()
            layers = [torch.nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(_FROZEN + _TRAINED)]
            for layer in layers[:_FROZEN]:
                layer.weight.requires_grad = False
            self.layers = torch.nn.Sequential(*layers)
            # Its gradient is what each rank has put into a step: that takes the same road as all gradients.
            self.entered = torch.nn.Parameter(torch.zeros(RANKS))
            self.register_buffer("total", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Any, mine: Any) -> Any:
            return self.layers(x).square().mean() + (self.entered * mine).sum()

    return Model()
