"""What `strata run` refuses, each with one clear line and before it starts anything: real processes, brief ones."""

import subprocess
from pathlib import Path

import pytest

from tests.support.cluster import strata, strata_each


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text("print('fine')")
    return str(path)


NO_SENSE = {
    ("--workers", "0"): "--workers 0 begins with 0: a task has at least 1 worker.",
    ("--workers", "-1"): "--workers '-1' is no number of workers.",
    ("--spares", "-1"): "spares is -1, it must be between 0 and 16384",
    ("--launcher", "pbs"): "launcher 'pbs' is unknown. Known: kubernetes, local, ray, slurm, ssh.",
    ("--launcher", "ssh"): "the ssh launcher needs to know where",
    ("--launcher", "kubernetes"): "the kubernetes launcher needs an image",
    ("--launcher", "slurm", "-o", "=gpu"): "--launcher-option '=gpu' is neither NAME=VALUE nor NAME",
    ("--launcher", "slurm", "--nodes", "3", "--workers", "2"): "3 nodes for 2 workers",
    ("--nodes", "2"): "are for agents on other hosts",
    ("--name", "a b"): "task name",
}
NOT_HERE = {
    ("--launcher", "slurm"): "sbatch is not installed here. Run this on a Slurm login node.",
    ("--launcher", "ssh", "-o", "host=node"): "ssh is not installed here. Install the OpenSSH client.",
    ("--launcher", "ray"): "pip install",
    ("--launcher", "kubernetes", "-o", "image=i"): "kubectl is not installed here",
}


def test_flags_that_make_no_sense(tmp_path: Path, script: str) -> None:
    ends = strata_each([(("run", "--data-dir", str(tmp_path / "data"), *flags, script), {}) for flags in NO_SENSE])
    for done, told in zip(ends, NO_SENSE.values(), strict=True):
        _refused(done, told)


def test_systems_that_are_not_here(tmp_path: Path, script: str) -> None:
    """As on a machine with none of them: no programs on the PATH, and no Ray to import."""
    (tmp_path / "without" / "ray").mkdir(parents=True)
    (tmp_path / "without" / "ray" / "__init__.py").write_text("raise ImportError('no ray')")
    ends = strata_each(
        [(("run", "--data-dir", str(tmp_path / "data"), *flags, script), {}) for flags in NOT_HERE],
        PATH="",
        PYTHONPATH=str(tmp_path / "without"),
    )
    for done, told in zip(ends, NOT_HERE.values(), strict=True):
        _refused(done, told)


def test_more_workers_than_the_slots_that_were_set(tmp_path: Path) -> None:
    script = tmp_path / "mein größter versuch.py"  # a task's name is made of it
    script.touch()
    flags = ("--data-dir", str(tmp_path), "--workers", "5")
    done = strata("run", *flags, str(script), STRATA_SLOTS="2", STRATA_GRPC_PORT="0")
    assert done.returncode == 1
    assert "5 workers do not fit into 2 slots. STRATA_SLOTS says how many there are: raise or unset it" in done.stderr


def test_scripts_that_are_not_there(tmp_path: Path) -> None:
    scripts = {"no/such.py": "there is no script no/such.py", "no-such-program": "there is no program no-such-program"}
    ends = strata_each([(("run", "--data-dir", str(tmp_path), script), {}) for script in scripts])
    for done, told in zip(ends, scripts.values(), strict=True):
        _refused(done, told)


def _refused(done: "subprocess.CompletedProcess[str]", told: str) -> None:
    err = done.stderr
    assert done.returncode == 1, (done.args, err)
    assert told in err, done.args
    assert len(err.strip().splitlines()) == 1, (done.args, err)
