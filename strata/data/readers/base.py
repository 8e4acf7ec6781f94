"""What a file format must offer: how many rows each block has, and the rows of one block as columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from strata.data.files.listing import FileRef
from strata.data.table.columns import Block
from strata.errors import DataError

__all__ = ["BLOCK_BYTES", "BlockInfo", "BlockRead", "FileIndex", "OnBad", "Reader", "select"]

# Formats without blocks of their own are cut at about this size: small enough to shuffle many, large enough to be fast.
BLOCK_BYTES = 1 << 20

OnBad = Callable[[DataError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockInfo:
    """One block: its rows, its size in memory, and where it is in the file, in units of the format."""

    num_rows: int
    num_bytes: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndex:
    """All that is known of a file without reading its data. `fingerprint` changes with its content."""

    blocks: tuple[BlockInfo, ...]
    schema: Mapping[str, str]
    fingerprint: str

    @property
    def num_rows(self) -> int:
        return sum(block.num_rows for block in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "blocks": [[block.num_rows, block.num_bytes, block.start, block.stop] for block in self.blocks],
            "schema": dict(self.schema),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_dict(cls, note: Mapping[str, Any]) -> "FileIndex":
        return cls(
            blocks=tuple(
                BlockInfo(num_rows=rows, num_bytes=size, start=start, stop=stop)
                for rows, size, start, stop in note["blocks"]
            ),
            schema=note["schema"],
            fingerprint=note["fingerprint"],
        )


class Reader(Protocol):
    """One file format. Readers hold no position and may be used from several threads at once.

    Both calls raise DataError that names the file and, where one can be told, the row of the file.
    """

    suffixes: tuple[str, ...]

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        """The cheapest look that tells the blocks: a footer, a header, or one pass over the bytes."""
        ...

    def read(self, ref: FileRef, path: Path, block: "BlockRead") -> Block:
        """The rows of one block. With `on_bad`, text formats and tar report bad rows and leave them out."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRead:
    """Which block to read and how: `first_row` is its first row in the file, for messages."""

    info: BlockInfo
    first_row: int
    schema: Mapping[str, str]
    columns: tuple[str, ...] | None = None
    on_bad: OnBad | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema) if self.columns is None else self.columns


def select(schema: Mapping[str, str], columns: Sequence[str] | None, file: str) -> tuple[str, ...]:
    """The columns to read, in the order asked for; DataError names those that are missing."""
    if columns is None:
        return tuple(schema)
    missing = [name for name in columns if name not in schema]
    if missing:
        raise DataError(
            f"{file} has no column {', '.join(map(repr, missing))}", file=file, hint=f"It has: {', '.join(schema)}."
        )
    return tuple(columns)
