"""Curves of several variants as one SVG: light, readable on white and on dark pages, made without a library."""

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["curves", "scaling"]

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
        return _spot(x / right, (y - low) / (high - low))

    x_marks = {f"{tick:g}": place(tick, low)[0] for tick in x_ticks}
    y_marks = {f"{share:.0%}": place(0, share)[1] for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
    ends = {name: f"{points[-1][1]:.1%}" for name, points in shown.items()}
    spots = {name: [place(*point) for point in points] for name, points in shown.items()}
    return _drawn((title, x_label, y_label), spots, ends, x_marks, y_marks)


def scaling(title: str, x_label: str, y_label: str, lines: Mapping[str, Points]) -> str:
    """The same for times in seconds over sizes, both logarithmic."""
    shown = {name: points for name, points in lines.items() if points}
    sizes = sorted({x for points in shown.values() for x, _ in points})
    times = [y for points in shown.values() for _, y in points if y > 0]
    low, high = math.floor(math.log10(min(times, default=1.0))), math.ceil(math.log10(max(times, default=10.0)))
    high = max(high, low + 1)
    left, width = math.log10(sizes[0]) if sizes else 0.0, (math.log10(sizes[-1] / sizes[0]) if len(sizes) > 1 else 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        return _spot((math.log10(x) - left) / width, (math.log10(max(y, 10.0**low)) - low) / (high - low))

    x_marks = {f"{size:,.0f}": place(size, 1.0)[0] for size in sizes}
    y_marks = {_seconds(10.0**power): place(10.0**left, 10.0**power)[1] for power in range(low, high + 1)}
    ends = {name: _seconds(points[-1][1]) for name, points in shown.items()}
    spots = {name: [place(*point) for point in points] for name, points in shown.items()}
    return _drawn((title, x_label, y_label), spots, ends, x_marks, y_marks)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _spot(across: float, up: float) -> tuple[float, float]:
    """Where shares of width and height are."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * across, _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - up)


def _drawn(
    texts: tuple[str, str, str],
    lines: Mapping[str, Points],
    ends: Mapping[str, str],
    x_marks: Mapping[str, float],
    y_marks: Mapping[str, float],
) -> str:
    title, x_label, y_label = texts
    (left, bottom), (right, _) = _spot(0, 0), _spot(1, 0)
    parts = [_text(_LEFT, 26, title, size=15, weight="600")]
    for mark, y in y_marks.items():
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>')
        parts.append(_text(left - 8, y + 4, mark, anchor="end"))
    parts += [_text(x, bottom + 18, mark, anchor="middle") for mark, x in x_marks.items()]
    parts.append(_text((left + right) / 2, _HEIGHT - 12, x_label, anchor="middle"))
    parts.append(_text(_LEFT, _TOP - 8, y_label))
    labels = _apart({name: points[-1][1] for name, points in lines.items()})
    for colour, (name, spots) in zip(_COLOURS * len(lines), lines.items(), strict=False):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(_text(spots[-1][0] + 10, labels[name] + 4, f"{name}, {ends[name]}", fill=colour))
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
