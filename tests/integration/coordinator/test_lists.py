"""Calls for one record or one list: nobody fetches everything to ask for one thing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.records import RecordsClient
from strata.client.tasks import TasksClient
from strata.errors import UnknownDataset, UnknownTask
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.checkpoints import CheckpointStatus
from strata.types.datasets import DatasetSpec
from strata.types.tasks import TaskSpec, TaskStatus
from strata.types.workers import MemberState
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.records import first_snapshot


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path / "c") as running:
        yield running


@pytest.fixture
def channel(server: CoordinatorProcess) -> Iterator[Channel]:
    with Channel(server.address, patience_s=20.0) as found:
        yield found


def test_each_kind_of_record_has_a_call_of_its_own(server: CoordinatorProcess, channel: Channel) -> None:
    datasets, tasks, records = DatasetsClient(channel), TasksClient(channel), RecordsClient(channel)
    spec = DatasetSpec(dataset_id="d", path="p", format="csv", total_samples=25, shard_size=10, metadata={"k": "ü"})
    datasets.register(spec)
    task_id = tasks.submit(TaskSpec(name="job", dataset_id="d", worker_count=2, env={"KEY": "hunter2"}))
    for name, group in (("w0", task_id), ("w1", task_id), ("plain", "")):
        server.workers.RegisterWorker(pb.WorkerInfo(worker_id=name, task_id=group, hostname="h"), timeout=10)
    for step in (3, 7):
        info = pb.CheckpointInfo(worker_id="w0", checkpoint_id=f"c{step}", step=step, storage_path=f"/{step}")
        server.workers.NotifyCheckpoint(info, timeout=10)

    task = tasks.get(task_id)
    assert (task.status, task.spec.worker_count, task.saved_step) == (TaskStatus.QUEUED, 2, 7)
    assert task.spec.env == {"KEY": "***"}
    assert tasks.list() == [task]
    assert datasets.find("d") == spec
    assert [item.spec for item in datasets.list()] == [spec]
    assert {item.worker_id for item in records.workers()} == {"w0", "w1", "plain"}
    assert [(item.rank, item.state) for item in records.workers(task_id)] == [
        (0, MemberState.READY),
        (1, MemberState.READY),
    ]
    assert [item.worker_id for item in records.workers("")] == ["plain"]
    assert [(item.step, item.status) for item in records.checkpoints(task_id)] == [
        (3, CheckpointStatus.COMPLETED),
        (7, CheckpointStatus.COMPLETED),
    ]
    assert not records.checkpoints("")
    assert not records.agents()
    with pytest.raises(UnknownTask):
        tasks.get("nobody")
    with pytest.raises(UnknownDataset):
        datasets.find("nothing")


def test_a_followers_first_message_holds_public_records_only(server: CoordinatorProcess, channel: Channel) -> None:
    TasksClient(channel).submit(TaskSpec(name="job", entrypoint=("python", "x.py"), env={"KEY": "hunter2"}))
    text = first_snapshot(server.control).records_json.decode()
    assert "hunter2" not in text
    assert set(json.loads(text)) == {
        "agents", "attempts", "barriers", "checkpoints", "cluster_id", "datasets", "groups", "queues", "started_at",
        "starts", "tasks", "term", "tokens", "workers",
    }  # fmt: skip
