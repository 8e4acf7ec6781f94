"""What CheckpointManager refuses, and that nothing is written then."""

from pathlib import Path
from typing import Any

import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import InvalidArgument, InvalidConfig, UnsupportedState


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"keep_count": 0}, "keep_count is 0"),
        ({"on_busy": "panic"}, "panic"),
        ({"rank": 2, "world_size": 2}, "rank is 2"),
        ({"world_size": 2}, "no coordinator"),
        ({"memory": 3}, "memory"),
        ({"deadline_s": 0}, "deadline_s is 0"),
        ({"staging_buffers": 0}, "staging_buffers is 0"),
        ({"on_error": "ignore"}, "ignore"),
        ({"memory_budget_bytes": 0}, "memory_budget_bytes is 0"),
    ],
)
def test_bad_options_name_the_value(tmp_path: Path, options: dict[str, Any], shown: str) -> None:
    with pytest.raises(InvalidConfig, match=shown):
        CheckpointManager(tmp_path, **options)


def test_bad_calls_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "p")
    with pytest.raises(InvalidArgument, match="step is -1"):
        manager.save(b"x", step=-1)
    with pytest.raises(InvalidArgument, match="epoch is -1"):
        manager.save(b"x", step=1, epoch=-1)
    for odd in (1.5, "1", None, float("nan")):
        with pytest.raises(InvalidArgument, match=r"step is .*; it must be a whole number"):
            manager.save(b"x", step=odd)  # type: ignore[arg-type]  # what people give
        with pytest.raises(InvalidArgument, match=r"epoch is .*; it must be a whole number"):
            manager.save(b"x", step=1, epoch=odd)  # type: ignore[arg-type]  # the same
    for state, named in (({"a": "\ud800"}, r"state\['a'\]"), ({"\ud800": 1}, "the key")):
        with pytest.raises(InvalidArgument, match=f"{named}.* holds half a character"):
            manager.save(state, step=1)
    with pytest.raises(UnsupportedState, match="'fn'"):
        manager.save_async({"fn": len}, step=1)
    with pytest.raises(UnsupportedState, match="data_state"):
        manager.save(b"x", step=1, data_state=object())
    manager.close()
    manager.close()
    with pytest.raises(InvalidArgument, match="closed"):
        manager.save(b"x", step=1)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("path", [None, 5])
def test_what_is_no_path_is_named(path: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"the checkpoint path is {path}"):
        CheckpointManager(path)


@pytest.mark.parametrize("mistake", [ValueError("of the training"), KeyboardInterrupt()], ids=repr)
def test_what_ended_the_block_is_raised_though_saves_failed_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mistake: BaseException
) -> None:
    def train() -> None:
        with CheckpointManager(tmp_path) as manager:
            manager.save_async(b"second", step=1)  # refused behind the block: a Conflict, which is no CheckpointError
            raise mistake

    CheckpointManager(tmp_path).save(b"first", step=1)
    with pytest.raises(type(mistake)) as caught:
        train()
    assert caught.value is mistake
    assert "a background save failed as well: step 1 is committed already" in caplog.text
