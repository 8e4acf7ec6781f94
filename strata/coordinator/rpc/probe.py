"""The coordinator's own /health and /metrics over HTTP, on a port of their own: for probes, and for Prometheus also
while the observatory is away. One request per connection.
"""

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.state.checkpoints import Checkpoints
from strata.errors import StrataError
from strata.trust.peer import Peer
from strata.trust.proofs import Proofs
from strata.trust.table import admit

__all__ = ["Probe"]

_HEAD_BYTES = 16 * 1024
_PATIENCE_S = 5.0
_AT_ONCE = 64
_OUR_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "steady": "1 while what it decides becomes durable: it leads, and its disk or database is there",
    "term": "how often a coordinator of this cluster has begun",
    "uptime_seconds": "since this one began",
    "requests_total": "calls that it has answered",
    "loop_lag_seconds": "how late its event loop is",
    "journal_commit_p99_seconds": "of the last minutes; absent when nothing was written",
    "agents": "hosts by their state",
    "tasks": "tasks by their status",
    "workers": "workers by their state",
    "agent_slots": "ranks that a host takes",
    "agent_gpus": "GPUs that ranks on a host may have",
    "task_ranks": "ranks of the current attempt",
    "task_attempt": "number of the current attempt",
    "task_failures_total": "failures of its own",
    "task_losses_total": "kills from outside and lost hosts",
    "task_checkpoint_timestamp_seconds": "when its newest checkpoint was made",
}

Sample = tuple[str, Mapping[str, str], float | None]  # name, labels, value


class Probe:
    """Serves from `start` to `stop`."""

    def __init__(self, coordinator: Coordinator, proofs: Proofs) -> None:
        self._coordinator = coordinator
        self._proofs = proofs
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES, ssl=tls)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._room, asyncio.timeout(_PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1"), Peer.of(writer.transport)))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever sends no request gets no answer
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                await writer.wait_closed()

    def _answer(self, head: str, peer: Peer) -> bytes:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if method != "GET" or path not in ("/health", "/metrics"):
            return _response(HTTPStatus.NOT_FOUND, "here are GET /health and GET /metrics\n")
        token = headers.get("authorization", "").removeprefix("Bearer ")
        # A name that is not ours and leads here is another page's trick: it is not the owner who asks.
        visitor = self._proofs.recognise(peer if _name(headers) in _OUR_NAMES else None, token)
        verdict = admit(f"GET {path}", visitor)
        if isinstance(verdict, StrataError):
            return _response(HTTPStatus(verdict.http_status), f"{verdict.message}\n")
        if path == "/health":
            if self._coordinator.is_steady():
                return _response(HTTPStatus.OK, "ok\n")
            return _response(HTTPStatus.SERVICE_UNAVAILABLE, "busy: its journal cannot be written now\n")
        return _response(HTTPStatus.OK, _exposition(self._samples()))

    def _samples(self) -> list[Sample]:
        coordinator, meter = self._coordinator, self._coordinator.meter
        commit_ms, cluster = meter.journal_commit_p99_ms(), coordinator.state.cluster
        return [
            ("steady", {}, float(coordinator.is_steady())),
            ("term", {}, coordinator.state.term),
            ("uptime_seconds", {}, meter.uptime_s),
            ("requests_total", {}, sum(meter.requests.values())),
            ("loop_lag_seconds", {}, meter.loop_lag_ms / 1e3),
            ("journal_commit_p99_seconds", {}, commit_ms / 1e3 if commit_ms is not None else None),
            *_counted("agents", "state", (agent.state.value for agent in cluster.agents.values())),
            *_counted("workers", "state", (worker.state.value for worker in cluster.workers.values())),
            *_counted("tasks", "status", (task.status.value for task in cluster.tasks.values())),
            *_of_hosts(cluster.agents.values()),
            *_of_tasks(cluster.tasks.values(), coordinator.state.checkpoints),
        ]


def _counted(name: str, label: str, values: Iterable[str]) -> list[Sample]:
    return [(name, {label: value}, number) for value, number in sorted(Counter(values).items())]


def _of_hosts(agents: Iterable[Agent]) -> Iterator[Sample]:
    for agent in agents:
        if agent.alive:
            labels = {"agent": agent.agent_id, "host": agent.hostname}
            yield "agent_slots", labels, agent.slots
            yield "agent_gpus", labels, agent.gpu_count


def _of_tasks(tasks: Iterable[Task], checkpoints: Checkpoints) -> Iterator[Sample]:
    """Of tasks that have not ended, as the observatory tells of them."""
    for task in tasks:
        if not task.status.final:
            labels, saved = {"task": task.task_id, "name": task.spec.name}, checkpoints.latest(task.task_id)
            yield "task_ranks", labels, len(task.course.placement) or None
            yield "task_attempt", labels, task.attempt
            yield "task_failures_total", labels, task.course.failures
            yield "task_losses_total", labels, task.course.preemptions
            yield "task_checkpoint_timestamp_seconds", labels, saved.created_at if saved is not None else None


def _name(headers: dict[str, str]) -> str:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def _exposition(samples: Iterable[Sample]) -> str:
    families: dict[str, list[str]] = {}
    for name, labels, value in samples:
        full = f"strata_coordinator_{name}"
        if name not in families:
            kind = "counter" if name.endswith("_total") else "gauge"
            families[name] = [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} {kind}"]
        if value is not None:
            told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            families[name].append(f"{full}{{{told}}} {float(value)}" if told else f"{full} {float(value)}")
    return "\n".join([*(line for lines in families.values() for line in lines), ""])


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _response(status: HTTPStatus, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {_TEXT}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + body
