"""MDS, the format of MosaicML streaming, read only: a way in for data that exists already.

A shard file is: number of samples, offsets, then the samples; index.json beside it says what the columns are.
"""

import json
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from strata.data.files.listing import FileRef
from strata.data.readers.base import BLOCK_BYTES, BlockInfo, BlockRead, FileIndex
from strata.data.table.columns import Block, object_array
from strata.errors import DataError

__all__ = ["MdsReader"]

_INTEGERS = {"int": "int64"} | {name: name for name in ("int8", "int16", "int32", "int64")}
_SCALARS = _INTEGERS | {name: name for name in ("uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")}
_TEXTS = {"str", "json"}
_BYTES = {"bytes", "jpeg", "png"}


class MdsReader:
    """Reads MDS shards. Columns of fixed size are cut out of the whole block at once; only the others are read sample
    by sample."""

    suffixes: tuple[str, ...] = (".mds",)

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        offsets = _offsets(ref, file)
        described = _described(ref)
        rows = len(offsets) - 1
        size = int(offsets[-1] - offsets[0])
        step = max(rows * BLOCK_BYTES // max(size, 1), 1)
        cuts = [*range(0, rows, step), rows]
        return FileIndex(
            blocks=tuple(
                BlockInfo(num_rows=stop - start, num_bytes=int(offsets[stop] - offsets[start]), start=start, stop=stop)
                for start, stop in pairwise(cuts)
            ),
            schema=dict(zip(described["column_names"], described["column_encodings"], strict=True)),
            fingerprint=blake2b(offsets.tobytes(), digest_size=16).hexdigest(),
        )

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        with path.open("rb") as file:
            offsets = _offsets(ref, file)[block.info.start : block.info.stop + 1].astype(np.int64)
            file.seek(int(offsets[0]))
            data = file.read(int(offsets[-1] - offsets[0]))
        if len(data) < offsets[-1] - offsets[0]:
            row = block.first_row + int(np.searchsorted(offsets - offsets[0], len(data), side="right")) - 1
            raise DataError(f"{ref.uri} breaks off in row {row}", file=ref.uri, row=row)
        described = _described(ref)
        spans = _spans(np.frombuffer(data, dtype=np.uint8), offsets - offsets[0], described["column_sizes"])
        columns = {}
        for name in block.names:
            place = described["column_names"].index(name)
            columns[name] = _column(ref, data, spans[place], (name, described["column_encodings"][place]))
        return Block(columns=columns)


def _offsets(ref: FileRef, file: BinaryIO) -> NDArray[np.uint32]:
    file.seek(0)
    count = int.from_bytes(file.read(4), "little")
    head = file.read(4 * (count + 1)) if count < 1 << 28 else b""
    if len(head) != 4 * (count + 1):
        raise DataError(f"{ref.uri} is not a whole MDS shard: its header breaks off", file=ref.uri)
    offsets = np.frombuffer(head, dtype="<u4")
    if count and (int(offsets[-1]) > ref.size or np.any(np.diff(offsets.astype(np.int64)) < 0)):
        raise DataError(f"{ref.uri}: the header names {offsets[-1]} bytes, the file has {ref.size}", file=ref.uri)
    return offsets


def _described(ref: FileRef) -> dict[str, Any]:
    """The entry of this shard in index.json."""
    if "://" in ref.uri:
        raise DataError(f"{ref.uri}: MDS shards are read from local disks only", file=ref.uri, hint="Copy the folder.")
    path = Path(ref.uri)
    try:
        shards = _index_json(str(path.parent), (path.parent / "index.json").stat().st_mtime_ns)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path.parent / 'index.json'} cannot be read: {error!r}", file=ref.uri) from error
    if path.name not in shards:
        raise DataError(f"{ref.uri} is not listed in its index.json", file=ref.uri)
    return shards[path.name]


@lru_cache(maxsize=64)
def _index_json(folder: str, version: int) -> dict[str, dict[str, Any]]:
    shards = json.loads((Path(folder) / "index.json").read_bytes())["shards"]
    return {shard["raw_data"]["basename"]: shard for shard in shards}


def _spans(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: list[int | None]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(start, length) of every value, column by column: the variable sizes stand in front of each sample."""
    starts = offsets[:-1]
    variable = [place for place, size in enumerate(sizes) if size is None]
    heads = (starts[:, None] + np.arange(4 * len(variable))[None, :]).astype(np.int64)
    lengths = data[heads].view("<u4").astype(np.int64) if variable else np.empty((len(starts), 0), dtype=np.int64)
    at = starts + 4 * len(variable)
    spans = []
    for place, size in enumerate(sizes):
        length = lengths[:, variable.index(place)] if size is None else np.full(len(starts), size, dtype=np.int64)
        spans.append((at, length))
        at = at + length
    return spans


def _column(
    ref: FileRef, data: bytes, span: tuple[NDArray[np.int64], NDArray[np.int64]], column: tuple[str, str]
) -> NDArray[Any]:
    starts, lengths = span
    name, encoding = column
    kind, _, rest = encoding.partition(":")
    if kind in _SCALARS:
        return _fixed(data, starts, np.dtype(_SCALARS[kind]), ())
    if kind == "ndarray" and rest.count(":") == 1:
        dtype, _, shape = rest.partition(":")
        return _fixed(data, starts, np.dtype(dtype), tuple(map(int, shape.split(","))))
    values = [data[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]
    if kind in _TEXTS:
        return object_array([value.decode() for value in values])
    if kind in _BYTES:
        return object_array(values)
    raise DataError(
        f"{ref.uri}: column {name!r} has the encoding {encoding!r}, which is not supported",
        file=ref.uri,
        hint="Read other columns with columns=, or convert the data to parquet.",
    )


def _fixed(data: bytes, starts: NDArray[np.int64], dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    width = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(data, dtype=np.uint8)
    cells: NDArray[Any] = flat[starts[:, None] + np.arange(width)[None, :]].view(dtype)
    return cells.reshape(len(starts), *shape)
