"""NumPy files: .npy is mapped, one column named `data`; .npz gives one column per array, all of equal length."""

import threading
import zipfile
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from strata.data.files.listing import FileRef
from strata.data.readers.base import BLOCK_BYTES, BlockInfo, BlockRead, FileIndex
from strata.data.table.columns import Block
from strata.errors import DataError

__all__ = ["NpyReader"]

_DATA = "data"
# NumPy reads a header by ast.literal_eval, and Python 3.11 may fail there (SystemError) when several threads do it.
_parsing = threading.Lock()


class NpyReader:
    """Object arrays are refused: they are pickles, and a pickle is a program."""

    suffixes: tuple[str, ...] = (".npy", ".npz")

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        try:
            shapes = _headers(file) if ref.name.endswith(".npz") else {_DATA: _header(file)}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{ref.uri} is not a readable NumPy file: {error}", file=ref.uri) from error
        for name, (shape, kind) in shapes.items():
            if not shape or kind.hasobject:
                raise DataError(f"{ref.uri}: {name!r} is {kind} of shape {shape}: no rows can be read", file=ref.uri)
        lengths = {name: shape[0] for name, (shape, _) in shapes.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"{ref.uri}: its arrays differ in length: {lengths}", file=ref.uri)
        total = next(iter(lengths.values()), 0)
        row_bytes = sum(int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize for shape, kind in shapes.values())
        schema = {name: f"{kind}{list(shape[1:])}" for name, (shape, kind) in shapes.items()}
        return FileIndex(
            blocks=_blocks(total, max(row_bytes, 1)), schema=schema, fingerprint=_fingerprint(ref, file, schema)
        )

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        try:
            arrays = _opened(str(path), ref.key)
            # Copied out of the map: a damaged page must fail here, where the file is known, not in the training step.
            columns = {name: np.array(arrays[name][block.info.start : block.info.stop]) for name in block.names}
        except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
            text = f"{ref.uri}: rows from {block.first_row} cannot be read: {error}"
            raise DataError(text, file=ref.uri, row=block.first_row) from error
        for name, values in columns.items():
            if len(values) != block.info.num_rows:
                text = f"{ref.uri}: {name!r} ends at row {block.first_row + len(values)}"
                raise DataError(text, file=ref.uri, row=block.first_row + len(values))
        return Block(columns=columns)


def _blocks(total: int, row_bytes: int) -> tuple[BlockInfo, ...]:
    step = max(BLOCK_BYTES // row_bytes, 1)
    return tuple(
        BlockInfo(
            num_rows=min(step, total - start),
            num_bytes=min(step, total - start) * row_bytes,
            start=start,
            stop=min(start + step, total),
        )
        for start in range(0, total, step)
    )


@lru_cache(maxsize=8)
def _opened(path: str, version: str) -> dict[str, NDArray[Any]]:
    found = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(found, np.ndarray):
        return {_DATA: found}
    with found:
        return {name: found[name] for name in found.files}


def _headers(file: BinaryIO) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    with zipfile.ZipFile(file) as archive:
        found = {}
        for name in archive.namelist():
            with archive.open(name) as member:
                found[name.removesuffix(".npy")] = _header(member)
        return found


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with _parsing:
        shape, _, kind = read(file)
    return shape, kind


def _fingerprint(ref: FileRef, file: BinaryIO, schema: dict[str, str]) -> str:
    """Header, both ends and the size: reading all of a mapped file would cost what mapping saves."""
    hasher = blake2b(f"{ref.size}{schema}".encode(), digest_size=16)
    for place in (0, max(ref.size - 65536, 0)):
        file.seek(place)
        hasher.update(file.read(65536))
    return hasher.hexdigest()
