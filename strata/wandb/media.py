"""Image, Histogram, Table, Html and the other things that are no numbers: each becomes a small text, or a file of the
run's folder with a text that names it. A page to show them comes with the workbench; nothing is lost until then.
"""

import io
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from strata.errors import InvalidArgument
from strata.worker.points import MAX_TEXT, Text, value_json

__all__ = ["Histogram", "Html", "Image", "Media", "OtherMedia", "Table", "together"]


class _Files(Protocol):
    def write(self, name: str, content: bytes) -> dict[str, str | int]: ...


class Media:
    """`keep` gives the text that stands for it at a step."""

    kind = "file"
    suffix = ".bin"

    def keep(self, files: _Files, name: str, step: int) -> Text:
        about = files.write(f"media/{_safe(name)}/{step}{self.suffix}", self.content())
        return Text(kind=self.kind, text=value_json({**about, **self.about()}))

    def content(self) -> bytes:
        raise NotImplementedError

    def about(self) -> dict[str, Any]:
        """What stands beside the file's name."""
        return {}


class _Document(Media):
    """Kept as text while it is short, else as a file."""

    def keep(self, files: _Files, name: str, step: int) -> Text:
        content = self.content()
        if len(content) <= MAX_TEXT:
            return Text(kind=self.kind, text=content.decode())
        return super().keep(files, name, step)


class Image(Media):
    """A picture from a path, an array (height × width, or with 1, 3 or 4 channels), a tensor, PIL or matplotlib."""

    kind = "image"
    suffix = ".png"

    def __init__(self, data_or_path: Any, mode: str | None = None, caption: str | None = None, **more: Any) -> None:
        self.caption = caption
        self._more = {name: value for name, value in more.items() if value is not None and name in ("boxes", "masks")}
        self._content = _picture(data_or_path)
        if isinstance(data_or_path, str | Path):
            self.suffix = Path(data_or_path).suffix or ".png"

    def content(self) -> bytes:
        return self._content

    def about(self) -> dict[str, Any]:
        return {**({"caption": self.caption} if self.caption else {}), **self._more}


class Histogram(_Document):
    """Counts per bin, from values or from what numpy.histogram gives."""

    kind = "histogram"
    suffix = ".json"

    def __init__(self, sequence: Any = None, np_histogram: Any = None, num_bins: int = 64) -> None:
        if np_histogram is None:
            if not 1 <= num_bins <= 512:
                raise InvalidArgument(f"num_bins is {num_bins}, it must be between 1 and 512")
            values = _array(sequence).astype(np.float64).ravel()
            np_histogram = np.histogram(values[np.isfinite(values)], bins=num_bins)
        self.histogram, self.bins = ([float(one) for one in part] for part in np_histogram)

    def content(self) -> bytes:
        return value_json({"counts": self.histogram, "bins": self.bins}).encode()


class Table(_Document):
    """Rows under columns; a cell may hold media, whose description is kept."""

    kind = "table"
    suffix = ".json"

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
        self.data: list[list[Any]] = []
        for row in data if data is not None else rows if rows is not None else ():
            self.add_data(*row)

    def add_data(self, *row: Any) -> None:
        if len(row) != len(self.columns):
            raise InvalidArgument(f"a row has {len(row)} values, the table {len(self.columns)} columns")
        self.data.append(list(row))

    def add_column(self, name: str, data: Iterable[Any]) -> None:
        values = list(data)
        if self.data and len(values) != len(self.data):
            raise InvalidArgument(f"column {name!r} has {len(values)} values, the table {len(self.data)} rows")
        self.data = [[*row, value] for row, value in zip(self.data or [[] for _ in values], values, strict=True)]
        self.columns.append(name)

    def content(self) -> bytes:
        cells = [[_cell(value) for value in row] for row in self.data]
        return value_json({"columns": self.columns, "data": cells}).encode()


class Html(_Document):
    """A document as text, from a file object or from a path."""

    kind = "html"
    suffix = ".html"

    def __init__(self, data: Any, inject: bool = True, data_is_not_path: bool = False) -> None:
        if hasattr(data, "read"):
            data = data.read()
        elif isinstance(data, Path) or (not data_is_not_path and str(data).endswith(".html") and Path(data).is_file()):
            data = Path(data).read_text()
        self.html = str(data)

    def content(self) -> bytes:
        return self.html.encode("utf-8", "replace")


class OtherMedia(Media):
    """Video, audio, 3-D and plots: a file is kept as it is, an array as .npy, anything else as its text."""

    def __init__(self, data_or_path: Any = None, *_: Any, caption: str | None = None, **about: Any) -> None:
        self._about: dict[str, Any] = {"caption": caption} if caption else {}
        self._about |= {name: value for name, value in about.items() if isinstance(value, str | int | float)}
        if isinstance(data_or_path, str | Path) and Path(data_or_path).is_file():
            self._content, self.suffix = Path(data_or_path).read_bytes(), Path(data_or_path).suffix
        elif hasattr(data_or_path, "shape"):
            buffer = io.BytesIO()
            np.save(buffer, _array(data_or_path), allow_pickle=False)
            self._content, self.suffix = buffer.getvalue(), ".npy"
        else:
            plot = data_or_path.to_json() if hasattr(data_or_path, "to_json") else repr(data_or_path)
            self._content, self.suffix = str(plot).encode("utf-8", "replace"), ".txt"

    def content(self) -> bytes:
        return self._content

    def about(self) -> dict[str, Any]:
        return self._about


def together(texts: Sequence[Text]) -> Text:
    """Several of one name and step."""
    return Text(kind=texts[0].kind, text=f"[{','.join(text.text for text in texts)}]")


def _cell(value: Any) -> Any:
    return {"kind": value.kind, **value.about()} if isinstance(value, Media) else value


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._/-]", "_", name).replace("..", "_").strip("/") or "media"


def _array(value: Any) -> Any:
    for method in ("detach", "cpu"):  # torch's
        value = getattr(value, method)() if hasattr(value, method) else value
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _picture(given: Any) -> bytes:
    if isinstance(given, str | Path):
        return Path(given).read_bytes()
    for method in ("savefig", "save"):  # matplotlib's figures, PIL's images
        if hasattr(given, method) and not hasattr(given, "shape"):
            buffer = io.BytesIO()
            getattr(given, method)(buffer, format="PNG")
            return buffer.getvalue()
    return _png(_pixels(_array(given), is_tensor=hasattr(given, "detach")))


def _pixels(array: Any, *, is_tensor: bool) -> Any:
    """Height × width × channels as bytes. Tensors come with their channels first; floats are in 0…1."""
    if array.ndim == 2:
        array = array[:, :, None]
    elif is_tensor and array.ndim == 3 and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        raise InvalidArgument(
            f"an array of shape {array.shape} is no image", hint="Height × width, with 1, 3 or 4 channels."
        )
    if array.dtype == bool or np.issubdtype(array.dtype, np.floating):
        array = np.nan_to_num(array.astype(np.float64)) * (255 if array.max(initial=0) <= 1 else 1)
    return np.clip(array, 0, 255).astype(np.uint8)


def _png(pixels: Any) -> bytes:
    """Eight bits per channel, without a filter: what every reader takes, with no library."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
