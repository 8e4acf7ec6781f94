"""What users get wrong, and ranks that misbehave: a clear state and a sentence each, and nothing hangs. Real processes,
shared by the whole file; the crash loop takes its back-off of some seconds.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.errors import InvalidArgument, UnknownDataset, UnknownTask
from strata.protocol.generated import telemetry_pb2 as tm
from strata.types.tasks import TaskSpec, TaskStatus
from tests.support.nodes import Nodes, wait_for


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("bad"), slots=2) as nodes:
        nodes.start()
        yield nodes


def _script(nodes: Nodes, name: str, text: str) -> tuple[str, ...]:
    path: Path = nodes.data_dir.parent / f"{name}.py"
    path.write_text(text)
    return ("python", str(path))


@pytest.mark.parametrize("count", [0, -1])
def test_a_worker_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(InvalidArgument, match=f"worker_count is {count}"):
        TaskSpec(name="t", worker_count=count)


def test_more_workers_than_slots_wait_and_say_what_is_lacking(nodes: Nodes) -> None:
    task_id = nodes.submit(name="wide", worker_count=5, entrypoint=_script(nodes, "wide", ""))
    task = wait_for(lambda: (task := nodes.task(task_id)).reason.startswith("needs") and task)
    assert task.status is TaskStatus.QUEUED
    advice = "add hosts (`strata agent`), start Strata with --slots 5, or ask for at most 2 workers"
    assert task.reason == f"needs 5 slots, 1 local agent offers 2: {advice}"
    other = nodes.submit(name="narrow", worker_count=1, entrypoint=_script(nodes, "narrow", ""))
    assert nodes.wait_task(other).status is TaskStatus.COMPLETED
    assert nodes.tasks().stop(task_id) is TaskStatus.STOPPED
    assert nodes.tasks().stop(task_id) is TaskStatus.STOPPED


@pytest.mark.parametrize("count", [-1, 2**70, 16_385])
def test_no_such_number_of_spares_is_taken(count: int) -> None:
    with pytest.raises(InvalidArgument, match=f"spares is {count}, it must be between 0 and 16384"):
        TaskSpec(name="t", spares=count)


def test_spares_beyond_the_memory_and_of_other_programs_are_refused(nodes: Nodes) -> None:
    with pytest.raises(
        InvalidArgument, match=r"16384 spares per host hold at least 512.0 GiB, and no host has"
    ) as caught:
        nodes.submit(name="t", entrypoint=("python", "t.py"), spares=16_384)
    assert caught.value.hint.startswith("Ask for at most ")
    with pytest.raises(InvalidArgument, match="spares are interpreters of Python, and '/bin/bash' is none"):
        nodes.submit(name="t", entrypoint=("/bin/bash", "t.sh"), spares=1)


def test_unknown_types_launchers_datasets_and_tasks_are_refused_by_name(nodes: Nodes) -> None:
    with pytest.raises(InvalidArgument, match="task type 'trainin' is unknown") as caught:
        nodes.submit(name="t", type="trainin")
    assert "training" in caught.value.hint
    with pytest.raises(InvalidArgument, match="launcher 'loca' is unknown"):
        nodes.submit(name="t", launcher="loca", entrypoint=("true",))
    with pytest.raises(UnknownDataset) as unknown:
        nodes.submit(name="t", dataset_id="nowhere")
    assert "registered" in unknown.value.hint
    with pytest.raises(InvalidArgument, match="needs a dataset_id"):
        nodes.submit(name="t")
    with pytest.raises(UnknownTask):
        nodes.tasks().stop("nobody")


@pytest.mark.parametrize(
    ("entrypoint", "reason"),
    [
        (("python", "no_such_script.py"), "the script 'no_such_script.py' does not exist"),
        (("no-such-program",), "the program 'no-such-program' does not exist"),
        (("/etc",), "'/etc' cannot be started: Permission denied"),
    ],
)
def test_a_program_that_cannot_start_fails_at_once(nodes: Nodes, entrypoint: tuple[str, ...], reason: str) -> None:
    task = nodes.wait_task(nodes.submit(name="gone", entrypoint=entrypoint), timeout_s=10)
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
    assert task.reason.startswith(f"rank 0 could not be started: {reason}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(\n", "rank 0 exited with code 1: SyntaxError: '(' was never closed"),
        ("import no_such_library", "rank 0 exited with code 1: ModuleNotFoundError: No module named 'no_such_library'"),
        (
            "import argparse\nargparse.ArgumentParser(prog='t').parse_args(['-x'])",
            "rank 0 exited with code 2: t: error: unrecognized arguments: -x",
        ),
    ],
)
def test_a_script_that_cannot_work_is_not_started_again(nodes: Nodes, text: str, said: str) -> None:
    task = nodes.wait_task(nodes.submit(name="unreadable", entrypoint=_script(nodes, "unreadable", text)))
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
    assert task.reason == f"{said}; it would end the same way again, so it is not restarted"


def test_a_config_that_the_built_in_training_cannot_use_is_the_reason(nodes: Nodes, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [0.5] * 8, "label": [0, 1] * 4}), tmp_path / "points.parquet")
    nodes.register("points", str(tmp_path / "points.parquet"), shard_size=4)
    task = nodes.wait_task(nodes.submit(name="odd", dataset_id="points", config={"learning_rate": "fast"}))
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
    said = "rank 0 exited with code 2: training: error: learning_rate is 'fast', it must be a number"
    assert task.reason == f"{said}; it would end the same way again, so it is not restarted"


def test_data_that_the_built_in_training_cannot_use_are_the_reason(nodes: Nodes, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["a"] * 8, "label": ["b"] * 8}), tmp_path / "words.parquet")
    nodes.register("words", str(tmp_path / "words.parquet"), shard_size=4)
    task = nodes.wait_task(nodes.submit(name="words", dataset_id="words", max_restarts=0))
    assert task.status is TaskStatus.FAILED
    assert task.reason.startswith("rank 0 exited with code 1: strata.errors.")


def test_a_last_line_that_names_no_cause_is_not_glued_to_it(nodes: Nodes) -> None:
    text = "import sys\nprint('100 %|####| 3.1 it/s', file=sys.stderr)\nsys.exit(7)"
    script = _script(nodes, "bar", text)
    task = nodes.wait_task(nodes.submit(name="bar", entrypoint=script, max_restarts=0))
    assert task.reason == "rank 0 exited with code 7; it is not to be restarted (max_restarts 0)"


def _lost_more(nodes: Nodes, task_id: str, before: int) -> bool:
    return nodes.task(task_id).course.preemptions > before


@pytest.mark.slow
def test_kills_from_outside_inside_one_checkpoint_interval_end_nothing(nodes: Nodes) -> None:
    """More of them than the rule about attempts without progress allows, and with no restart allowed at all."""
    text = "import os, time\nif int(os.environ['STRATA_ATTEMPT']) <= 4: time.sleep(600)"
    script = _script(nodes, "killed", text)
    task_id = nodes.submit(name="killed", entrypoint=script, max_restarts=0)
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        before = nodes.task(task_id).course.preemptions
        os.kill(wait_for(lambda: nodes.rank_pids(task_id), 60)[0], number)
        wait_for(partial(_lost_more, nodes, task_id, before), 60)
    task = nodes.wait_task(task_id, timeout_s=60)
    assert (task.status, task.attempt, task.course.failures, task.course.preemptions) == (TaskStatus.COMPLETED, 5, 0, 4)


def test_a_crash_of_its_own_counts_as_a_failure(nodes: Nodes) -> None:
    script = _script(nodes, "crashed", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    task = nodes.wait_task(nodes.submit(name="crashed", entrypoint=script, max_restarts=0))
    assert (task.status, task.course.failures) == (TaskStatus.FAILED, 1)
    assert task.reason == "rank 0 was killed by signal 11 (SIGSEGV); it is not to be restarted (max_restarts 0)"


def test_a_log_file_that_cannot_be_written_is_the_named_cause(nodes: Nodes) -> None:
    """As on a full disk; the task goes on by itself when there is room again."""
    logs = nodes.data_dir / "agent" / "logs"
    aside = logs.with_name("logs.aside")
    logs.rename(aside) if logs.exists() else aside.mkdir()
    logs.write_text("in the way")
    task_id = nodes.submit(name="full", entrypoint=("true",), max_restarts=0)
    try:
        task = wait_for(lambda: (task := nodes.task(task_id)).course.preemptions >= 2 and task, 60)
    finally:
        logs.unlink()
        aside.rename(logs)
    assert re.match(rf"rank 0 could not be started on its host: {logs}/\S+: Not a directory;", task.reason)
    task = nodes.wait_task(task_id, timeout_s=60)
    assert (task.status, task.course.failures) == (TaskStatus.COMPLETED, 0)


def test_strangers_at_the_ranks_meeting_hold_no_task_up(nodes: Nodes) -> None:
    """More silent connections than there is room for, and rubbish, all before the rank itself comes."""
    text = (
        "import os, socket, time, strata\n"
        "run, strangers = strata.init(), []\n"
        "address = (os.environ['MASTER_ADDR'], int(os.environ['STRATA_GANG_PORT']))\n"
        "while run.rank == 1 and len(strangers) < 80:\n"
        "    try: strangers.append(socket.create_connection(address))\n"
        "    except ConnectionRefusedError: time.sleep(0.05)\n"
        "if strangers: strangers[-1].send(b'rubbish' * 100)\n"
        "print(run.gang.gather(run.rank + 5), flush=True)\n"
    )
    task_id = nodes.submit(name="meeting", entrypoint=_script(nodes, "meeting", text), worker_count=2)
    task = nodes.wait_task(task_id, timeout_s=120)
    said = [nodes.output(task_id, task.attempt, rank).strip() for rank in range(2)]
    causes = [nodes.output(task_id, attempt, rank, "stderr") for attempt in range(1, task.attempt) for rank in range(2)]
    assert (task.status, task.course.failures) == (TaskStatus.COMPLETED, 0), (task.reason, causes)
    assert task.attempt == 1 + task.course.preemptions, causes  # a taken port costs an attempt, no failure
    assert said == ["[5, 6]", "[5, 6]"]


def test_a_crash_loop_ends_and_shows_the_last_words(nodes: Nodes) -> None:
    script = _script(nodes, "crash", "raise ValueError('the flux is too low')")
    task = nodes.wait_task(nodes.submit(name="crash", entrypoint=script, max_restarts=9))
    assert (task.status, task.course.failures) == (TaskStatus.FAILED, 3)
    assert task.attempt == 3 + task.course.preemptions  # a taken port costs an attempt, no failure
    assert task.reason == (
        "rank 0 exited with code 1: ValueError: the flux is too low; 3 attempts in a row brought no new checkpoint"
    )


def test_a_program_that_exits_at_once_is_finished(nodes: Nodes) -> None:
    """Well and with nothing done: that is its own business."""
    task = nodes.wait_task(nodes.submit(name="brief", entrypoint=("true",), worker_count=2), timeout_s=10)
    assert (task.status, task.reason) == (TaskStatus.COMPLETED, "all 2 ranks finished")


def test_the_failure_budget_is_respected(nodes: Nodes) -> None:
    task = nodes.wait_task(nodes.submit(name="once", entrypoint=_script(nodes, "once", "exit(7)"), max_restarts=0))
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
    assert task.reason == "rank 0 exited with code 7; it is not to be restarted (max_restarts 0)"


def test_a_rank_that_ignores_sigterm_is_killed_after_its_grace(nodes: Nodes) -> None:
    text = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
    )
    script = _script(nodes, "deaf", text)
    task_id = nodes.submit(name="deaf", entrypoint=script, worker_count=2, config={"grace_s": 0.3})
    wait_for(lambda: all("deaf" in nodes.output(task_id, 1, rank) for rank in range(2)))
    nodes.tasks().stop(task_id)
    task = nodes.wait_task(task_id, timeout_s=10)
    assert (task.status, task.reason) == (TaskStatus.STOPPED, "stopped by the user; ranks 0, 1 had to be killed")
    assert not nodes.rank_pids(task_id)


_FINISH = "run.finish()\nif run.rank == 1: os.abort()"


@pytest.mark.parametrize("end", [_FINISH, "", "sys.exit()"])
def test_a_rank_that_crashes_when_its_work_is_done_is_not_started_again(nodes: Nodes, tmp_path: Path, end: str) -> None:
    """As libraries do at the very end of a process. The script has said that it is done, or has come to its end; the
    other rank trains on meanwhile."""
    text = f"""
