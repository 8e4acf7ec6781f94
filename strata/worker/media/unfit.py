"""What of a value that was logged cannot be kept, and how it is said: raised inside the SDK and never out of it."""

__all__ = ["MAX_TEXT", "Unfit", "shown"]

MAX_TEXT = 64 * 1024


class Unfit(ValueError):  # never leaves the SDK
    """Says why something that was logged is no point."""


def shown(value: object, limit: int = 60) -> str:
    """A value for a log line: short, and in letters that any terminal can print."""
    try:
        text = ascii(value)
    except Exception as error:  # somebody else's __repr__
        return f"<{type(value).__name__}, which cannot be shown: {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
