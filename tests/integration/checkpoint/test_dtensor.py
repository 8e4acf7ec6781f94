"""FSDP's DTensors, saved by two ranks and loaded by one, two and three: each rank gets exactly its part."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from strata.checkpoint.tensors import plan_part

_SCRIPT = Path(__file__).with_name("sharded_model.py")
_ROOT = Path(__file__).parents[3]


def _run(mode: str, folder: Path, world: int) -> None:
    rendezvous = folder.parent / f"rendezvous-{mode}-{world}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(_SCRIPT), mode, str(folder), str(rendezvous), str(rank), str(world)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(world)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=120)
        assert rank.returncode == 0, errors


@pytest.mark.torch
def test_two_ranks_save_and_any_number_loads(tmp_path: Path) -> None:
    """About 15 s: eight processes import torch."""
    pytest.importorskip("torch")
    folder = tmp_path / "ckpt"
    _run("save", folder, 2)
    for world in (1, 2, 3):
        _run("load", folder, world)
    whole = CheckpointManager(folder).load(1)  # one process without torch.distributed sees whole tensors
    assert {name: tuple(tensor.shape) for name, tensor in whole["model"].items()} == {
        "0.weight": (7, 5),
        "0.bias": (7,),
        "1.weight": (2, 7),
        "1.bias": (2,),
    }
    assert whole["columns"].equal(whole["everywhere"])


@pytest.mark.parametrize(
    ("whole", "mesh", "cuts"),
    [
        ((7, 5), (3,), (0,)),
        ((2,), (4,), (0,)),
        ((4, 5), (2, 2), (1, 1)),
        ((6, 5), (2, 3), (0, 1)),
        ((3, 2), (2, 2), (None, 0)),
    ],
)
def test_the_parts_of_a_placement_fill_the_whole(
    whole: tuple[int, ...], mesh: tuple[int, ...], cuts: tuple[int | None, ...]
) -> None:
    count = np.zeros(whole, dtype=int)
    for coordinate in np.ndindex(*mesh):
        shape, offset = plan_part(whole, mesh, coordinate, cuts)
        count[tuple(slice(at, at + size) for at, size in zip(offset, shape, strict=True))] += 1
    replicas = int(np.prod([size for size, cut in zip(mesh, cuts, strict=True) if cut is None]))
    assert (count == replicas).all()
