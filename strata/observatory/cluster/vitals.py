"""What changes all the time and is never journaled: what workers do and use now, as the coordinator heard it last."""

import math
from dataclasses import dataclass, fields
from typing import Any

from strata.observatory.answers.workers import GpuMetrics, Resources
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["UNHEARD", "WorkerVitals", "to_figures", "to_vitals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerVitals:
    """One worker's; what it has not told is None. `member_state` is its standing: ready, suspect, …"""

    last_heartbeat: float | None = None
    member_state: str | None = None
    assigned_shards: int | None = None
    state: str | None = None
    current_step: int | None = None
    current_epoch: int | None = None
    current_task: str | None = None
    section: str | None = None
    at_barrier: bool = False
    step_time_s: float | None = None
    progress: float | None = None
    dataset_id: str | None = None
    samples_done: int | None = None
    resources: Resources | None = None


UNHEARD = WorkerVitals()
_STATES = {number: name.lower() for name, number in pb.WorkerStatus.State.items()}
_USED = [field.name for field in fields(Resources) if field.name != "gpu_metrics"]


def to_vitals(vitals: ct.WorkerVitals) -> WorkerVitals:
    """Spelled out, for it is done ten thousand times a second in a large fleet."""
    resources = _resources(vitals.resources) if vitals.HasField("resources") else None
    heard, standing, shards = vitals.last_heartbeat, vitals.state, vitals.assigned_shards
    if not vitals.HasField("status"):
        return WorkerVitals(last_heartbeat=heard, member_state=standing, assigned_shards=shards, resources=resources)
    status = vitals.status
    return WorkerVitals(
        last_heartbeat=heard,
        member_state=standing,
        assigned_shards=shards,
        resources=resources,
        state=_STATES.get(status.state, "unknown"),
        current_step=status.current_step,
        current_epoch=status.current_epoch,
        current_task=status.current_task or None,
        section=status.section or None,
        at_barrier=status.at_barrier,
        step_time_s=status.step_time_s or None,
        progress=status.progress or None,
        dataset_id=status.dataset_id or None,
        samples_done=status.samples_done,
    )


def _resources(usage: pb.ResourceUsage) -> Resources:
    """What its sender did not measure is null."""
    measured = {field.name: value for field, value in usage.ListFields()}
    return Resources(gpu_metrics=[_gpu(one) for one in usage.gpu_usage], **{name: measured.get(name) for name in _USED})


def _gpu(usage: pb.GpuUsage) -> GpuMetrics:
    """A card of no size, and what is no number, is what its driver did not tell."""
    sized = usage.memory_total_bytes > 0
    return GpuMetrics(
        gpu_id=usage.gpu_id,
        utilization_percent=usage.utilization_percent if math.isfinite(usage.utilization_percent) else None,
        memory_used_bytes=usage.memory_used_bytes if sized else None,
        memory_total_bytes=usage.memory_total_bytes if sized else None,
        temperature_celsius=(usage.temperature_celsius or None) if math.isfinite(usage.temperature_celsius) else None,
    )


def to_figures(figures: ct.CoordinatorFigures) -> dict[str, Any]:
    """Optional fields that were not measured stay away, and so become null."""
    scalars = {field.name: value for field, value in figures.ListFields() if isinstance(value, int | float)}
    return {
        **scalars,
        "requests_by_method": dict(figures.requests_by_method),
        "barrier_latency_buckets": list(figures.barrier_latency_buckets),
        "barrier_bucket_bounds_ms": list(figures.barrier_bucket_bounds_ms),
    }
