"""`strata.training`: kill anything, and every loss of every rank is that of the uninterrupted run, bit for bit. In
plain NumPy; with torch in test_torch_loop.py. Real processes, real kills.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strata.client.channel import Channel
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.tasks import TaskStatus
from tests.support.loop_kills import (
    EXAMPLES,
    KILLS,
    losses_in,
    newest_step,
    output_of,
    read_to,
    train,
    train_through_kills,
)
from tests.support.nodes import Nodes, wait_for

_SCRIPT = EXAMPLES / "train_loop_numpy.py"
_IN_PLACE = Path(__file__).with_name("loop_worker.py")


@pytest.mark.slow
@pytest.mark.timeout(300 + 60 * KILLS)
def test_a_rank_the_agent_the_coordinator_and_all_of_it(tmp_path: Path) -> None:
    train_through_kills(tmp_path, _SCRIPT, KILLS, pause_s=0.15, patience_s=240)


def _alone(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "STRATA_DATA_DIR": str(folder / "strata")}
    command = [sys.executable, str(_SCRIPT), "--steps", "60", "--every", "10", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_alone_it_goes_on_after_a_kill_and_after_a_polite_request(tmp_path: Path) -> None:
    expected = losses_in(_alone(tmp_path / "calm").communicate(timeout=120)[0])
    assert len(expected) == 60
    killed = _alone(tmp_path / "killed", "--pause", "0.02")
    text = read_to(killed, 25)
    killed.kill()
    text += killed.communicate(timeout=120)[0]
    asked = _alone(tmp_path / "killed", "--pause", "0.02")
    first = read_to(asked, 33)
    asked.send_signal(signal.SIGTERM)
    first += asked.communicate(timeout=120)[0]
    assert asked.returncode == 0
    assert min(losses_in(first))[1] % 10 == 1  # after a step that was saved behind the training
    last = max(losses_in(first))[1]
    rest, said = _alone(tmp_path / "killed").communicate(timeout=120)
    assert f"goes on after step {last}, from " in said
    assert min(losses_in(rest)) == (0, last + 1)  # the step that it was stopped at is saved
    assert losses_in(text + first + rest) == expected
    runs = set(re.findall(r"run (\S+):", said))
    assert runs == set(re.findall(r"run (\S+):", _alone(tmp_path / "killed").communicate(timeout=120)[1]))


def _percent(nodes: Nodes) -> float:
    """How far it is of its total, as a rank has told the coordinator."""
    with Channel(nodes.address) as channel:
        for update in channel.stub(ControlStub).WatchState(ct.WatchRequest(), timeout=60):
            for worker in update.vitals.workers:
                if worker.status.progress:
                    return worker.status.progress
    raise AssertionError("the stream ended")


def test_a_stop_saves_the_step_at_which_all_ranks_leave(tmp_path: Path) -> None:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start()
        task_id = train(nodes, _SCRIPT, 100_000, pause_s=0.01)
        wait_for(lambda: newest_step(nodes, task_id) >= 10, 60, "a checkpoint")
        assert 0 < _percent(nodes) < 100
        nodes.tasks().stop(task_id)
        assert nodes.wait_task(task_id).status is TaskStatus.STOPPED
        found = losses_in(output_of(nodes, task_id))
        last = {max(step for rank, step in found if rank == each) for each in (0, 1)}
        assert last == {newest_step(nodes, task_id)}


@pytest.mark.slow
def test_in_an_elastic_function_the_others_keep_their_processes(tmp_path: Path) -> None:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start()
        entrypoint = ("python", str(_IN_PLACE), "120", "0.03")
        task_id = nodes.submit(name="in-place", worker_count=2, entrypoint=entrypoint)
        wait_for(lambda: nodes.task(task_id).course.in_place, 60, "that all ranks take part")
        wait_for(lambda: (0, 15) in losses_in(output_of(nodes, task_id)), 60, "step 15")
        before = nodes.rank_pids(task_id)
        os.kill(before[1], signal.SIGKILL)
        task = nodes.wait_task(task_id)
        assert (task.status, task.attempt, task.course.lives) == (TaskStatus.COMPLETED, 1, (0, 1)), task.reason
        text = output_of(nodes, task_id)
        assert newest_step(nodes, task_id) == 120
    worlds = re.findall(r"pid (\d+) world (\d) after (\d+)", text)
    assert [(pid, world) for pid, world, _ in worlds if pid == str(before[0])] == [
        (str(before[0]), "0"),
        (str(before[0]), "1"),
    ]
    found = losses_in(text)
    assert {step for rank, step in found if rank == 0} == set(range(1, 121))
    assert all(len(values) == 1 for values in found.values())
