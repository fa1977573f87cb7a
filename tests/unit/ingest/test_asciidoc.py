from __future__ import annotations

import pytest

from edgerag.ingest.parse.asciidoc import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def asciidoc(text: str) -> ParsedDocument:
    return parse(Source(text.encode(), "manual.adoc"))


def headings(text: str) -> list[tuple[int, str]]:
    parsed = asciidoc(text)
    for heading in parsed.headings:
        assert heading.title.split()[0] in parsed.text[heading.start :].split("\n")[0]
        assert heading.start == 0 or parsed.text[heading.start - 1] == "\n"
    return [(heading.level, heading.title) for heading in parsed.headings]


def test_levels_are_those_of_the_marks() -> None:
    text = "= Manual\nAnn <a@example.org>\n:toc:\n\n== Start\n\ntext\n\n=== Detail ===\n\n## Markdown style\n"
    assert headings(text) == [(1, "Manual"), (2, "Start"), (3, "Detail"), (2, "Markdown style")]


def test_titles_of_two_lines() -> None:
    text = "Manual\n======\n\nStart\n-----\n\nDetail\n~~~~~~\n\nMore\n^^^^\n"
    assert headings(text) == [(1, "Manual"), (2, "Start"), (3, "Detail"), (4, "More")]


@pytest.mark.parametrize("fence", ["----", "......", "////", "++++", "```", "-----"])
def test_no_heading_inside_what_is_shown_as_it_is(fence: str) -> None:
    text = f"== Real\n\n[source]\n{fence}\n== not\n\nalso not\n--------\n{fence}\n\n== Real too\n"
    assert headings(text) == [(2, "Real"), (2, "Real too")]


@pytest.mark.parametrize(
    "text",
    [
        "a paragraph\n== goes on\n",
        " == literal\n",
        "==no blank\n",
        "// == comment\n",
        "a paragraph of some length\n----\ncode\n----\n",
        "|===\n| a | b\n|===\n",
        "====\nexample\n====\n",
        ".Caption\n--------\ncode\n--------\n",
        "[source]\n--------\ncode\n--------\n",
    ],
)
def test_no_heading_where_there_is_none(text: str) -> None:
    assert headings(text) == []


def test_attributes_stay_and_marks_go() -> None:
    text = "== [[id]]The `run` *command* of {product} (link:x.html[see], <<id,there>>)\n"
    assert headings(f"\n{text}".lstrip()) == [(2, "The run command of {product} (see, there)")]


def test_a_block_attribute_may_touch_the_title() -> None:
    assert headings("[#start]\n== Start\n") == [(2, "Start")]


@pytest.mark.parametrize(
    ("text", "title"),
    [("= Manual\n\n== A\n", "Manual"), ("== A\n\n== B\n", "manual.adoc"), ("words\n", "manual.adoc")],
)
def test_titles(text: str, title: str) -> None:
    assert asciidoc(text).title == title


def test_long_lines_are_read_in_no_time() -> None:
    assert headings("== a" + " " * 200_000 + "b\n\n" + "[" * 100_000 + "\n") == []
