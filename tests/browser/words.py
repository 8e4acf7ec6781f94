"""Numbers as the dashboard writes them, worked out here anew from the truth."""

__all__ = ["age_of", "as_bytes", "as_count", "as_duration", "as_rate", "as_value"]


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
    power = 0
    while value >= 1000:
        value /= 1000
        power += 1
    digits = 0 if power == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"


def as_rate(value: float) -> str:
    return as_value(round(value) if value >= 10 else float(f"{value:.2g}"))


def as_duration(seconds: float) -> str:
    """Of anything below an hour."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 60:
        return f"{round(seconds)} s"
    return f"{round(seconds) // 60}m {round(seconds) % 60:02d}s"


def age_of(words: str) -> tuple[float, float]:
    """The seconds that an age may stand for, from and to: "2 min ago" is anything from two minutes to three."""
    if words == "now":
        return 0.0, 1.0
    number, unit, _ = words.split()
    one = {"s": 1.0, "min": 60.0, "h": 3600.0}[unit]
    return int(number) * one, (int(number) + 1) * one
