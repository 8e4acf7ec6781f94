"""What agents of a fleet are started with, and the options each launcher takes."""

import dataclasses
from pathlib import Path

import pytest

from strata.errors import InvalidArgument
from strata.launchers.fleet import FleetSpec, agent_spec, fleet_hosts, open_launcher


def _spec(folder: Path) -> FleetSpec:
    return FleetSpec(launcher="ray", coordinator="head:50051", folder=folder, num_agents=3, slots_per_agent=8)


def test_every_copy_gets_its_own_folder_and_the_cores_of_its_slots(tmp_path: Path) -> None:
    fleet = dataclasses.replace(_spec(tmp_path), token="s3cret", telemetry="head:50052")
    spec = agent_spec(fleet)
    assert (spec.copies, spec.cpus) == (3, 8)
    line = " ".join(spec.argv)
    assert f"--data-dir {tmp_path}/agent-%d --coordinator head:50051 --slots 8 --launcher ray" in line
    assert line.endswith("--leave-after 600 --telemetry head:50052")
    assert "s3cret" not in line
    assert spec.env == {"STRATA_CHECKPOINT_BUCKET": f"{tmp_path}/checkpoints", "STRATA_TOKEN": "s3cret"}


def test_a_bucket_of_the_users_own_wins_over_the_shared_folder(tmp_path: Path) -> None:
    fleet = dataclasses.replace(_spec(tmp_path), env={"STRATA_CHECKPOINT_BUCKET": "models"})
    assert agent_spec(fleet).env["STRATA_CHECKPOINT_BUCKET"] == "models"


def test_a_fleet_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="num_agents is 0"):
        dataclasses.replace(_spec(tmp_path), num_agents=0)


@pytest.mark.parametrize(
    ("launcher", "options", "told"),
    [
        ("pbs", {}, "launcher 'pbs' is unknown"),
        ("ssh", {}, "the ssh launcher needs to know where"),
        ("ssh", {"hosts": "a"}, "the ssh launcher knows no option 'hosts'"),
        ("ssh", {"host": "-oProxyCommand=x"}, "'-oProxyCommand=x' is no host for ssh"),
        ("slurm", {"partition": "gpu\nrm -rf /"}, "is no option of sbatch"),
        ("slurm", {"Partition gpu": "x"}, "is no option of sbatch"),
        ("slurm", {"array": "1-4"}, "a job array is many jobs, and this is one task"),
        ("kubernetes", {}, "the kubernetes launcher needs an image"),
        ("kubernetes", {"image": "i", "que": "q"}, "the kubernetes launcher knows no option 'que'"),
        ("kubernetes", {"image": "i", "queue": "Q!"}, "queue is 'Q!', which is no name of an object"),
        ("kubernetes", {"image": "i", "gpus": "all"}, "gpus is 'all', it must be a whole number"),
        ("ray", {"adress": "auto"}, "the ray launcher knows no option 'adress'"),
        ("ray", {"num_gpus": "many"}, "num_cpus and num_gpus are numbers"),
        ("ray", {"placement": "near"}, "placement is 'near', Ray knows PACK, SPREAD, STRICT_PACK, STRICT_SPREAD"),
        ("ray", {"runtime_env": "pip"}, "runtime_env is 'pip', which is no JSON object"),
    ],
)
def test_options_that_make_no_sense_are_named(launcher: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        open_launcher(launcher, options)


def test_only_ssh_names_its_hosts() -> None:
    assert fleet_hosts("ssh", {"host": "a,b"}) == ("a", "b")
    assert fleet_hosts("slurm", {"host": "a,b"}) == ()
