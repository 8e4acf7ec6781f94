"""WebDataset tar: consecutive members with one base name are a sample, their extensions its columns.

The index is one pass over the headers. Values are bytes, except texts and class numbers; images stay encoded.
"""

import os
import tarfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from strata.data.files.listing import FileRef
from strata.data.readers.base import BLOCK_BYTES, BlockInfo, BlockRead, FileIndex
from strata.data.table.columns import Block, Columns, object_array
from strata.errors import DataError

__all__ = ["KEY", "TarReader"]

KEY = "__key__"
_NUMBERS = {"cls", "cls2", "class", "count", "index", "inx", "id"}
_TEXTS = {"txt", "text", "transcript", "json", "jsn"}


class TarReader:
    """Blocks are byte ranges that begin at a header and hold whole samples; a read parses the headers in its range."""

    suffixes: tuple[str, ...] = (".tar",)

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        blocks: list[BlockInfo] = []
        schema: dict[str, str] = {}
        hasher = blake2b(digest_size=16)
        start, rows, key, end = 0, 0, None, 0
        for member, found in _members(ref, file, ref.size):
            base, extension = _split(member.name)
            hasher.update(f"{member.name}\0{member.size}\0{found}\n".encode())
            if base != key:
                if found - start >= BLOCK_BYTES:
                    blocks.append(BlockInfo(num_rows=rows, num_bytes=found - start, start=start, stop=found))
                    start, rows = found, 0
                rows, key = rows + 1, base
            schema[extension] = _kind(extension)
            end = member.offset_data + -(-member.size // 512) * 512  # a tar is made of whole blocks
        if rows:
            blocks.append(BlockInfo(num_rows=rows, num_bytes=end - start, start=start, stop=end))
        return FileIndex(blocks=tuple(blocks), schema={KEY: "string", **schema}, fingerprint=hasher.hexdigest())

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        samples: list[dict[str, Any]] = []
        with path.open("rb") as file:
            file.seek(block.info.start)
            for member, _ in _members(ref, file, block.info.stop):
                base, extension = _split(member.name)
                if not samples or samples[-1][KEY] != base:
                    samples.append({KEY: base})
                if extension in block.names:
                    samples[-1][extension] = os.pread(file.fileno(), member.size, member.offset_data)
        return _assembled(ref, samples, block)


def _members(ref: FileRef, file: BinaryIO, stop: int) -> Iterator[tuple[tarfile.TarInfo, int]]:
    """(member, offset of its first header), files only, up to `stop`; a tar that breaks off is an error."""
    last = "its beginning"
    try:
        # The stream mode of tarfile would read every byte; this opens at the file's present place and seeks.
        with tarfile.open(fileobj=file, mode="r:") as tar:
            while tar.offset < stop and (member := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # else tarfile keeps every member for ever
                if member.offset_data + member.size > ref.size:
                    raise tarfile.ReadError("unexpected end of data")
                last = member.name
                if member.isfile() and not Path(member.name).name.startswith("."):
                    yield member, member.offset
            if stop == ref.size:
                _check_end(ref, file, tar, last)
    except tarfile.TarError as error:
        raise DataError(f"{ref.uri} breaks off after {last}: {error}", file=ref.uri) from error


def _check_end(ref: FileRef, file: BinaryIO, tar: tarfile.TarFile, last: str) -> None:
    """A whole tar ends in a block of zeros: without it, samples may be missing and nobody would know."""
    file.seek(max(ref.size - 512, 0))
    if any(file.read(512)):
        raise DataError(
            f"{ref.uri} breaks off after {last}: the end-of-archive mark is missing",
            file=ref.uri,
            hint="The file is truncated: copy it again. on_error='skip' leaves the whole file out.",
        )


def _split(name: str) -> tuple[str, str]:
    folder, _, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return f"{folder}/{stem}" if folder else stem, extension.lower()


def _kind(extension: str) -> str:
    last = extension.rpartition(".")[2]
    return "int64" if last in _NUMBERS else "string" if last in _TEXTS else "binary"


def _assembled(ref: FileRef, samples: list[dict[str, Any]], block: BlockRead) -> Block:
    kept: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, sample in enumerate(samples):
        try:
            rows.append(_decoded(ref, sample, block, block.first_row + number))
            kept.append(number)
        except DataError as error:
            if block.on_bad is None:
                raise
            block.on_bad(error)
    columns: Columns = {
        name: np.array([row[name] for row in rows], dtype=np.int64)
        if block.schema[name] == "int64"
        else object_array([row[name] for row in rows])
        for name in block.names
    }
    return Block(columns=columns, kept=None if len(kept) == len(samples) else np.array(kept, dtype=np.int64))


def _decoded(ref: FileRef, sample: dict[str, Any], block: BlockRead, row: int) -> dict[str, Any]:
    decoded: dict[str, Any] = {}
    for name in block.names:
        if name not in sample:
            raise DataError(f"{ref.uri}: sample {sample[KEY]!r} (row {row}) has no .{name}", file=ref.uri, row=row)
        value = sample[name]
        try:
            kind = block.schema[name]
            whole = name == KEY or kind == "binary"
            decoded[name] = value if whole else int(value) if kind == "int64" else value.decode()
        except ValueError as error:
            text = f"{ref.uri}: .{name} of sample {sample[KEY]!r} (row {row}) is not {block.schema[name]}: {error}"
            raise DataError(text, file=ref.uri, row=row) from error
    return decoded
