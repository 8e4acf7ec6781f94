"""What killed processes left in the data folder is sent by the agent; what is young is left to its owner."""

from pathlib import Path

from strata.agent.leftovers import Leftovers
from strata.client.batches import new_batch
from strata.client.spill import Spill, offline_folder
from strata.trust.access import OPEN
from tests.support.telemetry import ReceivingObservatory, serving


def _leave(data_dir: Path, run_id: str, rank: int, value: float) -> Path:
    batch = new_batch()
    batch.points.value.append(value)
    path = Spill(offline_folder(data_dir, run_id) / f"rank-{rank}", 1 << 20).put(batch)
    assert path is not None
    return path


def test_what_lies_there_is_sent_once_somebody_listens(tmp_path: Path) -> None:
    files = [
        _leave(tmp_path, run_id, rank, value) for run_id, rank, value in [("a", 0, 1.0), ("a", 1, 2.0), ("b", 0, 3.0)]
    ]
    assert Leftovers(tmp_path, lambda: None, OPEN).send() == 0
    assert Leftovers(tmp_path, lambda: "127.0.0.1:9", OPEN).send() == 0
    assert all(file.exists() for file in files)
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        leftovers = Leftovers(tmp_path, lambda: address, OPEN)
        assert leftovers.send(min_age_s=3600.0) == 0
        assert leftovers.send() == 3
        assert leftovers.send() == 0
    assert observatory.values == [1.0, 2.0, 3.0]
    assert not any(file.exists() for file in files)
