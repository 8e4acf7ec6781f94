"""Accelerate: the losses are bit-equal, whoever is killed or stopped."""

import importlib.util
from pathlib import Path

import pytest

from tests.support.curves import Curves, Examples
from tests.support.nodes import Nodes

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        importlib.util.find_spec("accelerate") is None, reason="accelerate is not installed (make test-frameworks)"
    ),
]


@pytest.fixture(scope="module")
def example(nodes: Nodes) -> Examples:
    return Examples(nodes, "train_accelerate.py", "--epochs", "3", "--pause", "0.1")


@pytest.fixture(scope="module")
def calm(example: Examples) -> Curves:
    found = example.calm()
    assert {rank: set(curve) for rank, curve in found.items()} == {0: set(range(1, 97))}
    assert all(curve[max(curve)] < curve[min(curve)] for curve in found.values()), "it learns"
    return found


def test_a_killed_rank_changes_no_loss(example: Examples, calm: Curves) -> None:
    assert example.killed() == calm


def test_a_stop_and_a_resume_change_no_loss(example: Examples, calm: Curves) -> None:
    assert example.stopped() == calm


def test_alone_a_kill_changes_no_loss(example: Examples, tmp_path: Path) -> None:
    calm, killed = example.killed_alone(tmp_path)
    assert killed == calm
