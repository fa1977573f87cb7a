"""Steps by answers as a picture: which step was slow in which answer. The darker, the longer, on a logarithmic scale.

SVG without a script; the same figures always give the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax import saxutils

from edgerag.telemetry.spans import TraceTree

_LEFT, _TOP, _RIGHT, _BOTTOM = 220, 46, 120, 40
_ROW, _WIDEST, _ROOM = 18, 22, 660  # pixels; cells share the room, and are no wider than that
_LEAST_MS = 0.01  # and what is shorter is as light as that
# From light to dark, told apart in print and by the colour-blind (ColorBrewer's YlOrRd).
_COLOURS = ("#ffffcc", "#ffeda0", "#fed976", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026", "#800026")
_MOST_ROWS = 40
_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Milliseconds by step, and in it by answer; None where the answer did not have the step."""

    trace_ids: tuple[str, ...]
    steps: tuple[tuple[str, tuple[float | None, ...]], ...]


def heat_map(traces: Sequence[TraceTree]) -> HeatMap:
    """``traces`` from left to right. A step is all spans of a name that have none in them."""
    rows: dict[str, list[float | None]] = {}
    for place, trace in enumerate(traces):
        for span in trace.root.walk():
            if not span.inner:
                row = rows.setdefault(span.name, [None] * len(traces))
                row[place] = (row[place] or 0.0) + span.ns / 1e6
    steps = tuple((name, tuple(row)) for name, row in list(rows.items())[:_MOST_ROWS])
    return HeatMap(tuple(trace.trace_id for trace in traces), steps)


def heat_map_svg(heat: HeatMap) -> str:
    values = [max(_LEAST_MS, value) for _, row in heat.steps for value in row if value is not None]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = max(low + 1, math.ceil(math.log10(max(values, default=1.0))))
    count = max(1, len(heat.trace_ids))
    cell = min(_WIDEST, _ROOM / count)
    width, height = _LEFT + round(cell * count) + _RIGHT, _TOP + _ROW * len(heat.steps) + _BOTTOM
    width = max(width, 480)
    title = f"Where the time of the last {count} answers went, in milliseconds (logarithmic)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" role="img"><title>{_escaped(title)}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="18" font-size="13">{_escaped(title)}</text>',
        f'<text x="{_LEFT}" y="{_TOP - 6}">older</text>',
        f'<text x="{_LEFT + cell * count:.1f}" y="{_TOP - 6}" text-anchor="end">newer</text>',
    ]
    for line, (name, row) in enumerate(heat.steps):
        y = _TOP + _ROW * line
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 13}" text-anchor="end">{_escaped(name)}</text>')
        for place, value in enumerate(row):
            if value is not None:
                parts.append(
                    f'<rect x="{_LEFT + cell * place:.2f}" y="{y}" width="{cell:.2f}" height="{_ROW - 1}" '
                    f'fill="{_colour(value, low, high)}">'
                    f"<title>{_escaped(name)}: {value:.3g} ms, {_escaped(heat.trace_ids[place])}</title></rect>"
                )
    parts += _legend(low, high, x=_LEFT, y=_TOP + _ROW * len(heat.steps) + 12)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _escaped(text: str) -> str:
    """As text of XML, which lacks most control characters, escaped or not."""
    return saxutils.escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _legend(low: int, high: int, *, x: int, y: int) -> list[str]:
    parts = []
    for step, colour in enumerate(_COLOURS):
        parts.append(f'<rect x="{x + 24 * step}" y="{y}" width="24" height="10" fill="{colour}"/>')
    parts.append(f'<text x="{x}" y="{y + 21}">{10.0**low:g} ms</text>')
    parts.append(f'<text x="{x + 24 * len(_COLOURS)}" y="{y + 21}" text-anchor="end">{10.0**high:g} ms</text>')
    return parts


def _colour(value_ms: float, low: int, high: int) -> str:
    share = (math.log10(max(_LEAST_MS, value_ms)) - low) / (high - low)
    return _COLOURS[min(len(_COLOURS) - 1, max(0, int(share * len(_COLOURS))))]
