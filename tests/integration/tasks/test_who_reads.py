"""The shard table says what is read, sample by sample: by the loaders of a task, in queue mode, by plain workers.

Real processes note the number of every sample that they read; the notes and the previews are compared with what REST
answers. Shards (70 samples) and the files' blocks (40) are unlike on purpose: a lane cuts through both.
"""

import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.tasks import TasksClient, TaskView
from strata.client.telemetry import send_batches
from strata.data import build_manifest, describe_dataset, read_range
from strata.data.blocks import INDEX
from strata.data.preview import preview_rows
from strata.protocol.generated import telemetry_pb2 as tm
from strata.trust.access import Access
from strata.types.tasks import TaskSpec
from strata.worker.orchestrator import TrainingOrchestrator
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(600)
SAMPLES, SHARD, WORKERS = 1_200, 70, 3
WORKER = Path(__file__).with_name("ledger_worker.py")


class Site:
    """A cluster with one registered dataset."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.glob = write_files(folder / "data")
        with self.channel() as channel:
            DatasetsClient(channel).register(describe_dataset("ds", self.glob, shard_size=SHARD))
        eventually("the dataset on the page", lambda: cluster.get("/api/datasets"), within_s=60)

    @property
    def token(self) -> str:
        return (self.cluster.folder / "token").read_text().strip()

    def channel(self) -> Channel:
        return Channel(self.cluster.endpoints["grpc"], access=Access(token=self.token), patience_s=30.0)

    def submit(self, mode: str) -> str:
        spec = TaskSpec(
            name=f"read-{mode}",
            dataset_id="ds",
            worker_count=WORKERS,
            entrypoint=(sys.executable, str(WORKER), mode, str(self.folder)),
            config={"pause_s": 0.15},
        )
        with self.channel() as channel:
            return TasksClient(channel).submit(spec)

    def task(self, task_id: str) -> TaskView:
        with self.channel() as channel:
            return TasksClient(channel).get(task_id)

    def shards(self) -> list[dict[str, Any]]:
        return self.cluster.get("/api/datasets/ds/shards")  # type: ignore[no-any-return]  # a list of rows

    def read_by(self, shards: list[dict[str, Any]]) -> dict[str, set[int]]:
        """The samples of each worker, as the table has them. Every row lies inside of its shard."""
        found: dict[str, set[int]] = {}
        for row in shards:
            for reader in row["readers"]:
                assert row["start_index"] <= reader["start_index"] < reader["end_index"] <= row["end_index"]
                numbers = range(reader["start_index"], reader["end_index"])
                found.setdefault(reader["worker_id"], set()).update(numbers)
        return found

    def preview(self, worker_id: str) -> dict[str, Any] | None:
        """The samples that this worker said it reads, if it has said so."""
        try:
            found = self.cluster.get(f"/api/datasets/ds/preview?worker_id={worker_id}")
        except HTTPError:
            return None
        return found if found["worker_id"] == worker_id else None

    def noted(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(rank, note) of every batch that a rank has read."""
        for path in self.folder.glob("read-*.jsonl"):
            for line in path.read_text().splitlines():
                if line.endswith("}"):
                    yield int(path.stem.partition("-")[2]), json.loads(line)


