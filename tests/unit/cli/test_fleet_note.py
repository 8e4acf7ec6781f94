"""With which agents a task was run: kept for `strata resume`, by whoever owns the data folder."""

from pathlib import Path

from strata.cli.fleet import FleetRequest
from strata.cli.fleet_note import note_fleet, noted_fleet


def test_a_fleet_is_found_again_with_all_that_was_asked_for(tmp_path: Path) -> None:
    asked = FleetRequest(launcher="slurm", workers=4, nodes=2, options=("requeue", "time=1"), shared_dir=tmp_path)
    note_fleet(tmp_path, "t-1", asked, "/mnt/checkpoints")
    found = noted_fleet(tmp_path, "t-1")
    assert found is not None
    assert (found.launcher, found.workers, found.nodes, found.options) == ("slurm", 4, 2, ("requeue", "time=1"))
    assert (found.shared_dir, found.checkpoints) == (tmp_path, "/mnt/checkpoints")
    assert (tmp_path / "fleets" / "t-1.json").stat().st_mode & 0o077 == 0


def test_a_task_without_a_note_needs_no_agents(tmp_path: Path) -> None:
    assert noted_fleet(tmp_path, "t-1") is None
    (tmp_path / "fleets").mkdir()
    (tmp_path / "fleets" / "t-1.json").write_text("{half")
    assert noted_fleet(tmp_path, "t-1") is None
