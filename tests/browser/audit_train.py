"""What the audited task runs: every value, byte and line of it is known beforehand. Rank 2 stands still once, at a step
that is known too, until the test kills it.
"""

import sys
import time
from pathlib import Path

import numpy as np

import strata

STEPS, EVERY, STOP, ITEMS = 60, 10, 25, 5_000


def loss_of(step: int, rank: int) -> float:
    return round(2.0 / (1 + step) + 0.01 * rank, 6)


def rate_of(rank: int) -> float:
    return 100.0 * (rank + 1)


def note(folder: Path, rank: int, what: str, step: int, at: float) -> None:
    """When it happened, by the clock of this rank."""
    with (folder / f"times-{rank}").open("a") as file:
        file.write(f"{what} {step} {at}\n")


def main() -> None:
    folder = Path(sys.argv[1])
    run = strata.init(config={"steps": STEPS})
    with run.checkpoints(str(folder / "checkpoints")) as checkpoints:
        found = checkpoints.recover()
        step = found.info.step if found else 0
        sys.stdout.write(f"audit rank {run.rank} begins after step {step}\n")
        while step < STEPS:
            step += 1
            run.log({"loss": loss_of(step, run.rank), "throughput/samples_per_sec": rate_of(run.rank)}, step=step)
            note(folder, run.rank, "step", step, time.time())
            run.progress(step, epoch=step // 20, percent=100 * step / STEPS)
            while run.rank == 2 and step == STOP and not (folder / "killed").exists():
                time.sleep(0.02)
            strata.barrier("audit-step", step=step)
            if step % EVERY == 0:
                note(folder, run.rank, "saving", step, time.time())
                checkpoints.save({"weights": np.full(ITEMS, run.rank, np.float64)}, step=step, epoch=step // 20)
                note(folder, run.rank, "saved", step, time.time())
            time.sleep(0.05)
    strata.barrier("audit-end", step=STEPS)
    sys.stdout.write(f"audit rank {run.rank} is done\n")


if __name__ == "__main__":
    main()
