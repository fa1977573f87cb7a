"""The figures of a result file as charts: of `edgerag eval --out`, of `edgerag bench ... --json`, of bench/results.

What an evaluation shows is chosen (decision 039). Of other files every number is shown beside those of the same unit,
which its name tells (``_s``, ``_ms``, ``_bytes``, ...): a bench that measures something new needs nothing here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edgerag.errors import EdgeragError, UsageError
from edgerag.machine.disk import storage_error
from edgerag.measure.eval.plots import bars, curves, rows

_RANKING = ("hit@1", "hit@5", "recall@10", "mrr@10", "ndcg@10")
_SUMS = ("to_sources", "total")  # not in the chart of times: they hold other stages
# What a result depends on, and no figure of it.
_CIRCUMSTANCES = frozenset({"machine", "parameters", "settings", "command", "date", "commit", "format", "questions"})
_UNITS = (
    ("_bytes", "MB", 1e-6), ("_ms", "milliseconds", 1.0), ("_s", "seconds", 1.0), ("_tps", "tokens per second", 1.0),
    ("_per_s", "per second", 1.0), ("qps", "queries per second", 1.0),
)  # fmt: skip
_RATES = re.compile(r"(qps|tps|per_s)(_|$)")
_TIMES_AS = re.compile(r"(^|_)ratio")
_MOST_ROWS = 20  # in one chart
_MOST_CHARTS = 40
_FEWEST_POINTS = 3  # of a curve
_LARGEST_FILE = 200_000_000
_PNG_WIDTH = 1280  # twice that of the SVG

Kind = Literal["bars", "rows", "curves"]


@dataclass(frozen=True, slots=True)
class Chart:
    """``bars``: groups of named values. ``rows``: one group of them. ``curves``: series over 1, 2, 3, ..."""

    name: str  # of its file, without extension
    title: str
    kind: Kind
    up: str  # what the values are
    across: str = ""
    groups: Mapping[str, Mapping[str, float]] | None = None
    series: Mapping[str, Sequence[float]] | None = None


def read_charts(file: Path) -> list[Chart]:
    """Raises UsageError for a file that is no result, or one without figures."""
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"{str(file)!r} is larger than any result.")
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{str(file)!r} cannot be read as a result: {error}.") from error
    if not isinstance(record, dict):
        raise UsageError(f"{str(file)!r} is no result: it holds no named figures.")
    found = charts_of(record, name=file.parent.name if file.stem == "result" else file.stem)
    if not found:
        raise UsageError(f"{str(file)!r} holds no figures.", remedy="Name a result of `edgerag eval` or a bench.")
    return found


def charts_of(record: Mapping[str, Any], *, name: str) -> list[Chart]:
    figures = record.get("figures", record)
    if _is_evaluation(record):
        return eval_charts(record)
    if not isinstance(figures, Mapping):
        return []
    # A bench of several sets keeps an evaluation of each.
    sets = {key: item for key, item in figures.items() if _is_evaluation(item)}
    charts = [replace(chart, name=_file_name([key, chart.name])) for key in sets for chart in eval_charts(sets[key])]
    rest = {key: item for key, item in figures.items() if key not in sets}
    return [*charts, *_walk(rest, [str(record.get("name", name))])][:_MOST_CHARTS]


def eval_charts(record: Mapping[str, Any]) -> list[Chart]:
    """Those of an evaluation: how well each stage ranks, hit@k, and times."""
    figures, name = record["figures"], record.get("set", "evaluation")
    charts = []
    if stages := figures["stages"]:
        measures = {of: {stage: values[of] for stage, values in stages.items()} for of in _RANKING}
        charts.append(Chart("ranking", f"{name}: ranking", "bars", "mean over the questions", groups=measures))
        up = "share of the questions"
        if series := figures.get("hit_curve"):
            charts.append(Chart("hits", f"{name}: hit@k", "curves", up, across="k", series=series))
    times = {stage.replace("_", " "): values for stage, values in figures["latency_ms"].items() if stage not in _SUMS}
    if times:
        charts.append(Chart("times", f"{name}: times", "bars", "milliseconds", groups=times))
    return charts


def chart_svg(chart: Chart) -> str:
    if chart.kind == "curves":
        return curves(chart.title, chart.series or {}, across=chart.across, up=chart.up)
    if chart.kind == "rows":
        return rows(chart.title, next(iter((chart.groups or {}).values()), {}), up=chart.up)
    return bars(chart.title, chart.groups or {}, up=chart.up)


def chart_png(chart: Chart) -> bytes:
    """The same picture in pixels; its text needs a font on this machine. Raises EdgeragError."""
    return svg_png(chart_svg(chart), name=chart.name)


def svg_png(svg: str, *, name: str) -> bytes:
    """A picture that was made here, in pixels. Raises EdgeragError."""
    import resvg_py

    try:
        return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=_PNG_WIDTH))
    except ValueError as error:
        raise EdgeragError(f"The chart {name} cannot be painted: {error}.") from error


def write_charts(charts: Sequence[Chart], folder: Path, *, png: bool) -> list[Path]:
    """Writes ``NAME.svg``, and with ``png`` ``NAME.png``, of each; gives the paths.

    Raises StorageFull, EdgeragError.
    """
    written = []
    for chart in charts:
        contents = {".svg": chart_svg(chart).encode("utf-8", "backslashreplace")}
        if png:
            contents[".png"] = chart_png(chart)
        for extension, content in contents.items():
            file = folder / f"{chart.name}{extension}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            except OSError as error:
                raise storage_error(error, file) from error
            written.append(file)
    return written


# ------------------------------------------------------------ figures of any shape


def _walk(value: Any, path: list[str]) -> Iterator[Chart]:
    """Charts of a mapping and of what lies in it."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = {_label(item, at): item for at, item in enumerate(value) if isinstance(item, Mapping)}
    if not isinstance(value, Mapping):
        return
    members = {str(key): item for key, item in value.items() if key not in _CIRCUMSTANCES}
    yield from _rows_of({key: item for key, item in members.items() if _is_number(item)}, path)
    lists = {key: item for key, item in members.items() if _is_curve(item)}
    for key, points in lists.items():
        title = _title([*path, key])
        yield Chart(_file_name([*path, key]), title, "curves", unit_of(key)[0], across="run", series={key: points})
    inner = {key: item for key, item in members.items() if isinstance(item, Mapping)}
    alike = _alike(inner)
    if alike:
        yield from _bars_of(inner, alike, path)
    for key, item in members.items():
        if not (alike and key in inner and not _is_deeper(item)) and key not in lists:
            yield from _walk(item, [*path, key])


