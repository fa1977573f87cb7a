"""Charts as SVG, written here: three kinds, no dependency, the same figures always the same bytes (decision 039)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

# Okabe and Ito's palette: told apart by the colour-blind, and in print.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#000000")
_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 40, 44
_TICKS = 5
_ROW, _ROWS_LEFT, _ROWS_RIGHT, _ROWS_TOP, _ROWS_BOTTOM = 18, 220, 70, 44, 12


def curves(title: str, series: Mapping[str, Sequence[float]], *, across: str, up: str) -> str:
    """Lines over 1, 2, 3, ...; values from 0 on, and the axis to 1 at least."""
    count = max((len(values) for values in series.values()), default=1)
    highest = max((value for values in series.values() for value in values), default=1.0)
    plot = _Plot(title, across=across, up=up, highest=_round_above(max(1.0, highest)))

    def x(position: int) -> float:
        return _LEFT + plot.width * (position / max(1, count - 1))

    for position in range(count):
        if position == 0 or (position + 1) % _TICKS == 0:
            plot.text(x(position), _HEIGHT - _BOTTOM + 16, str(position + 1), anchor="middle")
    for number, (name, values) in enumerate(series.items()):
        points = " ".join(f"{x(position):.1f},{plot.y(value):.1f}" for position, value in enumerate(values))
        plot.add(f'<polyline points="{points}" fill="none" stroke="{plot.legend(number, name)}" stroke-width="2"/>')
    return plot.done()


def bars(title: str, groups: Mapping[str, Mapping[str, float]], *, up: str) -> str:
    """A group of bars for each key, a bar for each key in it; values from 0 on."""
    highest = max((value for group in groups.values() for value in group.values()), default=0.0)
    plot = _Plot(title, across="", up=up, highest=_round_above(highest))
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    room = plot.width / max(1, len(groups))
    thick = room * 0.8 / max(1, len(names))
    for number, name in enumerate(names):
        colour = plot.legend(number, name)
        for place, group in enumerate(groups.values()):
            if name in group:
                left, top = _LEFT + room * (place + 0.1) + thick * number, plot.y(group[name])
                height = _HEIGHT - _BOTTOM - top
                plot.add(
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{thick:.1f}" height="{height:.1f}" fill="{colour}">'
                    f"<title>{escape(name)}: {group[name]:g}</title></rect>"
                )
    for place, name in enumerate(groups):
        plot.text(_LEFT + room * (place + 0.5), _HEIGHT - _BOTTOM + 16, name, anchor="middle")
    return plot.done()


def rows(title: str, values: Mapping[str, float], *, up: str) -> str:
    """A bar to the right for each name, with its value behind it; values from 0 on."""
    height = _ROWS_TOP + _ROW * len(values) + _ROWS_BOTTOM
    room = _WIDTH - _ROWS_LEFT - _ROWS_RIGHT
    highest = max(values.values(), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11" role="img"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="18" font-size="14">{escape(title)}</text>',
        f'<text x="{_ROWS_LEFT}" y="{_ROWS_TOP - 6}">{escape(up)}</text>',
    ]
    for place, (name, value) in enumerate(values.items()):
        y = _ROWS_TOP + _ROW * place
        width = room * max(0.0, value) / highest
        parts += [
            f'<text x="{_ROWS_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_ROWS_LEFT}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 4}" fill="{_COLOURS[0]}"/>',
            f'<text x="{_ROWS_LEFT + width + 5:.1f}" y="{y + 12}">{value:.4g}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_above(value: float) -> float:
    """The next number that five ticks divide evenly: 1, 2, 5, 10, ... times a power of ten; 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 5) if value <= step * power), 10 * power)


class _Plot:
    """The frame of a chart: title, axes, ticks and legend."""

    def __init__(self, title: str, *, across: str, up: str, highest: float) -> None:
        self.width = _WIDTH - _LEFT - _RIGHT
        self._highest = highest
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
            f'font-size="11" role="img"><title>{escape(title)}</title>',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        ]
        self.text(_LEFT, 18, title, size=14)
        self.text(_LEFT, _TOP - 8, up)
        self.text(_LEFT + self.width / 2, _HEIGHT - 8, across, anchor="middle")
        for tick in range(_TICKS + 1):
            value = highest * tick / _TICKS
            y = self.y(value)
            self.add(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
            self.text(_LEFT - 6, y + 4, f"{value:.3g}", anchor="end")

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self._highest

    def add(self, part: str) -> None:
        self._parts.append(part)

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", size: int = 11) -> None:
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>')

    def legend(self, number: int, name: str) -> str:
        """Adds a line to the legend and gives the colour."""
        colour = _COLOURS[number % len(_COLOURS)]
        x, y = _WIDTH - _RIGHT + 12, _TOP + 16 * number
        self.add(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{colour}"/>')
        self.text(x + 16, y + 9, name)
        return colour

    def done(self) -> str:
        return "\n".join([*self._parts, "</svg>"]) + "\n"
