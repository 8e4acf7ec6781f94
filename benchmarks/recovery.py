"""How long a training job stands still when something of it is killed with -9: a rank, the agent, the coordinator,
everything. A real `strata up` on this machine runs examples/train_numpy.py on four ranks all the while.

`detected_s` runs from the kill (when everything is killed: from typing `strata up` again) until the loss is known: the
task is recovering, or the supervisor has seen its child die. `step_s` runs from there to the next step of any rank,
`total_s` is both. The ranks do not restart when the agent or the coordinator dies, so these two cases also say when the
part was back (`back_s`) and the longest pause between two steps until then (`stall_s`). With spares, as many
interpreters as ranks wait with their imports done when the rank is killed. The floor is what four new ranks must pay at
the least: four interpreters at once that import the same and load the newest checkpoint.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from benchmarks.harness import SCRIPTS, Benchmark, Case, Target, Variant, floor, ours
from benchmarks.measure import stopwatch
from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.client.tasks import TasksClient
from strata.cluster.members import Worker
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.trust.access import Access
from strata.types.tasks import TaskSpec

__all__ = ["BENCHMARK"]

_RANKS = 4
_LOOK_S = 0.005
_PATIENCE_S = 60.0
_CALM_STEPS = 30  # between two kills: at least one checkpoint
_CALM_S = 5.5  # and no crash loop, in which the supervisor would take its time


class _Job:
    """A cluster of its own and a task that would train for hours."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="strata-bench-"))
        self.notes = self.folder / "steps"
        self._up: subprocess.Popen[bytes] | None = None
        self.task_id = ""

    def start(self) -> None:
        """Returns at once; `wait_ready` does not."""
        command = [sys.executable, "-m", "strata", "up", "--data-dir", str(self.data_dir), "--slots", str(_RANKS)]
        command += ["--grpc-port", "0", "--http-port", "0", "--telemetry-port", "0"]
        with self.said.open("ab") as log:
            self._up = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"})

    @property
    def data_dir(self) -> Path:
        return self.folder / "strata"

    @property
    def said(self) -> Path:
        return self.folder / "up.log"

    def wait_ready(self) -> None:
        _until(lambda: (self.data_dir / "endpoints.json").exists(), "strata up")

    def submit(self, spares: int) -> None:
        worker = (str(SCRIPTS / "recovery_worker.py"), str(self.notes), "--data", str(self.folder / "data"))
        spec = TaskSpec(
            name="recovery",
            worker_count=_RANKS,
            entrypoint=(sys.executable, *worker, "--epochs", "1000000", "--pause", "0.005"),
            max_restarts=1_000_000,
            spares=spares,
        )
        token = (self.data_dir / "token").read_text().strip()
        with Channel(self.address, access=Access(token=token)) as channel:
            self.task_id = TasksClient(channel).submit(spec)
        self.train_on()

    @property
    def address(self) -> str:
        return str(json.loads((self.data_dir / "coordinator.json").read_text())["grpc"])

    @property
    def checkpoints(self) -> Path:
        return self.folder / "data" / "checkpoints" / self.task_id

    def attempt(self) -> int:
        with Channel(self.address, patience_s=30.0) as channel:
            return TasksClient(channel).get(self.task_id).attempt

    def workers(self) -> list[Worker]:
        with Channel(self.address, patience_s=30.0) as channel:
            return RecordsClient(channel).workers(self.task_id)

    def moment(self) -> ct.WatchRequest:
        """Now, as the coordinator counts: `recovering_at` looks at what happens from here on."""
        with Channel(self.address, patience_s=30.0) as channel:
            snapshot = next(channel.stub(ControlStub).WatchState(ct.WatchRequest(), timeout=30)).snapshot
        return ct.WatchRequest(from_seq=snapshot.seq, cluster_id=json.loads(snapshot.records_json)["cluster_id"])

    def steps(self) -> list[tuple[float, int]]:
        """(moment, attempt) of every step of every rank so far."""
        rows = (line.split() for line in self.notes.read_text().splitlines() if line.count(" ") == 2)
        return [(float(at), int(attempt)) for at, attempt, _ in rows]

    def train_on(self) -> None:
        """Waits until every rank has made enough steps for a checkpoint that is newer than the last kill."""
        self.notes.write_bytes(b"")  # the ranks append: this only keeps the file small while it is read
        _until(lambda: len(self.steps()) >= _RANKS * _CALM_STEPS, "steps")

    def wait_warm(self, spares: int) -> None:
        """Until so many interpreters wait for the next restart."""
        with Channel(self.address, patience_s=30.0) as channel:
            for update in channel.stub(ControlStub).WatchState(ct.WatchRequest(), timeout=_PATIENCE_S):
                if sum(one.warm for one in update.vitals.spares) >= spares:
                    return

    def wait_step(self, after: float, attempt: int = 0) -> float:
        """When the first step after the moment `after` was made, by an attempt later than `attempt`."""

        def found() -> float:
            return min((at for at, number in self.steps() if at > after and number > attempt), default=0.0)

        return float(_until(found, "a new step"))

    def longest_pause(self, since: float, until: float) -> float:
        moments = sorted(at for at, _ in self.steps() if since - 1.0 < at < until)
        return max((after - before for before, after in pairwise(moments)), default=0.0)

    def pid_of(self, part: str) -> int:
        try:
            return int(json.loads((self.data_dir / f"{part}.json").read_text())["pid"])
        except (OSError, ValueError):
            return 0

    def recovering_at(self, request: ct.WatchRequest) -> float:
        """When the coordinator noted that the task has to recover; it looks at what happened since `request`."""
        with Channel(self.address) as channel:
            for update in channel.stub(ControlStub).WatchState(request, timeout=10):
                for event in update.events.events:
                    if event.kind == "TaskChanged" and json.loads(event.body_json)["status"] == "recovering":
                        return float(event.at)
        raise AssertionError("the task never recovered")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, the ranks are stopped and use no CPU: dead ranks would not either."""
        ranks = [psutil.Process(int(one.metadata["pid"])) for one in self.workers() if one.alive]
        for rank in ranks:
            rank.suspend()
        try:
            yield
        finally:
            for rank in ranks:
                rank.resume()

    def kill_all(self) -> None:
        assert self._up is not None
        family = [*psutil.Process(self._up.pid).children(recursive=True), psutil.Process(self._up.pid)]
        for process in family:
            process.kill()
        self._up.wait()
        psutil.wait_procs(family, 10)
        (self.data_dir / "endpoints.json").unlink()

    def close(self) -> None:
        self.kill_all()
        for process in psutil.process_iter(["cmdline"]):  # ranks that outlived their agent are nobody's children
            if str(self.notes) in (process.info["cmdline"] or ()):
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + _PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_PATIENCE_S:g} s: {what}")
        time.sleep(_LOOK_S)
    return answer


def _kill_rank(job: _Job) -> dict[str, float]:
    seen, attempt = job.moment(), job.attempt()
    victim = next(one for one in job.workers() if one.rank == 1)
    killed = time.time()
    os.kill(int(victim.metadata["pid"]), signal.SIGKILL)
    stepped = job.wait_step(killed, attempt)
    return _figures(killed, job.recovering_at(seen), stepped)


def _kill_part(part: str) -> Callable[[_Job], dict[str, float]]:
    def kill(job: _Job) -> dict[str, float]:
        before, died = job.pid_of(part), len(re.findall(f"{part} died", job.said.read_text()))
        killed = time.time()
        os.kill(before, signal.SIGKILL)
        _until(lambda: len(re.findall(f"{part} died", job.said.read_text())) > died, f"word of the {part}'s death")
        detected = time.time()
        stepped = job.wait_step(detected)
        _until(lambda: job.pid_of(part) not in (0, before), f"a new {part}")
        back = time.time()
        job.wait_step(back)
        stall = job.longest_pause(killed, time.time())
        return _figures(killed, detected, stepped) | {"back_s": back - killed, "stall_s": stall}

    return kill


def _kill_everything(job: _Job) -> dict[str, float]:
    seen, attempt = job.moment(), job.attempt()
    job.kill_all()
    typed = time.time()
    job.start()
    stepped = job.wait_step(typed, attempt)
    job.wait_ready()
    return _figures(typed, job.recovering_at(seen), stepped)


def _figures(killed: float, detected: float, stepped: float) -> dict[str, float]:
    return {"detected_s": detected - killed, "step_s": max(0.0, stepped - detected), "total_s": stepped - killed}


def _variants(kill: Callable[[_Job], dict[str, float]], spares: int = 0) -> Callable[[ExitStack], tuple[Variant, ...]]:
    def build(stack: ExitStack) -> tuple[Variant, ...]:
        job = _Job()
        job.start()
        stack.callback(job.close)
        job.wait_ready()
        job.submit(spares)

        def measure() -> dict[str, float]:
            calm_at = time.monotonic() + _CALM_S
            _until(lambda: time.monotonic() > calm_at, "calm")
            job.train_on()
            job.wait_warm(spares)
            return kill(job)

        def bare() -> dict[str, float]:
            command = [sys.executable, str(SCRIPTS / "recovery_floor.py"), str(job.checkpoints), str(_RANKS)]
            with job.paused(), stopwatch() as watch:
                # In sessions of their own, as ranks are: where cores are busy the kernel shares them by session.
                for process in [subprocess.Popen(command, start_new_session=True) for _ in range(_RANKS)]:
                    if process.wait(60):
                        raise RuntimeError(f"the floor ended with {process.returncode}")
            return {"total_s": watch.wall_s}

        return ours(measure), floor("four interpreters load the checkpoint", bare)

    return build


BENCHMARK = Benchmark(
    name="recovery",
    packages=("grpcio", "protobuf", "uvloop", "numpy"),
    cases=(
        Case(
            name="kill -9 of one of four ranks",
            variants=_variants(_kill_rank),
            targets=(
                Target(metric="detected_s", versus=None, at_most=0.1),
                Target(metric="total_s", versus="floor", at_most=2.0),
            ),
            repeats=5,
        ),
        Case(
            name="kill -9 of one of four ranks, with four spares",
            variants=_variants(_kill_rank, spares=_RANKS),
            targets=(Target(metric="total_s", versus="floor", at_most=1.0),),
            repeats=5,
        ),
        Case(
            name="kill -9 of the agent",
            variants=_variants(_kill_part("agent")),
            targets=(
                Target(metric="detected_s", versus=None, at_most=0.1),
                Target(metric="stall_s", versus=None, at_most=0.5),
            ),
            repeats=5,
        ),
        Case(
            name="kill -9 of the coordinator",
            variants=_variants(_kill_part("coordinator")),
            targets=(
                Target(metric="detected_s", versus=None, at_most=0.1),
                Target(metric="stall_s", versus=None, at_most=2.0),
            ),
            repeats=5,
        ),
        Case(
            name="kill -9 of everything, then `strata up`",
            variants=_variants(_kill_everything),
            targets=(Target(metric="total_s", versus=None, at_most=10.0),),
            repeats=5,
        ),
    ),
)
