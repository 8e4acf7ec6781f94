"""`strata.training` goes on from a checkpoint of the same model, and from no other without a word."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from strata import CheckpointManager
from strata.ambient import ambient
from strata.errors import InvalidArgument
from strata.types.forks import ForkedData
from strata.worker.run import active_run


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("STRATA_QUIET", "1")
    yield
    if (run := active_run()) is not None:
        run.finish()


def train(path: Path, total: int, **parts: Any) -> None:
    with strata.training(total=total, every=1, path=path, **parts) as job:
        for _ in job:
            for part in parts.values():
                part += 1


def test_an_array_goes_on_with_what_it_was(tmp_path: Path) -> None:
    train(tmp_path / "saved", 3, weights=np.zeros(3))
    weights = np.zeros(3)
    train(tmp_path / "saved", 5, weights=weights)
    assert weights.tolist() == [5, 5, 5]


def test_its_counts_may_be_numpy_s_and_nothing_but_whole(tmp_path: Path) -> None:
    weights = np.zeros(3)
    train(tmp_path / "saved", np.int64(2), weights=weights)  # type: ignore[arg-type]
    assert weights.tolist() == [2, 2, 2]
    for total in (1.5, -1, True, "3"):
        with pytest.raises(InvalidArgument, match=f"total is {total!r}, it must be a whole number"):
            train(tmp_path / "saved", total, weights=weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [np.zeros(4), np.zeros(3, np.float32)])
def test_an_array_of_another_kind_is_refused(tmp_path: Path, other: Any) -> None:
    train(tmp_path / "saved", 3, weights=np.zeros(3))
    with pytest.raises(InvalidArgument, match=r"weights has shape .*, and \(3,\) \(float64\) in the checkpoint"):
        train(tmp_path / "saved", 5, weights=other)


@pytest.mark.parametrize(
    "nest", [lambda array: {"net": {"w": array}}, lambda array: [array], lambda array: [(array, 1)]]
)
def test_an_array_of_another_shape_in_a_nest_is_refused_too(tmp_path: Path, nest: Any) -> None:
    for size, total in ((3, 2), (3, 4), (4, 6)):
        weights = np.zeros(size)
        with contextlib.ExitStack() as stack:
            if size == 4:
                stack.enter_context(pytest.raises(InvalidArgument, match=r"model\[.*has shape \(4,\) .*, and \(3,\)"))
            job = stack.enter_context(
                strata.training(total=total, every=1, path=tmp_path / "saved", model=nest(weights))
            )
            for _ in job:
                weights += 1
        assert weights.tolist() == ([total] * 3 if size == 3 else [0] * 4)


@pytest.mark.parametrize("order", ["<f8", ">f8"])
def test_an_array_of_another_byte_order_goes_on(tmp_path: Path, order: str) -> None:
    for total in (2, 4):
        weights = np.zeros(3, order)
        train(tmp_path / "saved", total, weights=weights)
    assert (weights.tolist(), weights.dtype) == ([4, 4, 4], np.dtype(order))


def test_an_array_in_a_dict_may_grow(tmp_path: Path) -> None:
    for total in (2, 4):
        seen: dict[str, Any] = {"steps": np.zeros(0)}
        with strata.training(total=total, every=1, path=tmp_path / "saved", seen=seen) as job:
            for step in job:
                seen["steps"] = np.append(seen["steps"], step)
    assert seen["steps"].tolist() == [1, 2, 3, 4]


def test_a_part_that_was_not_saved_is_named(tmp_path: Path) -> None:
    train(tmp_path / "saved", 3, model=np.zeros(3))
    with pytest.raises(InvalidArgument, match="nothing was saved of net; what was saved is model"):
        train(tmp_path / "saved", 5, net=np.zeros(3))


def test_a_checkpoint_of_another_kind_is_named(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "saved") as checkpoints:
        checkpoints.save({"weights": np.zeros(3)}, step=1)
    with pytest.raises(InvalidArgument, match=r"step 1 in .* was not saved by a training loop"):
        train(tmp_path / "saved", 5, weights=np.zeros(3))


def test_a_fork_that_cannot_leave_out_batches_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    train(tmp_path / "saved", 1, weights=np.zeros(3))
    assert "left out" not in caplog.text
    monkeypatch.setattr(ambient, "forked", ForkedData(name="fork", skip=((5, 6),)))
    train(tmp_path / "saved", 2, weights=np.zeros(3))
    assert "the batches which this fork is to leave out are not left out" in caplog.text


def test_a_checkpoint_says_in_which_epoch_it_was_saved(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(8))
    loader = strata.data.Loader(str(tmp_path / "*.npy"), batch_size=4)
    weights = np.zeros(1)
    with strata.training(
        weights=weights, loader=loader, epochs=3, every=1, path=tmp_path / "saved", keep_count=None
    ) as job:
        for _ in job:
            weights += 1
    with CheckpointManager(tmp_path / "saved", rank=0, world_size=1) as checkpoints:
        assert {info.step: info.epoch for info in checkpoints.list()} == {1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2}
