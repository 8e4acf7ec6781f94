"""Metrics on their way out of a training loop. `log` only notes what it was given; a thread of its own turns notes into
batches, so the loop never waits, never fails and pays about a microsecond.
"""

import json
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strata.client.channel import known_token
from strata.client.telemetry import Outbox, OutboxConfig, new_batch, telemetry_address
from strata.protocol.generated import telemetry_pb2 as tm
from strata.types.metrics import MAX_STEP, NO_DEVICE
from strata.types.names import check_metric
from strata.worker.environment import Place

__all__ = ["Reporter", "offline_folder"]

_log = logging.getLogger(__name__)

_INTERVAL_S = 0.25
_MAX_NOTES = 1_000_000
_MAX_BATCH_POINTS = 50_000

_Note = tuple[int, int, Mapping[str, Any]]  # step, time in ns, values


def offline_folder(data_dir: Path, run_id: str) -> Path:
    """Where a run without a server keeps its batches until `strata sync`."""
    return data_dir / "offline" / run_id


class Reporter:
    """The metrics of one process. `dropped` counts points that found no room; the next batch reports them."""

    def __init__(self, place: Place, run_id: str) -> None:
        self._place = place
        self._run_id = run_id
        self._host = socket.gethostname()
        self._notes: deque[_Note] = deque()
        self._dropped = 0
        self._extras = new_batch()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._bad_names: set[str] = set()
        folder = offline_folder(place.data_dir, run_id) / f"rank-{place.rank}"
        token = known_token(place.settings)
        self.outbox = Outbox(_finder(place), OutboxConfig(folder=folder, token=token))
        self._thread = threading.Thread(target=self._run, name="strata-reporter", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        return self._dropped + self.outbox.dropped

    def log(self, values: Mapping[str, Any], step: int) -> None:
        """Called by the training thread. Values are read a moment later: do not change an array in place that you
        logged; numbers are always safe."""
        if len(self._notes) >= _MAX_NOTES:
            self._dropped += len(values)
            return
        self._notes.append((step, time.time_ns(), dict(values)))

    def miss(self) -> None:
        """Something was logged that is no metric at all."""
        self._dropped += 1

    def describe(self, *, project: str, name: str, config: Mapping[str, Any], status: str) -> None:
        """Tells what this run is, or how it ended."""
        with self._lock:
            self._extras.runs.add(
                run_id=self._run_id,
                project=project[:255],
                name=name[:255],
                task_id=self._place.task_id,
                config_json=json.dumps(dict(config), default=str)[: 200 * 1024],
                started_at_ms=time.time_ns() // 1_000_000 if status == "running" else 0,
                status=status,
                updated_at_ms=time.time_ns() // 1_000_000,
            )

    def add_line(self, level: str, message: str) -> None:
        """A line of the script's own logger."""
        with self._lock:
            self._extras.logs.add(
                event_time_ms=time.time_ns() // 1_000_000,
                level=level,
                message=message[: 16 * 1024],
                source="worker",
                task_id=self._place.task_id,
                worker_id=self._place.worker_id,
                host=self._host,
                rank=self._place.rank,
                attempt=self._place.attempt,
                stream="log",
            )

    def add_sample(self, sample: tm.Sample) -> None:
        """A small look at the data that is read now, for the preview."""
        with self._lock:
            self._extras.samples.append(sample)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Delivers what there is, or leaves it in the folder. Says whether all was delivered."""
        self._closing.set()
        self._thread.join()
        return self.outbox.close(timeout_s)

    # --- the reporting thread

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._notes:
            self.outbox.put(self._batch())
        with self._lock:
            extras, self._extras = self._extras, new_batch()
        if extras.runs or extras.logs or extras.samples:
            self.outbox.put(extras)

    def _batch(self) -> tm.Batch:
        batch = new_batch()
        batch.dropped_points, self._dropped = self._dropped, 0
        known: dict[str, int] = {}
        series: list[int] = []
        steps: list[int] = []
        times: list[int] = []
        values: list[float] = []
        while self._notes and len(values) < _MAX_BATCH_POINTS:
            step, now_ns, noted = self._notes.popleft()
            if not 0 <= step <= MAX_STEP:
                batch.dropped_points += len(noted)
                continue
            for name, value in noted.items():
                index = known.get(name)
                if index is None:
                    if not self._valid(name):
                        batch.dropped_points += 1
                        continue
                    index = known[name] = len(known)
                try:
                    values.append(float(value))
                except (TypeError, ValueError):
                    batch.dropped_points += 1
                    self._complain(name, f"its value {str(value)[:60]!r} is not a number")
                    continue
                series.append(index)
                steps.append(step)
                times.append(now_ns // 1_000_000)
        rank, run_id, host = self._place.rank, self._run_id, self._host
        for name, index in known.items():
            batch.series.add(index=index, run_id=run_id, metric=name, host=host, rank=rank, device=NO_DEVICE)
        batch.points.series.extend(series)
        batch.points.step.extend(steps)
        batch.points.event_time_ms.extend(times)
        batch.points.value.extend(values)
        return batch

    def _valid(self, name: str) -> bool:
        if name in self._bad_names:
            return False
        try:
            check_metric(name)
        except Exception as error:  # also a name that is no text at all; a metric must never hurt the training
            self._complain(name, str(error))
            return False
        return True

    def _complain(self, name: str, why: str) -> None:
        """Once per name: a training loop repeats itself."""
        if name not in self._bad_names:
            self._bad_names.add(name)
            _log.warning("metric %s is not reported: %s", str(name)[:80], why)


def _finder(place: Place) -> Callable[[], str | None]:
    def find() -> str | None:
        return place.telemetry or telemetry_address(place.settings)

    return find
