"""How far a rank's output counts as passed on: only what would survive a kill of the agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.agent.capture import Capture
from strata.agent.gpus import Gpus
from strata.agent.nvml import Nvml
from strata.agent.rank_files import RankFiles, RankRecord
from strata.agent.ranks import Ranks
from strata.client.telemetry import Outbox, OutboxConfig

NOBODY = "127.0.0.1:1"


def _record(ranks: Ranks) -> RankRecord:
    record = RankRecord(task_id="t", attempt=1, rank=0, worker_id="t-0", incarnation="t.1.0")
    ranks._records[record.key] = record  # as one that runs: no process is needed to follow a file
    return record


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    return Ranks(RankFiles(tmp_path / "ranks"), tmp_path, {}, Gpus(Nvml(), None))


@pytest.fixture(params=[None, NOBODY], ids=["no observatory", "one that is away"])
def outbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outbox]:
    outbox = Outbox(lambda: request.param, OutboxConfig(folder=tmp_path / "spill", memory_batches=2))
    yield outbox
    outbox.close(0.0)


def test_lines_in_memory_are_not_noted_as_passed_on(tmp_path: Path, ranks: Ranks, outbox: Outbox) -> None:
    record = _record(ranks)
    capture = Capture(ranks, outbox, "host")
    file = ranks.log_file(record, "stdout")
    file.parent.mkdir(parents=True)
    for number in range(4):
        with file.open("ab") as output:
            output.write(b"line %d\n" % number)
        capture.follow()
    capture.note_offsets()
    stored = len(list((tmp_path / "spill").glob("*.batch")))
    assert stored >= 1
    assert record.offsets["stdout"] <= 7 * stored, "only what lies in the folder is safe"
    assert record.offsets["stdout"] >= 7, "and that is noted"