import atexit, os, pathlib, sys, time
if os.environ["RANK"] == "1":
    atexit.register(os.abort)  # before strata.init: the last registered is the first called
import strata

run = strata.init()
run.log({{"loss": 1.0}}, step=0)
while run.rank == 0 and not pathlib.Path({str(tmp_path / "go")!r}).exists():
    time.sleep(0.05)
{end}
"""
    task_id = nodes.submit(name="late", entrypoint=_script(nodes, "late", text), worker_count=2)
    told = "rank 1 was killed by signal 6 after it had finished its work"
    wait_for(lambda: told in _lines(nodes, task_id, source="agent"))
    (tmp_path / "go").touch()
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 1)
    crash = "rank 1 was killed by signal 6 (SIGABRT) after it had finished its work"
    assert task.reason == f"all 2 ranks finished; {crash}"


@pytest.mark.parametrize(
    "end",
    [
        "raise SystemExit(1)",
        "sys.exit(1)",
        "raise ValueError",
        "sys.excepthook = print\nraise ValueError",
        "if os.fork():\n    os.wait()\n    os.abort()",  # its child comes to the end, and is not the rank
    ],
)
def test_a_crash_at_the_end_of_a_script_that_failed_is_a_failure(nodes: Nodes, end: str) -> None:
    text = f"import atexit, os, sys\natexit.register(os.abort)\nimport strata\nstrata.init()\n{end}"
    task = nodes.wait_task(nodes.submit(name="bad", entrypoint=_script(nodes, "bad", text), max_restarts=0))
    assert task.status is TaskStatus.FAILED
    assert task.reason.startswith("rank 0 was killed by signal 6 (SIGABRT)")
    assert "finished" not in task.reason


def test_a_crash_in_the_next_run_of_a_rank_is_a_failure(nodes: Nodes) -> None:
    text = "import os, strata\nstrata.init().finish()\nstrata.init()\nos.abort()"
    script = _script(nodes, "next", text)
    task = nodes.wait_task(nodes.submit(name="next", entrypoint=script, max_restarts=0))
    assert task.status is TaskStatus.FAILED
    assert task.reason == "rank 0 was killed by signal 6 (SIGABRT); it is not to be restarted (max_restarts 0)"


def test_children_of_a_rank_end_with_it(nodes: Nodes) -> None:
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)"
    )
    task_id = nodes.submit(name="parent", entrypoint=_script(nodes, "parent", text))
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
    pid = int(nodes.output(task_id, 1, 0))
    wait_for(lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes())


def test_a_hundred_megabytes_in_one_line_are_told_in_three(nodes: Nodes) -> None:
    """What is read of them waits in the agent's folder: there is no observatory here."""
    text = (
        "import sys\nprint('before')\nfor _ in range(100): sys.stdout.write('x' * 1_000_000)\nprint()\nprint('after')"
    )
    task = nodes.wait_task(nodes.submit(name="loud", entrypoint=_script(nodes, "loud", text)), timeout_s=30)
    assert task.status is TaskStatus.COMPLETED
    lines = wait_for(lambda: (found := _lines(nodes, task.task_id)) and found[-1] == "after" and found)
    assert lines[0] == "before"
    assert all(len(line) < 17_000 for line in lines)
    assert sum("more bytes" in line or "were skipped" in line for line in lines) >= 1
    assert len(lines) <= 6


def _lines(nodes: Nodes, task_id: str, source: str = "worker") -> list[str]:
    """What the agent has read of a task's output, or says itself, in order."""
    found = []
    for path in sorted((nodes.data_dir / "agent" / "spill").glob("*.batch")):
        logs = tm.Batch.FromString(path.read_bytes()).logs
        found += [line.message for line in logs if line.task_id == task_id and line.source == source]
    return found


def test_one_dead_rank_of_a_plain_script_restarts_all(nodes: Nodes) -> None:
    """A script without the SDK: rank 1 dies once, and all ranks are started again."""
    text = (
        "import os, sys, time\n"
        "assert os.environ['WORLD_SIZE'] == '2' and os.environ['MASTER_PORT']\n"
        "if os.environ['STRATA_ATTEMPT'] == '1':\n"
        "    sys.exit(5) if os.environ['RANK'] == '1' else time.sleep(60)\n"
        "print('fine', sys.executable)"
    )
    task = nodes.wait_task(nodes.submit(name="plain", entrypoint=_script(nodes, "plain", text), worker_count=2))
    assert (task.status, task.attempt, task.course.failures) == (TaskStatus.COMPLETED, 2, 1)
    assert sys.executable in nodes.output(task.task_id, 2, 0)
