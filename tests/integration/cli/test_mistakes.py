"""Twelve mistakes of a first day, each made at the command line: the last words say what is wrong and what to do."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, strata
from tests.support.run_command import RunCommand
from tests.support.seaweed import seaweed
from tests.support.small_disk import fill, small_disk
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_TRAIN = """
import sys, time
import numpy as np
import strata

run = strata.init()
with run.checkpoints() as checkpoints:
    for step in range(1, 2_000):
        run.log({"loss": 1 / step}, step=step)
        HERE
        strata.barrier("step", step=step)
        if step % 5 == 0 or run.should_stop():
            checkpoints.save({"weights": np.full(300_000, float(step))}, step=step)
        if run.should_stop() or step == 30:
            break
"""
_RAISES = 'if run.rank == 1 and step == 3: raise ValueError("shape (3, 4) does not fit (5,)")'
_HANGS = "if run.rank == 1 and step == 3: time.sleep(1e9)"
_WAITS = "time.sleep(0.05); step = min(step, 29)"
_EATS = """
        import os, pathlib
        if run.rank == 1 and step == 3:  # in a group of its own, which has little memory: the kernel ends it
            group = pathlib.Path(sys.argv[1])
            (group / "memory.limit_in_bytes").write_text(str(128 << 20))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            held = [bytearray(16 << 20) for _ in range(100)]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("mistakes")
    with Cluster(folder / "state", "--slots", "4") as running:
        yield running


def _script(folder: Path, here: str = "pass") -> str:
    path = folder / "train.py"
    path.write_text(_TRAIN.replace("HERE", here))
    return str(path)


def _run(cluster: Cluster, *arguments: str, **environment: str) -> str:
    """What `strata run` says to the end of a task that fails."""
    done = strata("run", "--data-dir", str(cluster.folder), "--max-restarts", "0", *arguments, **environment)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_typo_in_the_path(cluster: Cluster, tmp_path: Path) -> None:
    _script(tmp_path)
    said = _run(cluster, str(tmp_path / "trian.py"))
    assert said.strip() == f"error: there is no script {tmp_path}/trian.py. Did you mean {tmp_path}/train.py?"


def test_an_unknown_dataset(cluster: Cluster, tmp_path: Path) -> None:
    said = _run(cluster, "--dataset", "nowhere", _script(tmp_path))
    assert "no dataset 'nowhere' is registered. Ensure dataset_id is registered via the API/Dashboard" in said
    reads = _script(tmp_path, 'strata.data.Loader("nowhere", batch_size=4)')
    said = _run(cluster, reads)
    assert "the format of 'nowhere' cannot be told from its name" in said
    assert "If it is a dataset's id, register the dataset first." in said


def test_more_workers_than_slots(cluster: Cluster, tmp_path: Path) -> None:
    command = RunCommand(tmp_path, "--workers", "40", _script(tmp_path), environment={"STRATA_SLOTS": "4"})
    with command:
        assert command.wait() == 1
    assert "40 workers do not fit into 4 slots" in command.output
    detached = strata("run", "--data-dir", str(cluster.folder), "--workers", "40", "--detach", _script(tmp_path))
    (task_id,) = re.findall(r"train-\w+", detached.stdout + detached.stderr)[:1]
    wanted = "start Strata with --slots 40, or ask for at most 4 workers"

    def reasons() -> list[str]:
        """None while the observatory has not heard of it."""
        return [task["reason"] for task in cluster.get("/api/tasks") if task["id"] == task_id]

    eventually("the reason", lambda: any(wanted in reason for reason in reasons()), within_s=60)
    strata("tasks", "stop", task_id, "--data-dir", str(cluster.folder))


def test_a_syntax_error(cluster: Cluster, tmp_path: Path) -> None:
    said = _run(cluster, "--max-restarts", "3", _script(tmp_path, "def f(:"))
    assert "SyntaxError: invalid syntax; it would end the same way again, so it is not restarted" in said
    assert said.splitlines()[-2].startswith("Install what is missing, or mend the script")


