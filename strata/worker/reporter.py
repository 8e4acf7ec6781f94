"""Metrics on their way out of a training loop. `log` only notes what it was given; a thread of its own turns notes into
batches, so the loop never waits, never fails and pays about a microsecond. What is refused is counted and said.
"""

import json
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from multiprocessing import util
from typing import Any

import psutil

from strata.client.batches import new_batch
from strata.client.endpoints import Endpoints, find_observatory, telemetry_address
from strata.client.spill import offline_folder
from strata.client.telemetry import Outbox, OutboxConfig
from strata.errors import InvalidArgument
from strata.protocol.generated import telemetry_pb2 as tm
from strata.trust.access import OPEN, find_access
from strata.types.metrics import NO_DEVICE, attempt_tags
from strata.types.names import check_metric
from strata.worker.description import Description
from strata.worker.environment import Place
from strata.worker.media.base import Entry, holds_media, media_of
from strata.worker.media.queue import MediaQueue
from strata.worker.points import MAX_TEXT, Text, Unfit, flat, number_of, shown, text_of, value_json

__all__ = ["Reporter"]

_log = logging.getLogger(__name__)

_INTERVAL_S = 0.25
_ALIVE_S = 5.0
_MAX_NOTES = 1_000_000
_MAX_BATCH_POINTS = 50_000
_MAX_BATCH_NAMES = 1_000_000  # characters: a batch of many long names must stay a message of a few megabytes
_MAX_NAME = 256
_MAX_TOLD = 100
_MAX_CONFIG = 200 * 1024
_NUMBERS = frozenset({float, int, bool, str})  # what nearly all values are, and no medium
_MEDIA_TIMEOUT_S = 30.0  # of one message, which may have 16 MiB

_Note = tuple[int, int, Mapping[Any, Any]]  # step, time in ns, values


