"""Exactly once, with real processes: four ranks read real parquet files under a real `strata up` while ranks and the
coordinator are killed (-9) at random. What the last checkpoint contains has every sample once per epoch.

Each kill of a rank costs a restart of the gang, seconds of real time. By default `--kills` is 5, of which four are done
here; `--kills 20` is the full measure.
"""

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.checkpoint.manager import CheckpointManager
from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.tasks import TasksClient, TaskView
from strata.data import Loader, describe_dataset
from strata.data.blocks import INDEX
from strata.trust.access import Access
from strata.types.tasks import TaskSpec, TaskStatus
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
WORKERS, BATCH, EPOCHS = 4, 8, 2
WORKER = Path(__file__).with_name("ledger_worker.py")


class Running:
    """One job under one `strata up`."""

    def __init__(self, folder: Path, mode: str, kills: int) -> None:
        self.folder = folder
        self.kills = kills
        self.glob = write_files(folder / "data", rows=600 + 240 * kills)
        self.cluster = Cluster(folder / "strata", "--slots", str(WORKERS))
        self.mode = mode
        self.task_id = ""
        self.checkpoints = folder / "job" / "checkpoints"

    def submit(self) -> None:
        (self.folder / "job").mkdir()
        with self.channel() as channel:
            DatasetsClient(channel).register(describe_dataset("ds", self.glob, shard_size=30))
            spec = TaskSpec(
                name="ledger",
                dataset_id="ds",
                worker_count=WORKERS,
                entrypoint=(sys.executable, str(WORKER), self.mode, str(self.folder / "job")),
                max_restarts=10 * self.kills,
            )
            self.task_id = TasksClient(channel).submit(spec)

    def channel(self) -> Channel:
        token = (self.cluster.folder / "token").read_text().strip()
        return Channel(self.cluster.endpoints["grpc"], access=Access(token=token), patience_s=30.0)

    def task(self) -> TaskView:
        with self.channel() as channel:
            return TasksClient(channel).get(self.task_id)

    def bytes_read(self) -> int:
        """How much the ranks have noted so far."""
        return sum(path.stat().st_size for path in (self.folder / "job").glob("read-*.jsonl"))

    def newest_step(self) -> int:
        """Of the committed checkpoints. Old ones are removed while we look."""
        folders = self.checkpoints.iterdir() if self.checkpoints.exists() else iter(())
        done = [path.name for path in folders if path.name.startswith("step-") and (path / "COMMIT.json").exists()]
        return max((int(name.rpartition("-")[2]) for name in done), default=-1)

    def ranks(self) -> list[int]:
        """Pids of the ranks that run, from the agent's journal."""
        found = []
        for path in (self.cluster.folder / "agent" / "ranks").glob(f"{self.task_id}.*.json"):
            try:
                record = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            if record["handle"] and not record["ended"]:
                found.append(int(record["handle"].partition(":")[0]))
        return found

    def kill_at_random(self, chance: random.Random, victim: str) -> None:
        """After a checkpoint since the last kill and a random amount of work, whatever the victim does then."""
        before = self.newest_step()
        eventually("a checkpoint", lambda: self.newest_step() > before or self._over(), within_s=90)
        more = self.bytes_read() + chance.randrange(3_000)
        eventually("more work", lambda: self.bytes_read() >= more or self._over(), within_s=90)
        if victim == "coordinator":
            pid = eventually("the coordinator", lambda: self.cluster.pid_of("coordinator"), within_s=30)
            os.kill(pid, signal.SIGKILL)
            eventually("a new one", lambda: self.cluster.pid_of("coordinator") not in (None, pid), within_s=60)
        else:
            pids = eventually("all ranks", lambda: self._all_ranks(), within_s=60)
            os.kill(chance.choice(pids), signal.SIGKILL)

    def _all_ranks(self) -> list[int] | None:
        pids = self.ranks()
        return pids if len(pids) == WORKERS else None

    def _over(self) -> bool:
        assert not self.task().status.final, "the job was over before all kills were done"
        return False

    def committed(self) -> list[tuple[int, int, int, int]]:
        """(rank, epoch, step, sample) in the last checkpoint."""
        manager = CheckpointManager(str(self.checkpoints))
        newest = self.newest_step()
        rows = []
        for rank in range(WORKERS):
            ledger = manager.load(newest, rank=rank, world_size=WORKERS)["ledger"].reshape(-1, 3)
            rows += [(rank, int(epoch), int(step), int(sample)) for epoch, step, sample in ledger]
        manager.close()
        return rows

    def reads(self) -> Iterator[dict[str, Any]]:
        for path in (self.folder / "job").glob("read-*.jsonl"):
            for line in path.read_text().splitlines():
                if line.endswith("}"):  # a killed rank may leave half a line
                    yield json.loads(line)


