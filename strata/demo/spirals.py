"""The job of drills and pictures: three spirals, learned by the built-in trainer at whatever size the task has."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.tasks import TasksClient
from strata.config import Settings
from strata.data.describe import describe_dataset
from strata.data.table.arrow import arrow
from strata.demo.job import Demo
from strata.trust.access import find_access
from strata.types.tasks import GROW_AFTER_S, TaskSpec

__all__ = ["submit_spirals", "write_spirals"]

_FILES = 8
_ROWS = 24_000
_CLASSES = 3


def write_spirals(folder: Path, rows: int = _ROWS, seed: int = 2026) -> str:
    """Three spirals that wind around each other, as parquet: a problem that a small network learns while you watch."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed)
    for number in range(_FILES):
        count = rows // _FILES
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


def submit_spirals(
    settings: Settings,
    coordinator: str,
    *,
    num_workers: int = 4,
    min_workers: int = 0,
    grow_after_s: float = GROW_AFTER_S,
    epochs: int = 60,
    hang_timeout_s: float | None = None,
) -> Demo:
    """Makes the dataset known and submits the task; returns at once."""
    path = write_spirals(settings.data_dir / "demo")
    with Channel(coordinator, access=find_access(settings)) as channel:
        spec = replace(describe_dataset("spirals", path, "parquet", shard_size=500), seed=42)
        DatasetsClient(channel).register(spec)
        task = TaskSpec(
            name="spirals-mlp",
            dataset_id=spec.dataset_id,
            worker_count=num_workers,
            min_workers=min_workers,
            grow_after_s=grow_after_s,
            config={
                "learning_rate": 0.02,
                "batch_size": 32,
                "epochs": epochs,
                "hidden_size": 64,
                "checkpoint_every": 50,
                "pause_s": 0.02,
                "grace_s": 10,
            },
            max_restarts=10_000,
            hang_timeout_s=hang_timeout_s,
        )
        return Demo(task_id=TasksClient(channel).submit(task), dataset_id=spec.dataset_id, num_workers=num_workers)
