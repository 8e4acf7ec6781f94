"""The batch script that Slurm gets: quoted, without secrets."""

import shlex
from pathlib import Path

from strata.launchers.fleet import FleetSpec, agent_spec
from strata.launchers.slurm import batch_script


def _lines(folder: Path, options: dict[str, str] | None = None) -> list[str]:
    fleet = FleetSpec(
        launcher="slurm", coordinator="login:50051", folder=folder, num_agents=2, slots_per_agent=8, token="s3cret"
    )
    return batch_script(agent_spec(fleet), options).splitlines()


def test_the_script_names_nodes_and_hides_the_token(tmp_path: Path) -> None:
    lines = _lines(tmp_path / "it's here", {"partition": "gpu", "time": "1-00"})
    assert {"#SBATCH --nodes=2", "#SBATCH --partition=gpu", "#SBATCH --time=1-00"} <= set(lines)
    assert f'#SBATCH --chdir="{tmp_path}/it\'s here"' in lines
    (run,) = (line for line in lines if line.startswith("srun "))
    words = shlex.split(run.removesuffix(" &"))
    assert words[words.index("--data-dir") + 1] == f"{tmp_path}/it's here/agent-%d"
    assert "s3cret" not in "\n".join(lines)


def test_agents_have_the_cores_of_their_slots_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    assert "#SBATCH --cpus-per-task=8" in _lines(tmp_path)
    own = _lines(tmp_path, {"cpus-per-task": "2"})
    assert [line for line in own if "cpus-per-task" in line] == ["#SBATCH --cpus-per-task=2"]
    assert "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK" in own


def test_a_job_that_is_to_be_queued_again_is_warned_and_asks_for_it(tmp_path: Path) -> None:
    lines = _lines(tmp_path, {"requeue": "", "time": "60"})
    assert {"#SBATCH --requeue", "#SBATCH --signal=B:USR1@120"} <= set(lines)
    assert "[ $code -ne 75 ] || scontrol requeue $SLURM_JOB_ID" in lines
    assert f"export STRATA_NOTICE_FILE={tmp_path}/notice-agents" in lines
    assert "#SBATCH --signal=USR1@60" in _lines(tmp_path, {"requeue": "", "signal": "USR1@60"})
    assert "requeue" not in "\n".join(_lines(tmp_path, {"account": "x", "qos": "long"}))
