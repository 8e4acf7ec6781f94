"""Sliced saves with real torch: what an optimizer writes to is copied before it does, all else at once."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.checkpoint import CheckpointManager
from strata.checkpoint.codec import encode
from strata.checkpoint.image import plan_image
from strata.checkpoint.writers import later_in
from strata.errors import CheckpointTorn

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def job(width: int = 64) -> tuple[Any, Any]:
    """A model with buffers that change in every forward pass, and an optimizer that keeps two tensors of each."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
    )
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def compute(model: Any) -> None:
    model(torch.randn(16, 8)).square().mean().backward()


def train(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    compute(model)
    optimizer.step()


def state_of(model: Any, optimizer: Any) -> dict[str, Any]:
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def frozen(value: Any) -> Any:
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return [frozen(item) for item in value] if isinstance(value, list) else value


def equal(one: Any, other: Any) -> bool:
    if torch.is_tensor(one):
        return bool(torch.equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def test_only_what_the_optimizer_alone_writes_to_is_left_for_later() -> None:
    model, optimizer = job()
    train(model, optimizer)
    ema = frozen(model.state_dict())
    image = plan_image(encode({**state_of(model, optimizer), "ema": ema})[1])
    later = later_in(image, optimizer)
    parameters = {f"model/{name}" for name, _ in model.named_parameters()}
    assert parameters < later
    assert {name for name in later if name.startswith("optimizer/")}
    assert not {f"model/{name}" for name, _ in model.named_buffers()} & later
    assert not {name for name in later if name.startswith("ema/")}


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(due=st.lists(st.booleans(), min_size=1, max_size=4), wide=st.booleans())
def test_every_checkpoint_is_the_state_of_its_step(
    tmp_path_factory: pytest.TempPathFactory, due: list[bool], wide: bool
) -> None:
    """Saves follow each other without a pause: forward passes change buffers, steps change the rest."""
    model, optimizer = job(100_000 if wide else 64)
    expected: dict[int, Any] = {}
    with CheckpointManager(tmp_path_factory.mktemp("torch"), keep_count=None) as manager:
        for step, save in enumerate(due, start=1):
            train(model, optimizer)
            if save:
                expected[step] = frozen(state_of(model, optimizer))
                manager.save_async(state_of(model, optimizer), step=step, until=optimizer)
        train(model, optimizer)
        manager.wait()
        for step, state in expected.items():
            assert equal(manager.load(step), state)


def test_any_of_several_optimizers_waits_for_the_copy(tmp_path: Path) -> None:
    (one, first), (other, second) = job(50_000), job(50_000)
    for model, optimizer in ((one, first), (other, second)):
        train(model, optimizer)
    state = {"one": one.state_dict(), "other": other.state_dict()}
    expected = frozen(state)
    with CheckpointManager(tmp_path) as manager:
        handle = manager.save_async(state, step=1, until=[first, second])
        train(other, second)
        assert handle.staged
        train(one, first)
        handle.result()
        assert equal(manager.load(1), expected)


def test_a_write_by_hand_before_the_step_costs_that_save_and_no_other(tmp_path: Path) -> None:
    model, optimizer = job()
    train(model, optimizer)
    written = threading.Event()
    with CheckpointManager(tmp_path, before_vote=lambda _: _wait(written)) as manager:
        expected = frozen(state_of(model, optimizer))
        manager.save_async(state_of(model, optimizer), step=1, until=optimizer)
        optimizer.step()
        handle = manager.save_async(state_of(model, optimizer), step=2, until=optimizer)
        with torch.no_grad():
            model[0].weight.mul_(2)
        train(model, optimizer)
        written.set()
        with pytest.raises(CheckpointTorn, match=r"model/0\.weight"):
            handle.result()
        assert [info.step for info in manager.list()] == [1]
        assert equal(manager.load(), expected)
        manager.save_async(state_of(model, optimizer), step=3).result()


def _wait(event: threading.Event) -> None:
    assert event.wait(60)


def test_an_optimizer_outlives_its_manager(tmp_path: Path) -> None:
    model, optimizer = job()
    with CheckpointManager(tmp_path) as manager:
        manager.save_async(state_of(model, optimizer), step=1, until=optimizer)
    del manager
    train(model, optimizer)
