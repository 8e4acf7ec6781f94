"""What every medium is to `run.log`: something that takes some memory while it waits, and becomes one entry of the run
behind the training: a short text, and the files that the text names.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from strata.types.media import MAX_ENTRY_BYTES, MAX_ENTRY_FILES, file_name
from strata.types.shown import to_shown
from strata.worker.media.unfit import MAX_TEXT, Unfit

__all__ = ["Entry", "FileMedia", "Files", "Media", "holds_media", "media_json", "media_of", "together"]


class Files:
    """The files of one entry, by what they are: the same bytes count once."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self._num_bytes = 0

    def add(self, content: bytes, suffix: str) -> str:
        """The name by which the entry's text tells of it. Raises Unfit when there is no room."""
        name = file_name(content, suffix)
        if name not in self.contents:
            self._num_bytes += len(content)
            if self._num_bytes > MAX_ENTRY_BYTES:
                raise Unfit(f"is larger than {MAX_ENTRY_BYTES >> 20} MiB: make it smaller, or log it in parts")
            if len(self.contents) >= MAX_ENTRY_FILES:
                raise Unfit(f"has more than {MAX_ENTRY_FILES} files: log them in parts")
            self.contents[name] = content
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is sent of one name at one step. `notes` tell what was left out."""

    kind: str
    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Media:
    """`frozen` is called by the training thread and must be quick, `entry` behind it."""

    kind = "file"
    num_bytes = 0
    """About how much memory it takes until it is sent."""

    def frozen(self) -> Self:
        """Itself, or a copy where a script may go on changing it."""
        return self

    def entry(self) -> Entry:
        """Raises Unfit when it cannot be kept."""
        raise NotImplementedError


class FileMedia(Media):
    """A medium that is a file, and stands in the entry's text as an item: its file's name and what is known of it.
    Several of a kind may share an entry, and a cell of a table may hold one."""

    caption: str | None = None

    def entry(self) -> Entry:
        return together([self])

    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        """Raises Unfit when it cannot be kept."""
        raise NotImplementedError


def together(media: Sequence[FileMedia]) -> Entry:
    """Several of one kind as one entry."""
    files, notes = Files(), list[str]()
    items = []
    for one in media:
        item = one.item(files, notes)
        items.append({**item, "caption": str(one.caption)} if one.caption else item)
    text = media_json({"items": items})
    if len(text) > MAX_TEXT:
        raise Unfit(f"what is said of it has {len(text)} characters, {MAX_TEXT} are kept: shorten captions")
    return Entry(kind=media[0].kind, text=text, files=files.contents, notes=notes)


def media_json(value: Any) -> str:
    """JSON that a browser reads, whatever was given: NaN by its name, half a character marked."""
    try:
        return json.dumps(to_shown(value), allow_nan=False, ensure_ascii=False)
    except Exception as error:  # somebody's own class whose methods fail
        raise Unfit(f"cannot be written as JSON ({type(error).__name__})") from None


def media_of(value: Any) -> list[Media] | None:
    """One medium, or a list of nothing else; None for any other value."""
    if isinstance(value, Media):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(one, Media) for one in value):
        return list(value)
    return None


def holds_media(values: Mapping[Any, Any], depth: int = 0) -> bool:
    """Whether any is among these values, or in a dict among them."""
    return any(
        isinstance(value, Media)
        or (isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Media))
        or (isinstance(value, Mapping) and depth < 8 and holds_media(value, depth + 1))
        for value in values.values()
    )
