"""A copy in slices is never half old and half new: whoever writes to the arrays finds every slice copied."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.checkpoint import CheckpointManager
from strata.checkpoint.codec import encode
from strata.checkpoint.copying import SLICE_BYTES, SlicedCopy, plan_slices
from strata.checkpoint.image import Image, plan_image
from strata.errors import InvalidArgument


def image_of(state: dict[str, Any]) -> Image:
    return plan_image(encode(state)[1])


def whole(image: Image) -> bytes:
    return b"".join(image.views())


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(1, 64))
def test_slices_hold_every_byte_once_and_none_is_too_large(sizes: list[int], slice_bytes: int) -> None:
    slices = list(plan_slices([(str(number), size) for number, size in enumerate(sizes)], slice_bytes))
    for pieces in slices:
        assert 0 < sum(stop - start for _, start, stop in pieces) <= slice_bytes
    covered: dict[str, int] = {}
    for name, start, stop in (piece for pieces in slices for piece in pieces):
        assert covered.get(name, 0) == start < stop
        covered[name] = stop
    assert covered == {str(number): size for number, size in enumerate(sizes) if size}


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=8),
    slice_bytes=st.integers(64, 4096),
    threads=st.integers(0, 3),
    data=st.data(),
)
def test_a_writer_never_meets_a_copy_that_is_under_way(
    sizes: list[int], slice_bytes: int, threads: int, data: st.DataObject
) -> None:
    """A writer that waits for `release` changes every byte; the copy is the state as it was, whoever copied what."""
    state = {f"a{number}": np.full(size, 1, dtype=np.uint8) for number, size in enumerate(sizes)}
    later = data.draw(st.sets(st.sampled_from(sorted(state))))
    image = image_of(state)
    expected, target = whole(image), bytearray(image.size)
    copy = SlicedCopy(image, memoryview(target), later, slice_bytes=slice_bytes)
    for name in state.keys() - later:
        state[name][:] = 2  # it was copied at once
    helpers = [threading.Thread(target=copy.run) for _ in range(threads)]
    for helper in helpers:
        helper.start()
    copy.release()
    for array in state.values():
        array[:] = 3
    assert copy.done
    for helper in helpers:
        helper.join()
    copy.join()
    assert bytes(target) == expected


def test_an_ended_copy_leaves_the_memory_to_the_next_save() -> None:
    state = {"a": np.ones(1000, dtype=np.uint8)}
    image = image_of(state)
    target = bytearray(image.size)
    copy = SlicedCopy(image, memoryview(target), {"a"}, slice_bytes=10)
    copy.end()
    before = bytes(target)
    copy.run()
    copy.release()
    assert copy.done
    assert bytes(target) == before, "nothing is copied after the end"


@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=st.lists(st.booleans(), min_size=1, max_size=6), megabytes=st.sampled_from([1, 40]))
def test_every_checkpoint_is_the_state_of_its_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[bool], megabytes: int
) -> None:
    """A trainer that writes in every step, and says so before; some steps are saved in slices, others at once."""
    state = {"w": np.zeros(megabytes << 17), "m": np.zeros(1000, dtype=np.float32), "lr": 0.1}
    assert megabytes << 20 > 2 * SLICE_BYTES or megabytes == 1
    with CheckpointManager(tmp_path_factory.mktemp("sliced"), keep_count=None) as manager:
        handle = None
        for step, sliced in enumerate(steps, start=1):
            if handle is not None:
                handle.stage()
            state["w"] += 1  # type: ignore[operator]  # it is the array
            state["m"][:] = step  # type: ignore[index]  # so is this
            handle = manager.save_async(state, step=step, until="stage" if sliced else None)
            assert handle.staged or sliced
        manager.wait()
        for step in range(1, len(steps) + 1):
            found = manager.load(step)
            assert (found["w"] == step).all()
            assert (found["m"] == step).all()


def test_a_save_that_is_not_staged_by_anybody_is_copied_behind_the_loop(tmp_path: Path) -> None:
    state = {"w": np.arange(10_000_000.0)}
    with CheckpointManager(tmp_path) as manager:
        handle = manager.save_async(state, step=1, until="stage")
        handle.result()
        assert handle.staged
        handle.stage()
        assert np.array_equal(manager.load(1)["w"], state["w"])


def test_a_load_waits_for_the_copy_of_what_it_may_write_to(tmp_path: Path) -> None:
    state = {"w": np.full(10_000_000, 1.0)}
    with CheckpointManager(tmp_path) as manager:
        manager.save(state, step=1)
        state["w"][:] = 2.0
        manager.save_async(state, step=2, until="stage")
        manager.load(1, into={"w": state["w"]})
        assert (state["w"] == 1.0).all()
        manager.wait()
        assert (manager.load(2)["w"] == 2.0).all()


@pytest.mark.parametrize("until", ["now", object()])
def test_what_says_nothing_before_it_writes_is_refused(tmp_path: Path, until: Any) -> None:
    with CheckpointManager(tmp_path) as manager, pytest.raises(InvalidArgument, match="until is"):
        manager.save_async({"w": np.ones(3)}, step=1, until=until)
