"""A torch job that changes its size while ranks, hosts and the coordinator are killed: no sample is lost or used twice,
and the weights are those of the run that was always whole, but for the order of sums.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.elastic_job import ElasticJob, kill_at_random
from tests.support.hosts import Hosts
from tests.support.nodes import write_dataset

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (make test-torch)"),
]
_SCRIPT = Path(__file__).with_name("torch_sizes_worker.py")


def _end(hosts: Hosts) -> dict[str, Any]:
    with np.load(hosts.data_dir.parent / "end.npz") as found:
        return dict(found)


def test_kills_at_random_lose_and_double_no_sample(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """`--kills 100` is the full measure."""
    kills = int(pytestconfig.getoption("--kills"))
    epochs = 8 + kills // 3  # each kill costs about twenty steps
    write_dataset(tmp_path / "data", rows=6_000)
    with Hosts(tmp_path / "whole") as hosts:
        hosts.start("coordinator")
        hosts.start_host("a", slots=4)
        ElasticJob(hosts, tmp_path / "data", _SCRIPT, epochs=epochs, least=4).finish()
        whole = _end(hosts)
    with Hosts(tmp_path / "killed") as hosts:
        hosts.start("coordinator")
        kill_at_random(hosts, tmp_path / "data", _SCRIPT, epochs=epochs, kills=kills)
        killed = _end(hosts)
    assert (killed["counts"] == epochs).all(), "each sample once per epoch"
    assert killed["chain"].tobytes() == whole["chain"].tobytes(), "the same global batches in the same order"
    assert killed["weights"] == pytest.approx(whole["weights"], rel=1e-3, abs=1e-4)
    sys.stdout.write(f"weights differ by {np.abs(killed['weights'] - whole['weights']).max():.1e} at most\n")
