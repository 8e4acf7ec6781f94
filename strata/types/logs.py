"""The level of a log line."""

from enum import StrEnum

from strata.errors import InvalidArgument

__all__ = ["LogLevel"]

_ALIASES = {
    "warning": "warn",
    "critical": "error",
    "fatal": "error",
    "trace": "debug",
    "notice": "info",
    "err": "error",
}


class LogLevel(StrEnum):
    """The four levels of a log line."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @classmethod
    def parse(cls, text: str) -> "LogLevel":
        """Also understands other libraries' names (WARNING, CRITICAL, …); an empty one is info."""
        lowered = text.strip().lower()
        try:
            return cls(_ALIASES.get(lowered, lowered or "info"))
        except ValueError:
            raise InvalidArgument(f"log level {text[:40]!r} is unknown", hint=f"Allowed: {', '.join(cls)}.") from None
