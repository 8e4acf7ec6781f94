"""PyTorch DDP that goes on in place: kill a worker, and the others keep their processes and go on from memory.

strata run --workers 4 examples/train_torch_elastic.py --pause 0.05
"""

import argparse
import time

import torch

import strata


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, options.hidden), torch.nn.Tanh(), torch.nn.Linear(options.hidden, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    @strata.elastic(every=50)  # called again, in this process, when another rank was replaced
    def train(world) -> None:  # type: ignore[no-untyped-def]
        state = world.restore(model=model, optimizer=optimizer)  # from memory, a peer, or the newest checkpoint
        ddp = world.wrap(model)  # DistributedDataParallel over the ranks of this world
        print(f"rank {world.rank}: world {world.number}, after step {state.step} from {state.source}")
        for step in range(state.step, options.steps):
            batch = torch.Generator().manual_seed(step * world.size + world.rank)
            x = torch.randn(32, 20, generator=batch)
            loss = torch.nn.functional.mse_loss(ddp(x), x.sum(dim=1, keepdim=True) / 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            world.commit(step + 1)  # this step is done here; saves a checkpoint when one is due
            world.run.log({"loss": loss.item()}, step=step + 1)
            time.sleep(options.pause)
            if strata.should_stop():
                return

    train()
    digest = sum(parameter.double().abs().sum().item() for parameter in model.parameters())
    print(f"done, weights {digest:.9f}")
    strata.finish()


if __name__ == "__main__":
    main()
