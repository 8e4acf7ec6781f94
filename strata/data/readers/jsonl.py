"""JSON lines: blocks of whole lines. Parsed by Arrow; only when that fails, line by line, to name the bad row."""

import io
import json
from collections.abc import Mapping
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

__all__ = ["JsonLinesReader"]


class JsonLinesReader:
    """Types come from the first block of each file; a value that does not fit them is an error that names its row."""

    suffixes: tuple[str, ...] = (".jsonl", ".ndjson", ".json")

    def index(self, ref: FileRef, file: BinaryIO) -> FileIndex:
        scan = scan_lines(file)
        schema: dict[str, str] = {}
        if scan.blocks:
            file.seek(scan.blocks[0].start)
            head = file.read(scan.blocks[0].stop - scan.blocks[0].start)
            try:
                table = arrow("json").read_json(io.BytesIO(head), **_options(len(head)))
            except arrow().ArrowInvalid as error:
                raise _diagnosed(ref, _lines(head), 0, None, error) from error
            # A text that looks like a date in one file need not in the next: texts stay texts.
            schema = {
                name: "string" if "timestamp" in kind else kind for name, kind in schema_text(table.schema).items()
            }
        return FileIndex(blocks=tuple(scan.blocks), schema=schema, fingerprint=scan.hash.hexdigest())

    def read(self, ref: FileRef, path: Path, block: BlockRead) -> Block:
        with path.open("rb") as file:
            file.seek(block.info.start)
            data = file.read(block.info.stop - block.info.start)
        lines = None
        try:
            return Block(columns=_parsed(ref, data, block, block.info.num_rows))
        except (DataError, arrow().ArrowInvalid) as error:
            lines = _lines(data)
            problem = _diagnosed(ref, lines, block.first_row, block.schema, error)
            if block.on_bad is None:
                raise problem from error
        return _without_bad(ref, lines, block)


def _parsed(ref: FileRef, data: bytes, block: BlockRead, rows: int) -> Any:
    schema = arrow().schema([(name, parse_type(kind)) for name, kind in block.schema.items() if name in block.names])
    table = arrow("json").read_json(io.BytesIO(data), **_options(len(data), schema))
    if table.num_rows != rows:
        raise DataError(
            f"{ref.uri}: {table.num_rows} rows where {rows} were counted", file=ref.uri, row=block.first_row
        )
    columns = to_columns(table, ref.uri)
    return {name: columns[name] for name in block.names}


def _options(size: int, schema: Any = None) -> dict[str, Any]:
    module = arrow("json")
    return {
        "read_options": module.ReadOptions(use_threads=False, block_size=max(size, 1)),
        "parse_options": module.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    }


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line.strip()]


def _without_bad(ref: FileRef, lines: list[bytes], block: BlockRead) -> Block:
    assert block.on_bad is not None
    kept = []
    for number, line in enumerate(lines):
        problem = _fault(ref, line, block.first_row + number, block.schema)
        if problem is None:
            kept.append(number)
        else:
            block.on_bad(problem)
    good = b"\n".join(lines[number] for number in kept) + b"\n"
    return Block(columns=_parsed(ref, good, block, len(kept)), kept=np.array(kept, dtype=np.int64))


def _diagnosed(
    ref: FileRef, lines: list[bytes], first_row: int, schema: Mapping[str, str] | None, error: Exception
) -> DataError:
    """The first row that the plain parser refuses too; else what Arrow said, with the rows it was about."""
    for number, line in enumerate(lines):
        problem = _fault(ref, line, first_row + number, schema)
        if problem is not None:
            return problem
    last = first_row + len(lines) - 1
    return DataError(f"{ref.uri}: rows {first_row} to {last} cannot be read: {error}", file=ref.uri, row=first_row)


def _fault(ref: FileRef, line: bytes, row: int, schema: Mapping[str, str] | None) -> DataError | None:
    try:
        value = json.loads(line)
    except ValueError as error:
        return DataError(f"{ref.uri}: row {row} is not JSON: {error}", file=ref.uri, row=row)
    if not isinstance(value, dict):
        return DataError(f"{ref.uri}: row {row} is a JSON {type(value).__name__}, not an object", file=ref.uri, row=row)
    for name, kind in (schema or {}).items():
        if name not in value and not kind.startswith(("string", "null", "double")):
            return DataError(f"{ref.uri}: row {row} has no {name!r}", file=ref.uri, row=row)
        if not _fits(value.get(name), kind):
            shown = repr(value.get(name))[:60]
            return DataError(f"{ref.uri}: {name!r} of row {row} is {shown}, not {kind}", file=ref.uri, row=row)
    return None


def _fits(value: Any, kind: str) -> bool:
    if kind.startswith("int"):
        return isinstance(value, int) and not isinstance(value, bool)
    if value is None:
        return True
    expected: dict[str, type | tuple[type, ...]] = {"double": (int, float), "string": str, "bool": bool}
    wanted = expected.get(kind, list if kind.startswith("list") else dict if kind.startswith("struct") else object)
    return isinstance(value, wanted)
