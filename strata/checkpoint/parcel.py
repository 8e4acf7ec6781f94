"""A training state as one run of bytes, for a peer instead of a store: hashed by the sender, checked on arrival, and
never a pickle.
"""

import json
from typing import Any

import numpy as np
import xxhash

from strata.checkpoint.arrays import restore
from strata.checkpoint.codec import decode, encode
from strata.checkpoint.image import plan_image
from strata.errors import CorruptCheckpoint

__all__ = ["pack", "unpack"]

_HASH_BYTES = 16
_LENGTH_BYTES = 8


def pack(state: Any) -> memoryview:
    """Hash, length of the description, description, arrays. The arrays are copied once."""
    tree, arrays = encode(state)
    image = plan_image(arrays)
    described = [
        [name, arrays[name].kind, record.dtype, list(record.shape), record.offset, record.nbytes]
        for name, record in image.tensors.items()
    ]
    text = json.dumps({"tree": tree, "arrays": described}).encode()
    first = -(-(_HASH_BYTES + _LENGTH_BYTES + len(text)) // 64) * 64  # aligned, so that arrays can lie where they come
    data = np.empty(first + image.size, dtype=np.uint8).data
    data[_HASH_BYTES : _HASH_BYTES + _LENGTH_BYTES] = first.to_bytes(_LENGTH_BYTES, "little")
    data[_HASH_BYTES + _LENGTH_BYTES : first] = text.ljust(first - _HASH_BYTES - _LENGTH_BYTES)
    image.copy_into(data[first:])
    data[:_HASH_BYTES] = xxhash.xxh3_128_digest(data[_HASH_BYTES:])
    return data


def unpack(data: bytes | memoryview) -> Any:
    """The state that was packed. Raises CorruptCheckpoint when a byte has changed on the way."""
    view = memoryview(data)
    if len(view) < _HASH_BYTES + _LENGTH_BYTES or xxhash.xxh3_128_digest(view[_HASH_BYTES:]) != bytes(
        view[:_HASH_BYTES]
    ):
        raise CorruptCheckpoint(
            f"a state of {len(view)} bytes came from a peer with another hash than it was sent with"
        )
    start = _HASH_BYTES + _LENGTH_BYTES
    first = int.from_bytes(view[_HASH_BYTES:start], "little")
    described = json.loads(bytes(view[start:first]))
    content = np.frombuffer(view[first:], dtype=np.uint8)
    arrays = {
        name: restore(kind, token, shape, content[offset : offset + nbytes].copy())
        for name, kind, token, shape, offset, nbytes in described["arrays"]
    }
    return decode(described["tree"], arrays)
