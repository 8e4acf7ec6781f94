"""Workers as REST shows them."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["GpuMetrics", "Resources", "Worker", "WorkerStatus"]

WorkerStatus = Literal["active", "idle", "checkpointing", "recovering", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMetrics:
    """What one GPU does; null is what its driver does not tell."""

    gpu_id: int
    utilization_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a worker uses; null is what it did not measure."""

    cpu_percent: float | None
    memory_used_bytes: int | None
    gpu_metrics: list[GpuMetrics]
    disk_read_bytes: int | None
    disk_write_bytes: int | None
    network_rx_bytes: int | None
    network_tx_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that is alive or died. `state` is the finer state of gRPC, `section` what it does inside a step, `pid`
    its process on `host`."""

    id: str
    ip: str
    port: int
    status: WorkerStatus
    state: str
    member_state: str
    gpu_count: int
    last_heartbeat: int | None
    last_heartbeat_ms: int | None
    assigned_shards: int | None
    current_epoch: int | None
    current_step: int | None
    current_task: str | None
    rank: int
    host: str | None
    pid: int | None
    resources: Resources | None
    section: str | None
    step_time_s: float | None
    reason: str | None
    incarnation: str | None
    generation: int | None
    agent_id: str | None
