"""Torch DDP over a dataset at every size of the world, for tests: `python torch_sizes_worker.py FAST`, with a pause
after every step until the file FAST exists. Rank 0 writes what it ends with beside that file: the weights, how often
each sample was used, and a chain of hashes over the global batches.
"""

import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import strata
from strata.data.blocks import INDEX

_FAST = Path(sys.argv[1])


class Ledger:
    """Which samples all ranks together have used, step by step."""

    def __init__(self, num_samples: int) -> None:
        self.counts = np.zeros(num_samples, dtype=np.int64)
        self.chain = bytes(32)

    def add(self, used: Any) -> None:
        self.counts += used.astype(np.int64)
        self.chain = hashlib.sha256(self.chain + used.tobytes()).digest()

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self.counts.copy(), "chain": np.frombuffer(self.chain, dtype=np.uint8).copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.counts, self.chain = np.array(state["counts"]), np.array(state["chain"]).tobytes()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    run = strata.init()
    loader = strata.data.Loader("ds", run.config["batch_size"], with_index=True)
    ledger = Ledger(loader.manifest.num_samples)
    model = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=run.config["learning_rate"], momentum=0.9)

    @strata.elastic(every=run.config["checkpoint_every"])
    def train(world: Any) -> None:
        state = world.restore(model=model, optimizer=optimizer, loader=loader, ledger=ledger)
        ddp, step = world.wrap(model), state.step
        while loader.epoch < run.config["epochs"]:
            for batch in loader:
                used = np.zeros_like(ledger.counts, dtype=np.float64)
                used[batch[INDEX]] = 1.0
                used = run.gang.sum(used)
                x = torch.from_numpy(np.stack([batch[name] for name in "abc"], axis=1).astype(np.float32))
                y = torch.from_numpy(np.asarray(batch["label"], dtype=np.float32))[:, None]
                loss = torch.nn.functional.binary_cross_entropy_with_logits(ddp(x), y, reduction="sum")
                optimizer.zero_grad()
                (loss * world.size / used.sum()).backward()  # DDP takes the mean over ranks, which may have fewer rows
                optimizer.step()
                step += 1
                ledger.add(used)
                world.commit(step)
                if not _FAST.exists():
                    time.sleep(0.02)
                if strata.should_stop():
                    return

    train()
    if run.rank == 0 and loader.epoch >= run.config["epochs"]:
        weights = np.concatenate([value.detach().numpy().ravel() for value in model.parameters()])
        chain = np.frombuffer(ledger.chain, dtype=np.uint8)
        np.savez(_FAST.with_name("end.npz"), weights=weights, counts=ledger.counts, chain=chain)
    strata.finish()


if __name__ == "__main__":
    main()
