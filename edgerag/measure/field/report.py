"""The record of a bench as one HTML page that needs nothing else: no scripts, no fonts, no pictures from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from edgerag.measure.charts import chart_svg, charts_of
from edgerag.measure.eval.plots import rows
from edgerag.measure.field.against import series_of
from edgerag.measure.field.run import value_text
from edgerag.measure.field.series import Series

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0; }
td, th { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; background: #fff; margin: .5rem 0; }
.faster { color: #00734f; font-weight: 600; } .slower { color: #b04000; font-weight: 600; }
.note { opacity: .75; }
"""
# Nothing is fetched even if a value should hold markup that slipped through.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def report_html(record: Mapping[str, Any]) -> str:
    title = f"edgerag bench {record.get('bench', '')}".strip()
    parts = [_heading(record, title)]
    if isinstance(record.get("against"), Mapping):
        parts.append(_against(record["against"]))
    of_part: dict[str, list[Series]] = {}
    for series in series_of(record):
        of_part.setdefault(series.name.partition(".")[0], []).append(series)
    if isinstance(record.get("parts"), Mapping):
        parts += [_part(name, part, of_part.get(name, [])) for name, part in record["parts"].items()]
    else:  # of a bench that measures against its peers: all its figures
        parts += [chart_svg(chart) for chart in charts_of(record, name=title)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _heading(record: Mapping[str, Any], title: str) -> str:
    machine = record.get("machine")
    facts = {**(machine if isinstance(machine, Mapping) else {}), **_named(record.get("models"))}
    lines = "".join(f"<tr><th>{_words(key)}</th><td>{_value(value)}</td></tr>" for key, value in facts.items() if value)
    quick = " A quick run: fewer rounds, smaller data." if record.get("quick") else ""
    took = f"<p>Measured in {record['seconds']} s.{quick}</p>" if "seconds" in record else ""
    return f"<h1>{escape(title)}</h1>\n{took}\n<table>{lines}</table>"


def _named(models: Any) -> dict[str, Any]:
    return {f"{kind} model": name for kind, name in models.items()} if isinstance(models, Mapping) else {}


def _part(name: str, part: Mapping[str, Any], series: list[Series]) -> str:
    lines = [f"<h2>{_words(name)}</h2>", f"<p>{escape(str(part.get('question', '')))}</p>"]
    lines += [
        f"<p>{_words(verdict['way'])} against {_words(verdict['to'])}: {_verdict(verdict)}</p>"
        for verdict in part.get("comparisons", ())
    ]
    for unit in dict.fromkeys(one.unit for one in series):
        of_unit = [one for one in series if one.unit == unit]
        factor, shown = (1e3, "milliseconds") if unit == "s" else (1.0, unit)
        values = {one.name.partition(".")[2].replace("_", " "): one.median * factor for one in of_unit}
        lines.append(rows(f"{name.replace('_', ' ')}: medians", values, up=shown))
    if series:
        lines.append("<table><tr><th>way</th><th>median</th><th>spread</th><th>runs</th></tr>")
        lines += [
            f"<tr><td>{_words(one.name.partition('.')[2])}</td>"
            f'<td class="number">{escape(value_text(one.median, one.unit))}</td>'
            f'<td class="number">± {one.spread:.0%}</td><td class="number">{len(one.runs)}</td></tr>'
            for one in series
        ]
        lines.append("</table>")
    if figures := part.get("figures"):
        lines.append("<table>")
        lines += [
            f'<tr><th>{_words(key)}</th><td class="number">{_value(value)}</td></tr>' for key, value in figures.items()
        ]
        lines.append("</table>")
    lines += [f'<p class="note">{escape(str(note))}</p>' for note in part.get("notes", ())]
    return "\n".join(lines)


def _against(compared: Mapping[str, Any]) -> str:
    if not compared.get("comparable"):
        return "".join(
            f"<p>Not compared with the earlier run: {escape(str(why))}</p>" for why in compared.get("why", ())
        )
    lines = "".join(
        f"<tr><td>{_words(name)}</td><td>{_verdict(verdict)}</td></tr>"
        for name, verdict in compared["verdicts"].items()
    )
    return f"<h2>Against the earlier run</h2><table>{lines}</table>"


def _verdict(verdict: Mapping[str, Any]) -> str:
    word = str(verdict["verdict"])
    kind = word if word in ("faster", "slower") else "same"
    range_ = f"{verdict['ratio']:.2f} times, {verdict['low']:.2f} to {verdict['high']:.2f}"
    why = f" {escape(str(verdict['why']))}" if verdict.get("why") else ""
    return f'<span class="{kind}">{escape(word)}</span> ({range_}).{why}'


def _words(name: object) -> str:
    return escape(str(name).replace("_", " "))


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))
