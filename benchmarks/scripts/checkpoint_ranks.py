"""Many ranks, a process each, save one checkpoint after the other through a real coordinator:
`checkpoint_ranks.py ADDRESS FOLDER WORLD STEPS`. Reports how long a commit takes after the last rank's last byte, once
every process has imported and connected what a save needs: the first few saves are not counted."""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measure import report

Times = list[tuple[float, float]]
WARM_UP = 3


def save_all(rank: int, address: str, folder: str, world: int, steps: int) -> Times:
    """Per step: when this rank's bytes were durable, and when it knew that the checkpoint is committed."""
    import numpy as np

    from strata.checkpoint import CheckpointManager
    from strata.client.channel import Channel
    from strata.client.plain_rank import PlainRank
    from strata.client.tie_thread import TieThread
    from strata.client.workers import WorkersClient
    from strata.storage.local import LocalStore
    from strata.types.workers import WorkerSpec
    from strata.worker.commit import CoordinatorCommit

    class Marked(LocalStore):
        durable_at = 0.0

        def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
            super().put_stream(key, chunks, size=size)
            self.durable_at = time.perf_counter()

    times = []
    with Channel(address) as channel:
        workers = WorkersClient(channel)
        member = workers.register(WorkerSpec(worker_id=f"rank-{rank}", incarnation=f"p{os.getpid()}", rank=rank))
        tie = TieThread(PlainRank(member), (address,), beat_s=1.0, patience_s=60)
        tie.barrier(member, f"joined-{os.getppid()}", expected=world)
        store = Marked(folder)
        commit = CoordinatorCommit(channel, lambda: member, folder)
        with CheckpointManager(store, keep_count=3, coordinator=commit, rank=rank, world_size=world) as manager:
            for step in range(WARM_UP + steps):
                manager.save({"x": np.full(1 << 17, step)}, step=step)
                times.append((store.durable_at, time.perf_counter()))
                tie.barrier(member, f"saved-{os.getppid()}", step=step, expected=world)  # as ranks that train do
        tie.close()
        workers.deregister(member)  # the next round's ranks come as new members, not as a restart of these
    return times[WARM_UP:]


def main(address: str, folder: str, world: int, steps: int) -> None:
    work = Path(tempfile.mkdtemp(dir=folder))
    answers = work / "times"
    answers.mkdir()
    children = []
    for rank in range(world):
        child = os.fork()  # before gRPC and threads exist; each child imports for itself
        if child == 0:
            times = save_all(rank, address, str(work / "checkpoints"), world, steps)
            (answers / str(rank)).write_text(json.dumps(times), encoding="utf-8")
            os._exit(0)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    if failed:
        sys.exit(f"{len(failed)} of {world} ranks failed")
    ranks: list[Times] = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(answers.iterdir())]
    # The clock is the machine's, so the times of different processes can be compared.
    overheads = [max(end for _, end in step) - max(last for last, _ in step) for step in zip(*ranks, strict=True)]
    report(
        {
            "commit_p95_s": statistics.quantiles(overheads, n=20)[-1],
            "commit_p50_s": statistics.median(overheads),
        }
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
