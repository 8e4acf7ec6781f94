"""A small training job as real processes: forks its ranks, resumes, saves every step, and dies where STRATA_FAULT says.

Run as a script: `training.py FOLDER --world 4 --steps 3 --generation 1 [--fault point:kill@n --fault-rank 2]`. It
prints a JSON line per rank: where it began, where it ended, and the error that stopped it.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ELEMENTS = 1_200_000  # 9.6 MB: two chunks per rank


def weights(step: int, rank: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """What rank's weights are after `step`: anybody can tell whether a checkpoint holds what it should."""
    return np.arange(ELEMENTS, dtype=np.float64) * step + rank


def train(rank: int, options: argparse.Namespace) -> dict[str, Any]:
    from strata.checkpoint import CheckpointManager, CommitCoordinator, StoreCommit
    from strata.errors import StrataError
    from strata.storage.uri import open_store

    store = open_store(options.folder)
    ranks = tuple(range(options.world))
    deadline_s = options.deadline
    coordinator: CommitCoordinator | None = None
    if options.coordinator:
        coordinator = _joined(rank, options)
    elif options.world > 1:
        coordinator = StoreCommit(store, rank=rank, ranks=ranks, generation=options.generation, deadline_s=deadline_s)
    report: dict[str, Any] = {"rank": rank}
    try:
        with CheckpointManager(
            options.folder, keep_count=options.keep, coordinator=coordinator, rank=rank, world_size=options.world
        ) as manager:
            recovery = manager.recover(_agreement(rank, options) if options.world > 1 else None)
            begin = 0 if recovery is None else recovery.info.step
            report["began"] = begin
            if recovery is not None:
                assert np.array_equal(recovery.state["w"], weights(begin, rank)), "resumed from wrong weights"
                assert recovery.data_state == {"cursor": begin * 10}, recovery.data_state
            for step in range(begin + 1, options.steps + 1):
                live = weights(step, rank)
                state = {"w": live, "step": step}
                until = "stage" if options.sliced else None
                handle = manager.save_async(state, step=step, data_state={"cursor": step * 10}, until=until)
                handle.stage()
                live.fill(np.nan)  # a trainer that goes on at once
                handle.result()
                report["ended"] = step
    except StrataError as error:
        report["error"] = f"{type(error).__name__}: {error}"
    return report


def _joined(rank: int, options: argparse.Namespace) -> Any:
    """A worker of a real coordinator, which beats until it dies; nobody else tells of its death."""
    from strata.client.channel import Channel
    from strata.client.plain_rank import PlainRank
    from strata.client.tie_thread import TieThread
    from strata.client.workers import WorkersClient
    from strata.types.workers import WorkerSpec
    from strata.worker.commit import CoordinatorCommit

    channel = Channel(options.coordinator)
    workers = WorkersClient(channel)
    incarnation = f"g{options.generation}-{os.getpid()}"
    task = Path(options.folder).parent.name  # a group of its own: who takes over places of another run is fenced
    spec = WorkerSpec(worker_id=f"{task}-{rank}", task_id=task, incarnation=incarnation, rank=rank)
    member = workers.register(spec)
    TieThread(PlainRank(member), (options.coordinator,), beat_s=0.2, patience_s=60)
    return CoordinatorCommit(channel, lambda: member, options.folder, options.deadline)


def _agreement(rank: int, options: argparse.Namespace) -> Callable[[int], list[int]]:
    """An all-gather through files, enough for ranks of one host."""
    folder = Path(options.scratch)
    rounds = iter(range(1000))

    def agree(step: int) -> list[int]:
        number = next(rounds)
        name = f"{options.generation}-{number}-"
        own = folder / f"{name}{rank}"
        own.with_suffix(".tmp").write_text(str(step))
        own.with_suffix(".tmp").rename(own)
        others = [folder / f"{name}{other}" for other in range(options.world)]
        until = time.monotonic() + 60
        while not all(path.exists() for path in others):
            assert time.monotonic() < until, "a rank never came"
            time.sleep(0.005)
        return [int(path.read_text()) for path in others]

    return agree


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--scratch", default="")
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--generation", type=int, default=1)
    parser.add_argument("--keep", type=int, default=3)
    parser.add_argument("--deadline", type=float, default=30.0)
    parser.add_argument("--coordinator", default="", help="its address; without it the ranks meet in the store")
    parser.add_argument("--alone", action="store_true", help="no agent ends the siblings of a dead rank")
    parser.add_argument("--sliced", action="store_true", help="save_async copies behind the trainer")
    parser.add_argument("--fault", default="")
    parser.add_argument("--fault-rank", type=int, default=0)
    options = parser.parse_args()
    children: dict[int, int] = {}
    for rank in range(options.world):
        child = os.fork()  # before any thread exists; each child imports strata for itself, with its own fault
        if child == 0:
            if options.fault and rank == options.fault_rank:
                os.environ["STRATA_FAULT"] = options.fault
            report = train(rank, options)
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()
            os._exit(0)
        children[child] = rank
    killed = False
    while children:
        child, status = os.wait()
        children.pop(child)
        if os.WIFSIGNALED(status):
            killed = True
            if not options.alone:
                for other in children:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(other, signal.SIGKILL)
        elif status:
            return 1
    return 9 if killed else 0


if __name__ == "__main__":
    sys.exit(main())
