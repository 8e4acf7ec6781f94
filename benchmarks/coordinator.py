"""The coordinator under load, beside a bare asyncio TCP server that gets the same bytes: without HTTP/2, protobuf and a
journal. At barriers the same server on uvloop, which ours runs on, stands beside as well, without a disk and with one
commit a round, as ours has it; its client only counts.

Barriers are met on the road that `run.barrier` takes, by ranks that beat: the SDK's own ties, straight or by an agent's
relay. Most of a thousand are ready-made messages, the same bytes; a row beside them says what it is when none are.

Client and server share this machine's cores, so what a client costs is taken from the server: read ratios, and CPU per
operation. The original's claims (64 vCPU): 11,500 heartbeats/s, 48 ms for a barrier of 100, 1,200 registrations/s.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours
from benchmarks.measure import stopwatch

__all__ = ["BARRIERS", "BENCHMARK", "serve"]

BARRIERS = SCRIPTS / "barrier_load.py"

_ROOT = SCRIPTS.parent.parent
_LOAD = SCRIPTS / "coordinator_load.py"
_RANK_BYTES = 16  # of a release in the journal: a name
_BEHIND = "barrier of 1,000 ranks behind 125 agents"
_BEHIND_AGENTS = (
    "of 1.5 ms writing to 125 connections takes 0.8, making what they are told 0.25, hearing who came 0.15, "
    "the load's real host 0.1; in slow hours, which the floor does not have, half as much again (ADR 48)."
)
_BEHIND_TAIL = (
    "what stood in the way before was one table of 200,000 requests, which took 10 ms whenever it made room, and a "
    "tick that looked at every rank of hosts that were away; what is left is a round's own work and a third thread."
)
_STRAIGHT = "what is done for each rank: its message is known by its bytes, met and answered (ADR 45)."


class _Server:
    """A `strata coordinator` over a folder of its own; leases are long, because a busy machine kills nobody here."""

    def __init__(self, **environment: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="strata-bench-"))
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._port = "0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def token(self) -> str:
        return (self.folder / "token").read_text().strip()

    def start(self) -> None:
        """Returns when the first call is answered."""
        env = os.environ | {"HEARTBEAT_TIMEOUT": "600", "STRATA_LOG": "error", "PYTHONPATH": str(_ROOT)}
        command = [sys.executable, "-m", "strata", "coordinator", "--data-dir", str(self.folder), "--grpc-port"]
        self._process = subprocess.Popen(
            [*command, self._port], env=env | self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        endpoint = self.folder / "coordinator.json"
        while not endpoint.exists() or json.loads(endpoint.read_text())["pid"] != self._process.pid:
            if self._process.poll() is not None:
                raise RuntimeError(f"the coordinator ended with {self._process.returncode}")
            time.sleep(0.005)
        self.address: str = json.loads(endpoint.read_text())["grpc"]
        self._port = self.address.rpartition(":")[2]  # where it was, it is found again
        with grpc.insecure_channel(self.address) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check  # type: ignore[attr-defined]  # its types know no methods
            check(health_pb2.HealthCheckRequest(), timeout=30, wait_for_ready=True)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, mode: str, number: int, path: Path = _LOAD) -> Script:
        return Script(path, args=(mode, self.address, str(self.pid), self.token, str(number)))


def serve(stack: ExitStack, **environment: str) -> _Server:
    server = _Server(**environment)
    stack.callback(server.close)
    server.start()
    return server


def _floor_load(
    stack: ExitStack, mode: str, *numbers: int, participants: int = 0, loop: str = "asyncio", disk: int = 0
) -> Script:
    """The same load on the bare TCP server; participants 0 = it answers every message at once. `disk` are the bytes
    that it commits before it releases a barrier."""
    command = [sys.executable, str(SCRIPTS / "tcp_floor.py"), str(participants), loop, str(disk)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    path = BARRIERS if participants else _LOAD
    return Script(path, args=(mode, f"127.0.0.1:{port}", str(process.pid), "", *map(str, numbers)))


def _beats(stack: ExitStack) -> tuple[Variant, ...]:
    return (
        ours(serve(stack).load("beats", 64)),
        floor("bare TCP", _floor_load(stack, "beats", 64)),
    )


def _barrier(number: int) -> Callable[[ExitStack], tuple[Variant, ...]]:
    def build(stack: ExitStack) -> tuple[Variant, ...]:
        server = serve(stack)
        if number <= 100:
            return (ours(server.load("barrier", number, BARRIERS)), *_bare(stack, number, 1))
        return (
            ours(server.load("barrier", number, BARRIERS), label=f"Strata, 100 real ties, {number - 100} ready-made"),
            ours(server.load("all_ranks", number, BARRIERS), name="all", label=f"Strata, {number:,} ties on this core"),
            *_bare(stack, number, 1),
        )

    return build


def _agents(number: int) -> Callable[[ExitStack], tuple[Variant, ...]]:
    """On two cores 125 hosts would take turns at what each of them does at once, so only one of them is real; beside it
    stands what becomes of it when all are."""

    def build(stack: ExitStack) -> tuple[Variant, ...]:
        server = serve(stack)
        return (
            ours(server.load("agents", number, BARRIERS), label="Strata, one real host, 124 ready-made"),
            ours(server.load("all_agents", number, BARRIERS), name="all", label="Strata, 125 hosts on these cores"),
            *_bare(stack, number // 8, 8),
        )

    return build


def _killed_agent(stack: ExitStack) -> tuple[Variant, ...]:
    return (ours(serve(stack).load("killed_agent", 9, BARRIERS)),)


def _bare(stack: ExitStack, number: int, ranks: int) -> tuple[Variant, ...]:
    """So many connections, each with the arrivals of so many ranks in one message."""
    return (
        floor("bare TCP, asyncio", _floor_load(stack, "bare", number, ranks, participants=number)),
        floor(
            "bare TCP, uvloop",
            _floor_load(stack, "bare", number, ranks, participants=number, loop="uvloop"),
            name="uvloop",
        ),
        floor(
            "bare TCP, uvloop, a commit to the disk a round",
            _floor_load(
                stack, "bare", number, ranks, participants=number, loop="uvloop", disk=number * ranks * _RANK_BYTES
            ),
            name="disk",
        ),
    )


def _register(stack: ExitStack) -> tuple[Variant, ...]:
    return (
        ours(serve(stack).load("register", 3_000)),
        floor("bare TCP, nothing durable", _floor_load(stack, "register", 3_000)),
    )


def _idle(stack: ExitStack) -> tuple[Variant, ...]:
    return (ours(serve(stack).load("idle", 1_000)), floor("bare TCP", _floor_load(stack, "idle", 1_000)))


def _restart(stack: ExitStack) -> tuple[Variant, ...]:
    """kill -9, start again, first answer; with 1,000 workers in the journal."""
    server = serve(stack)
    script = server.load("register", 1_000)
    env = os.environ | {"PYTHONPATH": str(_ROOT)}
    subprocess.run([sys.executable, str(script.path), *script.args], env=env, check=True, stdout=subprocess.DEVNULL)

    def again() -> dict[str, float]:
        server.kill()
        with stopwatch() as watch:
            server.start()
        return {"wall_s": watch.wall_s}

    imports = Script(SCRIPTS / "import_modules.py", args=("grpc", "uvloop", "numpy", "pydantic_settings"))
    return ours(again), floor("start Python, import grpc, uvloop, numpy, pydantic", imports)


BENCHMARK = Benchmark(
    name="coordinator",
    packages=("grpcio", "protobuf", "uvloop"),
    cases=(
        Case(
            name="heartbeats on 64 streams, one in flight each",
            variants=_beats,
            targets=(Target(metric="messages_per_s", versus=None, at_least=12_000),),
            repeats=5,
        ),
        Case(
            name="barrier of 100 ranks, each with a tie of its own, all arriving at once, 500 rounds",
            variants=_barrier(100),
            targets=(
                Target(metric="p99_s", versus=None, at_most=0.010, work="barrier of 100 ranks, p99", profile=_STRAIGHT),
                Target(
                    metric="p50_s", versus="floor", at_most=2.0, work="barrier of 100 ranks, p50", profile=_STRAIGHT
                ),
            ),
            repeats=3,
        ),
        Case(
            name="barrier of 1,000 ranks behind 125 agents, all arriving at once, 500 rounds",
            variants=_agents(1_000),
            targets=(
                Target(metric="p99_s", versus=None, at_most=0.015, work=f"{_BEHIND}, p99", profile=_BEHIND_TAIL),
                Target(metric="p50_s", versus="floor", at_most=2.0, work=f"{_BEHIND}, p50", profile=_BEHIND_AGENTS),
            ),
            repeats=3,
        ),
        Case(
            name="barrier of 1,000 ranks, each with a tie of its own, all arriving at once, 500 rounds",
            variants=_barrier(1_000),
            targets=(
                Target(
                    metric="p99_s", versus=None, at_most=0.060, work="barrier of 1,000 ranks, p99", profile=_STRAIGHT
                ),
                Target(
                    metric="p50_s", versus="floor", at_most=2.0, work="barrier of 1,000 ranks, p50", profile=_STRAIGHT
                ),
            ),
            repeats=3,
        ),
        Case(
            name="barrier of 9 ranks, of which 8 wait behind an agent that is killed when the last arrives, 5 kills",
            variants=_killed_agent,
            targets=(Target(metric="max_s", versus=None, at_most=1.0, work="a killed agent delays a barrier by"),),
            repeats=3,
            warmups=0,
        ),
        Case(
            name="3,000 durable registrations, 64 at a time",
            variants=_register,
            targets=(Target(metric="registrations_per_s", versus=None, at_least=1_500),),
            repeats=5,
        ),
        Case(
            name="1,000 idle workers, one heartbeat a second each on a stream of its own",
            variants=_idle,
            targets=(Target(metric="cores", versus=None, at_most=0.25),),
            repeats=3,
            warmups=0,
        ),
        Case(
            name="kill -9 and serve again with 1,000 workers known",
            variants=_restart,
            targets=(Target(metric="wall_s", versus=None, at_most=2.0),),
            repeats=5,
        ),
    ),
)
