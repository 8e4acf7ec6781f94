"""TensorBoard: points logged with tensorboardX, read back with TensorBoard's own loader, which samples."""

import time
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
from tensorboardX import SummaryWriter

from benchmarks.scripts.store_task import measure_store


def write(folder: Path, points: int) -> float:
    start = time.perf_counter()
    writer = SummaryWriter(str(folder))
    for step in range(points):
        writer.add_scalar("loss", step * 0.5, step)
    writer.close()
    return time.perf_counter() - start


def read(folder: Path) -> dict[str, float]:
    start = time.perf_counter()
    loaded = EventAccumulator(str(folder), size_guidance={SCALARS: 2_000})
    loaded.Reload()
    found = [(event.step, event.value) for event in loaded.Scalars("loss")]
    return {"read_s": time.perf_counter() - start, "read_points": len(found)}


if __name__ == "__main__":
    measure_store("tensorboard", write, read)