def write_files(folder: Path) -> str:
    folder.mkdir(parents=True)
    for number in range(3):
        part = np.arange(SAMPLES // 3) + number * (SAMPLES // 3)
        pq.write_table(pa.table({"x": part * 0.5}), folder / f"part-{number}.parquet", row_group_size=40)
    return str(folder / "*.parquet")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Cluster(tmp_path / "strata", "--slots", str(WORKERS)) as cluster:
        yield Site(cluster, tmp_path / "job")


def indexes(preview: dict[str, Any]) -> set[int]:
    return {int(origin["index"]) for origin in preview["origins"]}


def nobody(shards: list[dict[str, Any]]) -> bool:
    return all(row["worker_id"] is None and not row["readers"] for row in shards)


@pytest.mark.slow
def test_a_task_reads_what_its_table_says(site: Site) -> None:
    assert nobody(site.shards())
    task_id = site.submit("loader")
    # No look at the process list: the coordinator's table alone must know all ranks.
    before = eventually("three readers", lambda: _readers(site, WORKERS), within_s=90)
    assert sorted(sample for samples in before.values() for sample in samples) == list(range(SAMPLES))
    for worker_id in before:
        preview = eventually(f"a preview of {worker_id}", lambda one=worker_id: site.preview(one), within_s=60)  # type: ignore[misc]  # bound now
        assert indexes(preview) <= before[worker_id]
    workers = {worker["id"]: worker for worker in site.cluster.get("/api/workers")}
    shards = site.shards()
    for worker_id in before:
        rows = [row for row in shards if any(one["worker_id"] == worker_id for one in row["readers"])]
        told = eventually("the count", lambda one=worker_id: _assigned(site, one), within_s=30)  # type: ignore[misc]  # bound now
        assert told == len(rows)
        assert all(row["task_id"] == task_id and row["mode"] == "lanes" for row in rows)

    victim = min(workers, key=lambda one: workers[one]["rank"])
    os.kill(_pid(site, task_id, workers[victim]["rank"]), signal.SIGKILL)
    eventually("a second attempt", lambda: site.task(task_id).attempt > 1, within_s=90)
    task = eventually("the end", lambda: _final(site, task_id), within_s=180)
    assert task.status == "completed", task.reason
    by_rank: dict[int, set[int]] = {}
    for rank, note in site.noted():
        by_rank.setdefault(rank, set()).update(note["samples"])
    ranks = {worker["rank"]: worker_id for worker_id, worker in workers.items()}
    assert by_rank == {rank: before[worker_id] for rank, worker_id in ranks.items()}
    eventually("nobody reads it", lambda: nobody(site.shards()), within_s=30)


@pytest.mark.slow
def test_queue_mode_shows_who_took_which_shard(site: Site) -> None:
    task_id = site.submit("queue")
    compared: set[str] = set()
    while not site.task(task_id).status.final:
        noted = list(site.noted())
        previews = {worker["id"]: site.preview(worker["id"]) for worker in site.cluster.get("/api/workers")}
        shards = site.shards()
        if not shards[0]["mode"]:
            continue
        epoch = shards[0]["epoch"]
        assert {row["mode"] for row in shards} == {"queue"}
        taken = site.read_by(shards)
        ranks = {one["rank"]: one["worker_id"] for row in shards for one in row["readers"]}
        for rank, note in noted:
            assert note["epoch"] != epoch or set(note["samples"]) <= taken[ranks[rank]]
        for worker_id, preview in previews.items():
            if preview is not None and preview["epoch"] == epoch:
                assert indexes(preview) <= taken[worker_id]
                compared.add(worker_id)
    assert site.task(task_id).status == "completed"
    assert len(compared) == WORKERS
    eventually("nobody reads it", lambda: nobody(site.shards()), within_s=30)


@pytest.mark.slow
def test_plain_workers_read_what_they_were_given(site: Site) -> None:
    manifest = build_manifest(site.glob)
    with ExitStack() as stack:
        workers = {}
        for name in ("plain-0", "plain-1", "plain-2"):
            workers[name] = TrainingOrchestrator(site.cluster.endpoints["grpc"])
            workers[name].register_worker(name, "localhost", 50052)
            stack.callback(workers[name].close)
        given = {name: worker.get_shard("ds", epoch=0) for name, worker in workers.items()}
        batch = tm.Batch(batch_id=uuid.uuid4().hex)
        for name, shards in given.items():
            start, stop = shards[0].start_index, shards[0].start_index + 3
            rows = {**read_range(manifest, start, stop), INDEX: np.arange(start, stop)}
            look = json.dumps(preview_rows(rows, 3, manifest, 0, 0).to_dict())
            batch.samples.append(tm.Sample(dataset_id="ds", worker_id=name, rows_json=look))
        send_batches([batch], site.cluster.endpoints["telemetry"], Access(token=site.token))
        table = site.read_by(site.shards())
        assert table == {
            name: {sample for shard in shards for sample in range(shard.start_index, shard.end_index)}
            for name, shards in given.items()
        }
        for name in workers:
            preview = eventually(f"a preview of {name}", lambda one=name: site.preview(one), within_s=30)  # type: ignore[misc]  # bound now
            assert indexes(preview) <= table[name]
        workers["plain-1"].close()
        moved = eventually("two readers", lambda: _readers(site, 2), within_s=30)
        assert sorted(sample for samples in moved.values() for sample in samples) == list(range(SAMPLES))
        assert all(table[name] <= moved[name] for name in moved)
    eventually("nobody reads it", lambda: nobody(site.shards()), within_s=30)
    assert {row["worker_id"] for row in site.shards()} == {None}


def _readers(site: Site, number: int) -> dict[str, set[int]] | None:
    found = site.read_by(site.shards())
    return found if len(found) == number else None


def _assigned(site: Site, worker_id: str) -> int | None:
    workers = {worker["id"]: worker for worker in site.cluster.get("/api/workers")}
    return int(workers[worker_id]["assigned_shards"] or 0) or None


def _final(site: Site, task_id: str) -> TaskView | None:
    task = site.task(task_id)
    return task if task.status.final else None


def _pid(site: Site, task_id: str, rank: int) -> int:
    for path in (site.cluster.folder / "agent" / "ranks").glob(f"{task_id}.*.json"):
        record = json.loads(path.read_text())
        if record["handle"] and not record["ended"] and f".{rank}" in path.name:
            return int(record["handle"].partition(":")[0])
    raise AssertionError(f"rank {rank} does not run")
