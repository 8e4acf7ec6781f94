"""Table: rows under columns, with pictures or other files in its cells."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from strata.errors import InvalidArgument
from strata.types.media import MAX_ENTRY_BYTES, MAX_ROWS
from strata.worker.media.base import FileMedia, Files, Media, media_json
from strata.worker.media.unfit import Unfit

__all__ = ["Table"]

_MAX_COLUMNS = 1_000
_CELL_BYTES = 64  # about what a number or a short text takes in memory


class Table(FileMedia):
    """Keeps the first 10,000 rows; further ones are counted. Give `columns` and `data`, or a `dataframe`."""

    kind = "table"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        data: Any = None,
        rows: Any = None,
        dataframe: Any = None,
        **_: Any,
    ) -> None:
        frame = dataframe if dataframe is not None else data if hasattr(data, "columns") else None
        if frame is not None:
            columns, data = [str(name) for name in frame.columns], frame.values.tolist()
        self.columns = list(columns if columns is not None else ("Input", "Output", "Expected"))
        if len(self.columns) > _MAX_COLUMNS:
            raise InvalidArgument(f"a table has {len(self.columns)} columns, at most {_MAX_COLUMNS} are kept")
        self.data: list[list[Any]] = []
        self.num_rows = 0
        """All that were added; `data` holds the first of them."""
        self.num_bytes = 0
        for row in data if data is not None else rows if rows is not None else ():
            self.add_data(*row)

    def add_data(self, *row: Any) -> None:
        if len(row) != len(self.columns):
            raise InvalidArgument(f"a row has {len(row)} values, the table {len(self.columns)} columns")
        self.num_rows += 1
        if len(self.data) < MAX_ROWS:
            self.data.append(list(row))
            self.num_bytes += sum(_bytes_of(value) for value in row)

    def add_column(self, name: str, data: Iterable[Any]) -> None:
        values = list(data)
        if self.data and len(values) != len(self.data):
            raise InvalidArgument(f"column {name!r} has {len(values)} values, the table {len(self.data)} rows")
        kept = values[:MAX_ROWS]
        self.data = [[*row, value] for row, value in zip(self.data or [[] for _ in kept], kept, strict=True)]
        self.num_rows = max(self.num_rows, len(values))
        self.num_bytes += sum(_bytes_of(value) for value in kept)
        self.columns.append(name)

    def frozen(self) -> Self:
        copy = type(self)(self.columns)
        copy.data, copy.num_rows, copy.num_bytes = list(self.data), self.num_rows, self.num_bytes
        return copy

    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        cells = [[_cell(value, files, notes) for value in row] for row in self.data]
        while len(content := self._json(cells)) > MAX_ENTRY_BYTES // 2:  # the rest is for the files of its cells
            if len(cells) < 2:
                raise Unfit(f"has a row of {len(content)} bytes")
            cells = cells[: len(cells) // 2]
        if len(cells) < self.num_rows:
            notes.append(f"it has {self.num_rows} rows, the first {len(cells)} are kept")
        name = files.add(content, "json")
        return {"file": name, "size": len(content), "rows": self.num_rows, "kept": len(cells)}

    def _json(self, cells: list[list[Any]]) -> bytes:
        about = {"columns": [str(name) for name in self.columns], "data": cells, "rows": self.num_rows}
        return media_json(about).encode()


def _bytes_of(value: Any) -> int:
    return value.num_bytes if isinstance(value, Media) else _CELL_BYTES + (len(value) if isinstance(value, str) else 0)


def _cell(value: Any, files: Files, notes: list[str]) -> Any:
    """A medium as what is known of it. One that cannot be kept leaves its cell, and the others stay."""
    if not isinstance(value, Media):
        plain = value is None or isinstance(value, bool | int | float | str | list | tuple | dict)
        return value if plain or hasattr(value, "tolist") else str(value)  # a date, for example
    caption = getattr(value, "caption", None)
    about = {"kind": value.kind, **({"caption": caption} if caption else {})}
    if not isinstance(value, FileMedia) or isinstance(value, Table):
        return {**about, "missing": f"a {value.kind} is not shown in a cell"}
    try:
        return {**about, **value.item(files, notes)}
    except Unfit as error:
        notes.append(f"a cell {error}")
        return {**about, "missing": str(error)}
