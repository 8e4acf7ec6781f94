"""Strata's own log: human lines on a terminal, JSON when asked for, levels per part as in RUST_LOG.

Commands call `set_up_logging`, ranks of a task `set_up_rank_logging`. A library must not configure logging, so
importing strata never does.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from strata.errors import InvalidConfig

__all__ = ["parse_levels", "set_up_logging", "set_up_rank_logging"]

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_COLOURS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31;1m", "DEBUG": "\x1b[2m"}


def parse_levels(directives: str) -> dict[str, int]:
    """`coordinator=debug,storage=debug,info` → level by part; the part "" is everything else."""
    levels = {"": logging.INFO}
    for directive in filter(None, (part.strip() for part in directives.split(","))):
        part, separator, name = directive.rpartition("=")
        level = _LEVELS.get(name.lower())
        if level is None or (separator and not part):
            raise InvalidConfig(
                f"STRATA_LOG = {directives!r} is not valid: {directive!r}",
                hint="Give a level (error, warn, info, debug), or part=level, separated by commas.",
            )
        levels[part.replace("::", ".").removeprefix("strata.")] = level
    return levels


def set_up_logging(directives: str, style: str) -> None:
    """Sends the log to stderr. `style` is human, json, or auto (human on a terminal, else plain lines)."""
    handler = logging.StreamHandler(sys.stderr)
    coloured = style != "json" and sys.stderr.isatty()
    handler.setFormatter(_JsonFormatter() if style == "json" else _HumanFormatter(coloured=coloured))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    _set_levels(directives)


def set_up_rank_logging(directives: str) -> None:
    """In a rank of a task: what the SDK has to say goes to stderr with its level, which the agent passes on. A script
    that has set up logging itself keeps its own handlers, and gets the same lines."""
    logger = logging.getLogger("strata")
    if not any(isinstance(handler, _LastResort) for handler in logger.handlers):
        logger.addHandler(_LastResort())
    _set_levels(directives)


def _set_levels(directives: str) -> None:
    for part, level in parse_levels(directives).items():
        logging.getLogger(f"strata.{part}" if part else "strata").setLevel(level)


class _LastResort(logging.StreamHandler[TextIO]):
    """Writes only while nobody else does: the script may set up logging after `strata.init`."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(_HumanFormatter(coloured=False))

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


class _HumanFormatter(logging.Formatter):
    """`12:04:31 WARNING coordinator  worker-3 lost: …`"""

    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        part = record.name.removeprefix("strata.").partition(".")[0]
        line = f"{at:%H:%M:%S} {record.levelname:<7} {part:<12} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        colour = _COLOURS.get(record.levelname, "") if self._coloured else ""
        return f"{colour}{line}\x1b[0m" if colour else line


class _JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, source, message, and the task and worker where they are known."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "timestamp": record.created,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "source": record.name.removeprefix("strata."),
        }
        entry |= {name: getattr(record, name) for name in ("task_id", "worker_id") if getattr(record, name, "")}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)
