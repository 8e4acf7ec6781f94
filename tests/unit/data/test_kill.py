"""Real processes, real kill -9: the committed samples of an epoch are those of the run that nobody disturbed."""

import multiprocessing
import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from strata.data import Loader

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext
    from multiprocessing.process import BaseProcess

    from tests.support.datasets import Dataset

WORKERS = 4
KILLS = 20


def options(rank: int, world_size: int, cache: str) -> Any:
    return {"rank": rank, "world_size": world_size, "worker_count": WORKERS, "num_threads": 1, "cache_dir": Path(cache)}


def work(connection: Connection, glob: str, opened: dict[str, Any], state: dict[str, Any] | None) -> None:
    """A rank: hands in each batch with the state after it, and waits for the others before the next."""
    loader = Loader(glob, 6, **opened)
    if state is not None:
        loader.load_state_dict(state)
    for batch in loader:
        connection.send((batch["id"].tolist(), loader.state_dict()))
        connection.recv()
    connection.send(None)


class Job:
    """One generation of ranks; a broken pipe means that somebody died."""

    def __init__(self, context: "ForkServerContext", glob: str, cache: str, state: dict[str, Any] | None) -> None:
        self.world_size = random.randint(1, WORKERS)
        self.ranks: list[tuple[Connection, BaseProcess]] = []
        for rank in range(self.world_size):
            mine, theirs = context.Pipe()
            process = context.Process(target=work, args=(theirs, glob, options(rank, self.world_size, cache), state))
            process.start()
            theirs.close()
            self.ranks.append((mine, process))

    def step(self) -> tuple[list[int], dict[str, Any]] | None:
        answers = [connection.recv() for connection, _ in self.ranks]
        if None in answers:
            assert answers == [None] * self.world_size, "the ranks do not agree on the end of the epoch"
            return None
        assert len({str(state) for _, state in answers}) == 1, "the ranks do not agree on the position"
        for connection, _ in self.ranks:
            connection.send("go")
        return sorted(number for ids, _ in answers for number in ids), answers[0][1]

    def kill_one(self) -> None:
        """kill -9 of one rank, in whatever it is doing; the others notice at their next step."""
        _, process = random.choice(self.ranks)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises((EOFError, ConnectionError)):
            self.run_on()

    def run_on(self) -> None:
        while self.step() is not None:
            pass

    def end(self) -> None:
        for connection, process in self.ranks:
            process.kill()
            process.join()
            connection.close()


@pytest.mark.slow
def test_twenty_kills_change_nothing(parquet: "Dataset", cache_home: Path) -> None:
    """Takes seconds: about fifty processes are started."""
    parquet.add(2000)
    random.seed(4)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["strata.data", "pyarrow.parquet", "pytest"])
    alone = Loader(parquet.glob, 6, worker_count=WORKERS, num_threads=0)
    expected = [sorted(batch["id"].tolist()) for batch in alone]
    committed: list[list[int]] = []
    state: dict[str, Any] | None = None
    for generation in range(KILLS + 1):
        job = Job(context, parquet.glob, str(cache_home), state)
        pending: list[list[int]] = []
        steps = random.randint(0, 6) if generation < KILLS else len(expected) + 1
        for _ in range(steps):
            done = job.step()
            if done is None:
                break
            pending.append(done[0])
            if random.random() < 0.4 or generation == KILLS:
                committed, state, pending = committed + pending, done[1], []
        if generation < KILLS:
            job.kill_one()
        job.end()
    assert committed == expected
