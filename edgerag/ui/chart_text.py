"""A chart in characters, for a terminal and for the terminal UI: bars drawn here, an eighth of a character exactly,
curves by plotext."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgerag.measure.charts import Chart, figure_text
from edgerag.ui.cells import cell_count, padded
from edgerag.ui.plain import one_line

_LABEL_CHARACTERS = 30
_VALUE_CHARACTERS = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST_BAR = 8
# Told apart without colour, too.
_MARKERS = ("dot", "x", "o", "+", "*", "#")


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar; a group's heading has no bar."""

    label: str
    bar: str = ""
    value: str = ""


def bar_rows(chart: Chart, *, columns: int) -> list[BarRow]:
    """The bars of a chart of bars or rows, each as wide as its value is of the largest."""
    groups = chart.groups or {}
    names = [name for group in groups.values() for name in group]
    label_width = min(_LABEL_CHARACTERS, max((cell_count(one_line(name, 200)) for name in names), default=0))
    room = max(_LEAST_BAR, columns - label_width - _VALUE_CHARACTERS - 3)
    highest = max((value for group in groups.values() for value in group.values()), default=0.0)
    found = []
    for group, members in groups.items():
        if group:
            found.append(BarRow(one_line(group, columns)))
        for name, value in members.items():
            label = padded(one_line(name, label_width), label_width, to_the_right=True)
            found.append(BarRow(label, _bar(value / highest if highest > 0 else 0.0, room), figure_text(value)))
    return found


def _bar(share: float, room: int) -> str:
    eighths = round(max(0.0, min(1.0, share)) * room * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def chart_text(chart: Chart, *, columns: int, rows: int, coloured: bool) -> str:
    """All of it as lines of text, its title above."""
    if chart.kind == "curves":
        return _curves_text(chart, columns, rows, coloured=coloured)
    unit = f" ({one_line(chart.up, 60)})" if chart.up else ""
    lines = [f"{one_line(chart.title, max(1, columns - cell_count(unit)))}{unit}"]
    lines += [f"{row.label} {row.bar} {row.value}".rstrip() for row in bar_rows(chart, columns=columns)]
    return "\n".join(lines)


def _curves_text(chart: Chart, columns: int, rows: int, *, coloured: bool) -> str:
    import plotext

    plotext.clear_figure()
    plotext.plot_size(columns, rows)
    plotext.title(one_line(chart.title, 200))
    draw_curves(plotext, chart)
    text: str = plotext.build()
    return text.rstrip() if coloured else str(plotext.uncolorize(text)).rstrip()


def draw_curves(canvas: Any, chart: Chart) -> None:
    """On plotext, or what has its methods."""
    for number, (name, values) in enumerate((chart.series or {}).items()):
        across = list(range(1, len(values) + 1))
        marker = _MARKERS[number % len(_MARKERS)]
        canvas.plot(across, list(values), label=one_line(name, _LABEL_CHARACTERS), marker=marker)
    canvas.xlabel(one_line(chart.across, 60))
    canvas.ylabel(one_line(chart.up, 60))
