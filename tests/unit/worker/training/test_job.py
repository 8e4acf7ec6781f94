"""`strata.training(sliced=True)` with real torch: every checkpoint is the state of its step."""

from pathlib import Path
from typing import Any

import pytest

import strata
from strata import CheckpointManager

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def make() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 50_000), torch.nn.BatchNorm1d(50_000), torch.nn.Linear(50_000, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("STRATA_QUIET", "1")


def train(path: Path, clip: float | None = None) -> dict[int, Any]:
    """The weights after each step, as they are when the loop is done with it. `clip`: at the head of each step."""
    model, optimizer = make()
    seen: dict[int, Any] = {}
    parts = {"model": model, "optimizer": optimizer}
    with strata.training(**parts, total=6, every=2, path=path, keep_count=None, sliced=True) as job:
        for step in job:
            if clip is not None:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.clamp_(-clip, clip)
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            seen[step] = {name: value.detach().clone() for name, value in model.state_dict().items()}
    return seen


def saved(path: Path) -> dict[int, Any]:
    with CheckpointManager(path, rank=0, world_size=1) as checkpoints:
        return {info.step: checkpoints.load(info.step)["parts"]["model"] for info in checkpoints.list()}


def same(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_loop_that_saves_in_slices_saves_each_step_as_it_was(tmp_path: Path) -> None:
    seen, found = train(tmp_path / "ckpt"), saved(tmp_path / "ckpt")
    assert sorted(found) == [2, 4, 6]
    assert all(same(found[step], seen[step]) for step in found)


def test_a_loop_that_breaks_its_promise_goes_on_and_saves_nothing_torn(tmp_path: Path) -> None:
    seen, found = train(tmp_path / "ckpt", clip=0.01), saved(tmp_path / "ckpt")
    assert max(found) == 6
    assert all(same(found[step], seen[step]) for step in found)
