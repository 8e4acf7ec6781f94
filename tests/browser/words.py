"""Numbers as the dashboard writes them, worked out here anew from the truth."""

__all__ = ["as_bytes", "as_count", "as_value"]


def as_value(value: float) -> str:
    """Four significant digits at most."""
    if abs(value) >= 1000:
        return f"{round(value):,}"
    if value == int(value):
        return str(int(value))
    return f"{value:#.4g}".rstrip("0").rstrip(".")


def as_count(value: int) -> str:
    return f"{value:,}"


def as_bytes(value: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            break
        value /= 1000
    digits = 0 if unit == "B" or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"
