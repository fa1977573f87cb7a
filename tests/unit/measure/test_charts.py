"""Figures become charts, whatever file they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgerag.errors import UsageError
from edgerag.measure.charts import chart_png, chart_svg, charts_of, read_charts, unit_of, write_charts
from edgerag.ui.chart_text import bar_rows, chart_text

BENCH = {
    "name": "bench_x",
    "machine": {"memory_bytes": 5},
    "figures": {
        "open_ms": 0.5, "load_ms": 220.0, "rss_bytes": 61_000_000, "ratio_qps": 2.2, "found": True,
        "runs": [1.0, 3.0, 2.0],
        "at": [{"target": 0.95, "qps": 36.0, "qps_peer": 16.0}, {"target": 0.99, "qps": 27.0, "qps_peer": 11.0}],
    },
}  # fmt: skip
STAGE = {"hit@1": 0.5, "hit@5": 0.8, "recall@10": 0.8, "mrr@10": 0.6, "ndcg@10": 0.7}
EVAL = {
    "set": "scifact",
    "figures": {
        "stages": {"keyword": STAGE, "fused": STAGE},
        "hit_curve": {"keyword": [0.5, 0.6, 0.7], "fused": [0.55, 0.7, 0.75]},
        "latency_ms": {"embed": {"p50": 5.0, "p95": 9.0}, "total": {"p50": 50.0, "p95": 90.0}},
    },
}


def test_numbers_of_one_unit_stand_together() -> None:
    charts = {(chart.kind, chart.up): chart for chart in charts_of(BENCH, name="x")}
    times = charts["rows", "milliseconds"].groups
    assert times == {"": {"open_ms": 0.5, "load_ms": 220.0}}
    assert charts["rows", "MB"].groups == {"": {"rss_bytes": 61.0}}
    assert charts["rows", "times"].groups == {"": {"ratio_qps": 2.2}}
    assert charts["bars", "per second"].groups == {
        "0.95": {"qps": 36.0, "qps_peer": 16.0}, "0.99": {"qps": 27.0, "qps_peer": 11.0},
    }  # fmt: skip
    assert ("curves", "") in charts
    assert "memory" not in str(charts), "the machine is no figure"


def test_an_evaluation_has_its_chosen_charts_alone_and_in_a_bench_of_several() -> None:
    assert [chart.name for chart in charts_of(EVAL, name="x")] == ["ranking", "hits", "times"]
    both = charts_of({"name": "eval", "figures": {"a": EVAL, "b": EVAL}}, name="x")
    assert [chart.name for chart in both] == ["a-ranking", "a-hits", "a-times", "b-ranking", "b-hits", "b-times"]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("ttft_s", "seconds"),
        ("p50_ms", "milliseconds"),
        ("qps_hnswlib", "per second"),
        ("ratio_qps", "times"),
        ("n", ""),
    ],
)
def test_names_tell_the_unit(name: str, unit: str) -> None:
    assert unit_of(name)[0] == unit


def test_pictures_are_written(tmp_path: Path) -> None:
    charts = charts_of(EVAL, name="x")
    written = write_charts(charts, tmp_path / "new", png=True)
    assert [file.name for file in written][:2] == ["ranking.svg", "ranking.png"]
    assert (tmp_path / "new" / "hits.svg").read_text().startswith("<svg")
    assert chart_png(charts[0]).startswith(b"\x89PNG")


def test_text_of_a_result_is_data_in_the_picture() -> None:
    chart = charts_of({"name": "<script>", "figures": {"a&b": 1}}, name="x")[0]
    assert "<script>" not in chart_svg(chart).replace("&lt;script&gt;", "")
    assert "a&amp;b" in chart_svg(chart)


def test_bars_in_characters_are_as_long_as_their_values() -> None:
    chart = charts_of({"figures": {"half_s": 1.0, "whole_s": 2.0, "none_s": 0.0}}, name="x")[0]
    rows = {row.label.strip(): row for row in bar_rows(chart, columns=60)}
    assert len(rows["whole_s"].bar) == 2 * len(rows["half_s"].bar)
    assert rows["none_s"].bar == ""
    text = chart_text(chart, columns=60, rows=18, coloured=False)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "x (seconds)" in text


def test_curves_in_characters_have_no_escapes_without_colour() -> None:
    curve = charts_of(EVAL, name="x")[1]
    text = chart_text(curve, columns=60, rows=18, coloured=False)
    assert "\x1b" not in text
    assert "keyword" in text
    assert "\x1b" in chart_text(curve, columns=60, rows=18, coloured=True)


@pytest.mark.parametrize("content", ["", "[1, 2]", "{}", '{"figures": {"a": "b"}}', '{"figures": 3}'])
def test_what_is_no_result_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "result.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"result\.json"):
        read_charts(file)


def test_a_result_without_its_own_name_is_called_by_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "monday" / "result.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"a_s": 1}))
    assert read_charts(file)[0].title == "monday"
