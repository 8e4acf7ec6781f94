"""Columns that became no library's table yet: plain lists, or what pandas, polars or pyarrow make of them."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strata.errors import StrataError

__all__ = ["Frame"]


class Frame:
    """Columns of equal length. `for row in frame` gives each row as a dict."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns: dict[str, list[Any]] = {name: list(values) for name, values in columns.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} rows: {', '.join(self.columns)}>"

    def rows(self) -> list[dict[str, Any]]:
        return list(self)

    def pandas(self) -> Any:
        return _library("pandas").DataFrame(self.columns)

    def polars(self) -> Any:
        return _library("polars").DataFrame(self.columns)

    def arrow(self) -> Any:
        return _library("pyarrow").table(self.columns)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise StrataError(f"{name} is not installed", hint=f"pip install {name}, or use .rows().") from None
