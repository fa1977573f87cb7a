"""Records of a bench: compared with an earlier one, and as a page that needs nothing from anywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edgerag.errors import UsageError
from edgerag.measure.field.against import against_text, compare, read_run
from edgerag.measure.field.peers import peer_series
from edgerag.measure.field.report import report_html
from edgerag.measure.field.run import part_record, value_text
from edgerag.measure.field.series import PartResult, Series, Versus, series_record


def record(middle: float = 1.0, **changed: Any) -> dict[str, Any]:
    slow = Series("part.slow", "s", "less", tuple(middle * (2 + n / 100) for n in range(8)), (0.001,) * 8)
    quick = Series("part.quick", "s", "less", tuple(middle * (1 + n / 100) for n in range(8)), (0.001,) * 8)
    result = PartResult(
        "part",
        "Is <b>it</b> quick?",
        (slow, quick),
        (Versus("quick", "slow", "part.quick", "part.slow"),),
        {"rows": 6000, "model": "<script>alert(1)</script>"},
        ("A note & more.",),
    )
    return {
        "bench": "ask",
        "quick": True,
        "seconds": 12.5,
        "machine": {"processor": "A", "logical_cores": 2, "features": ["AVX2"]},
        "models": {"chat": "small", "embedder": "mini"},
        "parts": {"part": part_record(result)},
        "series": {one.name: series_record(one) for one in (slow, quick)},
        **changed,
    }


def test_what_became_slower_is_named() -> None:
    compared = compare(record(1.5), record())
    assert compared["comparable"]
    assert {one["verdict"] for one in compared["verdicts"].values()} == {"slower"}
    assert "part.slow: slower (0.67 times" in against_text(compared)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"machine": {"processor": "B", "logical_cores": 2}}, "processor"),
        ({"models": {"chat": "large", "embedder": "mini"}}, "chat model"),
        ({"quick": False}, "--quick"),
    ],
)
def test_what_is_not_of_the_same_thing_is_not_compared(changed: dict[str, Any], told: str) -> None:
    compared = compare(record(1.5), record(**changed))
    assert not compared["comparable"] and not compared["verdicts"]
    assert told in against_text(compared)


def test_an_earlier_run_is_read_bare_and_as_a_result_file(tmp_path: Path) -> None:
    for value in (record(), {"name": "x", "figures": record()}):
        (tmp_path / "run.json").write_text(json.dumps(value))
        assert compare(record(), read_run(tmp_path / "run.json"))["comparable"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"series": {"a": {"runs": []}}}', "\0"])
def test_what_is_no_run_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError, match=r"run\.json"):
        read_run(tmp_path / "run.json")


def test_the_page_shows_all_of_it_and_fetches_nothing() -> None:
    page = report_html({**record(), "against": compare(record(1.5), record())})
    assert "<svg" in page and "faster" in page and "slower" in page and "A note &amp; more." in page
    assert "<script" not in page and "<b>it</b>" not in page
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!http://www\.w3\.org/2000/svg)\w""", page)


def test_a_bench_beside_its_peers_has_a_page_and_series_too() -> None:
    figures = {
        "at": [{"target": 0.95, "qps": 100.0, "qps_hnswlib": 50.0, "qps_runs": [100.0, 101.0]}],
        "ttft_runs_s": {"plain": [1.0, 2.0]},
        "prefill_tps_runs": {"tuned": [400.0]},
        "decode": {"quoting": {"tps_runs": {"lookup": [90.0]}}},
        "embed_runs_s": {"best": [3.0]},
    }
    names = [series.name for series in peer_series("index", figures)]
    assert names == [
        "index.qps at recall 0.95",
        "first words.plain",
        "prefill.tuned",
        "decode.quoting lookup",
        "embed.best",
    ]
    assert "<svg" in report_html(figures)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.5, "s", "1.5 s"), (0.0031, "s", "3.1 ms"), (6.2e-5, "s", "62 µs"), (512.3, "tokens/s", "512 tokens/s")],
)
def test_values_are_told_in_units_that_can_be_read(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text
