"""Data-parallel training in plain NumPy with Strata's SDK. Run it alone, or on several workers:

    python examples/train_numpy.py
    strata run --workers 4 examples/train_numpy.py

Kill any worker, the agent or the coordinator meanwhile: it ends with the same weights, bit for bit.
"""

import argparse
import hashlib
import tempfile
import time
from pathlib import Path

import numpy as np

import strata


def make_data(folder: Path, rows: int = 6_000) -> None:
    """Noisy points of a plane, as .npy files of 20 numbers in and one out. Written once, by rank 0."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    truth = random.normal(size=20)
    for part in range(4):
        x = random.normal(size=(rows // 4, 20))
        y = x @ truth + 0.05 * random.normal(size=len(x))
        np.save(folder / f"part-{part}.npy", np.column_stack([x, y]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "strata-train-numpy")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    run = strata.init(project="examples", name="train-numpy", config=vars(options) | {"data": str(options.data)})
    if run.rank == 0 and not (options.data / "part-3.npy").exists():
        make_data(options.data)
    strata.barrier("data-is-there")

    loader = strata.data.Loader(str(options.data / "*.npy"), batch_size=options.batch_size, seed=1)
    weights = np.zeros(20)
    step, loss = 0, float("nan")
    ledger = bytes(32)  # a chain of hashes over every sample that this rank has trained on, in order

    with run.checkpoints(str(options.data / "checkpoints" / run.id)) as checkpoints:
        # All ranks go back to the newest step that all of them can load. Rank 0 has saved the model.
        if found := checkpoints.recover():
            step, ledger = found.info.step, found.state["ledger"].tobytes()
            state = checkpoints.load(step, rank=0)
            weights = np.array(state["weights"])
            loader.load_state_dict(state["cursor"])
            print(f"rank {run.rank}: resumed from step {step}")

        while loader.epoch < options.epochs:
            epoch = loader.epoch
            for batch in loader:
                rows = batch["data"]
                ledger = hashlib.sha256(ledger + rows.tobytes()).digest()
                x, y = rows[:, :20], rows[:, 20]
                error = x @ weights - y
                mine = np.concatenate([x.T @ error, [error @ error, len(rows), float(run.stop_asked)]])
                total = run.gang.sum(mine)
                squares, count, stop = total[-3:]
                weights = weights - options.lr * total[:-3] / count
                step, loss = step + 1, squares / count
                run.log({"loss": loss, "lr": options.lr}, step=step)
                run.progress(step, epoch=epoch, percent=100 * step / (len(loader) * options.epochs))
                last = step == len(loader) * options.epochs
                if step % 20 == 0 or last or stop:
                    state = {"ledger": np.frombuffer(ledger, dtype=np.uint8)}
                    if run.rank == 0:
                        state |= {"weights": weights, "cursor": loader.state_dict()}
                    checkpoints.save(state, step=step, epoch=epoch)
                if stop:
                    print(f"rank {run.rank}: asked to stop at step {step}, which is saved")
                    return
                time.sleep(options.pause)
            strata.barrier(f"epoch-{epoch}", step=step)

    print(f"rank {run.rank}: ledger {ledger.hex()[:16]}")
    if run.rank == 0:
        digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
        print(f"done: loss {loss:.6f} after {step} steps, weights {digest}")
    run.finish()


if __name__ == "__main__":
    main()
