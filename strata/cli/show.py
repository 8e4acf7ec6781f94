"""Lists as people and programs read them: a table, or JSON with --json. What is unknown is a dash."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Column", "ago", "number", "resumed", "show_rows", "size"]

Column = tuple[str, Callable[[Mapping[str, Any]], Any]]

_PIPED_WIDTH = 200  # a pipe has no width; 80 would fold what a program wants on one line
_LONG = frozenset({"found", "path", "reason", "what to do"})
_STATUS_COLOURS = {
    "active": "green",
    "ok": "green",
    "running": "green",
    "completed": "green",
    "checkpointing": "cyan",
    "in_progress": "cyan",
    "queued": "cyan",
    "recovering": "yellow",
    "warning": "yellow",
    "stopping": "yellow",
    "failed": "red",
    "broken": "red",
}


def show_rows(rows: Iterable[Mapping[str, Any]], columns: list[Column], *, as_json: bool, empty: str) -> None:
    """Prints the rows; `empty` is the sentence for none of them."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPED_WIDTH)
    listed = list(rows)
    if as_json:
        console.print_json(json.dumps(listed))
        return
    if not listed:
        console.print(empty, markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title, _ in columns:
        table.add_column(title, overflow="fold", no_wrap=title not in _LONG)
    for row in listed:
        table.add_row(*(_cell(title, value(row)) for title, value in columns))
    console.print(table)


def _cell(title: str, value: Any) -> str:
    if value is None or value == "":
        return "[dim]–[/]"
    text = str(value).replace("[", r"\[")
    colour = _STATUS_COLOURS.get(text) if title in ("status", "state") else None
    return f"[{colour}]{text}[/]" if colour else text


def ago(unix_s: float | None) -> str | None:
    """`12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`."""
    if unix_s is None:
        return None
    seconds = max(0.0, time.time() - unix_s)
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds / 86_400:.0f} d ago"


def size(num_bytes: float | None) -> str | None:
    """`1.4 GB`, in powers of 1000."""
    if num_bytes is None:
        return None
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def number(value: float | None, unit: str = "") -> str | None:
    return None if value is None else f"{value:,.4g}{unit}"


def resumed(task_id: str, step: int | None) -> str:
    """What became of a task that was resumed."""
    where = "has no checkpoint and starts at step 0" if step is None else f"goes on from step {step}"
    return f"task {task_id} {where}"
