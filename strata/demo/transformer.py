"""A small transformer in NumPy, with its gradient by hand. All parameters lie in one vector, so that ranks add their
gradients in one sum, and all its arithmetic has a fixed order, so that the same data gives the same bits.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shape", "Transformer"]

Array = NDArray[np.float32]

_TINY = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large it is."""

    letters: int
    context: int
    width: int = 96
    heads: int = 4
    layers: int = 2

    def parameters(self) -> dict[str, tuple[int, ...]]:
        width = self.width
        found: dict[str, tuple[int, ...]] = {"letters": (self.letters, width), "places": (self.context, width)}
        for layer in range(self.layers):
            found |= {
                f"{layer}/attention": (width, 3 * width),
                f"{layer}/joined": (width, width),
                f"{layer}/wide": (width, 4 * width),
                f"{layer}/narrow": (4 * width, width),
            }
        return found | {"output": (width, self.letters)}


class Transformer:
    """`params` are views of `vector` by name; so are the gradients of `gradient`'s answer."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self.vector = np.zeros(sum(math.prod(size) for size in shape.parameters().values()), np.float32)
        self.params = self._named(self.vector)
        chance = np.random.default_rng(seed)
        for name, value in self.params.items():
            scale = 0.02 if name in ("letters", "places") else 1 / math.sqrt(value.shape[0])
            value[...] = chance.normal(0, scale, value.shape)
        self._future = np.triu(np.full((shape.context, shape.context), -1e9, np.float32), 1)

    def _named(self, vector: Array) -> dict[str, Array]:
        named, start = {}, 0
        for name, size in self.shape.parameters().items():
            named[name] = vector[start : start + math.prod(size)].reshape(size)
            start += math.prod(size)
        return named

    def loss(self, letters: NDArray[np.int64]) -> float:
        """The mean over all letters but the first of each row, in nats."""
        odds, _ = self._forward(letters[:, :-1])
        return _mean_loss(odds, letters[:, 1:])

    def next_odds(self, letters: NDArray[np.int64]) -> Array:
        """Of every letter to come after this row."""
        odds, _ = self._forward(letters[None, -self.shape.context :])
        last: Array = odds[0, -1]
        return last

    def gradient(self, letters: NDArray[np.int64]) -> tuple[Array, float]:
        """(the gradient of the mean loss as one vector, the mean loss) of rows of letters."""
        inputs, targets = letters[:, :-1], letters[:, 1:]
        odds, kept = self._forward(inputs)
        loss = _mean_loss(odds, targets)
        error = odds
        np.put_along_axis(error, targets[..., None], np.take_along_axis(error, targets[..., None], 2) - 1, 2)
        error /= np.float32(targets.size)
        vector = np.zeros_like(self.vector)
        self._backward(inputs, error, kept, self._named(vector))
        return vector, loss

    def _forward(self, letters: NDArray[np.int64]) -> tuple[Array, list[Any]]:
        p = self.params
        x = p["letters"][letters] + p["places"][: letters.shape[1]]
        kept: list[Any] = []
        for layer in range(self.shape.layers):
            x, attention = self._attend(x, p[f"{layer}/attention"], p[f"{layer}/joined"])
            h, scale = _normed(x)
            wide = np.maximum(h @ p[f"{layer}/wide"], 0)
            x = x + np.square(wide) @ p[f"{layer}/narrow"]
            kept.append((attention, h, scale, wide))
        h, scale = _normed(x)
        kept.append((h, scale))
        return _softmax(h @ p["output"]), kept

    def _attend(self, x: Array, weights: Array, joined: Array) -> tuple[Array, tuple[Any, ...]]:
        rows, length, width = x.shape
        heads = self.shape.heads
        h, scale = _normed(x)
        q, k, v = (h @ weights).reshape(rows, length, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
        root = np.float32(1 / math.sqrt(width // heads))
        odds = _softmax(q @ k.swapaxes(2, 3) * root + self._future[:length, :length])
        mixed = (odds @ v).swapaxes(1, 2).reshape(rows, length, width)
        return x + mixed @ joined, (h, scale, q, k, v, odds, mixed)

    def _backward(self, letters: NDArray[np.int64], error: Array, kept: list[Any], into: dict[str, Array]) -> None:
        """Fills `into`, the gradients by name."""
        p = self.params
        h, scale = kept.pop()
        into["output"][...] = _outer(h, error)
        dx = _unnormed(error @ p["output"].T, h, scale)
        for layer in reversed(range(self.shape.layers)):
            attention, h, scale, wide = kept.pop()
            into[f"{layer}/narrow"][...] = _outer(np.square(wide), dx)
            back = 2 * wide * (dx @ p[f"{layer}/narrow"].T)
            into[f"{layer}/wide"][...] = _outer(h, back)
            dx = dx + _unnormed(back @ p[f"{layer}/wide"].T, h, scale)
            dx = dx + self._attended(dx, attention, f"{layer}/", into)
        into["places"][: letters.shape[1]] = dx.sum(axis=0)
        np.add.at(into["letters"], letters, dx)

    def _attended(self, dx: Array, kept: tuple[Any, ...], layer: str, into: dict[str, Array]) -> Array:
        """What reaches the input of an attention by way of its heads."""
        h, scale, q, k, v, odds, mixed = kept
        rows, heads, length, size = q.shape
        into[f"{layer}joined"][...] = _outer(mixed, dx)
        back = (dx @ self.params[f"{layer}joined"].T).reshape(rows, length, heads, size).swapaxes(1, 2)
        d_odds = back @ v.swapaxes(2, 3)
        d_scores = odds * (d_odds - (d_odds * odds).sum(axis=3, keepdims=True)) * np.float32(1 / math.sqrt(size))
        parts = np.stack([d_scores @ k, d_scores.swapaxes(2, 3) @ q, odds.swapaxes(2, 3) @ back])
        flat = parts.transpose(1, 3, 0, 2, 4).reshape(rows, length, -1)
        into[f"{layer}attention"][...] = _outer(h, flat)
        return _unnormed(flat @ self.params[f"{layer}attention"].T, h, scale)


def _normed(x: Array) -> tuple[Array, Array]:
    """Each vector at length √width, and what it was divided by."""
    scale: Array = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(_TINY))
    return x / scale, scale


def _unnormed(d: Array, h: Array, scale: Array) -> Array:
    """The gradient of the vectors before `_normed`."""
    back: Array = (d - h * (d * h).mean(axis=-1, keepdims=True)) / scale
    return back


def _softmax(scores: Array) -> Array:
    odds: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    odds /= odds.sum(axis=-1, keepdims=True)
    return odds


def _outer(left: Array, right: Array) -> Array:
    """The gradient of a matrix that took `left` and gave what `right` is the gradient of, over all letters."""
    product: Array = left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
    return product


def _mean_loss(odds: Array, targets: NDArray[np.int64]) -> float:
    right = np.take_along_axis(odds, targets[..., None], 2)
    return float(-np.log(np.maximum(right, 1e-30)).mean(dtype=np.float64))
