"""Several coordinators over one PostgreSQL, an agent beside them, and clients that write: killed, frozen and started
again at will, and judged by what the clients were told and what the journal holds.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.tasks import TasksClient, TaskView
from strata.errors import StrataError
from strata.trust.access import Access
from strata.types.datasets import DatasetSpec
from strata.types.tasks import TaskSpec, TaskStatus
from tests.support.ports import free_ports
from tests.support.postgres import Postgres
from tests.support.waiting import eventually

__all__ = ["Ack", "Ensemble", "Writer", "check_history"]

_TOKEN = "ensemble-token-0123456789"
# Every rank meets the others at each step, which is a commit, saves now and then, and notes what it did when.
_STEPS = """
import os, sys, time, numpy, strata
folder = sys.argv[1]
run = strata.init(name="steps")
with run.checkpoints() as checkpoints, open(f"{folder}/{run.rank}.steps", "a", buffering=1) as notes:
    notes.write(f"start {os.getpid()} {run.place.attempt}\\n")
    step, enough = 0, 0.0
    while not enough:
        enough = run.gang.sum(numpy.array([float(os.path.exists(f"{folder}/enough"))]))[0]
        strata.barrier("step", step=step)
        step += 1
        notes.write(f"{time.time():.4f} {step}\\n")
        run.progress(step)
        if step % 50 == 0 or enough:
            checkpoints.save({"step": numpy.array([step])}, step=step, epoch=0)
        time.sleep(0.05)
