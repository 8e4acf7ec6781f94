"""One array of any library as bytes and back: numpy and jax here, torch beside. It imports no library for a state that
holds none of its arrays, and never pickles.
"""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strata.checkpoint import tensors
from strata.errors import InvalidArgument, MissingExtra, UnsupportedState

__all__ = ["Arena", "ArraySource", "Sharded", "array_source", "itemsize", "restore", "type_name", "writable_bytes"]

# Names that numpy (with ml_dtypes) and torch share → the safetensors names of the same types.
_TOKENS = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "complex128": "C128",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
}
_BYTES = "U8"
_HUGE_PAGES_FROM, _BLOCK, _ALIGNMENT = 4 << 20, 32 << 20, 64
_NAMES = {token: name for name, token in _TOKENS.items()}
_SIZES = {"BOOL": 1, "BF16": 2, "C64": 8, "C128": 16, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}


def itemsize(token: str) -> int:
    known = _SIZES.get(token)
    return int(token[1:]) // 8 if known is None else known


def type_name(token: str) -> str:
    """The name that numpy and torch have for an element type."""
    return _NAMES[token]


@dataclass(frozen=True, slots=True, eq=False)
class Sharded:
    """A part of a larger array: `value` holds the block of `global_shape` that begins at `global_offset`.

    Saved as such, a checkpoint of N ranks can be loaded by M; a load gives back the plain block of its rank.
    """

    value: Any
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]

    def __post_init__(self) -> None:
        shape = tuple(self.value.shape)
        whole, where = tuple(self.global_shape), tuple(self.global_offset)
        fits = len(shape) == len(whole) == len(where) and all(
            at >= 0 and at + size <= limit for at, size, limit in zip(where, shape, whole, strict=True)
        )
        if not fits:
            raise InvalidArgument(f"a block of shape {shape} at {where} does not lie inside {whole}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySource:
    """An array to be saved, described; its bytes are taken by `view` (no copy where possible) or `copy_into`."""

    kind: str
    token: str
    shape: tuple[int, ...]
    value: Any = field(repr=False)
    shard: Sharded | None = None

    @property
    def immutable(self) -> bool:
        """Whether the array looks at a bytes object, which nobody can change."""
        return isinstance(self.value, np.ndarray) and isinstance(self.value.base, bytes)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * itemsize(self.token)

    @property
    def version(self) -> int:
        """Counts the writes that the array's library knows of; 0 where it counts none."""
        return tensors.version(self.value) if self.kind == "torch" else 0

    @property
    def sliceable(self) -> bool:
        """Whether any range of its bytes can be copied later, and by another thread."""
        if self.kind == "torch":
            return tensors.fillable(self.value) and not self.value.is_inference()
        return self.kind == "numpy" and bool(self.value.flags.c_contiguous)

    def view(self) -> memoryview:
        """The array's bytes in C order; the array must stay unchanged while they are in use."""
        return _as_bytes(self.kind, self.value).data

    def copy_into(self, target: memoryview) -> None:
        """Copies the bytes into staging memory once, also from a device."""
        if self.kind == "torch":
            tensors.copy_into(self.value, target)
        elif self.kind == "numpy" and not self.value.flags.c_contiguous:
            np.copyto(np.frombuffer(target, dtype=self.value.dtype).reshape(self.shape), self.value)
        else:
            np.copyto(np.frombuffer(target, dtype=np.uint8), _as_bytes(self.kind, self.value))


def array_source(key: str, value: Any) -> ArraySource | None:
    """Describes `value` when it is an array of a known library, else None. Raises when it is one that cannot be
    stored."""
    if isinstance(value, Sharded):
        inner = array_source(key, value.value)
        if inner is None:
            raise UnsupportedState(f"{key}: Sharded holds a {type(value.value).__qualname__}, it must hold an array")
        return ArraySource(kind=inner.kind, token=inner.token, shape=inner.shape, value=inner.value, shard=value)
    if isinstance(value, bytes | bytearray | memoryview):
        data = np.frombuffer(value, dtype=np.uint8)
        return ArraySource(kind="bytes", token=_BYTES, shape=data.shape, value=data)
    if isinstance(value, np.ndarray | np.generic):
        return _numpy_source(key, value)
    if tensors.is_tensor(value):
        return _torch_source(key, value)
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and hasattr(value, "addressable_shards"):
        if not value.is_fully_addressable:
            raise UnsupportedState(f"{key} is spread over other processes", hint="Save each block as Sharded(…).")
        array = np.asarray(value)
        return ArraySource(kind="jax", token=_token(key, array.dtype.name), shape=array.shape, value=array)
    return None


def _numpy_source(key: str, value: Any) -> ArraySource:
    kind = "numpy" if isinstance(value, np.ndarray) else "scalar"
    array = np.asarray(value)
    token = _token(key, array.dtype.name)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return ArraySource(kind=kind, token=token, shape=array.shape, value=array)


def _torch_source(key: str, value: Any) -> ArraySource:
    part, offset = tensors.part_of(key, value)
    shard = None if offset is None else Sharded(part, tuple(value.shape), offset)
    token = _token(key, tensors.dtype_name(part))
    return ArraySource(kind="torch", token=token, shape=tuple(part.shape), value=part, shard=shard)


def _token(key: str, name: str) -> str:
    token = _TOKENS.get(name)
    if token is None:
        raise UnsupportedState(
            f"{key} has the element type {name}, which cannot be stored without pickle",
            hint="Convert it to numbers or bytes first.",
        )
    return token


def _as_bytes(kind: str, value: Any) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    if kind == "torch":
        return tensors.as_bytes(value)
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


class Arena:
    """Fresh memory for loaded arrays, as flat bytes. Small ones share blocks of up to 32 MiB: numpy asks for huge pages
    only from 4 MiB on, and touching small pages costs more than reading and hashing the bytes (measured, 256 MiB)."""

    def __init__(self) -> None:
        self._block = np.empty(0, dtype=np.uint8)

    def take(self, nbytes: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        if nbytes >= _HUGE_PAGES_FROM:
            return np.empty(nbytes, dtype=np.uint8)
        padded = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        if padded > len(self._block):
            self._block = np.empty(_BLOCK, dtype=np.uint8)
        taken, self._block = self._block[:nbytes], self._block[padded:]
        return taken


def restore(kind: str, token: str, shape: Sequence[int], data: "np.ndarray[Any, np.dtype[np.uint8]]") -> Any:
    """Rebuilds the array in the library it came from, on top of `data`'s memory."""
    if kind == "bytes":
        return data.tobytes()
    if kind == "torch":
        return tensors.restore(_NAMES[token], shape, data)
    array = data.view(_numpy_type(token)).reshape(tuple(shape))
    if kind == "scalar":
        return array[()]
    return _library("jax").numpy.asarray(array) if kind == "jax" else array


def writable_bytes(key: str, source: ArraySource | None) -> memoryview:
    """The memory of an array that a load should fill in place."""
    usable = source is not None and (
        tensors.fillable(source.value)
        if source.kind == "torch"
        else source.kind == "numpy" and source.value.flags.c_contiguous
    )
    if source is None or not usable:
        raise InvalidArgument(f"{key} cannot be filled in place; give a contiguous numpy array or CPU tensor")
    view = source.view()
    if view.readonly:
        raise InvalidArgument(f"{key} is read-only")
    return view


def _numpy_type(token: str) -> Any:
    name = _NAMES[token]
    if token in ("BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0"):
        return np.dtype(getattr(_library("ml_dtypes"), name))
    return np.dtype(name)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(name, "jax") from error
