"""Samples made small enough to look at: numbers, shortened texts, whole series, thumbnails of images.

Read through the same order and the same readers as training, so a preview of step t shows the samples of step t.
"""

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.data.blocks import INDEX
from strata.data.images import looks_like_image, thumbnail
from strata.data.manifest import Manifest
from strata.data.table.columns import Columns, num_rows

__all__ = ["Preview", "preview_rows", "shown"]

MAX_TEXT = 400
MAX_VALUES = 16
MAX_SERIES = 400
MAX_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`rows` is plain JSON: per sample its number, file, row of the file and its values by column."""

    columns: dict[str, str]
    epoch: int
    position: int
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rows": list(self.rows)}


def preview_rows(batch: Columns, count: int, manifest: Manifest, epoch: int, position: int) -> Preview:
    """The first rows of a batch that has its INDEX column."""
    names = [name for name in batch if name != INDEX]
    rows = []
    for row in range(min(count, MAX_ROWS, num_rows(batch))):
        number = int(batch[INDEX][row])
        block = int(np.searchsorted(manifest.starts, number, side="right")) - 1
        rows.append(
            {
                "index": number,
                "file": manifest.files[int(manifest.block_files[block])].name,
                "row": number - int(manifest.starts[block]) + int(manifest.first_rows[block]),
                "values": {name: shown(batch[name][row]) for name in names},
            }
        )
    columns = {name: manifest.schema.get(name, "") for name in names or manifest.schema}
    return Preview(columns=columns, epoch=epoch, position=position, rows=tuple(rows))


def shown(value: Any) -> Any:
    """One value as JSON, at most a few kilobytes."""
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        return shown(value["bytes"])  # the image column of Hugging Face datasets
    if isinstance(value, bytes):
        if looks_like_image(value):
            return thumbnail(value)
        return {"kind": "bytes", "size": len(value), "hex": value[:32].hex()}
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else {"kind": "text", "size": len(value), "text": value[:MAX_TEXT] + "…"}
    if isinstance(value, np.ndarray):
        series = value if value.ndim == 1 and value.dtype.kind in "biuf" else value.ravel()[:MAX_VALUES]
        flat = [_number(item) for item in _outline(series).tolist()]
        return {"kind": "array", "dtype": str(value.dtype), "shape": list(value.shape), "values": flat}
    if isinstance(value, list):
        if len(value) > MAX_VALUES and all(type(item) in (int, float) for item in value):
            series = np.asarray(value, dtype=np.float64)
            return {"kind": "list", "size": len(value), "values": [_number(item) for item in _outline(series).tolist()]}
        return {"kind": "list", "size": len(value), "values": [shown(item) for item in value[:MAX_VALUES]]}
    if isinstance(value, dict):
        return {str(key)[:80]: shown(item) for key, item in list(value.items())[:MAX_VALUES]}
    if isinstance(value, np.datetime64):
        return str(value)
    return _number(value.item() if isinstance(value, np.generic) else value)


def _outline(series: NDArray[Any]) -> NDArray[Any]:
    """A series as it is, or where it is long the lowest and the highest value of each of its stretches, in their
    order: a peak of one value stays a peak."""
    if len(series) <= MAX_SERIES:
        return series
    bounds = np.linspace(0, len(series), MAX_SERIES // 2 + 1).astype(np.int64)
    chosen: list[int] = []
    for low, high in itertools.pairwise(bounds.tolist()):
        part = np.nan_to_num(series[low:high].astype(np.float64), nan=0.0)
        chosen += sorted((low + int(part.argmin()), low + int(part.argmax())))
    return series[chosen]


def _number(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | bool | type(None)) else str(value)[:MAX_TEXT]