run.finish()
"""


@dataclass(frozen=True, slots=True)
class Ack:
    """A write that was acknowledged, with when it was asked for and when answered (monotonic)."""

    name: str
    asked_at: float
    answered_at: float


class Writer(threading.Thread):
    """Registers one dataset after the other, as any client would."""

    def __init__(self, number: int, addresses: str) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.acks: list[Ack] = []
        self.errors: list[str] = []
        self.enough = threading.Event()
        self._channel = Channel(addresses, access=Access(token=_TOKEN), patience_s=120.0)

    def run(self) -> None:
        datasets = DatasetsClient(self._channel)
        while not self.enough.wait(0.1):
            name, asked_at = f"{self.name}-{len(self.acks)}", time.monotonic()
            try:
                datasets.register(DatasetSpec(dataset_id=name, path="p", format="csv", total_samples=4, shard_size=2))
            except StrataError as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                return
            self.acks.append(Ack(name, asked_at, time.monotonic()))

    def close(self) -> None:
        self.enough.set()
        self.join(240)
        self._channel.close()


@dataclass(slots=True)
class _Process:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None


@dataclass(slots=True)
class Ensemble:
    """Use as a context manager: whatever was started is ended."""

    folder: Path
    postgres: Postgres
    url: str
    names: tuple[str, ...] = ("a", "b")
    token: str = _TOKEN
    _coordinators: dict[str, _Process] = field(default_factory=dict)
    _agent: subprocess.Popen[bytes] | None = None
    _channel: Channel | None = None

    def __enter__(self) -> Self:
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_all(self) -> None:
        for name, port in zip(self.names, free_ports(len(self.names)), strict=True):
            (self.folder / name).mkdir()
            self._coordinators[name] = _Process(self.folder / name, port)
            self.start(name)
        self._channel = Channel(self.addresses, access=Access(token=_TOKEN), patience_s=120.0)
        eventually("a leader", lambda: any(map(self.serves, self.names)))

    def __exit__(self, *_: object) -> None:
        (self.folder / "enough").touch()
        if self._channel is not None:
            self._channel.close()
        if self._agent is not None:
            self._agent.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._agent.wait(60)
            self._agent.kill()
            self._agent.wait()
        for name in self._coordinators:
            self.kill(name)

    @property
    def addresses(self) -> str:
        return ",".join(f"127.0.0.1:{one.port}" for one in self._coordinators.values())

    @property
    def channel(self) -> Channel:
        assert self._channel is not None
        return self._channel

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
        ours = {"STRATA_TOKEN": _TOKEN, "STRATA_COORDINATOR_ADDR": self.addresses}
        return {**inherited, **ours, "STRATA_CHECKPOINT_BUCKET": str(self.folder / "checkpoints")}

    # --- coordinators

    def start(self, name: str) -> None:
        """Does not wait: a standby says nothing."""
        one = self._coordinators[name]
        command = [sys.executable, "-m", "strata", "coordinator", "--data-dir", str(one.folder)]
        one.process = self._spawn([*command, "--grpc-port", str(one.port)], name, STRATA_JOURNAL=self.url)

    def _spawn(self, command: list[str], name: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env={**self.environment(), **environment}, cwd=self.folder
            )

    def kill(self, name: str) -> None:
        process = self._coordinators[name].process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def freeze(self, name: str) -> None:
        """It stands still, as one that nobody can reach: its connections stay, and nothing comes of them."""
        self._signal(name, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def _signal(self, name: str, number: int) -> None:
        process = self._coordinators[name].process
        assert process is not None
        process.send_signal(number)

    def leader(self) -> str | None:
        """Whom the database has as the holder of the lease, once it serves."""
        held = self.postgres.ask("SELECT holder FROM strata_lease", database=self.url.rpartition("/")[2])
        for name, one in self._coordinators.items():
            if one.process is not None and held[0][0].endswith(f"pid {one.process.pid}") and self.serves(name):
                return name
        return None

    def serves(self, name: str) -> bool:
        with Channel(
            f"127.0.0.1:{self._coordinators[name].port}", access=Access(token=_TOKEN), patience_s=0.0
        ) as channel:
            try:
                TasksClient(channel).list()
            except StrataError:
                return False
            return True

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._coordinators[name].port}"

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_standby(self, name: str, times: int) -> None:
        """Until it has said for the n-th time that another leads."""
        eventually(f"{name} standing by", lambda: self.log(name).count("standing by: ") >= times, within_s=30)

    # --- a task

    def start_agent(self) -> None:
        folder = self.folder / "host"
        folder.mkdir()
        self._agent = self._spawn(
            [sys.executable, "-m", "strata", "agent", "--data-dir", str(folder), "--slots", "4"], "agent"
        )
        eventually("the agent", lambda: (folder / "agent.json").exists())

    def submit(self) -> str:
        script = self.folder / "steps.py"
        script.write_text(_STEPS)
        spec = TaskSpec(name="steps", worker_count=4, entrypoint=(sys.executable, str(script), str(self.folder)))
        return TasksClient(self.channel).submit(spec)

    def task(self, task_id: str) -> TaskView:
        return TasksClient(self.channel).get(task_id)

    def notes(self, rank: int) -> list[tuple[float, int]]:
        """When each step was done, in Unix seconds."""
        lines = self._lines(rank)
        return [(float(at), int(step)) for at, step in (line.split() for line in lines if not line.startswith("start"))]

    def starts(self) -> list[tuple[int, ...]]:
        """Every start of a rank: its pid and attempt."""
        lines = [line for rank in range(4) for line in self._lines(rank)]
        return [tuple(map(int, line.split()[1:])) for line in lines if line.startswith("start")]

    def _lines(self, rank: int) -> list[str]:
        file = self.folder / f"{rank}.steps"
        return file.read_text().splitlines() if file.exists() else []

    def finish(self, task_id: str) -> TaskView:
        (self.folder / "enough").touch()

        def ended() -> TaskView | None:
            task = self.task(task_id)
            return task if task.status.final else None

        task = eventually("the end of the task", ended, within_s=60)
        assert task.status is TaskStatus.COMPLETED, task.reason
        return task

    # --- what the journal holds

    def records(self) -> list[tuple[int, str, bytes]]:
        query = "SELECT seq, kind, body FROM strata_records ORDER BY seq"
        return self.postgres.ask(query, database=self.url.rpartition("/")[2])

    @contextlib.contextmanager
    def writers(self, number: int) -> Iterator[list[Writer]]:
        writers = [Writer(one, self.addresses) for one in range(number)]
        for writer in writers:
            writer.start()
        try:
            yield writers
        finally:
            for writer in writers:
                writer.close()


def check_history(records: list[tuple[int, str, bytes]], writers: list[Writer], terms: int | None) -> None:
    """One order without a gap; what was acknowledged is in it, once, and in the order in which clients saw it."""
    assert [writer.errors for writer in writers] == [[]] * len(writers)
    assert [seq for seq, _, _ in records] == list(range(1, len(records) + 1))
    assert terms is None or sum(kind == "ClusterStarted" for _, kind, _ in records) == terms
    places: dict[str, list[int]] = {}
    for seq, kind, body in records:
        if kind == "DatasetRegistered":
            places.setdefault(json.loads(body)["dataset_id"], []).append(seq)
    acks = [ack for writer in writers for ack in writer.acks]
    assert acks
    assert [ack.name for ack in acks if len(places.get(ack.name, ())) != 1] == [], "lost, or twice"
    answered = sorted(acks, key=lambda ack: ack.answered_at)
    newest, place = 0, 0
    for ack in sorted(acks, key=lambda ack: ack.asked_at):
        while answered[place].answered_at < ack.asked_at:
            newest, place = max(newest, places[answered[place].name][0]), place + 1
        assert places[ack.name][0] > newest, f"{ack.name} came before one that was answered before it was asked"
