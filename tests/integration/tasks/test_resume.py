"""A task that stopped or failed goes on from its last good checkpoint, by every door: same task, same run.
Real processes, shared by the whole file.
"""

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from strata.errors import Conflict
from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.nodes import Nodes, wait_for
from tests.support.run_command import RunCommand

# Saves every step, and fails at the fifth until the file of its argument is there.
_SCRIPT = """
import pathlib, sys
import numpy, strata
run = strata.init()
with run.checkpoints() as checkpoints:
    found = checkpoints.recover()
    start = found.info.step if found else 0
    print(f"starts from {start}", flush=True)
    for step in range(start + 1, 9):
        run.log({"loss": 1 / step}, step=step)
        checkpoints.save({"x": numpy.full(3, step)}, step=step)
        if step == 5 and not pathlib.Path(sys.argv[1]).exists():
            sys.exit(3)
run.finish()
"""
# Trains until it is told to stop, then saves and leaves.
_PATIENT = """
import time
import numpy, strata
run = strata.init()
with run.checkpoints() as checkpoints:
    found = checkpoints.recover()
    step = found.info.step if found else 0
    print(f"starts from {step}", flush=True)
    while not found and not run.should_stop():
        step += 1
        run.log({"loss": 1 / step}, step=step)
        run.progress(step)
        time.sleep(0.02)
    if not found:
        checkpoints.save({"x": numpy.full(3, step)}, step=step)
        print(f"saved {step}", flush=True)
run.finish()
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("resume"), slots=2) as nodes:
        nodes.start("coordinator", "agent", "observatory")
        yield nodes


def _failed(nodes: Nodes, name: str) -> tuple[str, Path]:
    """A task that failed at step 5, and the file that mends it."""
    script, mended = nodes.data_dir.parent / "fails.py", nodes.data_dir.parent / f"{name}.mended"
    script.write_text(_SCRIPT)
    task_id = nodes.submit(name=name, entrypoint=("python", str(script), str(mended)), max_restarts=0)
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt, task.saved_step) == (TaskStatus.FAILED, 1, 5)
    assert task.reason == "rank 0 exited with code 3; it is not to be restarted (max_restarts 0)"
    return task_id, mended


def _by_grpc(nodes: Nodes, task_id: str) -> int | None:
    return nodes.tasks().resume(task_id)


def _by_rest(nodes: Nodes, task_id: str) -> int:
    answer = nodes.post(f"/api/tasks/{task_id}/resume", {})
    assert answer["success"] is True
    return int(answer["from_step"])


def _by_command(nodes: Nodes, task_id: str) -> int:
    """Follows it to its end."""
    done = strata("resume", task_id, "--data-dir", str(nodes.data_dir), **_where(nodes))
    assert done.returncode == 0, done.stderr
    assert "starts from 5" in done.stdout
    said = re.search(rf"task {task_id} goes on from step (\d+)", done.stderr)
    assert said, done.stderr
    return int(said[1])


def _where(nodes: Nodes) -> dict[str, str]:
    return {"STRATA_COORDINATOR_ADDR": nodes.address, "STRATA_HTTP_PORT": nodes.http.rpartition(":")[2]}


@pytest.mark.parametrize(
    "resume", [_by_rest, *(pytest.param(door, marks=pytest.mark.slow) for door in (_by_grpc, _by_command))]
)
def test_a_failed_task_goes_on_where_it_had_saved(nodes: Nodes, resume: Callable[[Nodes, str], int | None]) -> None:
    task_id, mended = _failed(nodes, resume.__name__.strip("_").replace("_", "-"))
    mended.touch()
    assert resume(nodes, task_id) == 5
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt, task.course.failures, task.saved_step) == (TaskStatus.COMPLETED, 2, 0, 8)
    assert "starts from 5" in nodes.output(task_id, 2, 0)
    steps = wait_for(lambda: _steps(nodes, task_id, 8), 60, "all points of both attempts in one run")
    assert steps == list(range(1, 9))
    wait_for(lambda: _run(nodes, task_id)["status"] == "finished", 30, "one run, that ended well")


def _run(nodes: Nodes, run_id: str) -> dict[str, Any]:
    (found,) = [run for run in nodes.get("/api/runs") if run["run_id"] == run_id]
    return dict(found)


def _steps(nodes: Nodes, run_id: str, count: int) -> list[int]:
    answer = nodes.get(f"/metrics/{run_id}?metric=loss") or {"series": []}
    steps = [step for series in answer["series"] for step in series["steps"]]
    return steps if len(steps) >= count else []


def test_a_task_that_never_saved_starts_anew_and_says_so(nodes: Nodes) -> None:
    task_id = nodes.submit(name="unsaved", entrypoint=("false",), max_restarts=0)
    assert nodes.wait_task(task_id).status is TaskStatus.FAILED
    told = strata("tasks", "resume", task_id, "--data-dir", str(nodes.data_dir), **_where(nodes))
    assert told.stdout == f"task {task_id} has no checkpoint and starts at step 0\n"
    task = wait_for(lambda: (task := nodes.task(task_id)).status.final and task)
    assert (task.status, task.attempt, task.course.failures) == (TaskStatus.FAILED, 2, 1)


def test_what_runs_or_is_done_is_refused_with_a_sentence(nodes: Nodes) -> None:
    running = nodes.submit(name="runs", entrypoint=("sleep", "600"))
    wait_for(lambda: nodes.task(running).status is TaskStatus.RUNNING)
    with pytest.raises(Conflict, match="is running: only a stopped or failed task can be resumed"):
        nodes.tasks().resume(running)
    with pytest.raises(HTTPError) as refused:
        nodes.post(f"/api/tasks/{running}/resume", {})
    assert refused.value.code == 409
    assert "only a stopped or failed task" in json.load(refused.value)["error"]["message"]
    nodes.tasks().stop(running, hurry=True)
    assert nodes.wait_task(running).status is TaskStatus.STOPPED
    done = nodes.submit(name="done", entrypoint=("true",))
    assert nodes.wait_task(done).status is TaskStatus.COMPLETED
    told = strata("resume", done, "--data-dir", str(nodes.data_dir), **_where(nodes))
    assert told.returncode == 1
    assert "is completed: there is nothing to resume." in told.stderr


@pytest.mark.slow
def test_ctrl_c_saves_and_the_command_that_it_names_goes_on(tmp_path: Path) -> None:
    """With a cluster of the command's own, which is gone in between."""
    script = tmp_path / "patient.py"
    script.write_text(_PATIENT)
    with RunCommand(tmp_path, "--workers", "2", str(script)) as command:
        wait_for(lambda: command.output.count("starts from 0") == 2, 60)
        command.process.send_signal(signal.SIGINT)
        wait_for(lambda: "Ctrl-C: stopping the task. Its ranks save and leave" in command.output, 30)
        assert command.wait() == 1, command.output
    saved = re.search(r"saved (\d+)", command.output)
    assert saved, command.output
    task_id = command.task_id_told
    assert f"its ranks save and leave together at step {saved[1]}" in command.output
    assert "stopped by Ctrl-C in `strata run`" in command.output
    named = f"`strata resume {task_id} --data-dir {command.data_dir}`"
    assert f"{named} goes on from its checkpoint of step {saved[1]}" in command.output
    with RunCommand(tmp_path, task_id, verb="resume") as again:
        assert again.wait() == 0, again.output
    assert f"starts from {saved[1]}" in again.output
    assert "no coordinator answers, starting one here" in again.output


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once_and_sigterm_is_called_by_its_name(tmp_path: Path) -> None:
    script = tmp_path / "deaf.py"
    script.write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)"
    )
    with RunCommand(tmp_path, str(script)) as command:
        wait_for(lambda: "deaf" in command.output, 60)
        command.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "SIGTERM: stopping the task" in command.output, 30)
        command.process.send_signal(signal.SIGINT)
        wait_for(lambda: "ending its ranks at once, without a save" in command.output, 30)
        assert command.wait() == 1, command.output
    assert "stopped by SIGTERM in `strata run`; rank 0 had to be killed" in command.output
