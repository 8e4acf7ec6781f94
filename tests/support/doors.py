"""Every door of a running cluster through which a value from outside comes in: REST bodies and queries, the public gRPC
service, task submission and telemetry. Each takes one odd value in one field and says what became of it.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import grpc
import httpx

from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.support.odd_values import Odd

__all__ = ["LISTS", "Doors"]

_NOW_MS = 1_794_000_000_000
_JSON = {"content-type": "application/json"}
# Refused with a typed status and a sentence; anything else is a bug behind the door.
_REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,  # a barrier that nobody else comes to
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.OUT_OF_RANGE,
}

# What the pages ask for.
LISTS = (
    "/health", "/api/status", "/api/tasks", "/api/workers", "/api/datasets", "/api/checkpoints", "/api/barriers",
    "/api/metrics", "/api/alerts", "/api/dashboard", "/api/logs", "/runs", "/metrics", "/metrics/odd",
    "/api/outline?runs=odd", "/api/series/names", "/checkpoints/odd", "/api/tasks/nothing/logs",
)  # fmt: skip

# Method, path and body; ODD stands for the value as JSON, N for a number of its own.
_BODIES = {
    "task config": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": "base", "config": {"x": ODD}}'),
    "task name": ("POST", "/api/tasks", '{"name": ODD, "dataset_id": "base"}'),
    "task type": ("POST", "/api/tasks", '{"name": "odd", "type": ODD}'),
    "task dataset": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": ODD}'),
    "task workers": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": "base", "worker_count": ODD}'),
    "task hang timeout": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": "base", "hang_timeout_s": ODD}'),
    "task restarts": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": "base", "max_restarts": ODD}'),
    "task spares": ("POST", "/api/tasks", '{"name": "odd", "dataset_id": "base", "spares": ODD}'),
    "task body": ("POST", "/api/tasks", "ODD"),
    "dataset id": ("POST", "/api/datasets", '{"id": ODD, "path": "p", "total_samples": 10, "shard_size": 5}'),
    "dataset path": ("POST", "/api/datasets", '{"id": "oN", "path": ODD, "total_samples": 10, "shard_size": 5}'),
    "dataset format": (
        "POST", "/api/datasets", '{"id": "fN", "path": "p", "format": ODD, "total_samples": 10, "shard_size": 5}'),
    "dataset name": (
        "POST", "/api/datasets", '{"id": "nN", "path": "p", "name": ODD, "total_samples": 10, "shard_size": 5}'),
    "dataset samples": ("POST", "/api/datasets", '{"id": "tN", "path": "p", "total_samples": ODD}'),
    "dataset shard size": (
        "POST", "/api/datasets", '{"id": "sN", "path": "p", "total_samples": 10, "shard_size": ODD}'),
    "dataset seed": (
        "POST", "/api/datasets", '{"id": "eN", "path": "p", "total_samples": 10, "shard_size": 5, "seed": ODD}'),
    "dataset metadata": (
        "POST", "/api/datasets",
        '{"id": "mN", "path": "p", "total_samples": 10, "shard_size": 5, "metadata": {"m": ODD}}'),
    "point metric": ("POST", "/api/runs/odd/points", '{"points": [{"metric": ODD, "step": 1, "value": 1}]}'),
    "point step": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "step": ODD, "value": 1}]}'),
    "point value": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "step": 1, "value": ODD}]}'),
    "point rank": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "rank": ODD, "value": 1}]}'),
    "point device": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "device": ODD, "value": 1}]}'),
    "point host": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "host": ODD, "value": 1}]}'),
    "point unit": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "unit": ODD, "value": 1}]}'),
    "point tags": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "tags": ODD, "value": 1}]}'),
    "point time": ("POST", "/api/runs/odd/points", '{"points": [{"metric": "m", "event_time": ODD, "value": 1}]}'),
    "points": ("POST", "/api/runs/odd/points", '{"points": ODD}'),
    "batch id": ("POST", "/api/runs/odd/points", '{"batch_id": ODD, "points": [{"metric": "m", "value": 1}]}'),
    "run name": ("PATCH", "/api/runs/odd", '{"name": ODD}'),
    "run notes": ("PATCH", "/api/runs/odd", '{"notes": ODD}'),
    "pin": ("POST", "/api/checkpoints/c-odd/pin", '{"pinned": ODD}'),
}  # fmt: skip
_QUERIES = {
    "logs q": ("/api/logs", "q"),
    "logs level": ("/api/logs", "level"),
    "logs source": ("/api/logs", "source"),
    "logs task": ("/api/logs", "task_id"),
    "logs worker": ("/api/logs", "worker_id"),
    "logs before": ("/api/logs", "before"),
    "logs after": ("/api/logs", "after"),
    "logs limit": ("/api/logs", "limit"),
    "series metric": ("/metrics/odd", "metric"),
    "series from step": ("/metrics/odd", "from_step"),
    "series to step": ("/metrics/odd", "to_step"),
    "series from time": ("/metrics/odd", "from_time"),
    "series to time": ("/metrics/odd", "to_time"),
    "series points": ("/metrics/odd", "points"),
}
_PATHS = ("/api/tasks/{}", "/metrics/{}", "/checkpoints/{}", "/api/datasets/{}/shards", "/api/tasks/{}/course")


def _fields(kind: str, base: dict[str, Any], *names: str) -> dict[str, tuple[str, dict[str, Any]]]:
    return {f"{kind} {name}": (name, base) for name in names}


_WORKER: dict[str, Any] = {"worker_id": "w-odd", "hostname": "h", "port": 7}
_DATASET: dict[str, Any] = {"dataset_id": "g-odd", "path": "p", "format": "csv", "total_samples": 10, "shard_size": 5}
_CHECKPOINT: dict[str, Any] = {
    "worker_id": "w-odd",
    "checkpoint_id": "c-odd",
    "step": 4,
    "storage_path": "p",
    "size_bytes": 5,
}
_TASK: dict[str, Any] = {"name": "odd", "type": "training", "dataset_id": "base", "worker_count": 1}
_BARRIER: dict[str, Any] = {"worker_id": "w-odd", "barrier_id": "b", "step": 1, "timeout_ms": 1}
_CALLS: dict[str, tuple[str, type[Any], dict[str, tuple[str, dict[str, Any]]]]] = {
    "RegisterWorker": (
        "workers", pb.WorkerInfo,
        _fields("worker", _WORKER, "worker_id", "hostname", "port", "gpu_count", "memory_bytes", "metadata", "task_id",
                "incarnation", "rank", "agent_id")),
    "Heartbeat": (
        "workers", pb.HeartbeatRequest,
        _fields("beat", {"worker_id": "w-odd"}, "worker_id", "timestamp_ms", "incarnation", "generation",
                "status.state", "status.current_step", "status.current_epoch", "status.current_task", "status.section",
                "status.step_time_s", "status.progress", "status.dataset_id", "status.samples_done",
                "resources.cpu_percent", "resources.memory_used_bytes")),
    "RegisterDataset": (
        "workers", pb.DatasetInfo,
        _fields("dataset", _DATASET, "dataset_id", "path", "format", "shard_size", "seed", "metadata")),
    "NotifyCheckpoint": (
        "workers", pb.CheckpointInfo,
        _fields("checkpoint", _CHECKPOINT, "worker_id", "checkpoint_id", "step", "epoch", "storage_path", "size_bytes",
                "timestamp_ms", "type", "metadata", "generation", "incarnation", "duration_s")),
    "BeginCheckpoint": (
        "workers", pb.CheckpointBegin,
        _fields("begin", {"worker_id": "w-odd", "step": 9, "storage_path": "p", "deadline_s": 1},
                "step", "epoch", "storage_path", "deadline_s")),
    "WaitBarrier": (
        "workers", pb.BarrierRequest,
        _fields("barrier", _BARRIER, "worker_id", "barrier_id", "step", "expected_participants", "request_id",
                "generation")),
    "GetDataShard": (
        "workers", pb.ShardRequest,
        _fields("shard", {"worker_id": "w-odd", "dataset_id": "g-odd"}, "worker_id", "dataset_id", "epoch")),
    "SubmitTask": (
        "control", ct.TaskSpec,
        _fields("submit", _TASK, "name", "type", "dataset_id", "worker_count", "config_json", "launcher",
                "max_restarts", "spares", "request_id")),
    "StopTask": ("control", ct.TaskRef, _fields("stop", {"task_id": "none"}, "task_id", "reason")),
}  # fmt: skip


class Doors:
    """`push` sends one value through all of them; what is neither accepted nor refused in words is in `broken`."""

    def __init__(self, http: str, grpc_address: str, telemetry: str, *, timeout_s: float = 60.0) -> None:
        self._http = httpx.Client(base_url=http, timeout=timeout_s)
        self._channels = [grpc.insecure_channel(address) for address in (grpc_address, telemetry)]
        self._stubs: dict[str, Any] = {
            "workers": CoordinatorStub(self._channels[0]),
            "control": ControlStub(self._channels[0]),
        }
        self._telemetry = TelemetryStub(self._channels[1])
        self._timeout_s = timeout_s
        self._numbers = itertools.count()
        self.accepted = 0
        self.refused = 0
        self.broken: list[str] = []

    def prepare(self) -> "Doors":
        """What the others lean on: a dataset, a worker, a checkpoint and a run of the plain kind."""
        workers = self._stubs["workers"]
        workers.RegisterDataset(pb.DatasetInfo(**{**_DATASET, "dataset_id": "base"}), timeout=self._timeout_s)
        workers.RegisterWorker(pb.WorkerInfo(**_WORKER), timeout=self._timeout_s)
        workers.NotifyCheckpoint(pb.CheckpointInfo(**_CHECKPOINT), timeout=self._timeout_s)
        self._http.post("/api/runs/odd/points", json={"points": [{"metric": "m", "step": 1, "value": 1.0}]})
        return self

    def close(self) -> None:
        self._http.close()
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> "Doors":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def push(self, odd: Odd) -> None:
        bodies = dict(_BODIES)
        if isinstance(odd.value, str) and any(mark in odd.value for mark in "/~\x00"):
            bodies["dataset to read"] = ("POST", "/api/datasets", '{"id": "rN", "path": ODD, "format": "csv"}')
        for door, (method, path, body) in bodies.items():
            text = body.replace("N", str(next(self._numbers))).replace("ODD", odd.text)
            self._rest(door, odd, partial(self._http.request, method, path, content=text, headers=_JSON))
        if not isinstance(odd.value, list | dict) and len(odd.text) < 5_000:
            for door, (path, name) in _QUERIES.items():
                self._rest(door, odd, partial(self._http.get, path, params={name: odd.value}))
            for path in _PATHS:
                self._rest(path, odd, partial(self._get_at, path, odd.value))
        for method, (service, kind, fields) in _CALLS.items():
            for door, (field, base) in fields.items():
                make = partial(_message, kind, base, field, odd)
                self._call(f"{method} {door}", odd, getattr(self._stubs[service], method), make)
        for door, batch in _batches(odd):
            self._call(f"telemetry {door}", odd, self._telemetry.ReportOnce, batch)

    def lists(self) -> None:
        """Every list of every page answers."""
        for path in LISTS:
            answer = self._http.get(path)
            if answer.status_code >= 400 and "nothing" not in path:
                self.broken.append(f"GET {path}: {answer.status_code} {answer.text[:200]}")
            elif answer.headers["content-type"].startswith("application/json"):
                answer.json()

    def _get_at(self, path: str, value: Any) -> httpx.Response:
        return self._http.get(path.format(quote(str(value), safe="")))

    def _rest(self, door: str, odd: Odd, send: Callable[[], httpx.Response]) -> None:
        try:
            answer = send()
        except (UnicodeError, httpx.InvalidURL, httpx.UnsupportedProtocol):
            return  # the client's own library refuses
        except httpx.HTTPError as error:
            self.broken.append(f"{door} with {odd.name}: {error!r}")
            return
        if answer.status_code < 400:
            self.accepted += 1
            return
        self.refused += 1
        sentence = _sentence(answer)
        if answer.status_code >= 500 or not sentence:
            self.broken.append(f"{door} with {odd.name}: {answer.status_code} {answer.text[:200]}")

    def _call(self, door: str, odd: Odd, call: Callable[..., Any], make: Callable[[], Any]) -> None:
        try:
            message = make()
            message.SerializeToString()
        except (TypeError, ValueError, OverflowError, RecursionError):
            return  # the client's own library refuses
        try:
            call(message, timeout=self._timeout_s)
            self.accepted += 1
        except grpc.RpcError as error:
            self.refused += 1
            status: Any = error
            if status.code() not in _REFUSALS or not status.details():
                self.broken.append(f"{door} with {odd.name}: {status.code()} {status.details()[:200]}")


def _sentence(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""


def _message(kind: type[Any], base: dict[str, Any], field: str, odd: Odd) -> Any:
    """The message with the odd value in one field; maps get it as a value and as a key."""
    message = kind(**base)
    owner, _, name = field.rpartition(".")
    target = getattr(message, owner) if owner else message
    if name == "metadata":
        target.metadata["odd"] = odd.value
        target.metadata[odd.value] = "odd"
    elif name == "config_json":
        target.config_json = odd.text if odd.text.startswith("{") else f'{{"x": {odd.text}}}'
    else:
        setattr(target, name, odd.value)
    return message


def _batches(odd: Odd) -> Iterator[tuple[str, Callable[[], tm.Batch]]]:
    def series(name: str) -> tm.Batch:
        batch = tm.Batch()
        batch.series.add(**{"index": 0, "run_id": "odd", "metric": "m", "device": 65535, name: odd.value})
        batch.points.series.append(0)
        batch.points.step.append(1)
        batch.points.event_time_ms.append(_NOW_MS)
        batch.points.value.append(1.0)
        return batch

    def column(name: str) -> tm.Batch:
        batch = series("host") if isinstance(odd.value, str) else tm.Batch()
        if not batch.series:
            batch.series.add(index=0, run_id="odd", metric="m", device=65535)
            for other, value in (("series", 0), ("step", 1), ("event_time_ms", _NOW_MS), ("value", 1.0)):
                getattr(batch.points, other).append(odd.value if other == name else value)
        return batch

    def part(kind: str, base: dict[str, Any], name: str) -> tm.Batch:
        batch = tm.Batch()
        getattr(batch, kind).add(**{**base, name: odd.text if name.endswith("_json") else odd.value})
        return batch

    for name in ("run_id", "metric", "host", "rank", "device", "unit", "tags_json"):
        yield f"series {name}", partial(series, name)
    for name in ("series", "step", "event_time_ms", "value"):
        yield f"points {name}", partial(column, name)
    line = {"event_time_ms": _NOW_MS, "level": "info", "message": "odd"}
    run = {"run_id": "odd", "updated_at_ms": _NOW_MS}
    event = {"event_time_ms": _NOW_MS, "id": f"e{abs(hash(odd.name))}", "kind": "odd", "severity": "info"}
    checkpoint = {"event_time_ms": _NOW_MS, "id": "c", "run_id": "odd", "status": "completed"}
    for kind, base, names in (
        ("logs", line, ("level", "message", "source", "task_id", "worker_id", "host", "event_time_ms", "rank")),
        ("runs", run, ("run_id", "name", "project", "config_json", "status", "task_id", "started_at_ms")),
        ("events", event, ("id", "kind", "severity", "message", "run_id", "event_time_ms", "rank", "step")),
        ("checkpoints", checkpoint, ("id", "path", "step", "size_bytes", "duration_s", "event_time_ms", "reason")),
        ("samples", {"dataset_id": "d", "worker_id": "w"}, ("dataset_id", "worker_id", "rows_json", "epoch")),
    ):
        for name in names:
            yield f"{kind} {name}", partial(part, kind, base, name)
