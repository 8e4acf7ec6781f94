"""Accelerate with Strata: alone, or on several workers. Kill any of them: the losses are those of an undisturbed run.

python examples/train_accelerate.py
strata run --workers 2 examples/train_accelerate.py --pause 0.05
"""

import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

import strata
from strata.integrations.accelerate import StrataState, StrataTracker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--checkpoints", help="where they lie; default: in the run's own folder")
    parser.add_argument("--run-id", help="default: a new one")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    strata.init(project="examples", name="accelerate", run_id=options.run_id)
    set_seed(1)
    accelerator = Accelerator(
        cpu=True, log_with=StrataTracker(), dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True)
    )
    accelerator.init_trackers("examples", vars(options))
    x = torch.randn(1024, 16)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    with StrataState(accelerator, options.checkpoints) as state:
        step, stop = state.load(), False
        for epoch in range(step // len(loader), options.epochs):
            for inputs, targets in state.batches(loader, epoch):
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                time.sleep(options.pause)
                accelerator.log({"loss": loss.item()}, step=step)
                stop = state.should_stop(step, epoch=epoch)
                if stop or step % 10 == 0:
                    state.save(step, epoch)
                if stop:
                    break
            if stop:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
