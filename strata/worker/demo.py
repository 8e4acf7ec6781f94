"""A real job to look at: a small dataset is written and registered, a 4-worker training submitted; on request a worker
is killed now and then. Nothing here is simulated.
"""

import os
import random
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.records import RecordsClient
from strata.client.tasks import TasksClient
from strata.config import Settings
from strata.data.describe import describe_dataset
from strata.data.table.arrow import arrow
from strata.errors import StrataError
from strata.trust.access import find_access
from strata.types.tasks import GROW_AFTER_S, TaskSpec

__all__ = ["Demo", "kill_now_and_then", "submit_demo", "write_spirals"]

_FILES = 8
_ROWS = 24_000
_CLASSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What was submitted."""

    task_id: str
    dataset_id: str
    num_workers: int


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


def submit_demo(
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


def kill_now_and_then(
    coordinator: str, task_id: str, stop: threading.Event, say: Callable[[str], None], *, every_s: float = 25.0
) -> None:
    """Until `stop` is set or the task ends: kill -9 of a random worker of it on this host."""
    while not stop.wait(every_s * (0.7 + 0.6 * random.random())):  # noqa: S311  # no secret
        try:
            with Channel(coordinator, patience_s=0.0) as channel:
                task = TasksClient(channel).get(task_id)
                workers = RecordsClient(channel).workers(task_id)
        except StrataError:
            continue
        if task.status.final:
            return
        here = [
            worker
            for worker in workers
            if worker.alive and worker.hostname == socket.gethostname() and worker.metadata.get("pid", "").isdigit()
        ]
        if here:
            victim = random.choice(here)  # noqa: S311  # no secret
            say(f"kill -9 of {victim.worker_id}, pid {victim.metadata['pid']}")
            try:
                os.kill(int(victim.metadata["pid"]), signal.SIGKILL)
            except ProcessLookupError:
                continue