def write_files(folder: Path, rows: int, files: int = 4) -> str:
    folder.mkdir(parents=True)
    for number in range(files):
        part = np.arange(rows // files) + number * (rows // files)
        pq.write_table(pa.table({"x": part * 0.5}), folder / f"part-{number}.parquet", row_group_size=40)
    return str(folder / "*.parquet")


def run_job(folder: Path, mode: str, kills: int, seed: int) -> Running:
    """Runs a job to its end while `kills` victims fall: three ranks for each coordinator."""
    chance = random.Random(seed)
    victims = ["coordinator" if number % 4 == 1 else "rank" for number in range(kills)]
    chance.shuffle(victims)
    running = Running(folder, mode, kills)
    with running.cluster:
        running.submit()
        for victim in victims:
            running.kill_at_random(chance, victim)
        task = eventually("the end", lambda: _final(running), within_s=240)
        assert task.status is TaskStatus.COMPLETED, task.reason
        assert task.attempt > 1
    return running


def _final(running: Running) -> TaskView | None:
    task = running.task()
    return task if task.status.final else None


@pytest.fixture(scope="module")
def kills(pytestconfig: pytest.Config) -> int:
    asked = int(pytestconfig.getoption("--kills"))
    return 4 if asked <= 5 else asked


def test_the_committed_ledger_equals_the_undisturbed_one(tmp_path: Path, kills: int) -> None:
    running = run_job(tmp_path, "loader", kills, seed=11)

    alone = Loader(running.glob, BATCH, worker_count=WORKERS, with_index=True)
    expected: dict[tuple[int, int], list[int]] = {}
    while alone.epoch < EPOCHS:
        epoch = alone.epoch
        for batch in alone:
            expected[epoch, len(expected) + 1] = sorted(batch[INDEX].tolist())
    found: dict[tuple[int, int], list[int]] = {}
    for _, epoch, step, sample in running.committed():
        found.setdefault((epoch, step), []).append(sample)
    assert {place: sorted(samples) for place, samples in found.items()} == expected
    _check_once(running)
    # Reads may repeat, but a step never reads anything else, in any attempt.
    reads = list(running.reads())
    assert len({read["attempt"] for read in reads}) > 1
    for read in reads:
        assert set(read["samples"]) <= set(expected[read["epoch"], read["step"]])


def test_queue_mode_commits_every_sample_once(tmp_path: Path, kills: int) -> None:
    running = run_job(tmp_path, "queue", kills, seed=12)
    _check_once(running)
    by_rank = Counter(rank for rank, _, _, _ in running.committed())
    assert by_rank[3] > by_rank[0], "the rank that reads more per round has more of the epoch"


def _check_once(running: Running) -> None:
    total = Loader(running.glob, BATCH).manifest.num_samples
    counted = Counter((epoch, sample) for _, epoch, _, sample in running.committed())
    assert counted == Counter({(epoch, sample): 1 for epoch in range(EPOCHS) for sample in range(total)})
