"""File: video, sound, 3-D and whatever else is to be kept beside the metrics as it is."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from strata.errors import InvalidArgument
from strata.types.media import MAX_ENTRY_BYTES
from strata.worker.media.base import FileMedia, Files
from strata.worker.media.image import array_of

__all__ = ["File"]


class File(FileMedia):
    """A path is kept as it is now, an array as .npy, anything else as its text."""

    kind = "file"

    def __init__(self, data_or_path: Any = None, *_: Any, caption: str | None = None, **about: Any) -> None:
        self.caption = caption
        self._about = {name: value for name, value in about.items() if isinstance(value, str | int | float)}
        self._content, self._suffix, self._name = _taken(data_or_path)
        self.num_bytes = len(self._content)

    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        name = {"name": self._name} if self._name else {}
        file = files.add(self._content, self._suffix)
        return {"file": file, "size": len(self._content), **name, **self._about}


def _taken(given: Any) -> tuple[bytes, str, str]:
    """Its bytes, suffix and name."""
    if isinstance(given, str | Path) and Path(given).is_file():
        path = Path(given)
        if path.stat().st_size > MAX_ENTRY_BYTES:
            raise InvalidArgument(
                f"{path} is larger than {MAX_ENTRY_BYTES >> 20} MiB", hint="Keep it as a checkpoint or an artifact."
            )
        return path.read_bytes(), path.suffix, path.name
    if hasattr(given, "shape"):
        buffer = io.BytesIO()
        np.save(buffer, array_of(given), allow_pickle=False)
        return buffer.getvalue(), "npy", ""
    plot = given.to_json() if hasattr(given, "to_json") else repr(given)
    return str(plot).encode("utf-8", "replace"), "txt", ""
