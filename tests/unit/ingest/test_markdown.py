from __future__ import annotations

import pytest

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.markdown import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def markdown(text: str, name: str = "notes.md") -> ParsedDocument:
    return parse(Source(text.encode(), name))


def headings(text: str) -> list[tuple[int, str]]:
    parsed = markdown(text)
    for heading in parsed.headings:
        line = parsed.text[heading.start :].lstrip().split("\n")[0]
        assert heading.title.split()[0] in line, "a heading stands where it says"
    return [(heading.level, heading.title) for heading in parsed.headings]


def test_the_text_is_the_file() -> None:
    assert markdown("# A\r\n\r\ntext\rmore\n").text == "# A\n\ntext\nmore\n"


def test_both_kinds_of_headings() -> None:
    assert headings("# One #\n\n### Three\n\nTwo\n---\n\nOne again\n===\n") == [
        (1, "One"), (3, "Three"), (2, "Two"), (1, "One again")
    ]  # fmt: skip


def test_a_heading_of_two_lines() -> None:
    assert headings("Two\nlines\n=====\n") == [(1, "Two lines")]


def test_no_heading_where_there_is_none() -> None:
    assert headings("#hashtag\n\n- item\n---\n\n    # code\n\n| a |\n|---|\n\n***\n---\n\ntext #5\n") == []


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_no_heading_inside_code(fence: str) -> None:
    assert headings(f"# Real\n\n{fence}sh\n# comment\n{fence}\n\n## Also real\n") == [(1, "Real"), (2, "Also real")]


def test_a_shorter_fence_does_not_close_a_longer_one() -> None:
    assert headings("````\n```\n# code\n```\n# code\n````\n# Real\n") == [(1, "Real")]


def test_marks_are_no_part_of_a_title() -> None:
    assert headings("# The `ask` **command** ([docs](x.md)) {#ask}\n") == [(1, "The ask command (docs)")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('---\ntitle: "From front matter"\ntags: [a]\n---\n# Heading\n', "From front matter"),
        ("+++\ntitle = 'From TOML'\n+++\n# Heading\n", "From TOML"),
        ("# Heading\n\n# Another\n", "Heading"),
        ("No heading\n", "notes.md"),
        ("---\nnever closed\n\n# Heading\n", "Heading"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert markdown(text).title == title


def test_front_matter_holds_no_heading() -> None:
    assert headings("---\na: 1\n# comment\n---\n# Real\n") == [(1, "Real")]


def test_latin_1_umlauts_are_read() -> None:
    parsed = parse(Source("Über die Größe".encode("latin-1"), "x.md"))
    assert parsed.text == "Über die Größe"
    assert parsed.warnings


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_nothing_is_a_finding(data: bytes) -> None:
    with pytest.raises(DocumentEmpty):
        parse(Source(data, "x.md"))
