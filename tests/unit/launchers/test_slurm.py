"""The batch script that Slurm gets: quoted, without secrets."""

from pathlib import Path

import pytest

from strata.errors import InvalidArgument
from strata.launchers.fleet import FleetSpec, agent_spec, open_launcher
from strata.launchers.slurm import batch_script


def _fleet(folder: Path, **values: object) -> FleetSpec:
    given = {"launcher": "slurm", "coordinator": "login:50051", "folder": folder, "num_agents": 2, **values}
    return FleetSpec(**given)  # type: ignore[arg-type]  # test's own fields


def test_the_script_names_nodes_and_hides_the_token(tmp_path: Path) -> None:
    spec = agent_spec(_fleet(tmp_path / "it's here", token="s3cret", slots_per_agent=8))
    script = batch_script(spec, partition="gpu")
    assert "#SBATCH --nodes=2\n" in script
    assert "#SBATCH --partition=gpu" in script
    assert "--slots 8 --launcher slurm" in script
    assert "'\"'\"'" in script
    assert "s3cret" not in script
    assert spec.env["STRATA_TOKEN"] == "s3cret"


def test_a_fleet_of_nobody_and_an_unknown_launcher_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="num_agents is 0"):
        _fleet(tmp_path, num_agents=0)
    with pytest.raises(InvalidArgument, match="launcher 'pbs' is unknown"):
        open_launcher("pbs")
