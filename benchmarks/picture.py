"""Curves of several variants as one SVG: light, readable on white and on dark pages, made without a library."""

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["curves"]

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 190, 48, 52
_COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#8a6d00", "#56b4e9")  # told apart by the colour-blind, too
_LINE_HEIGHT = 16.0

Points = Sequence[tuple[float, float]]


def curves(title: str, x_label: str, y_label: str, lines: Mapping[str, Points], *, x_ticks: Sequence[float]) -> str:
    """Each line with its name at its end. `y` is a share, shown in per cent from 0 (or the lowest value) to 100."""
    shown = {name: points for name, points in lines.items() if points}
    low = min([0.0, *(y for points in shown.values() for _, y in points)])
    high = max([1.0, *(y for points in shown.values() for _, y in points)])
    right = max(x_ticks)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * x / right
        return across, _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - y) / (high - low)

    parts = [_text(_LEFT, 26, title, size=15, weight="600")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), (end, _) = place(0, share), place(right, share)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{end:.1f}" stroke="#ddd"/>')
        parts.append(_text(x - 8, y + 4, f"{share:.0%}", anchor="end"))
    for tick in x_ticks:
        x, y = place(tick, low)
        parts.append(_text(x, y + 18, f"{tick:g}", anchor="middle"))
    parts.append(_text(place(right / 2, 0)[0], _HEIGHT - 12, x_label, anchor="middle"))
    parts.append(_text(_LEFT, _TOP - 8, y_label))
    labels = _apart({name: place(*points[-1])[1] for name, points in shown.items()})
    for colour, (name, points) in zip(_COLOURS * len(shown), shown.items(), strict=False):
        spots = [place(*point) for point in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(_text(spots[-1][0] + 10, labels[name] + 4, f"{name}, {points[-1][1]:.1%}", fill=colour))
    style = "font-family:system-ui,sans-serif;background:#fff"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" style="{style}">'
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>"]) + "\n"


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """Heights of labels that do not cover each other, in the order of the lines' ends."""
    placed: dict[str, float] = {}
    lowest = float("-inf")
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        lowest = placed[name] = max(height, lowest + _LINE_HEIGHT)
    return placed


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "400", fill: str = "#333"
) -> str:
    look = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'
