"""Warm spares in a real cluster: learned from the first attempt, taken by the next, shown with their memory, and never
in the way when an agent or a spare is killed."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from strata.client.channel import Channel
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

# A rank reports a step now and then, until somebody asks it to go.
_SCRIPT = """
import os, sys, time
import numpy as np
import own_module
import strata

run = strata.init()
print("from a spare" if "becoming.py" in open("/proc/self/cmdline").read() else "plain", own_module.NAME, flush=True)
step = 0
while not os.path.exists(sys.argv[1]):
    step += 1
    run.log({"loss": float(np.float32(1 / step))}, step=step)
    time.sleep(0.02)
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=4) as nodes:
        nodes.start()
        yield nodes


def _submit(nodes: Nodes, workers: int, spares: int) -> str:
    folder = nodes.data_dir.parent
    (folder / "train.py").write_text(_SCRIPT)
    (folder / "own_module.py").write_text("NAME = __name__")
    entrypoint = ("python", str(folder / "train.py"), str(folder / "go"))
    return nodes.submit(name="warm", worker_count=workers, spares=spares, entrypoint=entrypoint)


def _wait_warm(nodes: Nodes, spares: int) -> ct.TaskSpares:
    with Channel(nodes.address) as channel:
        for update in channel.stub(ControlStub).WatchState(ct.WatchRequest(), timeout=120):
            for told in update.vitals.spares:
                if told.warm == spares:
                    return told
    raise AssertionError("the stream ended")


def _waiting(nodes: Nodes) -> list[int]:
    """Pids of this agent's templates and spares: what waits below it and is no rank."""
    ranks = {pid for task in nodes.tasks().list() for pid in nodes.rank_pids(task.task_id).values()}
    found = []
    for child in psutil.Process(nodes.pid("agent")).children():
        with contextlib.suppress(psutil.Error):  # it has just ended
            if child.pid not in ranks and "becoming.py" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


def _kill_a_rank(nodes: Nodes, task_id: str) -> int:
    """Returns the attempt that comes after it, once all of it runs."""
    attempt, pids = nodes.task(task_id).attempt, nodes.rank_pids(task_id)
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: nodes.task(task_id).attempt > attempt, what="the next attempt")
    wait_for(lambda: all("\n" in nodes.output(task_id, attempt + 1, rank) for rank in pids), what="all ranks of it")
    return attempt + 1


def test_a_restart_uses_what_was_learned_and_leaves_nothing_behind(nodes: Nodes) -> None:
    task_id = _submit(nodes, workers=1, spares=1)
    told = _wait_warm(nodes, 1)
    assert (told.task_id, told.wanted) == (task_id, 1)
    assert told.memory_bytes > 5 << 20
    waiting = _waiting(nodes)
    assert len(waiting) == 2  # the spare is a fork of the other
    assert all("numpy" in Path(f"/proc/{pid}/maps").read_text() for pid in waiting)
    attempt = _kill_a_rank(nodes, task_id)
    assert nodes.output(task_id, attempt, 0) == "from a spare own_module\n"
    assert nodes.rank_pids(task_id)[0] in waiting
    (nodes.data_dir.parent / "go").touch()
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
    wait_for(lambda: not _waiting(nodes), what="the end of its spares")


@pytest.mark.slow
def test_agents_and_spares_may_die_at_any_time(nodes: Nodes) -> None:
    task_id = _submit(nodes, workers=2, spares=2)
    _wait_warm(nodes, 2)
    attempt = _kill_a_rank(nodes, task_id)
    assert {nodes.output(task_id, attempt, rank) for rank in (0, 1)} == {"from a spare own_module\n"}
    _wait_warm(nodes, 2)
    pids, spares = nodes.rank_pids(task_id), _waiting(nodes)
    nodes.kill("agent")
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in spares), what="the end of the dead agent's spares")
    nodes.start("agent")
    _wait_warm(nodes, 2)
    assert nodes.rank_pids(task_id) == pids  # adopted: nobody was restarted
    assert nodes.task(task_id).attempt == attempt
    os.kill(_waiting(nodes)[0], signal.SIGKILL)
    attempt = _kill_a_rank(nodes, task_id)
    assert "own_module" in nodes.output(task_id, attempt, 1)
    (nodes.data_dir.parent / "go").touch()
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
