"""A state on its way to a peer: it arrives bit for bit, or not at all."""

import numpy as np
import pytest

from strata.checkpoint.parcel import pack, unpack
from strata.errors import CorruptCheckpoint, UnsupportedState

_STATE = {
    "model": {"weights": np.arange(12.0).reshape(3, 4), "bias": np.float32(2.5), "empty": np.zeros((0, 3))},
    "optimizer": {"state": {0: {"step": 3}}, "betas": (0.9, float("nan"))},
    "bytes": b"\x00\xff",
    "big": 2**70,
}


def _sent(state: object) -> bytearray:
    return bytearray(b"".join(pack(state)))


def test_it_arrives_bit_for_bit() -> None:
    found = unpack(memoryview(_sent(_STATE)))
    assert found["model"]["weights"].tobytes() == _STATE["model"]["weights"].tobytes()  # type: ignore[index]
    assert found["model"]["weights"].shape == (3, 4)
    assert (found["model"]["bias"], found["model"]["empty"].shape) == (2.5, (0, 3))
    assert (found["optimizer"]["state"], found["bytes"], found["big"]) == ({0: {"step": 3}}, b"\x00\xff", 2**70)
    assert found["optimizer"]["betas"][0] == 0.9
    found["model"]["weights"][0] = 1.0  # its own memory, which may change


@pytest.mark.parametrize("place", [0, 17, 30, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    data = _sent(_STATE)
    data[place] ^= 1
    with pytest.raises(CorruptCheckpoint, match="another hash"):
        unpack(memoryview(data))


def test_what_was_cut_off_is_noticed() -> None:
    for size in (0, 10, 100):
        with pytest.raises(CorruptCheckpoint):
            unpack(memoryview(_sent(_STATE))[:size])


def test_what_would_need_a_pickle_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedState, match="model/hook"):
        pack({"model": {"hook": object()}})
