"""The job of drills and pictures: three spirals, learned by the built-in trainer at whatever size the task has."""

from pathlib import Path

import numpy as np

from strata.config import Settings
from strata.data.table.arrow import arrow
from strata.demo.job import Demo, submit
from strata.types.tasks import TaskSpec

__all__ = ["submit_spirals", "write_spirals"]

_FILES = 8
_ROWS = 24_000
_CLASSES = 3


def write_spirals(folder: Path) -> str:
    """Three spirals that wind around each other, as parquet: a problem that a small network learns while you watch."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(2026)
    for number in range(_FILES):
        count = _ROWS // _FILES
        label = noise.integers(0, _CLASSES, count)
        radius = np.sqrt(noise.random(count))
        angle = 2 * np.pi * (radius * 1.1 + label / _CLASSES) + noise.normal(0, 0.15, count)
        columns = {
            "x": radius * np.cos(angle),
            "y": radius * np.sin(angle),
            "radius": radius,
            "x_y": radius**2 * np.cos(angle) * np.sin(angle),
            "label": label,
        }
        target = folder / f"spirals-{number:02d}.parquet"
        staged = target.with_suffix(".part")
        arrow("parquet").write_table(arrow().table(columns), staged, row_group_size=500)
        staged.replace(target)
    return str(folder.resolve() / "*.parquet")


def submit_spirals(settings: Settings, coordinator: str, *, num_workers: int, hang_timeout_s: float) -> Demo:
    """Makes the dataset known and submits the task, which goes on until it is stopped; returns at once."""
    path = write_spirals(settings.data_dir / "demo")
    task = TaskSpec(
        name="spirals-mlp",
        dataset_id="spirals",
        worker_count=num_workers,
        min_workers=1,
        grow_after_s=1.0,
        config={
            "learning_rate": 0.02,
            "batch_size": 32,
            "epochs": 10_000,
            "hidden_size": 64,
            "checkpoint_every": 50,
            "pause_s": 0.02,
            "grace_s": 10,
        },
        max_restarts=10_000,
        hang_timeout_s=hang_timeout_s,
    )
    return submit(settings, coordinator, task, path, shard_size=500)