def _rows_of(numbers: Mapping[str, float], path: list[str]) -> Iterator[Chart]:
    by_unit: dict[str, dict[str, float]] = {}
    for key, number in numbers.items():
        unit, factor = unit_of(key)
        by_unit.setdefault(unit, {})[key] = number * factor
    for unit, values in by_unit.items():
        items = list(values.items())
        for start in range(0, len(items), _MOST_ROWS):
            part = str(start // _MOST_ROWS + 1) if len(items) > _MOST_ROWS else ""
            name = _file_name([*path, *filter(None, [unit, part])])
            groups = {"": dict(items[start : start + _MOST_ROWS])}
            yield Chart(name, _title(path), "rows", unit, groups=groups)


def _bars_of(inner: Mapping[str, Mapping[str, Any]], keys: Sequence[str], path: list[str]) -> Iterator[Chart]:
    """The same figures of several things side by side."""
    for unit in dict.fromkeys(unit_of(key)[0] for key in keys):
        of_unit = [key for key in keys if unit_of(key)[0] == unit]
        groups = {name: {key: item[key] * unit_of(key)[1] for key in of_unit} for name, item in inner.items()}
        yield Chart(_file_name([*path, "by", unit]), _title(path), "bars", unit, groups=groups)


def _alike(inner: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The figures that all of them have, where there are several of them and not too many."""
    if not 2 <= len(inner) <= _MOST_ROWS:
        return []
    first, *others = inner.values()
    shared = [key for key in first if _is_number(first[key]) and all(_is_number(other.get(key)) for other in others)]
    return shared[:8]


def _is_evaluation(record: Any) -> bool:
    figures = record.get("figures") if isinstance(record, Mapping) else None
    return isinstance(figures, Mapping) and {"stages", "latency_ms"} <= set(figures)


def _is_deeper(item: Any) -> bool:
    return isinstance(item, Mapping) and any(isinstance(inner, Mapping | list) for inner in item.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_curve(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= _FEWEST_POINTS and all(_is_number(point) for point in value)


def figure_text(value: float) -> str:
    """``12,833``, ``0.6859``"""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def unit_of(key: str) -> tuple[str, float]:
    """What the numbers of that name are counted in, and by what they are multiplied for it."""
    if _TIMES_AS.search(key):
        return "times", 1.0
    if _RATES.search(key):
        return "per second", 1.0
    return next(((unit, factor) for end, unit, factor in _UNITS if key.endswith(end)), ("", 1.0))


def _label(item: Mapping[str, Any], at: int) -> str:
    names = (str(item[key]) for key in ("name", "set", "model", "target", "what") if key in item)
    return next(names, str(at + 1))


def _title(path: Sequence[str]) -> str:
    return ": ".join(part.replace("_", " ") for part in path)


def _file_name(path: Sequence[str]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(path).lower()).strip("-") or "chart"
