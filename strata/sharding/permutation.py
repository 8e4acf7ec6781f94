"""A keyed permutation of 0…n-1 with random access and no array of n: mixed-radix Feistel network, 8 rounds.

Cost: about 40 ns per index, O(1) memory at any n. Fewer rounds measurably fail (4: adjacency z-score 196 at n=97).
Below SMALL the whole permutation is an argsort of hashes: at such sizes a Feistel domain is too coarse.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from strata.sharding.hashing import derive_key, hash_order, mix64

__all__ = ["ROUNDS", "SMALL", "Permutation"]

ROUNDS = 8
SMALL = 1024
_S32 = np.uint64(32)


class Permutation:
    """Calling it maps positions to values; `inverse` maps back. Frozen by golden vectors: epochs are made of it."""

    __slots__ = ("_left", "_right", "_rounds", "_table", "size")

    def __init__(self, size: int, key: int) -> None:
        if not 0 <= size < 1 << 62:
            raise ValueError(f"a permutation of {size} elements is out of range")
        self.size = size
        self._table = hash_order(size, key) if size < SMALL else None
        # left*right >= size with left close to the root: at most `left` values lie outside, so walks are short.
        self._left = max(1, math.isqrt(size))
        self._right = -(-size // self._left)
        # Spread over the high bits, so that round keys never cancel against the small numbers they are mixed with.
        self._rounds = mix64(np.arange(ROUNDS, dtype=np.uint64) + np.uint64(derive_key("feistel", key)))

    def __call__(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._table is not None:
            return self._table[positions]
        return self._walk(positions, self._forward)

    def inverse(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._table is not None:
            return np.argsort(self._table, kind="stable")[values]
        return self._walk(values, self._backward)

    def all(self) -> NDArray[np.int64]:
        """The whole permutation as an array: for windows, not for whole datasets."""
        return self(np.arange(self.size, dtype=np.int64))

    def _walk(
        self, given: NDArray[np.int64], step: Callable[[NDArray[np.uint64]], NDArray[np.uint64]]
    ) -> NDArray[np.int64]:
        if given.size and (int(given.min()) < 0 or int(given.max()) >= self.size):
            raise IndexError(f"positions {given.min()}…{given.max()} are outside 0…{self.size - 1}")
        found = step(given.astype(np.uint64))
        # Cycle walking: what falls outside 0…size-1 goes through again; the cycle it is on must come back inside.
        outside = np.flatnonzero(found >= self.size)
        while outside.size:
            again = step(found[outside])
            found[outside] = again
            outside = outside[again >= self.size]
        return found.astype(np.int64)

    def _forward(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = np.divmod(values, np.uint64(self._right))
        for number in range(0, ROUNDS, 2):
            left = _add(left, _scaled(right, self._rounds[number], self._left), self._left)
            right = _add(right, _scaled(left, self._rounds[number + 1], self._right), self._right)
        return left * np.uint64(self._right) + right

    def _backward(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = np.divmod(values, np.uint64(self._right))
        for number in range(ROUNDS - 2, -1, -2):
            right = _subtract(right, _scaled(left, self._rounds[number + 1], self._right), self._right)
            left = _subtract(left, _scaled(right, self._rounds[number], self._left), self._left)
        return left * np.uint64(self._right) + right


def _scaled(half: NDArray[np.uint64], key: np.uint64, radix: int) -> NDArray[np.uint64]:
    """A hash of `half` in 0…radix-1, by multiplication of the high 32 bits: radix < 2³¹, and no slow modulo."""
    mixed = mix64(half ^ key)
    mixed >>= _S32
    mixed *= np.uint64(radix)
    mixed >>= _S32
    return mixed


def _add(half: NDArray[np.uint64], other: NDArray[np.uint64], radix: int) -> NDArray[np.uint64]:
    other += half
    other -= (other >= np.uint64(radix)) * np.uint64(radix)
    return other


def _subtract(half: NDArray[np.uint64], other: NDArray[np.uint64], radix: int) -> NDArray[np.uint64]:
    return _add(half, np.uint64(radix) - other, radix)
