"""A rank's object is a safetensors file: checked with the library that owns the format."""

import numpy as np
import safetensors.numpy

from strata.checkpoint.codec import encode
from strata.checkpoint.image import plan_image


def test_the_library_reads_our_bytes() -> None:
    state = {
        "w": np.arange(12, dtype=np.float32).reshape(3, 4),
        "b": np.ones(3, dtype=np.float16),
        "mask": np.array([True, False]),
        "n": {"i": np.array(7, dtype=np.int64), "empty": np.zeros((0, 5))},
        "z": np.array([1 + 2j, 3 - 4j]),
        "raw": b"\x00\x01",
    }
    image = plan_image(encode(state)[1])
    data = b"".join(bytes(view) for view in image.views())
    assert len(data) == image.size
    found = safetensors.numpy.load(data)
    assert np.array_equal(found["w"], state["w"])  # type: ignore[arg-type]  # the dict holds arrays of many kinds
    assert found["b"].dtype == np.float16
    assert found["n/i"] == 7
    assert found["n/empty"].shape == (0, 5)
    assert np.array_equal(found["z"], [[1, 2], [3, -4]])  # complex128 has no name there: stored as pairs
    assert bytes(found["raw"]) == b"\x00\x01"


def test_staging_copies_the_same_bytes_that_views_show() -> None:
    image = plan_image(encode({"a": np.arange(7), "b": np.arange(6.0).reshape(2, 3).T, "e": np.zeros(0)})[1])
    staged = bytearray(image.size)
    image.copy_into(memoryview(staged))
    assert bytes(staged) == b"".join(bytes(view) for view in image.views())


def test_arrays_are_aligned_to_their_elements() -> None:
    sources = encode({"u": np.zeros(3, np.uint8), "d": np.zeros(2), "h": np.zeros(3, np.float16)})[1]
    image = plan_image(sources)
    assert len(image.header) % 64 == 0
    for name, record in image.tensors.items():
        assert record.offset % np.dtype(sources[name].value.dtype).itemsize == 0


def test_an_empty_state_is_a_valid_file() -> None:
    image = plan_image({})
    assert safetensors.numpy.load(b"".join(bytes(view) for view in image.views())) == {}
