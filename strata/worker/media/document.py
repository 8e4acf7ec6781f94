"""Html and Text: a document of its own, and words with the marks of Markdown."""

from pathlib import Path
from typing import Any

from strata.worker.media.base import Entry, FileMedia, Files, Media
from strata.worker.media.unfit import MAX_TEXT

__all__ = ["Html", "Text"]


class Html(FileMedia):
    """A document as text, from a file object or from a path. The page shows it in a frame of no origin: its scripts run
    there and reach nothing else."""

    kind = "html"

    def __init__(
        self, data: Any, inject: bool = True, data_is_not_path: bool = False, *, caption: str | None = None
    ) -> None:
        if hasattr(data, "read"):
            data = data.read()
        elif isinstance(data, Path) or (not data_is_not_path and str(data).endswith(".html") and Path(data).is_file()):
            data = Path(data).read_text()
        self.caption = caption
        self.html = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
        self.num_bytes = len(self.html)

    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        content = self.html.encode("utf-8", "replace")
        return {"file": files.add(content, "html"), "size": len(content)}


class Text(Media):
    """Words that the page shows with the marks of Markdown. A plain str is shown as it is."""

    kind = "markdown"

    def __init__(self, text: Any) -> None:
        self.text = str(text)
        self.num_bytes = len(self.text)

    def entry(self) -> Entry:
        cut = len(self.text) - MAX_TEXT
        notes = [f"it has {len(self.text)} characters, the first {MAX_TEXT} are kept"] if cut > 0 else ()
        text = self.text[:MAX_TEXT].encode("utf-8", "replace").decode()
        return Entry(kind=self.kind, text=text, notes=notes)
