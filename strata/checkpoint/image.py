"""The exact bytes of a rank's object, planned before any is copied: a safetensors file that any tool can read."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from strata.checkpoint.arrays import ArraySource, itemsize
from strata.checkpoint.manifest import TensorRecord

__all__ = ["Image", "plan_image"]

_ALIGNMENT = 64
# Types that safetensors cannot name are stored under the next plainer one with an extra axis; the manifest knows.
_PLAIN = {"C128": ("F64", 2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Header and arrays in file order. `sources` are the arrays' bytes, `tensors` where each lies from the first byte
    on."""

    header: bytes
    size: int
    tensors: Mapping[str, TensorRecord]
    sources: Mapping[str, ArraySource]

    @property
    def immutable(self) -> bool:
        """Nobody can change these bytes: a save needs no copy of them."""
        return all(source.immutable for source in self.sources.values())

    def views(self) -> Iterator[memoryview]:
        """The bytes straight from the arrays' own memory, for a save during which they do not change."""
        yield memoryview(self.header)
        for name in self.tensors:
            yield self.sources[name].view()

    def copy_into(self, target: memoryview, without: Collection[str] = ()) -> None:
        """The one copy of an asynchronous save; those of `without` are left for later."""
        target[: len(self.header)] = self.header
        for name, record in self.tensors.items():
            if record.nbytes and name not in without:
                self.sources[name].copy_into(target[record.offset : record.offset + record.nbytes])


def plan_image(sources: Mapping[str, ArraySource], note: Mapping[str, str] | None = None) -> Image:
    """Widest elements first, so that every array is aligned to its own element. `note` goes into the header, beside the
    writer."""
    names = sorted(sources, key=lambda name: (-itemsize(sources[name].token), name))
    described: dict[str, object] = {"__metadata__": {"writer": "strata", **(note or {})}}
    position = 0
    for name in names:
        source = sources[name]
        plain, extra = _PLAIN.get(source.token, (source.token, 0))
        shape = [*source.shape, extra] if extra else list(source.shape)
        described[name] = {"dtype": plain, "shape": shape, "data_offsets": [position, position + source.nbytes]}
        position += source.nbytes
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    padded = math.ceil((8 + len(text)) / _ALIGNMENT) * _ALIGNMENT - 8
    header = padded.to_bytes(8, "little") + text.ljust(padded)
    tensors: dict[str, TensorRecord] = {}
    position = len(header)
    for name in names:
        source = sources[name]
        tensors[name] = TensorRecord(
            dtype=source.token,
            shape=source.shape,
            offset=position,
            nbytes=source.nbytes,
            global_shape=None if source.shard is None else tuple(source.shard.global_shape),
            global_offset=None if source.shard is None else tuple(source.shard.global_offset),
        )
        position += source.nbytes
    return Image(header=header, size=position, tensors=tensors, sources=dict(sources))
