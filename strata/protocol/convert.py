"""Messages to records and back where their fields differ; validation is the records' own."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from strata.errors import InvalidArgument
from strata.protocol.fields import from_message, to_message
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.barriers import BarrierArrival, BarrierPolicy, BarrierResult
from strata.types.checkpoints import CheckpointInfo
from strata.types.datasets import DataFile, DatasetSpec
from strata.types.forks import ForkRequest, check_skip
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus
from strata.types.shown import check_shown, check_text
from strata.types.tasks import GROW_AFTER_S, TaskSpec
from strata.types.workers import AgentSpec, check_metadata

__all__ = [
    "MAX_REQUEST_ID",
    "check_request_id",
    "from_agent_hello",
    "from_barrier_request",
    "from_dataset_info",
    "from_fork_request",
    "from_grant",
    "from_progress",
    "from_task_spec",
    "to_barrier_response",
    "to_checkpoint_info",
    "to_dataset_info",
    "to_fork_request",
    "to_grant",
    "to_progress",
    "to_task_spec",
]

MAX_REQUEST_ID = 128
_MAX_BY = 500
_POLICIES = {
    pb.BarrierRequest.FAIL: BarrierPolicy.FAIL,
    pb.BarrierRequest.SHRINK: BarrierPolicy.SHRINK,
    pb.BarrierRequest.WAIT: BarrierPolicy.WAIT,
}


def from_agent_hello(message: ag.AgentHello) -> AgentSpec:
    return from_message(AgentSpec, message, launcher=message.launchers[0] if message.launchers else "local")


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
    return to_message(pb.BarrierResponse, result, released=True)


def from_dataset_info(message: pb.DatasetInfo) -> DatasetSpec:
    files = tuple(from_message(DataFile, file) for file in message.files)
    return from_message(DatasetSpec, message, metadata=check_metadata(dict(message.metadata)), files=files)


def to_dataset_info(spec: DatasetSpec) -> pb.DatasetInfo:
    return to_message(pb.DatasetInfo, spec, files=[to_message(pb.DataFile, file) for file in spec.files])


def to_checkpoint_info(record: CheckpointInfo) -> pb.CheckpointInfo:
    return to_message(
        pb.CheckpointInfo,
        record,
        checkpoint_id=record.id,
        storage_path=record.path,
        timestamp_ms=int(record.created_at * 1e3),
        metadata={key: str(value) for key, value in record.metadata.items()},
    )


def check_request_id(request_id: str) -> str:
    """Returns it when it is short enough to be remembered."""
    if len(request_id) > MAX_REQUEST_ID:
        raise InvalidArgument(f"request_id has {len(request_id)} characters, {MAX_REQUEST_ID} are allowed")
    return request_id


def from_task_spec(message: ct.TaskSpec) -> TaskSpec:
    return from_message(
        TaskSpec,
        message,
        type=message.type or "training",
        config=_parse_config(message.config_json),
        launcher=message.launcher or "local",
        grow_after_s=message.grow_after_s if message.HasField("grow_after_s") else GROW_AFTER_S,
    )


def to_task_spec(spec: TaskSpec, request_id: str) -> ct.TaskSpec:
    return to_message(ct.TaskSpec, spec, config_json=json.dumps(dict(spec.config)), request_id=request_id)


def from_fork_request(message: ct.ForkRequest) -> ForkRequest:
    skip = tuple((item.first, item.last) for item in message.skip)
    by = check_text("reason", message.reason or "forked by the user", _MAX_BY)
    return from_message(ForkRequest, message, changes=_parse_config(message.changes_json), skip=skip, by=by)


def to_fork_request(task_id: str, asked: ForkRequest, request_id: str) -> ct.ForkRequest:
    return to_message(
        ct.ForkRequest,
        asked,
        task_id=task_id,
        changes_json=json.dumps(dict(asked.changes)),
        skip=[ct.StepRange(first=first, last=last) for first, last in check_skip(asked.skip)],
        request_id=request_id,
        reason=asked.by,
    )


def to_progress(progress: Iterable[LeaseProgress]) -> list[pb.LeaseProgress]:
    return [to_message(pb.LeaseProgress, item) for item in progress]


def from_progress(messages: Iterable[pb.LeaseProgress]) -> tuple[LeaseProgress, ...]:
    return tuple(from_message(LeaseProgress, item) for item in messages)


def to_grant(grant: QueueGrant) -> pb.QueueGrant:
    return to_message(
        pb.QueueGrant,
        grant,
        status=pb.QueueGrant.Status.Value(grant.status.name),
        lease=None if grant.lease is None else to_message(pb.QueueLease, grant.lease),
        held=to_progress(grant.held),
    )


def from_grant(message: pb.QueueGrant) -> QueueGrant:
    return from_message(
        QueueGrant,
        message,
        status=QueueStatus[pb.QueueGrant.Status.Name(message.status)],
        lease=from_message(QueueLease, message.lease) if message.HasField("lease") else None,
        held=from_progress(message.held),
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
