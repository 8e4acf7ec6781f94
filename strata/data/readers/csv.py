"""CSV with a header line: blocks of whole records (line ends inside quotes do not count), parsed by Arrow."""

import csv
import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from strata.data.files.listing import FileRef
from strata.data.readers.base import BlockRead, FileIndex
from strata.data.readers.lines import scan_lines
from strata.data.table.arrow import arrow, schema_text, to_columns
from strata.data.table.columns import Block
from strata.data.table.types import parse_type
from strata.errors import DataError

__all__ = ["CsvReader"]


class CsvReader:
    """Types come from the first block of each file. Tab-separated files are read by their suffix."""

    suffixes: tuple[str, ...] = (".csv", ".tsv")

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        header = file.readline()
        names = next(csv.reader([header.decode("utf-8-sig", "replace")], delimiter=_delimiter(ref)), [])
        if not names:
            return FileIndex(blocks=(), schema={}, fingerprint="")
        if len(set(names)) != len(names):
            raise DataError(f"{ref.uri}: the header names a column twice: {', '.join(names)}", file=ref.uri, row=0)
        scan = scan_lines(file, len(header), quoted=True)
        scan.hash.update(header)
        schema = dict.fromkeys(names, "null")
        if scan.blocks:
            file.seek(scan.blocks[0].start)
            schema = _guess(ref, file.read(scan.blocks[0].stop - scan.blocks[0].start), names)
        return FileIndex(blocks=tuple(scan.blocks), schema=schema, fingerprint=scan.hash.hexdigest())

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        with path.open("rb") as file:
            names = next(csv.reader([file.readline().decode("utf-8-sig")], delimiter=_delimiter(ref)))
            file.seek(block.info.start)
            data = file.read(block.info.stop - block.info.start)
        kinds = {name: parse_type(kind) for name, kind in block.schema.items()}
        try:
            table = _read(ref, data, names, kinds, block.names)
            if table.num_rows != block.info.num_rows:
                raise arrow().ArrowInvalid(f"{table.num_rows} rows where {block.info.num_rows} were counted")
            columns = to_columns(table, ref.uri)
        except (DataError, arrow().ArrowInvalid) as error:
            faults = _faults(ref, data, names, block)
            if block.on_bad is None or not faults:
                problem = next(iter(faults.values()), None)
                raise problem or DataError(
                    f"{ref.uri}: rows from {block.first_row} cannot be read: {error}", file=ref.uri, row=block.first_row
                ) from error
            return _without(ref, data, names, block, faults)
        return Block(columns={name: columns[name] for name in block.names})


def _delimiter(ref: FileRef) -> str:
    return "\t" if ref.name.endswith(".tsv") else ","


def _read(ref: FileRef, data: bytes, names: list[str], kinds: dict[str, Any], wanted: tuple[str, ...] | None) -> Any:
    module = arrow("csv")
    return module.read_csv(
        io.BytesIO(data),
        module.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
        module.ParseOptions(delimiter=_delimiter(ref), newlines_in_values=True),
        module.ConvertOptions(column_types=kinds, include_columns=list(wanted) if wanted else None),
    )


def _guess(ref: FileRef, data: bytes, names: list[str]) -> dict[str, str]:
    try:
        schema = schema_text(_read(ref, data, names, {}, None).schema)
    except arrow().ArrowInvalid as error:
        raise DataError(f"{ref.uri}: the first rows cannot be read: {error}", file=ref.uri, row=0) from error
    # Dates stay texts: a column that looks like dates in one file need not in the next.
    return {name: kind if kind in {"int64", "double", "bool", "null"} else "string" for name, kind in schema.items()}


def _records(ref: FileRef, data: bytes) -> list[list[str]]:
    text = io.StringIO(data.decode("utf-8", "replace"), newline="")
    return [row for row in csv.reader(text, delimiter=_delimiter(ref)) if row]


def _faults(ref: FileRef, data: bytes, names: list[str], block: BlockRead) -> dict[int, DataError]:
    """Bad rows by their number in the block, found the slow way: only after Arrow has refused the block."""
    found = {}
    for number, record in enumerate(_records(ref, data)):
        row = block.first_row + number
        if len(record) != len(names):
            text = f"{ref.uri}: row {row} has {len(record)} fields, the header has {len(names)}"
            found[number] = DataError(text, file=ref.uri, row=row)
            continue
        for name, value in zip(names, record, strict=True):
            if name in block.names and not _fits(value, block.schema[name]):
                text = f"{ref.uri}: {name!r} of row {row} is {value[:60]!r}, not {block.schema[name]}"
                found[number] = DataError(text, file=ref.uri, row=row)
                break
    return found


def _fits(value: str, kind: str) -> bool:
    try:
        if kind == "int64":
            int(value)
        elif kind == "double":
            float(value or "nan")
        elif kind == "bool":
            return value.lower() in {"true", "false", "1", "0"}
    except ValueError:
        return False
    return True


def _without(ref: FileRef, data: bytes, names: list[str], block: BlockRead, faults: dict[int, DataError]) -> Block:
    assert block.on_bad is not None
    for problem in faults.values():
        block.on_bad(problem)
    records = _records(ref, data)
    kept = [number for number in range(len(records)) if number not in faults]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=_delimiter(ref), lineterminator="\n").writerows(records[number] for number in kept)
    kinds = {name: parse_type(kind) for name, kind in block.schema.items()}
    if not kept:
        return Block(columns={}, kept=np.empty(0, dtype=np.int64))
    columns = to_columns(_read(ref, text.getvalue().encode(), names, kinds, block.names), ref.uri)
    return Block(columns={name: columns[name] for name in block.names}, kept=np.array(kept, dtype=np.int64))