def test_an_exception_in_one_rank(cluster: Cluster, tmp_path: Path) -> None:
    said = _run(cluster, "--workers", "2", _script(tmp_path, _RAISES))
    told = "rank 1 exited with code 1: ValueError: shape (3, 4) does not fit (5,); it is not to be restarted"
    reason, advice, resume = said.splitlines()[-3:]
    assert told in reason
    assert advice.startswith("Mend the script, then `strata resume train-")
    assert resume.endswith("goes on from the start")


def test_a_hang(cluster: Cluster, tmp_path: Path) -> None:
    script = _script(tmp_path, _HANGS)
    said = _run(cluster, "--workers", "2", "--hang-timeout", "5", script)
    assert "rank 1 hung: no step for " in said
    assert f"it stood in {script}:{1 + _TRAIN.split('HERE')[0].count(chr(10))}" in said
    assert said.splitlines()[-2].endswith(
        "A slow part belongs into `run.section`, a longer limit into `--hang-timeout`."
    )


def test_a_kill_for_want_of_memory(cluster: Cluster, tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory") / f"strata-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no group with a limit of memory can be made here: {error}")
    try:
        said = _run(cluster, "--workers", "2", _script(tmp_path, _EATS), str(group))
    finally:
        group.rmdir()
    assert "rank 1 was killed by signal 9 (SIGKILL)" in said
    reason, advice = said.splitlines()[-3:-1]
    assert "memory" in reason
    assert advice.startswith("Use a smaller batch")


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 2) as folder:
        fill(folder / "filler")
        environment = {"CHECKPOINT_BUCKET": str(folder)}
        with RunCommand(tmp_path, "--max-restarts", "0", _script(tmp_path), environment=environment) as command:
            assert command.wait(240) == 1
    assert "No space left on device" in command.output
    assert (
        "Free space where the path in the message lies, or keep fewer checkpoints; then `strata resume "
        in command.output
    )


def test_a_wrong_key_of_a_bucket(cluster: Cluster, tmp_path: Path) -> None:
    server = seaweed()
    server.make_bucket("mistakes")
    options = server.options()
    environment = {
        "STORAGE_BACKEND": "s3",
        "CHECKPOINT_BUCKET": "mistakes",
        "AWS_ENDPOINT_URL": options.endpoint_url or "",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": options.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": "wrong",
    }
    with RunCommand(tmp_path, "--max-restarts", "0", _script(tmp_path), environment=environment) as command:
        assert command.wait(240) == 1
    assert "access denied to s3://mistakes" in command.output
    assert "AWS_SECRET_ACCESS_KEY" in command.output
    assert "Give the ranks keys that may read and write the bucket, then `strata resume " in command.output


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        others = ("--grpc-port", "0", "--telemetry-port", "0", "--data-dir", str(tmp_path / "data"))
        done = strata("up", "--http-port", port, *others)
    assert done.returncode == 1
    assert f"port {port} is taken by" in done.stdout + done.stderr
    assert "choose another with --http-port (0 = any free one)" in done.stdout + done.stderr


def test_two_in_one_folder(cluster: Cluster) -> None:
    done = strata("up", "--data-dir", str(cluster.folder), "--grpc-port", "0", "--http-port", "0")
    assert done.returncode == 1
    told = f"{cluster.folder} is in use by another strata, pid {cluster.process.pid}."
    assert done.stderr.strip() == f"error: {told} Stop that process, or give this one its own --data-dir."


def test_ctrl_c_twice(cluster: Cluster, tmp_path: Path) -> None:
    """The second one ends the ranks at once; what was saved before is what `strata resume` goes on from."""
    script = _script(
        tmp_path, "signal = __import__('signal'); signal.signal(signal.SIGTERM, signal.SIG_IGN); " + _WAITS
    )
    command = [sys.executable, "-m", "strata", "run", "--data-dir", str(cluster.folder), script]
    out = tmp_path / "out"
    with out.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        eventually("it trains", lambda: "joined as rank 0" in out.read_text(), within_s=60)
        process.send_signal(signal.SIGINT)
        first = "Ctrl-C: stopping the task. Its ranks save and leave; Ctrl-C again ends them at once."
        eventually("the first is heard", lambda: first in out.read_text(), within_s=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 1
    assert out.read_text().splitlines()[-1].startswith("`strata resume ")
