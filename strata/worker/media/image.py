"""Image: a picture from a path, an array, a tensor, PIL or matplotlib. The training thread only copies it; it becomes a
PNG behind.
"""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from strata.errors import InvalidArgument
from strata.types.media import MAX_ENTRY_BYTES
from strata.worker.media.base import FileMedia, Files
from strata.worker.media.unfit import Unfit

__all__ = ["Image", "array_of"]

_SUFFIXES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
)
_SPEED = 2  # of zlib: a third of the time of its default for a few percent more bytes


class Image(FileMedia):
    """Height × width, or with 1, 3 or 4 channels; of a tensor the channels may come first. Floats are in 0…1. `mode` is
    taken and not used; `boxes` and `masks` are kept beside the picture."""

    kind = "image"

    def __init__(self, data_or_path: Any, mode: str | None = None, caption: str | None = None, **more: Any) -> None:
        self.caption = caption
        self._more = {name: more[name] for name in ("boxes", "masks") if more.get(name) is not None}
        self._bytes, self._array = _taken(data_or_path)
        self.num_bytes = len(self._bytes) if self._array is None else int(self._array.nbytes)

    def content(self) -> bytes:
        """The picture as a file. Raises Unfit for one without pixels."""
        if self._array is None:
            return self._bytes
        if 0 in self._array.shape:
            raise Unfit(f"is a picture of {' × '.join(map(str, self._array.shape))}: it has no pixels")
        return _png(_pixels(self._array))

    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        content = self.content()
        size = _size_of(content)
        about = {"width": size[0], "height": size[1]} if size else {}
        return {"file": files.add(content, _suffix(content)), "size": len(content), **about, **self._more}


def array_of(value: Any) -> Any:
    """A NumPy array of whatever library."""
    for method in ("detach", "cpu"):  # torch's
        value = getattr(value, method)() if hasattr(value, method) else value
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _taken(given: Any) -> tuple[bytes, Any]:
    """The bytes of an encoded picture, or a copy of the pixels: what was given may change in the next step."""
    if isinstance(given, str | Path):
        path = Path(given)
        if path.stat().st_size > MAX_ENTRY_BYTES:
            raise InvalidArgument(f"{path} is larger than {MAX_ENTRY_BYTES >> 20} MiB", hint="Make it smaller.")
        content = path.read_bytes()
        if not _suffix(content):
            raise InvalidArgument(f"{path} is no picture that a browser shows", hint="PNG, JPEG, GIF, WebP, BMP, SVG.")
        return content, None
    if hasattr(given, "savefig"):  # matplotlib's: it is drawn by the thread that made it
        buffer = io.BytesIO()
        given.savefig(buffer, format="PNG")
        return buffer.getvalue(), None
    if hasattr(given, "convert") and hasattr(given, "mode"):  # PIL's
        given = given if given.mode in ("L", "RGB", "RGBA") else given.convert("RGBA")
    return b"", _shaped(np.array(array_of(given), copy=True), is_tensor=hasattr(given, "detach"))


def _shaped(array: Any, *, is_tensor: bool) -> Any:
    """Height × width × channels."""
    if array.ndim == 2:
        array = array[:, :, None]
    elif is_tensor and array.ndim == 3 and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    is_picture = array.ndim == 3 and array.shape[2] in (1, 3, 4) and array.dtype.kind in "biuf"
    if not is_picture and 0 not in array.shape:
        raise InvalidArgument(
            f"an array of shape {array.shape} and type {array.dtype} is no image",
            hint="Numbers, height × width, with 1, 3 or 4 channels.",
        )
    return array


def _pixels(array: Any) -> Any:
    if array.dtype.kind in "bf":
        array = np.nan_to_num(array.astype(np.float64))
        array = array * 255 if array.max() <= 1 else array
    return np.clip(array, 0, 255).astype(np.uint8)


def _png(pixels: Any) -> bytes:
    """Eight bits per channel, without a filter: what every reader takes, with no library."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.data, _SPEED)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _suffix(content: bytes) -> str:
    """By what the bytes say, whatever the file is called; '' for no picture."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    if b"<svg" in content[:1000]:
        return "svg"
    return next((suffix for start, suffix in _SUFFIXES if content.startswith(start)), "")


def _size_of(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG; a browser finds out those of others."""
    return struct.unpack(">II", content[16:24]) if content[1:4] == b"PNG" and len(content) >= 24 else None
