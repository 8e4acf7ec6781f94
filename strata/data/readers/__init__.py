"""One reader per file format, behind one small Protocol; the format is named by the user or told by the suffix."""

from collections.abc import Callable, Sequence

from strata.data.readers.base import BlockInfo, BlockRead, FileIndex, Reader
from strata.data.readers.csv import CsvReader
from strata.data.readers.jsonl import JsonLinesReader
from strata.data.readers.mds import MdsReader
from strata.data.readers.npy import NpyReader
from strata.data.readers.parquet import ParquetReader
from strata.data.readers.tar import TarReader
from strata.errors import InvalidArgument

__all__ = ["FORMATS", "BlockInfo", "BlockRead", "FileIndex", "Reader", "canonical_format", "format_of", "reader_for"]

FORMATS: dict[str, Callable[[], Reader]] = {
    "csv": CsvReader,
    "jsonl": JsonLinesReader,
    "mds": MdsReader,
    "npy": NpyReader,
    "parquet": ParquetReader,
    "tar": TarReader,
}
_ALIASES = {"webdataset": "tar", "wds": "tar", "npz": "npy", "ndjson": "jsonl", "json": "jsonl", "tsv": "csv"}


def format_of(patterns: Sequence[str]) -> str:
    """The format that the suffix of the first path or glob tells."""
    for pattern in patterns:
        for name, reader in FORMATS.items():
            if pattern.lower().endswith(reader().suffixes):
                return name
    raise InvalidArgument(
        f"the format of {patterns[0] if patterns else ''!r} cannot be told from its name",
        hint=f"Give format=, one of: {', '.join(FORMATS)}. If it is a dataset's id, register the dataset first.",
    )


def canonical_format(name: str) -> str:
    """The name of a format as this package uses it: `webdataset` is `tar`, `npz` is `npy`, …"""
    known = _ALIASES.get(name.lower(), name.lower())
    if known not in FORMATS:
        raise InvalidArgument(f"data format {name!r} is unknown", hint=f"Known: {', '.join(FORMATS)}.")
    return known


def reader_for(name: str) -> Reader:
    return FORMATS[canonical_format(name)]()
