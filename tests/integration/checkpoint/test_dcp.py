"""FSDP2 through DCP on Strata's store: saved by two ranks, loaded by one and four; a rank that dies leaves
nothing to be seen.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strata.checkpoint import CheckpointManager

pytestmark = pytest.mark.torch

_SCRIPT = Path(__file__).with_name("dcp_ranks.py")
_ROOT = Path(__file__).parents[3]


def _run(mode: str, folder: Path, world: int) -> list[tuple[int, str]]:
    rendezvous = folder.parent / f"rendezvous-{mode}-{world}"
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    ranks = [
        subprocess.Popen(
            [sys.executable, str(_SCRIPT), mode, str(folder), str(rendezvous), str(rank), str(world)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(world)
    ]
    errors = [rank.communicate(timeout=240)[1] for rank in ranks]
    return [(rank.returncode, error) for rank, error in zip(ranks, errors, strict=True)]


def test_two_ranks_save_any_number_loads_and_a_dead_rank_leaves_nothing(tmp_path: Path) -> None:
    """Nine processes import torch."""
    pytest.importorskip("torch")
    folder = tmp_path / "ckpt"
    for mode, world in (("save", 2), ("load", 1), ("load", 4)):
        assert [(code, error) for code, error in _run(mode, folder, world) if code] == []
    first, second = _run("die", folder, 2)
    assert second[0] == -signal.SIGKILL
    assert first[0] > 0, first[1]
    with CheckpointManager(folder) as manager:
        assert [info.step for info in manager.list()] == [1]
        assert manager.steps() == [2, 1]
        assert manager.verify(1).verified


def test_a_folder_that_dcp_wrote_by_itself_is_put_together_from_its_ranks(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from strata.integrations.weights import read_weights

    for world in (1, 2):
        assert [(code, error) for code, error in _run("plain", tmp_path / str(world), world) if code] == []
    assert len(list((tmp_path / "2").glob("*.distcp"))) == 2
    one, two = (read_weights(tmp_path / str(world)) for world in (1, 2))
    assert one["model"].keys() == two["model"].keys()
    assert all(torch.allclose(one["model"][name], two["model"][name]) for name in one["model"])
    assert torch.equal(one["columns"], two["columns"])
    assert torch.equal(two["columns"], torch.arange(30.0).reshape(6, 5) / 7)
    assert two["step"] == 1
