"""What goes in comes out; what would need pickle is refused by its name."""

import dataclasses
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.checkpoint.arrays import Sharded, restore
from strata.checkpoint.codec import check_json, decode, encode, kinds
from strata.errors import InvalidArgument, UnsupportedState


def _round_trip(state: Any) -> Any:
    tree, sources = encode(state)
    kind = kinds(tree)
    arrays = {
        name: restore(kind[name], each.token, each.shape, np.frombuffer(bytes(each.view()), dtype=np.uint8))
        for name, each in sources.items()
    }
    return decode(tree, arrays)


_keys = st.text(max_size=5) | st.integers(-3, 3) | st.sampled_from(["$array", "$map", "$tuple", "kind", "a/b"])
_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary()
_states = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=12,
)


@given(_states)
def test_any_state_comes_back_equal_with_its_types(state: Any) -> None:
    back = _round_trip(state)
    assert back == state
    assert repr(back) == repr(state)  # 1 and True, [] and () are equal but not the same; so is the order of keys


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16", ">f4"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_every_numpy_type_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).astype(dtype).reshape(shape)
    back = _round_trip({"x": array})["x"]
    assert np.array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("<")
    assert back.shape == shape


def test_arrays_that_are_not_contiguous() -> None:
    base = np.arange(24).reshape(4, 6)
    for array in (base[::2], base.T, base[:, 1:3], np.asfortranarray(base)):
        source = encode({"x": array})[1]["x"]
        assert np.array_equal(_round_trip({"x": array})["x"], array)
        staged = bytearray(source.nbytes)
        source.copy_into(memoryview(staged))
        assert bytes(staged) == bytes(source.view())


def test_numbers_that_json_lacks_and_numpy_scalars() -> None:
    back = _round_trip({"nan": math.nan, "inf": -math.inf, "z": 1 + 2j, "s": np.float32(3.5), "b": np.bool_(True)})
    assert math.isnan(back["nan"])
    assert back["inf"] == -math.inf
    assert (back["z"], back["s"], type(back["s"])) == (1 + 2j, np.float32(3.5), np.float32)


def test_names_are_paths_and_a_flat_dict_keeps_its_own() -> None:
    x = np.zeros(1)
    assert list(encode({"fc.weight": x, "opt": {0: {"m": x}}, "l": [x]})[1]) == ["fc.weight", "opt/0/m", "l/0"]
    tree, arrays = encode({"a/b": x, "a": {"b": x + 1}})
    assert list(arrays) == ["a/b", "a/b~2"]
    assert decode(tree, {"a/b": 1, "a/b~2": 2}) == {"a/b": 1, "a": {"b": 2}}


@dataclasses.dataclass
class _Config:
    lr: float = 0.1


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ({"opt": {"cfg": _Config()}}, "opt/cfg"),
        ({"f": print}, "'f'"),
        ({"names": np.array(["a", None], dtype=object)}, "names"),
        ({"set": {1, 2}}, "'set'"),
        ({"when": np.array(["2026-01-01"], dtype="datetime64[D]")}, "datetime64"),
        ({(1, 2): 3}, r"\(1, 2\)"),
        (_Config(), "the state"),
    ],
)
def test_what_would_need_pickle_is_refused_by_name(state: Any, named: str) -> None:
    with pytest.raises(UnsupportedState, match=named):
        encode(state)


def test_a_state_that_holds_itself_is_refused() -> None:
    state: dict[str, Any] = {}
    state["me"] = state
    with pytest.raises(UnsupportedState, match="holds itself"):
        encode(state)


def test_metadata_must_be_plain_json() -> None:
    assert check_json("metadata", {"a": [1, 2.5, None, "x", (True,)]}) == {"a": [1, 2.5, None, "x", [True]]}
    for value in ({"a": math.nan}, {"a": {1: 2}}, {"a": np.zeros(1)}, {"a": b"x"}):
        with pytest.raises(UnsupportedState, match="metadata"):
            check_json("metadata", value)
    for odd, named in (({"a": ["\ud800"]}, r"metadata\['a'\]\[0\]"), ({"\ud800": 1}, "a key of metadata")):
        with pytest.raises(InvalidArgument, match=f"{named} holds half a character"):
            check_json("metadata", odd)


def test_a_shard_must_lie_inside_its_array() -> None:
    block = np.zeros((2, 3))
    assert encode({"w": Sharded(block, (8, 3), (6, 0))})[1]["w"].shard is not None
    for shape, offset in (((8, 3), (7, 0)), ((8,), (0,)), ((8, 3), (-1, 0))):
        with pytest.raises(InvalidArgument, match="does not lie inside"):
            Sharded(block, shape, offset)


def test_neither_torch_nor_jax_is_imported_for_states_without_them() -> None:
    """In a process of its own: another test of this one may have imported them."""
    script = """
import sys, numpy
from strata.checkpoint.codec import encode
encode({"x": numpy.zeros(3), "y": [1, "two"]})
assert not {"torch", "jax"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=240)
