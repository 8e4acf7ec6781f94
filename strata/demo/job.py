"""The demo as a task: its dataset is written and registered, the training submitted; on request a worker is killed now
and then. Nothing here is simulated.
"""

import contextlib
import os
import random
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.records import RecordsClient
from strata.client.tasks import TasksClient
from strata.config import Settings
from strata.data.describe import describe_dataset
from strata.demo.stories import write_stories
from strata.errors import StrataError
from strata.trust.access import find_access
from strata.types.checkpoints import CheckpointStatus
from strata.types.tasks import TaskSpec

__all__ = ["Demo", "kill_now_and_then", "submit", "submit_stories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What was submitted."""

    task_id: str
    dataset_id: str
    num_workers: int


def submit_stories(
    settings: Settings,
    coordinator: str,
    *,
    name: str = "stories-transformer",
    num_workers: int = 4,
    steps: int = 2_400,
    pause_s: float = 0.05,
) -> Demo:
    """Makes the dataset known and submits the task; returns at once."""
    path = write_stories(settings.data_dir / "demo" / "stories")
    task = TaskSpec(
        name=name,
        dataset_id="stories",
        worker_count=num_workers,
        entrypoint=("python", "-m", "strata.demo.train"),
        config={
            "steps": steps,
            "learning_rate": 0.001,
            "warmup": 100,
            "batch_size": 8,
            "width": 96,
            "layers": 2,
            "heads": 4,
            "pause_s": pause_s,
            "grace_s": 10,
        },
        env=dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        max_restarts=10_000,
    )
    return submit(settings, coordinator, task, path, shard_size=160)


def submit(settings: Settings, coordinator: str, task: TaskSpec, path: str, *, shard_size: int) -> Demo:
    """Registers the task's dataset, which lies at `path`, and submits the task."""
    with Channel(coordinator, access=find_access(settings)) as channel:
        dataset = describe_dataset(task.dataset_id, path, "parquet", shard_size=shard_size)
        DatasetsClient(channel).register(replace(dataset, seed=42))
        task_id = TasksClient(channel).submit(task)
    return Demo(task_id=task_id, dataset_id=task.dataset_id, num_workers=task.worker_count)


def kill_now_and_then(
    coordinator: str, task_id: str, stop: threading.Event, say: Callable[[str], None], *, every_s: float = 25.0
) -> None:
    """Until `stop` is set or the task ends: kill -9 of a random worker of it on this host. Between two kills there is a
    new checkpoint: the task comes to its end on a slow machine, too."""
    killed_at = -1
    while not stop.wait(every_s * (0.7 + 0.6 * random.random())):  # noqa: S311  # no secret
        try:
            with Channel(coordinator, patience_s=0.0) as channel:
                task, records = TasksClient(channel).get(task_id), RecordsClient(channel)
                saved = [one.step for one in records.checkpoints(task_id) if one.status is CheckpointStatus.COMPLETED]
                workers = records.workers(task_id)
        except StrataError:
            continue
        if task.status.final:
            return
        here = [
            worker
            for worker in workers
            if worker.alive and worker.hostname == socket.gethostname() and worker.metadata.get("pid", "").isdigit()
        ]
        newest = max(saved, default=-1)
        if here and newest > killed_at:
            killed_at = newest
            victim = random.choice(here)  # noqa: S311  # no secret
            say(f"kill -9 of {victim.worker_id}, pid {victim.metadata['pid']}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(victim.metadata["pid"]), signal.SIGKILL)
