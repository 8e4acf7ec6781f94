"""Torch scripts: plain DDP as a task without a line changed, and torchrun with the SDK inside. Needs torch, whose
import alone takes seconds per process.
"""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import Nodes, wait_for
from tests.support.run_command import RunCommand

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (make test-torch)"),
]

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
_SDK = """
import strata, torch.distributed as dist
dist.init_process_group("gloo")
run = strata.init(project="torchrun", name="sdk")
result = strata.barrier("together", step=1)
run.log({"loss": 0.5}, step=1)
print(f"rank {run.rank} of {run.world_size} met {result.participants}", flush=True)
dist.barrier()
run.finish()
dist.destroy_process_group()
"""


_WITH_GANG = """
import strata, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
run = strata.init(project="ddp", name="gang")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
with run.checkpoints() as checkpoints:
    found = checkpoints.recover()
    start = found.info.step if found else 0
    for step in range(start + 1, 9):
        model(torch.ones(2, 4)).sum().backward()
        assert run.gang.gather(step) == [step, step]
        checkpoints.save({"weights": model.module.weight.detach().numpy()}, step=step)
        if step == 4 and run.rank == 1 and run.place.attempt == 1:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
print(f"rank {run.rank} went from {start} to {step}, attempt {run.place.attempt}", flush=True)
run.finish()
dist.destroy_process_group()
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start("coordinator")
        yield nodes


def test_an_unmodified_ddp_script_under_strata_run(tmp_path: Path) -> None:
    with RunCommand(tmp_path, "--workers", "2", str(_EXAMPLES / "train_torch_ddp.py")) as command:
        assert command.wait(120) == 0, command.output
    done = re.search(r"done on 2 ranks: loss (\S+)", command.output)
    assert done, command.output
    assert float(done[1]) < 1e-3
    assert "all 2 ranks finished" in command.output


def test_a_ddp_script_may_use_the_gang_beside_torchs_own_store(tmp_path: Path) -> None:
    """Torch's TCPStore holds MASTER_PORT; the gang has a port of its own, in the attempt after a kill as well."""
    script = tmp_path / "gang.py"
    script.write_text(_WITH_GANG)
    with RunCommand(tmp_path, "--workers", "2", str(script)) as command:
        assert command.wait(240) == 0, command.output
    went = re.findall(r"rank (\d) went from (\d) to 8, attempt 2", command.output)
    assert sorted(rank for rank, _ in went) == ["0", "1"], command.output
    assert {start for _, start in went} <= {"3", "4"}
    assert "rank 1 was killed by signal 9 (SIGKILL)" in command.output


def test_a_killed_rank_of_an_elastic_script_is_replaced_in_place(tmp_path: Path) -> None:
    """The others keep their processes, and the weights are those of an undisturbed run, but for the order of sums."""
    arguments = ["--workers", "2", str(_EXAMPLES / "train_torch_elastic.py"), "--steps", "120", "--pause"]
    with RunCommand(tmp_path / "calm", *arguments, "0") as calm:
        assert calm.wait(240) == 0, calm.output
    with RunCommand(tmp_path / "killed", *arguments, "0.1") as command:
        wait_for(lambda: any(task.course.in_place for task in command.records().tasks.values()), 240, "all take part")
        os.kill(command.rank_pid(1), signal.SIGKILL)
        assert command.wait(480) == 0, command.output
    assert re.search(r"rank 0: world 1, after step \d+ from memory", command.output), command.output
    assert re.search(r"rank 1: world 1, after step \d+ from peer", command.output), command.output
    expected = _weights(calm.output)
    assert _weights(command.output) == pytest.approx(expected, rel=1e-6)
    assert len(expected) == 2


def _weights(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"done, weights (\S+)", output)]


def test_under_torchrun_the_sdk_takes_its_ranks_from_there(nodes: Nodes, tmp_path: Path) -> None:
    script = tmp_path / "sdk.py"
    script.write_text(_SDK)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    where = {"STRATA_COORDINATOR_ADDR": nodes.address, "STRATA_DATA_DIR": str(nodes.data_dir)}
    done = subprocess.run(
        command, env={**os.environ, **where}, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    met = re.findall(r"rank \d of 2 met 2", done.stdout)  # both write to one pipe, the end of a line by itself
    assert sorted(met) == ["rank 0 of 2 met 2", "rank 1 of 2 met 2"], done.stdout
    workers = nodes.records().workers
    assert sorted(worker.state for worker in workers.values()) == ["left", "left"]
