"""Parquet: a row group is a block. The index reads footers only; a read decodes one row group, chosen columns only."""

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from strata.data.files.listing import FileRef
from strata.data.readers.base import BlockInfo, BlockRead, FileIndex
from strata.data.table.arrow import arrow, schema_text, to_columns
from strata.data.table.columns import Block
from strata.errors import DataError

__all__ = ["ParquetReader"]


class ParquetReader:
    """Footers are kept for the last files used, so that a block costs one decode and no second parse."""

    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        try:
            metadata = arrow("parquet").read_metadata(file)
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        except (OSError, arrow().ArrowInvalid) as error:
            raise DataError(f"{ref.uri} is not a readable parquet file: {error}", file=ref.uri) from error
        return FileIndex(
            blocks=tuple(
                BlockInfo(num_rows=group.num_rows, num_bytes=group.total_byte_size, start=number, stop=number + 1)
                for number, group in enumerate(groups)
            ),
            schema=schema_text(metadata.schema.to_arrow_schema()),
            fingerprint=_footer_hash(file, ref),
        )

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        try:
            with arrow("parquet").ParquetFile(path, metadata=_footer(path, ref.key)) as file:
                table = file.read_row_group(block.info.start, columns=list(block.names), use_threads=False)
        except (OSError, arrow().ArrowInvalid) as error:
            raise DataError(
                f"{ref.uri}: row group {block.info.start} (from row {block.first_row}) cannot be read: {error}",
                file=ref.uri,
                row=block.first_row,
            ) from error
        columns = to_columns(table, ref.uri)
        return Block(columns={name: columns[name] for name in block.names})


@lru_cache(maxsize=512)
def _footer(path: Path, version: str) -> Any:
    return arrow("parquet").read_metadata(path)


def _footer_hash(file: BinaryIO, ref: FileRef) -> str:
    """The footer holds every offset and statistic of the file: a cheap witness of its content."""
    file.seek(ref.size - 8)
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(ref.size - 8 - length, 0))
    return blake2b(file.read(length), digest_size=16).hexdigest()