class Reporter:
    """The metrics of one process. One that was forked has a reporter of its own (`forked`), which leaves everything in
    the folder for its parent to send: gRPC does not survive a fork."""

    def __init__(self, place: Place, run_id: str, *, forked: bool = False) -> None:
        self._place = place
        self._run_id = run_id
        self._host = socket.gethostname()
        self._tags = self._tags_in(place.world_number)
        self.folder = offline_folder(place.data_dir, run_id) / f"rank-{place.rank}"
        self.observatory = None if forked else _find(place)
        access = self.observatory.access if self.observatory else OPEN
        find = partial(_telemetry, place, forked)
        self.outbox = Outbox(find, OutboxConfig(folder=self.folder, access=access))
        aside = OutboxConfig(
            folder=self.folder.with_name(f"{self.folder.name}-media"),
            access=access,
            memory_batches=2,
            send_timeout_s=_MEDIA_TIMEOUT_S,
        )
        self.media = MediaQueue(lambda: Outbox(find, aside), self._media_point, self.refuse)
        self._notes: deque[_Note] = deque()
        self._dropped = 0
        self._reported = 0
        self._told: set[str] = set()
        self._extras = new_batch()
        self._lock = threading.Lock()
        self._draining = threading.Lock()
        self._closing = threading.Event()
        self._spoke_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="strata-reporter", daemon=True)
        self._thread.start()
        if forked:
            util.Finalize(self, self.close, exitpriority=10)  # a child of multiprocessing ends without atexit

    @property
    def dropped(self) -> int:
        """Points and media that were lost so far: refused, or without room."""
        return self._dropped + self.outbox.dropped + self.media.dropped

    def log(self, values: Mapping[Any, Any], step: int) -> None:
        """Called by the training thread. Values are read a moment later: do not change an array in place that you
        logged; numbers are always safe."""
        if self._closing.is_set():
            self.refuse("run.log", "the run is finished", len(values))
        elif len(self._notes) >= _MAX_NOTES:
            self.refuse("run.log", f"{_MAX_NOTES} calls wait already, more than can be sent", len(values))
        else:
            now_ns = time.time_ns()
            if not _NUMBERS.issuperset(map(type, values.values())) and holds_media(values):
                values = self._without_media(values, step, now_ns)
            self._notes.append((step, now_ns, dict(values)))

    def _without_media(self, values: Mapping[Any, Any], step: int, now_ns: int) -> dict[Any, Any]:
        """What is left when media are on their own way."""
        rest = {}
        for name, value in flat(values):
            media = media_of(value)
            if media is None:
                rest[name] = value
            else:
                self.media.put(name, media, step, now_ns)
        return rest

    def refuse(self, name: str, why: str, count: int = 1) -> None:
        """Counts what is not reported, and says why: once per name, for a training loop repeats itself."""
        with self._lock:
            self._dropped += count
            if name in self._told or len(self._told) > _MAX_TOLD:
                return
            self._told.add(name)
            many = len(self._told) > _MAX_TOLD
        _log.warning("%s is not reported: %s", name, why)
        if many:
            _log.warning("more than %d names are not reported; further ones are only counted", _MAX_TOLD)

    def describe(self, said: Description, status: str = "", reason: str = "") -> None:
        """Tells what this run is, or how it ended; without a status it goes on as it was."""
        now_ms = time.time_ns() // 1_000_000
        told = tm.RunInfo(
            run_id=self._run_id,
            project=_printable(said.project)[:255],
            name=_printable(said.name)[:255],
            tags=said.tags,
            group=said.group,
            job_type=said.job_type,
            notes=said.notes,
            task_id=self._place.task_id,
            config_json=_config_json(said.config),
            started_at_ms=now_ms if status == "running" else 0,
            status=status,
            reason=_printable(reason)[:1000],
            host=self._host,
            pid=os.getpid(),
            process_started_ms=round(psutil.Process().create_time() * 1000),
            updated_at_ms=now_ms,
        )
        if status == "running":  # before its first points: of a run that has only those nobody can tell that it died
            self._put(tm.Batch(batch_id=new_batch().batch_id, runs=[told]))
            return
        with self._lock:
            self._extras.runs.append(told)

    def summarize(self, name: str, value: Any) -> None:
        """Tells a value of the run as a whole; None takes it back."""
        try:
            told = "" if value is None else value_json(value)
            if not 0 < len(name) <= _MAX_NAME or len(told) > MAX_TEXT:
                raise Unfit(f"a name has up to {_MAX_NAME} characters, a value up to {MAX_TEXT}")
        except Unfit as error:
            self.refuse(f"summary {shown(name)}", str(error))
            return
        with self._lock:
            self._extras.summaries.add(
                run_id=self._run_id,
                name=_printable(name),
                value_json=told,
                event_time_ms=time.time_ns() // 1_000_000,
            )

    def add_line(self, level: str, message: str) -> None:
        """A line of the script's own logger."""
        with self._lock:
            self._extras.logs.add(
                event_time_ms=time.time_ns() // 1_000_000,
                level=level,
                message=_printable(message)[: 16 * 1024],
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

    def begin_world(self, number: int) -> None:
        """What is logged from now on was measured in this world of the attempt: steps that it does again supersede the
        first ones. Called by the training thread."""
        tags = self._tags_in(number)
        if tags != self._tags:
            self._drain()  # what was logged before is of the world before
            self._tags = tags

    def _tags_in(self, world: int) -> str:
        return attempt_tags(self._place.attempt if self._place.task_id else 0, world)

    def secure(self) -> bool:
        """Makes everything that was logged before this call safe from a kill -9: sent, or in the folder, from which
        the agent, the next attempt or `strata sync` sends it."""
        self._drain()
        return self.outbox.secure() & self.media.secure()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Delivers what there is, or leaves it in the folder. Says whether all was delivered."""
        ends_at = time.monotonic() + timeout_s
        self._closing.set()
        self._thread.join()
        delivered = self.outbox.close(timeout_s)
        return self.media.close(max(0.0, ends_at - time.monotonic())) and delivered

    # --- the reporting thread

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL_S):
            self._drain()
            if time.monotonic() - self._spoke_at > _ALIVE_S and self.outbox.at_rest:
                self._put(tm.Batch(batch_id=new_batch().batch_id, alive=[self._run_id]))
        self._drain()

    def _drain(self) -> None:
        with self._draining:
            while self._notes:
                self._put(self._batch())
            with self._lock:
                extras, self._extras = self._extras, new_batch()
            extras.dropped_points = self._untold()
            if extras.runs or extras.logs or extras.samples or extras.summaries or extras.dropped_points:
                self._put(extras)

    def _put(self, batch: tm.Batch) -> None:
        self._spoke_at = time.monotonic()
        self.outbox.put(batch)

    def _untold(self) -> int:
        with self._lock:
            count, self._reported = self._dropped - self._reported, self._dropped
            return count

    def _batch(self) -> tm.Batch:
        columns = _Columns()
        while self._notes and columns.room > 0:
            step, now_ns, noted = self._notes.popleft()
            try:
                points = list(flat(noted))
            except Exception as error:  # somebody's own kind of dict
                self.refuse("run.log", f"its values cannot be read: {shown(error)}", len(noted))
                continue
            room = columns.room
            if len(points) > room:
                self._notes.appendleft((step, now_ns, dict(points[room:])))
                del points[room:]
            time_ms = now_ns // 1_000_000
            for name, value in points:
                if type(value) is float and name in columns.known:  # nearly all of them
                    columns.add(name, value, step, time_ms)
                else:
                    self._add(columns, name, value, step, time_ms)
        batch = new_batch()
        batch.dropped_points = self._untold()
        batch.texts.extend(columns.texts)
        head = {"run_id": self._run_id, "host": self._host, "rank": self._place.rank, "tags_json": self._tags}
        for name, index in columns.known.items():
            batch.series.add(index=index, metric=name, device=NO_DEVICE, **head)
        batch.points.series.extend(columns.series)
        batch.points.step.extend(columns.steps)
        batch.points.event_time_ms.extend(columns.times)
        batch.points.value.extend(columns.values)
        return batch

    def _add(self, columns: "_Columns", name: Any, value: Any, step: int, time_ms: int) -> None:
        try:
            if name not in columns.known:
                check_metric(name)
            try:
                columns.add(name, number_of(value), step, time_ms)
            except Unfit:
                text = text_of(value)
                if text is None:
                    raise
                if len(text.text) > MAX_TEXT:
                    cut = f"it has {len(text.text)} characters, {MAX_TEXT} are kept"
                    self.refuse(f"the rest of {shown(name)}", cut)
                columns.texts.append(self._text_point(name, text, step, time_ms))
                columns.letters += len(text.text)
        except Unfit as error:
            self.refuse(f"metric {shown(name)}", f"its value {error}")
        except InvalidArgument as error:  # a name that breaks the rules
            self.refuse(f"metric {shown(name)}", f"that is no metric name. {error.hint}")
        except Exception as error:
            self.refuse(f"metric {shown(name)}", str(error))

    def _text_point(self, name: str, text: Text | Entry, step: int, time_ms: int) -> tm.TextPoint:
        return tm.TextPoint(
            run_id=self._run_id,
            metric=name,
            host=self._host,
            rank=self._place.rank,
            attempt=self._place.attempt if self._place.task_id else 0,
            step=step,
            event_time_ms=time_ms,
            kind=text.kind,
            text=_printable(text.text[:MAX_TEXT]),
        )

    def _media_point(self, name: str, entry: Entry, step: int, time_ms: int) -> tm.TextPoint:
        point = self._text_point(name, entry, step, time_ms)
        for file, content in entry.files.items():
            point.files.add(name=file, content=content)
        return point


class _Columns:
    """The points of one batch while it is filled."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.series: list[int] = []
        self.steps: list[int] = []
        self.times: list[int] = []
        self.values: list[float] = []
        self.texts: list[tm.TextPoint] = []
        self.letters = 0

    @property
    def room(self) -> int:
        """How many points may be added, were each of a new and long name."""
        return min(_MAX_BATCH_POINTS - len(self.values), (_MAX_BATCH_NAMES - self.letters) // _MAX_NAME)

    def add(self, name: str, value: float, step: int, time_ms: int) -> None:
        index = self.known.get(name)
        if index is None:
            index = self.known[name] = len(self.known)
            self.letters += len(name)
        self.series.append(index)
        self.steps.append(step)
        self.times.append(time_ms)
        self.values.append(value)


def _printable(text: str) -> str:
    """Without lone surrogates, which no message can carry."""
    return str(text).encode("utf-8", "replace").decode()


def _config_json(config: Mapping[Any, Any]) -> str:
    """What JSON cannot say is said as text; what is too long is left out, and says so."""
    try:
        text = json.dumps({str(key): value for key, value in config.items()}, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:  # a value that contains itself, or a __str__ that fails
        return json.dumps({"config": f"cannot be shown: {shown(error)}"})
    if len(text) > _MAX_CONFIG:
        return json.dumps({"config": f"left out: {len(text)} characters, at most {_MAX_CONFIG} are kept"})
    return text


def _find(place: Place) -> Endpoints | None:
    """A rank of a task is told by its agent, or finds it in the data folder that they share."""
    address = place.telemetry or (telemetry_address(place.settings) if place.task_id else "")
    if address:
        return Endpoints(telemetry=address, access=find_access(place.settings))
    return None if place.task_id else find_observatory(place.settings)


def _telemetry(place: Place, forked: bool) -> str | None:
    found = None if forked else _find(place)
    return found.telemetry if found else None
