"""Hashes that mean the same in every process, version and machine: splitmix64 for integers, BLAKE2b for names.

Frozen by golden vectors in the tests. Python's own hash() is never used: it differs between processes.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["derive_key", "hash_ints", "hash_name", "hash_order", "mix64"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_S32, _S48 = np.uint64(32), np.uint64(48)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64 of each value: a bijection of 64 bits with full avalanche, about 5 ns each."""
    mixed = values + _GAMMA
    shifted = mixed >> _S30
    mixed ^= shifted
    mixed *= _MIX_1
    np.right_shift(mixed, _S27, out=shifted)
    mixed ^= shifted
    mixed *= _MIX_2
    np.right_shift(mixed, _S31, out=shifted)
    mixed ^= shifted
    return mixed


def hash_ints(values: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """A keyed hash of integers: two mixes, so that neighbouring keys give unrelated orders."""
    return mix64(mix64(values) ^ np.uint64(key))


@lru_cache(maxsize=1 << 16)
def hash_name(name: str) -> int:
    """64 bits of a name, the same everywhere. Remembered: a change of membership sorts all names by it."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def derive_key(*parts: int | str) -> int:
    """One 64-bit key out of several parts; ('ab', 'c') and ('a', 'bc') differ, 1 and '1' too."""
    digest = blake2b(digest_size=8)
    for part in parts:
        kind, text = (b"i", b"%d" % part) if isinstance(part, int) else (b"s", part.encode())
        digest.update(b"%c%d:%b" % (kind, len(text), text))
    return int.from_bytes(digest.digest(), "little")


def hash_order(count: int, key: int) -> NDArray[np.int64]:
    """The numbers 0…count-1 in the order of their keyed hash, which is a bijection: there are no ties.

    NumPy sorts 16-bit numbers by radix, 12 times faster than 64-bit ones: two such passes over the high 32 bits leave
    only the few pairs that agree in them, and timsort is quick where little is out of order.
    """
    hashes = hash_ints(np.arange(count, dtype=np.uint64), key)
    order = np.argsort((hashes >> _S32).astype(np.uint16), kind="stable")
    order = order[np.argsort((hashes >> _S48).astype(np.uint16)[order], kind="stable")]
    ordered = hashes[order]
    if (ordered[1:] < ordered[:-1]).any():
        order = order[np.argsort(ordered, kind="stable")]
    return order.astype(np.int64, copy=False)
