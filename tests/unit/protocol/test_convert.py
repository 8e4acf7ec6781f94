"""Messages and records: what goes out comes back, and what is wrong is refused by name."""

import pytest

from strata.errors import InvalidArgument
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.barriers import BarrierPolicy, BarrierResult
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.datasets import DataFile, DatasetSpec
from strata.types.tasks import TaskSpec


def test_a_dataset_comes_back() -> None:
    files = (DataFile(path="a", num_samples=3), DataFile(path="b", num_samples=4))
    spec = DatasetSpec(
        dataset_id="d", path="p", format="csv", total_samples=7, shard_size=2, seed=-1, metadata={"k": "v"}, files=files
    )
    assert convert.from_dataset_info(convert.to_dataset_info(spec)) == spec


def test_a_task_comes_back() -> None:
    spec = TaskSpec(name="n", dataset_id="d", worker_count=3, config={"lr": 0.1}, entrypoint=("a", "b"), env={"K": "V"})
    message = convert.to_task_spec(spec, "r")
    assert message.request_id == "r"
    assert convert.from_task_spec(message) == spec


def test_an_arrival_is_read() -> None:
    message = pb.BarrierRequest(
        worker_id="w",
        barrier_id="b",
        step=3,
        expected_participants=4,
        timeout_ms=1500,
        generation=5,
        request_id="r",
        policy=pb.BarrierRequest.SHRINK,
    )
    arrival = convert.from_barrier_request(message)
    assert (arrival.expected, arrival.timeout_s, arrival.policy) == (4, 1.5, BarrierPolicy.SHRINK)
    plain = convert.from_barrier_request(pb.BarrierRequest(worker_id="w", barrier_id="b"))
    assert (plain.timeout_s, plain.policy) == (None, BarrierPolicy.FAIL)


def test_a_result_is_told() -> None:
    told = convert.to_barrier_response(
        BarrierResult(barrier_id="b", participants=3, arrival_order=2, generation=7, absent=("x",))
    )
    assert (told.released, told.participants, told.arrival_order, list(told.absent)) == (True, 3, 2, ["x"])


def test_a_checkpoint_is_told() -> None:
    record = CheckpointInfo(
        id="k",
        step=1,
        epoch=2,
        path="p",
        size_bytes=3,
        created_at=4.5,
        status=CheckpointStatus.COMPLETED,
        metadata={"n": 1},
    )
    told = convert.to_checkpoint_info(record)
    assert (told.checkpoint_id, told.timestamp_ms, dict(told.metadata)) == ("k", 4500, {"n": "1"})


@pytest.mark.parametrize(
    "message",
    [
        pb.BarrierRequest(worker_id="w", barrier_id="b", policy=9),  # type: ignore[arg-type]  # wrong on purpose
        pb.BarrierRequest(worker_id="w", barrier_id="b", timeout_ms=-1),
        pb.BarrierRequest(worker_id="w", barrier_id="b", request_id="r" * 1_000),
        pb.BarrierRequest(worker_id="w"),
    ],
)
def test_a_bad_arrival_is_refused(message: pb.BarrierRequest) -> None:
    with pytest.raises(InvalidArgument):
        convert.from_barrier_request(message)


@pytest.mark.parametrize("config", ["{", "[]", "1", '"text"'])
def test_a_config_that_is_no_object_is_refused(config: str) -> None:
    with pytest.raises(InvalidArgument, match="config"):
        convert.from_task_spec(ct.TaskSpec(name="n", worker_count=1, config_json=config))


def test_an_agent_without_slots_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="slots is 0"):
        convert.from_agent_hello(ag.AgentHello(agent_id="a", incarnation="i"))
