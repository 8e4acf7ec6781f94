"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

__all__ = ["code", "table"]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar inside a cell is escaped, a line break becomes a space."""
    lines = [_line(heads), "|---" * len(heads) + "|", *(_line(row) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def code(text: str) -> str:
    return f"`{text}`" if text else ""
