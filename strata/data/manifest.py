"""What a dataset is made of: its files, their blocks and its columns, in a fixed order and with a digest.

Built from footers and headers; notes about files that had to be scanned are kept in the cache. Holds no data.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strata.data.files.cache import LocalCache, default_cache_dir
from strata.data.files.listing import DataFiles, FileRef, files_for
from strata.data.readers import FileIndex, Reader, canonical_format, format_of, reader_for
from strata.data.readers.base import select
from strata.data.table.types import merge_schemas
from strata.errors import DataError, InvalidArgument

__all__ = ["Dataset", "Manifest", "build_manifest", "open_manifest"]

# Formats whose types are guessed from text: there an int column of one file may be a double column of the next.
_GUESSED = {"jsonl", "csv"}
_SCANNED = {"jsonl", "csv", "tar"}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Files and blocks in order. A block is the unit that is read and shuffled; `sizes` are their rows."""

    format: str
    files: tuple[FileRef, ...]
    indexes: tuple[FileIndex, ...]
    schema: Mapping[str, str]
    source: DataFiles

    @cached_property
    def block_files(self) -> NDArray[np.int64]:
        """The file of each block."""
        return np.repeat(np.arange(len(self.files)), [len(index.blocks) for index in self.indexes])

    @cached_property
    def block_numbers(self) -> NDArray[np.int64]:
        """The number of each block inside its file."""
        return _joined([np.arange(len(index.blocks)) for index in self.indexes])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return _joined([np.array([block.num_rows for block in index.blocks], np.int64) for index in self.indexes])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The number of each block's first sample in the whole dataset."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """The number of each block's first row in its file."""
        heads = self.starts[np.searchsorted(self.block_files, self.block_files)]
        return self.starts - heads

    @property
    def num_samples(self) -> int:
        return int(self.sizes.sum())

    def blocks_between(self, start: int, stop: int) -> range:
        """The blocks that hold samples start…stop-1."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        return range(first, int(np.searchsorted(self.starts, stop, side="left")))

    @property
    def num_blocks(self) -> int:
        return len(self.sizes)

    @cached_property
    def block_bytes(self) -> int:
        """The mean size of a block in memory, as far as the index can tell."""
        total = sum(block.num_bytes for index in self.indexes for block in index.blocks)
        return total // max(self.num_blocks, 1)

    @cached_property
    def digest(self) -> str:
        """Names the content and the numbering of samples, not the place: a copy elsewhere has the same digest."""
        hasher = blake2b(self.format.encode(), digest_size=16)
        for ref, index in zip(self.files, self.indexes, strict=True):
            hasher.update(f"\n{ref.name}\0{ref.size}\0{index.fingerprint}".encode())
        hasher.update(self.sizes.astype("<i8").tobytes())
        return hasher.hexdigest()


Dataset = str | PathLike[str] | Sequence[str] | Manifest


def build_manifest(
    paths: str | Sequence[str],
    format: str | None = None,  # noqa: A002  # the word of the contract
    *,
    columns: Sequence[str] | None = None,
    cache: LocalCache | None = None,
    on_bad: Callable[[DataError], None] | None = None,
) -> Manifest:
    """Lists and indexes the files; `columns` limits what must be the same in all of them.

    A file that is broken or empty is an error, or with `on_bad` left out and reported.
    """
    patterns = [paths] if isinstance(paths, str) else list(paths)
    name = canonical_format(format or format_of(patterns))
    reader = reader_for(name)
    cache = cache or LocalCache(default_cache_dir())
    source = files_for(patterns, reader.suffixes, cache)
    notes = cache if name in _SCANNED else None
    kept: list[tuple[FileRef, FileIndex]] = []
    with ThreadPoolExecutor(max_workers=8, thread_name_prefix="strata-index") as pool:
        refs = source.list()
        indexed = pool.map(lambda ref: _indexed(reader, source, ref, notes), refs)
        for ref, found in zip(refs, indexed, strict=True):
            if isinstance(found, FileIndex):
                kept.append((ref, found))
            elif on_bad is None:
                raise found
            else:
                on_bad(found)
    if not kept:
        raise DataError(f"none of the {len(refs)} files of {patterns[0]!r} can be read", file=patterns[0])
    schemas = {
        ref.uri: {name: index.schema[name] for name in select(index.schema, columns, ref.uri)} for ref, index in kept
    }
    return Manifest(
        format=name,
        files=tuple(ref for ref, _ in kept),
        indexes=tuple(index for _, index in kept),
        schema=merge_schemas(schemas, widen=name in _GUESSED),
        source=source,
    )


def open_manifest(
    dataset: Dataset,
    format: str | None,  # noqa: A002  # the word of the contract
    columns: Sequence[str] | None,
    cache_dir: Path | str | None,
    on_bad: Callable[[DataError], None] | None = None,
) -> Manifest:
    """The manifest of what a user gave a loader: one that is there already, a path, or several."""
    if isinstance(dataset, Manifest):
        return dataset
    try:
        paths = [fspath(part) for part in ([dataset] if isinstance(dataset, str | PathLike) else dataset)]
    except TypeError:
        raise InvalidArgument(
            f"the dataset is {dataset!r}, it must be a path, several of them, or the id of a dataset"
        ) from None
    cache = LocalCache(Path(cache_dir or default_cache_dir()))
    return build_manifest(paths, format, columns=columns, cache=cache, on_bad=on_bad)


def _indexed(reader: Reader, source: DataFiles, ref: FileRef, notes: LocalCache | None) -> FileIndex | DataError:
    try:
        if notes is not None and (note := notes.note(ref.key)) is not None:
            return FileIndex.from_dict(note)
        with source.open(ref) as file:
            index = reader.index(ref, file)
        if not index.num_rows:
            return DataError(f"{ref.uri} is empty: it has no rows", file=ref.uri, row=0)
    except DataError as error:
        return error
    if notes is not None:
        notes.put_note(ref.key, index.to_dict())
    return index


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)
