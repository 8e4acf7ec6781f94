"""A look at the samples of a dataset."""

from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

__all__ = ["Origin", "Preview", "PreviewColumn"]


class ImageCell(TypedDict):
    """A picture as a data URL; one that is broken or too large has an error in its place."""

    kind: Literal["image"]
    size: int
    thumbnail: NotRequired[str]
    error: NotRequired[str]
    format: NotRequired[str]
    width: NotRequired[int]
    height: NotRequired[int]


class TextCell(TypedDict):
    """The beginning of a long text."""

    kind: Literal["text"]
    text: str
    size: int


class BytesCell(TypedDict):
    """The first bytes of many."""

    kind: Literal["bytes"]
    hex: str
    size: int


class ArrayCell(TypedDict):
    """An array; of a long one the lowest and highest value of each stretch."""

    kind: Literal["array"]
    dtype: str
    shape: list[int]
    values: list[Any]


class ListCell(TypedDict):
    """A list; of a long one the lowest and highest value of each stretch, or the first few."""

    kind: Literal["list"]
    size: int
    values: list[Any]


MarkedCell = ImageCell | TextCell | BytesCell | ArrayCell | ListCell
# What has no mark is shown as it is: a plain value, or a nested record.
PreviewCell = MarkedCell | str | float | bool | dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewColumn:
    """A column; the type is empty when nobody said it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a row comes from."""

    index: int | None
    file: str | None
    row: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Rows as a worker is reading them, or from the files when none has reported any; `note` says so."""

    dataset_id: str
    worker_id: str | None
    epoch: int | None
    position: int | None
    columns: list[PreviewColumn]
    rows: list[dict[str, PreviewCell]]
    origins: list[Origin]
    note: str | None
