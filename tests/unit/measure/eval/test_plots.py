from __future__ import annotations

from xml.etree import ElementTree

import pytest

from edgerag.measure.eval.plots import bars, curves

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_curves_rise_with_their_values() -> None:
    svg = curves("a < b", {"keyword": [0.0, 0.5, 1.0], "vector": [0.2, 0.2, 0.2]}, across="k", up="share")
    root = ElementTree.fromstring(svg)
    first, second = root.iter(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in first.attrib["points"].split()]
    assert heights == sorted(heights, reverse=True), "the y axis of SVG points down"
    assert first.attrib["stroke"] != second.attrib["stroke"]
    assert {"a < b", "keyword", "vector", "k", "share"} <= set(texts(svg))


def test_bars_are_as_high_as_their_values() -> None:
    svg = bars("times", {"embed": {"p50": 5.0, "p99": 10.0}, "fuse & co": {"p50": 0.0}}, up="ms")
    heights = {
        rect.find(f"{SVG}title").text: float(rect.attrib["height"])  # type: ignore[union-attr]
        for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    }
    assert heights["p99: 10"] == 2 * heights["p50: 5"] > 0 and heights["p50: 0"] == 0
    assert "fuse & co" in texts(svg)


@pytest.mark.parametrize(("value", "top"), [(0.839, "1"), (1.0, "1"), (55.4, "100"), (0.012, "0.02"), (430.0, "500")])
def test_the_axis_ends_at_a_round_number(value: float, top: str) -> None:
    heights = texts(bars("x", {"a": {"b": value}}, up=""))
    assert top in heights and "0" in heights


def test_nothing_to_show_is_still_a_picture() -> None:
    for svg in (bars("x", {}, up="y"), curves("x", {}, across="k", up="y")):
        assert ElementTree.fromstring(svg).tag == f"{SVG}svg"
