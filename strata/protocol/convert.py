"""Messages to records and back. The only place that knows both; validation is the records' own."""

import json
from collections.abc import Mapping
from typing import Any

from strata.errors import InvalidArgument
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.barriers import BarrierArrival, BarrierPolicy, BarrierResult
from strata.types.checkpoints import CheckpointInfo
from strata.types.datasets import DataFile, DatasetSpec, ShardAssignment
from strata.types.shown import check_shown
from strata.types.tasks import TaskSpec
from strata.types.workers import AgentSpec, WorkerSpec, check_metadata

__all__ = [
    "check_request_id",
    "from_agent_hello",
    "from_barrier_request",
    "from_dataset_info",
    "from_shard_assignment",
    "from_task_spec",
    "from_worker_info",
    "to_barrier_response",
    "to_checkpoint_info",
    "to_dataset_info",
    "to_shard_assignment",
    "to_task_spec",
    "to_worker_info",
]

_MAX_REQUEST_ID = 128
_POLICIES = {
    pb.BarrierRequest.FAIL: BarrierPolicy.FAIL,
    pb.BarrierRequest.SHRINK: BarrierPolicy.SHRINK,
    pb.BarrierRequest.WAIT: BarrierPolicy.WAIT,
}


def from_worker_info(message: pb.WorkerInfo) -> WorkerSpec:
    return WorkerSpec(
        worker_id=message.worker_id,
        task_id=message.task_id,
        incarnation=message.incarnation,
        rank=message.rank if message.HasField("rank") else None,
        hostname=message.hostname,
        port=message.port,
        gpu_count=message.gpu_count,
        memory_bytes=message.memory_bytes,
        agent_id=message.agent_id,
        metadata=dict(message.metadata),
    )


def to_worker_info(spec: WorkerSpec) -> pb.WorkerInfo:
    return pb.WorkerInfo(
        worker_id=spec.worker_id,
        task_id=spec.task_id,
        incarnation=spec.incarnation,
        rank=spec.rank,
        hostname=spec.hostname,
        port=spec.port,
        gpu_count=spec.gpu_count,
        memory_bytes=spec.memory_bytes,
        agent_id=spec.agent_id,
        metadata=spec.metadata,
    )


def from_agent_hello(message: ag.AgentHello) -> AgentSpec:
    return AgentSpec(
        agent_id=message.agent_id,
        incarnation=message.incarnation,
        hostname=message.hostname,
        address=message.address,
        slots=message.slots,
        gpu_count=message.gpu_count,
        memory_bytes=message.memory_bytes,
        version=message.version,
        launcher=message.launchers[0] if message.launchers else "local",
    )


def from_barrier_request(message: pb.BarrierRequest) -> BarrierArrival:
    policy = _POLICIES.get(message.policy)
    if policy is None:
        raise InvalidArgument(f"barrier policy {message.policy} is unknown", hint="Allowed: FAIL, SHRINK, WAIT.")
    if message.timeout_ms < 0:
        raise InvalidArgument(f"timeout_ms is {message.timeout_ms}, it must be 0 (none) or more")
    check_request_id(message.request_id)
    return BarrierArrival(
        worker_id=message.worker_id,
        barrier_id=message.barrier_id,
        step=message.step,
        expected=message.expected_participants,
        timeout_s=message.timeout_ms / 1e3 if message.timeout_ms else None,
        policy=policy,
        request_id=message.request_id,
        incarnation=message.incarnation,
        generation=message.generation,
    )


def to_barrier_response(result: BarrierResult) -> pb.BarrierResponse:
    return pb.BarrierResponse(
        released=True,
        barrier_id=result.barrier_id,
        participants=result.participants,
        arrival_order=result.arrival_order,
        generation=result.generation,
        absent=result.absent,
    )


def from_dataset_info(message: pb.DatasetInfo) -> DatasetSpec:
    return DatasetSpec(
        dataset_id=message.dataset_id,
        path=message.path,
        format=message.format,
        total_samples=message.total_samples,
        shard_size=message.shard_size,
        shuffle=message.shuffle,
        seed=message.seed,
        metadata=check_metadata(dict(message.metadata)),
        files=tuple(DataFile(path=file.path, num_samples=file.num_samples) for file in message.files),
    )


def to_dataset_info(spec: DatasetSpec) -> pb.DatasetInfo:
    return pb.DatasetInfo(
        dataset_id=spec.dataset_id,
        path=spec.path,
        format=spec.format,
        total_samples=spec.total_samples,
        shard_size=spec.shard_size,
        shuffle=spec.shuffle,
        seed=spec.seed,
        metadata=spec.metadata,
        files=[pb.DataFile(path=file.path, num_samples=file.num_samples) for file in spec.files],
    )


def to_shard_assignment(shard: ShardAssignment) -> pb.ShardAssignment:
    return pb.ShardAssignment(
        dataset_id=shard.dataset_id,
        shard_id=shard.shard_id,
        total_shards=shard.total_shards,
        start_index=shard.start_index,
        end_index=shard.end_index,
        file_paths=shard.file_paths,
        epoch=shard.epoch,
    )


def from_shard_assignment(message: pb.ShardAssignment) -> ShardAssignment:
    return ShardAssignment(
        dataset_id=message.dataset_id,
        shard_id=message.shard_id,
        total_shards=message.total_shards,
        start_index=message.start_index,
        end_index=message.end_index,
        file_paths=tuple(message.file_paths),
        epoch=message.epoch,
    )


def to_checkpoint_info(record: CheckpointInfo) -> pb.CheckpointInfo:
    return pb.CheckpointInfo(
        worker_id=record.worker_id or "",
        checkpoint_id=record.id,
        step=record.step,
        epoch=record.epoch,
        storage_path=record.path,
        size_bytes=record.size_bytes,
        timestamp_ms=int(record.created_at * 1e3),
        metadata={key: str(value) for key, value in record.metadata.items()},
        task_id=record.task_id or "",
        duration_s=record.duration_s or 0.0,
    )


def check_request_id(request_id: str) -> str:
    """Returns it when it is short enough to be remembered."""
    if len(request_id) > _MAX_REQUEST_ID:
        raise InvalidArgument(f"request_id has {len(request_id)} characters, {_MAX_REQUEST_ID} are allowed")
    return request_id


def from_task_spec(message: ct.TaskSpec) -> TaskSpec:
    return TaskSpec(
        name=message.name,
        type=message.type or "training",
        dataset_id=message.dataset_id,
        worker_count=message.worker_count,
        config=_parse_config(message.config_json),
        entrypoint=tuple(message.entrypoint),
        env=dict(message.env),
        launcher=message.launcher or "local",
        max_restarts=message.max_restarts,
        working_dir=message.working_dir,
    )


def to_task_spec(spec: TaskSpec, request_id: str) -> ct.TaskSpec:
    return ct.TaskSpec(
        name=spec.name,
        type=spec.type,
        dataset_id=spec.dataset_id,
        worker_count=spec.worker_count,
        config_json=json.dumps(dict(spec.config)),
        entrypoint=spec.entrypoint,
        env=spec.env,
        launcher=spec.launcher,
        max_restarts=spec.max_restarts,
        working_dir=spec.working_dir,
        request_id=request_id,
    )


def _parse_config(text: str) -> Mapping[str, Any]:
    try:
        config = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"config is not JSON that can be read: {error}") from None
    if not isinstance(config, dict):
        raise InvalidArgument(f"config must be a JSON object, not {type(config).__name__}")
    check_shown("config", config)
    return config
