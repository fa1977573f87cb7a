"""What other programs open: by their schemas, and inert whatever a trace holds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from edgerag.telemetry.exports.flame_page import flame_page
from edgerag.telemetry.exports.heat_map import heat_map, heat_map_svg
from edgerag.telemetry.exports.lanes import lanes
from edgerag.telemetry.exports.perfetto import perfetto_text
from edgerag.telemetry.exports.speedscope import speedscope_text
from edgerag.telemetry.spans import Span, TraceTree, nested
from edgerag.ui.why.trace_text import trace_text

HERE = Path(__file__).parent
BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u2028'\"&`${x}"
TOKENS: dict[str, Any] = {
    "rag.llm.generation.asked_ns": 1_000,
    "rag.llm.generation.token.ns": (500, 700, 900),
    "rag.llm.generation.token.sampling_ns": (10, 10, 10),
    "rag.llm.generation.token.decode_ns": (0, 150, 150),
    "rag.llm.generation.token.detokenise_ns": (5, 5, 5),
    "rag.llm.generation.token.present_ns": (7, 7, 7),
}


def schema(name: str) -> Any:
    return json.loads((HERE / f"{name}.schema.json").read_text(encoding="utf-8"))


def spans(depth: int) -> st.SearchStrategy[Span]:
    inner = st.lists(spans(depth - 1), max_size=4).map(tuple) if depth else st.just(())
    return st.builds(
        Span,
        st.sampled_from(["rag.query", "rag.llm.generation", BAD]) | st.text(),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.dictionaries(st.text(max_size=20), st.text() | st.integers() | st.booleans() | st.floats(0, 1))
        | st.sampled_from([{"thread.name": "other"}, {"thread.name": BAD}, TOKENS]),
        inner,
        st.sampled_from(["", "", BAD]),
    )


def tree_of(span: Span) -> TraceTree:
    return TraceTree(
        "0af7651916cd43dd8448eb211c80319c", nested(span if span.end_ns >= span.start_ns else Span(BAD, 0, 9))
    )


trees = spans(3).map(tree_of)


@given(trees)
def test_perfetto_opens_it(tree: TraceTree) -> None:
    record = json.loads(perfetto_text(tree))
    jsonschema.validate(record, schema("trace_event"))
    events = [event for event in record["traceEvents"] if event["ph"] == "X"]
    times = [event["ts"] for event in events]
    assert times == sorted(times)
    for thread in {event["tid"] for event in events}:
        ends: list[int] = []
        for event in (event for event in events if event["tid"] == thread):
            # In whole nanoseconds: a sum of two floats may be a hair more than the third.
            begun, took = round(event["ts"] * 1000), round(event["dur"] * 1000)
            while ends and ends[-1] <= begun:
                ends.pop()
            # In a thread they lie within each other or one after the other.
            assert not ends or begun + took <= ends[-1]
            ends.append(begun + took)
    named = {event["tid"] for event in record["traceEvents"] if event["name"] == "thread_name"}
    assert {event["tid"] for event in events} <= named


@given(trees)
def test_speedscope_opens_it(tree: TraceTree) -> None:
    record = json.loads(speedscope_text(tree))
    jsonschema.validate(record, schema("speedscope"))
    for profile in record["profiles"]:
        opened: list[int] = []
        before = profile["startValue"]
        for event in profile["events"]:
            assert before <= event["at"] <= profile["endValue"]
            before = event["at"]
            assert event["frame"] < len(record["shared"]["frames"])
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert opened.pop() == event["frame"]
        assert not opened


def test_work_of_a_thread_within_work_of_another_within_its_own_has_a_lane_beside() -> None:
    """On one lane it would lie behind the work that is open around it."""

    def in_thread(name: str, *inner: Span) -> Span:
        return Span("x", 0, 9, {"thread.name": name}, inner)

    root = Span("rag.query", 0, 9, inner=(in_thread("one", in_thread("other", in_thread("one")), Span("y", 0, 4)),))
    tree = TraceTree("0" * 32, root)
    assert [(lane.name, [(each.name, each.start_ns, each.end_ns) for each in lane.slices]) for lane in lanes(tree)] == [
        ("rag.query", [("rag.query", 0, 9)]),
        ("one", [("x", 0, 9), ("y", 0, 4)]),
        ("other", [("x", 0, 9)]),
        ("one 2", [("x", 0, 9)]),
    ]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@given(trees)
def test_a_flame_graph_holds_text_and_its_own_script_alone(tree: TraceTree) -> None:
    page = flame_page(tree)
    parsed = _Page()
    parsed.feed(page)
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("script") == 2 and "img" not in tags
    assert not [attributes for _, attributes in parsed.tags if {"src", "href", "onerror", "style"} & set(attributes)]
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert json.loads(data)["ns"] == tree.root.ns
    assert "<" not in data and data.isascii()
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(
        attributes["content"] for tag, attributes in parsed.tags if tag == "meta" and "http-equiv" in attributes
    )
    assert policy is not None and f"script-src 'sha256-{checksum}'" in policy and "default-src 'none'" in policy
    assert not re.search(r"https?://|innerHTML|document\.write|eval\(", page)


@given(trees)
def test_the_text_has_no_terminal_codes(tree: TraceTree) -> None:
    text = trace_text(tree)
    assert "\x1b" not in text
    assert text.endswith("\n")


@given(st.lists(trees, max_size=4))
def test_a_heat_map_is_a_picture_without_a_script(found: list[TraceTree]) -> None:
    svg = heat_map_svg(heat_map(found))
    picture = ElementTree.fromstring(svg)
    assert {element.tag.rpartition("}")[2] for element in picture.iter()} <= {"svg", "title", "rect", "text"}


def test_steps_and_answers_have_their_cells_by_the_logarithm() -> None:
    slow = TraceTree("a" * 32, Span("rag.query", 0, 10**9, inner=(Span("x", 0, 10**9), Span("y", 0, 10**5))))
    fast = TraceTree("b" * 32, Span("rag.query", 0, 10**7, inner=(Span("x", 0, 10**7),)))
    heat = heat_map([slow, fast])
    assert heat.steps == (("x", (1000.0, 10.0)), ("y", (0.1, None)))
    cells = re.findall(r'fill="(#\w+)"><title>([xy]): ([\d.e+]+) ms', heat_map_svg(heat))
    darkness = {(name, float(value)): colour for colour, name, value in cells}
    assert len(cells) == 3 and len(set(darkness.values())) == 3


def test_tokens_have_a_lane_of_their_own() -> None:
    generation = Span("rag.llm.generation", 1_400, 2_000, TOKENS)
    tree = TraceTree("0" * 32, Span("rag.query", 1_000, 2_000, inner=(generation,)))
    record = json.loads(perfetto_text(tree))
    lanes = {event["args"]["name"]: event["tid"] for event in record["traceEvents"] if event["name"] == "thread_name"}
    tokens = [
        event for event in record["traceEvents"] if event.get("tid") == lanes["tokens"] and event["name"] == "token"
    ]
    assert [event["args"]["number"] for event in tokens] == [1, 2, 3]
    assert [round((event["ts"] + event["dur"]) * 1000) for event in tokens] == [507, 707, 907]
