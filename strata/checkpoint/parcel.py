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
_START = _HASH_BYTES + _LENGTH_BYTES  # of the description
_ALIGNMENT = 64


def pack(state: Any) -> list[memoryview]:
    """The pieces of the parcel in order: hash, length of the description, description; then the arrays from their own
    memory, which must not change before they are sent."""
    tree, arrays = encode(state)
    image = plan_image(arrays)
    described = [
        [name, arrays[name].kind, record.dtype, list(record.shape), record.offset - len(image.header), record.nbytes]
        for name, record in image.tensors.items()
    ]
    text = json.dumps({"tree": tree, "arrays": described}).encode()
    first = -(-(_START + len(text)) // _ALIGNMENT) * _ALIGNMENT  # so that arrays can stay where they arrive
    head = first.to_bytes(_LENGTH_BYTES, "little") + text.ljust(first - _START)
    contents = [arrays[name].view() for name, record in image.tensors.items() if record.nbytes]
    digest = xxhash.xxh3_128()
    digest.update(head)
    for piece in contents:
        digest.update(piece)
    return [memoryview(digest.digest() + head), *contents]


def unpack(data: memoryview) -> Any:
    """The state that was packed. Its arrays lie in `data`, which is theirs from now on. Raises CorruptCheckpoint when a
    byte has changed on the way."""
    if len(data) < _START or xxhash.xxh3_128_digest(data[_HASH_BYTES:]) != bytes(data[:_HASH_BYTES]):
        raise CorruptCheckpoint(
            f"a state of {len(data)} bytes came from a peer with another hash than it was sent with"
        )
    first = int.from_bytes(data[_HASH_BYTES:_START], "little")
    described = json.loads(bytes(data[_START:first]))
    content = np.frombuffer(data[first:], dtype=np.uint8)
    arrays = {
        name: restore(kind, token, shape, content[offset : offset + nbytes])
        for name, kind, token, shape, offset, nbytes in described["arrays"]
    }
    return decode(described["tree"], arrays)
