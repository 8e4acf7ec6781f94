"""Fields of the same name go from record to message and back; what is given beside them goes before."""

import pytest

from strata.errors import InvalidArgument
from strata.protocol.fields import from_message, to_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.datasets import ShardAssignment
from strata.types.workers import WorkerSpec


@pytest.mark.parametrize("rank", [None, 0, 5])
def test_a_worker_comes_back(rank: int | None) -> None:
    spec = WorkerSpec(
        worker_id="w",
        task_id="t",
        incarnation="i",
        rank=rank,
        hostname="h",
        port=1,
        gpu_count=8,
        memory_bytes=9,
        agent_id="a",
        metadata={"k": "v"},
    )
    assert from_message(WorkerSpec, to_message(pb.WorkerInfo, spec)) == spec


def test_a_shard_comes_back() -> None:
    shard = ShardAssignment(
        dataset_id="d", shard_id=1, total_shards=2, start_index=3, end_index=4, file_paths=("f",), epoch=5
    )
    assert from_message(ShardAssignment, to_message(pb.ShardAssignment, shard)) == shard


def test_what_is_given_beside_the_fields_goes_before() -> None:
    message = to_message(pb.WorkerInfo, WorkerSpec(worker_id="w", port=1), port=2, metadata={"k": "v"})
    assert (message.worker_id, message.port, dict(message.metadata)) == ("w", 2, {"k": "v"})
    assert from_message(WorkerSpec, message, port=3) == WorkerSpec(worker_id="w", port=3, metadata={"k": "v"})


def test_a_record_checks_what_a_message_says() -> None:
    with pytest.raises(InvalidArgument, match="worker_id"):
        from_message(WorkerSpec, pb.WorkerInfo())
