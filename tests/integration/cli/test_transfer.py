"""`strata import` and `strata export` against a real observatory. About 10 s: a cluster starts."""

import csv
import time
from pathlib import Path

import pytest

from strata.client.telemetry import send_batches
from strata.protocol.generated import telemetry_pb2 as tm
from strata.trust.access import Access
from tests.support.cluster import Cluster, strata
from tests.support.waiting import eventually


@pytest.mark.slow
def test_a_csv_goes_in_once_and_comes_out_again(tmp_path: Path) -> None:
    table = tmp_path / "history.csv"
    table.write_text("step,loss,lr\n" + "".join(f"{step},{1 / (step + 1)},0.1\n" for step in range(100)))
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        folder = ("--data-dir", str(cluster.folder))
        for _ in range(2):  # the second time changes nothing
            done = strata("import", str(table), "--run", "old-run", *folder)
            assert done.returncode == 0, done.stderr
            (listed,) = cluster.get("/runs")
            assert (listed["state"], listed["reason"], listed["is_active"]) == ("finished", "imported", False)
        eventually("the run", lambda: [row for row in cluster.get("/runs") if row["num_points"] == 200])
        with table.open("a") as more:
            more.write("100,0.25,0.1\n101,,0.1\n102,soon,0.1\n")  # the last one is no number
        grown = strata("import", str(table), "--run", "old-run", *folder)
        assert (grown.returncode, grown.stdout) == (0, "old-run: 4 points\n"), grown.stderr
        assert "not read: cells that hold no number, step or time, the first one 'soon' in row 104 (1)" in grown.stderr
        table.write_text(table.read_text().replace("soon", "0.5"))
        grown = strata("import", str(table), "--run", "old-run", *folder)
        assert (grown.returncode, grown.stdout) == (0, "old-run: 1 points\n"), grown.stderr
        other = tmp_path / "other.csv"
        other.write_text("step,loss\n" + "".join(f"{step},1\n" for step in range(7, 300)))
        refused = strata("import", str(other), "--run", "old-run", *folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "run old-run has 102 points of loss, which are not the first ones here" in refused.stderr
        out = tmp_path / "out.csv"
        eventually("the export", lambda: _exported(out, folder) == 205)
        (tmp_path / "full.csv.part").symlink_to("/dev/full")
        for name, why in (("none/out.csv", "No such file or directory"), ("full.csv", "No space left on device")):
            refused = strata("export", "old-run", str(tmp_path / name), *folder)
            assert (refused.returncode, f"{name} cannot be written: {why}." in refused.stderr) == (1, True)
        refused = strata("export", "old-run", str(tmp_path / "out.xls"), *folder)
    assert refused.returncode == 1
    assert "neither .csv nor .parquet" in refused.stderr
    with out.open() as file:
        losses = {int(row["step"]): float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "loss"}
    assert losses == {step: 1 / (step + 1) for step in range(100)} | {100: 0.25, 102: 0.5}


@pytest.mark.slow
def test_a_run_that_a_script_logs_to_is_not_ended_by_an_import(tmp_path: Path) -> None:
    """It says itself how it stands."""
    (tmp_path / "more.csv").write_text("step,val\n1,0.5\n")
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        line = tm.RunInfo(run_id="live", status="running", updated_at_ms=time.time_ns() // 1_000_000)
        send_batches([tm.Batch(batch_id="b-1", runs=[line])], cluster.endpoints["telemetry"], Access())
        eventually("the run", lambda: [row for row in cluster.get("/runs") if row["state"] == "running"])
        done = strata("import", str(tmp_path / "more.csv"), "--run", "live", "--data-dir", str(cluster.folder))
        assert done.returncode == 0, done.stderr
        (listed,) = cluster.get("/runs")
        assert (listed["state"], listed["num_points"]) == ("running", 1)


def _exported(out: Path, folder: tuple[str, ...]) -> int:
    """How many points came out; the store has them a moment after they were accepted."""
    done = strata("export", "old-run", str(out), *folder)
    return len(out.read_text().splitlines()) - 1 if done.returncode == 0 else 0
