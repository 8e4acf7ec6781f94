"""The systems that train the goodput job: how each is started, and ended."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from benchmarks.scripts.goodput_job import RANKS

__all__ = ["SYSTEMS", "System", "SystemFailed"]

_HERE = Path(__file__).resolve().parent
_PATIENCE_S = 180.0  # on a busy machine a spare takes its time to import torch


class SystemFailed(Exception):
    """A system does not start, has ended, or trains no more: the text says which, and what it said."""


class System:
    """Processes that train the job, each with its log in `folder`."""

    script = ""
    ours = False

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.server = server
        self.parts: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """Waits until it is as ready for a kill as it gets."""

    @property
    def command(self) -> tuple[str, ...]:
        return str(_HERE / self.script), str(self.ledger)

    def run(self, *command: str, env: Mapping[str, str] | None = None) -> None:
        log = self.folder / f"{len(self.parts)}.log"
        with log.open("ab") as output:
            self.parts.append(
                subprocess.Popen(
                    command, stdout=output, stderr=output, env={**os.environ, **(env or {})}, start_new_session=True
                )
            )

    def check(self) -> None:
        """Raises when one of its processes has ended: none of them is killed here."""
        for number, part in enumerate(self.parts):
            if part.poll() is not None:
                raise SystemFailed(f"{self.script}: ended with code {part.returncode}: {self._said(number)}")

    def last_words(self) -> str:
        return "; ".join(filter(None, map(self._said, range(len(self.parts)))))

    def _said(self, number: int) -> str:
        """The last line that names an error, else the last line at all."""
        lines = (self.folder / f"{number}.log").read_text(errors="replace").split("\n")
        return ([line for line in lines if "Error" in line] or [line for line in lines if line] or [""])[-1].strip()

    def close(self) -> None:
        """Ends all of it: ranks may have sessions of their own, or be nobody's children."""
        family = [child for part in self.parts if part.poll() is None for child in _family(part.pid)]
        alone = psutil.process_iter(["cmdline"])
        family += [process for process in alone if str(self.ledger) in (process.info["cmdline"] or ())]
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for part in self.parts:
            part.wait()


def _family(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


class _Strata(System):
    """`strata up` and a task with warm spares."""

    ours = True
    spares = 0

    def start(self) -> None:
        ports = ("--grpc-port", "0", "--http-port", "0", "--telemetry-port", "0")
        self.run(self.server, "-m", "strata", "up", "--data-dir", str(self._data_dir), "--slots", str(RANKS), *ports)
        _until(lambda: (self._data_dir / "endpoints.json").exists(), self.check)
        from strata.client.channel import Channel
        from strata.client.tasks import TasksClient
        from strata.trust.access import Access
        from strata.types.tasks import TaskSpec

        spec = TaskSpec(
            name="goodput",
            worker_count=RANKS,
            entrypoint=(sys.executable, *self.command),
            max_restarts=1_000,
            spares=self.spares,
        )
        token = (self._data_dir / "token").read_text().strip()
        with Channel(self._address, access=Access(token=token)) as channel:
            TasksClient(channel).submit(spec)

    @property
    def _data_dir(self) -> Path:
        return self.folder / "strata"

    @property
    def _address(self) -> str:
        return str(json.loads((self._data_dir / "coordinator.json").read_text())["grpc"])

    def settle(self) -> None:
        """All spares are warm."""
        from strata.client.channel import Channel
        from strata.protocol.generated import control_pb2 as ct
        from strata.protocol.generated.control_pb2_grpc import ControlStub

        deadline = time.monotonic() + _PATIENCE_S
        with Channel(self._address, patience_s=_PATIENCE_S) as channel:
            for update in channel.stub(ControlStub).WatchState(ct.WatchRequest()):
                if sum(one.warm for one in update.vitals.spares) >= self.spares:
                    return
                if time.monotonic() > deadline:
                    raise SystemFailed(f"not within {_PATIENCE_S:g} s: {self.spares} warm spares")


class _InPlace(_Strata):
    script, spares = "goodput_in_place.py", 2


class _Gang(_Strata):
    script, spares = "goodput_gang.py", RANKS


class _Torchrun(System):
    """Restarted ranks find the addresses of dead ones in the store that torchrun shares with them (pytorch issue
    135712, seen here: no restart ever ends). With the variable that is advised there they do not."""

    script = "goodput_torchrun.py"

    def start(self) -> None:
        self.launch(RANKS, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})

    def launch(self, ranks: int, env: Mapping[str, str]) -> None:
        torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "1000")
        self.run(*torchrun, "--nproc-per-node", str(ranks), *self.command, env=env)


class _Torchft(_Torchrun):
    """A lighthouse, and a torchrun for each replica group, as torchft's own example starts them: its manager needs the
    store that torchrun shares."""

    script = "goodput_torchft.py"

    def start(self) -> None:
        port = _free_port()
        lighthouse = str(Path(sys.executable).with_name("torchft_lighthouse"))
        waits = ("--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000")
        self.run(lighthouse, *waits, "--bind", f"[::]:{port}")
        where = {"TORCHFT_LIGHTHOUSE": f"http://localhost:{port}", "NUM_REPLICA_GROUPS": str(RANKS)}
        for group in range(RANKS):
            self.launch(1, {**where, "REPLICA_GROUP_ID": str(group)})


class _Ray(System):
    """The trainer is a process of its own; Ray's parts are its children."""

    script = "goodput_ray.py"

    def start(self) -> None:
        self.run(sys.executable, *self.command)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _until(condition, check) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise SystemFailed(f"not within {_PATIENCE_S:g} s: strata up")
        time.sleep(0.02)


SYSTEMS = {"in_place": _InPlace, "gang": _Gang, "torchrun": _Torchrun, "torchft": _Torchft, "ray": _Ray}
