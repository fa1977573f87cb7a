from __future__ import annotations

import re
import string
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edgerag.config import ChunkSettings
from edgerag.ingest.chunk import chunk
from edgerag.types import Chunk, Heading, Page, ParsedDocument

WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> int:
    return len(WORD.findall(text))


def utf8_bytes(text: str) -> int:
    """As a tokenizer that falls back to bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def quarter(text: str) -> int:
    """As a tokenizer whose counts do not add up: the whole may be more than its parts."""
    return (len(text) + 3) // 4 + (len(text) > 200) * 7


def document(text: str, **more: object) -> ParsedDocument:
    return ParsedDocument(**{"text": text, "title": "", "media_type": "text/plain", **more})  # type: ignore[arg-type]


def chunks(
    parsed: ParsedDocument, *, target: int = 40, heading: int = 10, most: int = 60, count: object = words
) -> list[Chunk]:
    made = ChunkSettings(target_tokens=target, heading_tokens=heading)
    return chunk(parsed, count_tokens=count, settings=made, max_tokens=most)  # type: ignore[arg-type]


WILD = st.text(
    st.one_of(
        st.sampled_from(" \t\n\n\n\r\x0b\x0c\u00a0\u2028\u3000#`|-*.。！?،"),
        st.sampled_from(string.ascii_letters + "  "),
        st.characters(),  # marks, surrogates, any script
    ),
    max_size=1500,
)


MEDIA_TYPES = (
    *("text/plain", "text/markdown", "text/x-python", "application/pdf", "text/x-rst", "text/asciidoc"),
    *("application/json", "application/x-ipynb+json", "text/csv"),
)


@st.composite
def wild_documents(draw: st.DrawFn) -> ParsedDocument:
    text = draw(st.one_of(WILD, st.builds(lambda t, n: t * n, WILD.filter(len), st.integers(1, 8))))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    headings = tuple(Heading(draw(st.integers(1, 6)), draw(st.text(max_size=20)), cut) for cut in cuts)
    edges = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=4))), len(text)]
    pages = tuple(Page(n, a, b) for n, (a, b) in enumerate(pairwise(edges), 1))
    return ParsedDocument(
        text=text,
        title=draw(st.text(max_size=60)),
        media_type=draw(st.sampled_from(MEDIA_TYPES)),
        headings=headings if draw(st.booleans()) else (),
        pages=pages if draw(st.booleans()) else (),
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    parsed=wild_documents(),
    target=st.integers(16, 80),
    heading=st.integers(0, 40),
    most=st.integers(16, 120),
    count=st.sampled_from([words, utf8_bytes, quarter]),
)
@example(parsed=document("a" * 5000), target=16, heading=0, most=16, count=utf8_bytes)
@example(parsed=document("\u0301" * 300), target=16, heading=0, most=16, count=utf8_bytes)
def test_chunks_hold_every_character_once_and_fit(
    parsed: ParsedDocument, target: int, heading: int, most: int, count: object
) -> None:
    found = chunks(parsed, target=target, heading=heading, most=most, count=count)
    position = 0
    for ordinal, piece in enumerate(found):
        assert piece.ordinal == ordinal
        assert parsed.text[piece.start : piece.end] == piece.text != ""
        assert not parsed.text[position : piece.start].strip(), "nothing is left out"
        assert piece.start >= position, "nothing is there twice"
        assert piece.text.strip()
        assert piece.token_count == count(piece.embedding_text)  # type: ignore[operator]
        assert piece.token_count <= most
        assert piece.line_first == parsed.text.count("\n", 0, piece.start) + 1
        assert piece.line_last == parsed.text.count("\n", 0, piece.end) + 1
        if parsed.pages:
            assert piece.page_first is not None and piece.page_last is not None
            assert piece.page_first <= piece.page_last
        position = piece.end
    assert not parsed.text[position:].strip()
    assert found == chunks(parsed, target=target, heading=heading, most=most, count=count), "same input, same result"


def test_white_space_alone_makes_no_chunk() -> None:
    assert chunks(document(" \n\t \n")) == []
    assert chunks(document("")) == []


def test_small_paragraphs_of_a_section_are_joined() -> None:
    text = "\n\n".join(f"Paragraph number {n} is short." for n in range(12))
    found = chunks(document(text))
    assert len(found) == 2
    assert all(30 <= piece.token_count <= 50 for piece in found)
    assert all(piece.text.endswith("short.") for piece in found), "they end where paragraphs end"


def test_a_chunk_does_not_mix_sections() -> None:
    text = "# One\n\nAbout cats.\n\n# Two\n\nAbout dogs.\n"
    headings = (Heading(1, "One", 0), Heading(1, "Two", text.index("# Two")))
    found = chunks(document(text, media_type="text/markdown", headings=headings))
    assert [piece.heading_path for piece in found] == [("One",), ("Two",)]
    assert [piece.text for piece in found] == ["# One\n\nAbout cats.", "# Two\n\nAbout dogs."]
    assert found[1].line_first == 5


def test_a_heading_without_text_opens_the_section_below_it() -> None:
    text = "# Book\n## Chapter\nText.\n"
    headings = (Heading(1, "Book", 0), Heading(2, "Chapter", text.index("##")))
    (only,) = chunks(document(text, media_type="text/markdown", headings=headings))
    assert only.heading_path == ("Book", "Chapter")
    assert only.text == text.strip()


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    sentence = "The pump of the older series, i.e. the P-30, needs a new seal every year."
    found = chunks(document(" ".join([sentence] * 12)))
    assert len(found) > 2
    assert all(piece.text.startswith("The pump") and piece.text.endswith("year.") for piece in found)


@pytest.mark.parametrize(
    ("sentence", "end"), [("更换电池之前要先关掉开关。", "。"), ("電池を交換する前に電源を切ってください！", "！")]
)
def test_text_without_spaces_is_cut_between_sentences(sentence: str, end: str) -> None:
    found = chunks(document(sentence * 20), count=len)
    assert len(found) > 3
    assert all(piece.text.endswith(end) for piece in found)


def test_thai_is_cut_without_tearing_marks_from_letters() -> None:
    found = chunks(document("ที่นี่มีน้ำ" * 100), count=len)
    assert len(found) > 10
    assert not any(piece.text[0] in "ัิีึืุู็่้๊๋์ํ" for piece in found)


def test_a_text_without_sentences_is_cut_between_words() -> None:
    found = chunks(document("alpha beta gamma delta " * 100))
    assert all(set(piece.text.split()) <= {"alpha", "beta", "gamma", "delta"} for piece in found)


def test_a_table_or_code_is_kept_whole_up_to_the_limit_and_cut_between_lines_beyond() -> None:
    rows = "\n".join(f"row {n} | {n * 7}" for n in range(11))  # 44 tokens: over the target, under the limit
    text = f"{'Before it. ' * 12}\n\n{rows}\n\n{'After it. ' * 12}"
    assert rows in [piece.text for piece in chunks(document(text))]
    long = "\n".join(f"row {n} | {n * 7}" for n in range(40))
    assert all(piece.text.startswith("row") for piece in chunks(document(long)))


def test_fenced_code_is_one_block_though_it_has_blank_lines() -> None:
    code = "```python\nfirst = 1\n\n\nsecond = 2\n```"
    text = f"{'Words come first. ' * 9}\n\n{code}\n\n{'Words come last. ' * 9}"
    found = chunks(document(text, media_type="text/markdown"), target=36)
    assert any(code in piece.text for piece in found)


def test_the_context_names_title_and_headings_within_its_limit() -> None:
    text = "# The very long name of this part\n\nText.\n"
    headings = (Heading(1, "The very long name of this part", 0),)
    parsed = document(text, title="Manual", media_type="text/markdown", headings=headings)
    assert chunks(parsed)[0].context == "Manual > The very long name of this part"
    short = chunks(parsed, heading=5)[0]
    assert 0 < words(short.context) <= 5
    assert short.embedding_text == f"{short.context}\n{short.text}"
    bare = chunks(parsed, heading=0)[0]
    assert (bare.context, bare.embedding_text) == ("", bare.text)


def test_pages_are_told_and_preferred_as_borders() -> None:
    first, second = "One page of text. " * 7, "Another page. " * 9
    text = f"{first.strip()}\n\n{second.strip()}"
    pages = (Page(1, 0, len(first.strip())), Page(2, len(first.strip()) + 2, len(text)))
    found = chunks(document(text, media_type="application/pdf", pages=pages), target=60, most=80)
    assert [(piece.page_first, piece.page_last) for piece in found] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("media_type", "alone"),
    [
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", True),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", False),
    ],
)
def test_slides_are_borders_and_rows_are_not(media_type: str, alone: bool) -> None:
    lines = [f"line {n} of some words\n" for n in range(12)]
    text, length = "".join(lines), len(lines[0])
    halves = (Page(1, 0, length * 7), Page(2, length * 7, len(text)))
    text = text.replace("line 7", "\nline 7")
    found = chunks(document(text, media_type=media_type, pages=halves), target=60, most=80)
    assert (found[0].page_last == 1) is alone


def test_a_chunk_may_span_pages() -> None:
    text = "Short.\n\nShort too."
    pages = (Page(7, 0, 6), Page(8, 8, len(text)))
    (only,) = chunks(document(text, media_type="application/pdf", pages=pages))
    assert (only.page_first, only.page_last) == (7, 8)


def test_indentation_of_code_is_kept() -> None:
    text = "def first():\n    return 1\n\n    # a long way down\n" + "\n".join(f"    line_{n} = {n}" for n in range(30))
    found = chunks(document(text, media_type="text/x-python"))
    assert all(piece.text.startswith("    ") for piece in found[1:])


@pytest.mark.parametrize("unit", ["x", "word ", "a,b\n", "\n \n", "句", "x" * 200 + " ", "Sentence one. "])
def test_counting_grows_with_the_text_only(unit: str) -> None:
    """Not with its square: each character is counted a few times at most, however the text is made."""
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return (len(text) + 3) // 4

    text = unit * (400_000 // len(unit))
    chunks(document(text), target=160, most=254, count=count)
    assert counted < 5 * len(text)


@pytest.mark.parametrize("above", ["", "=======\n"])
def test_a_title_between_lines_of_marks_opens_the_section_below_it(above: str) -> None:
    text = f"{above}Chapter\n=======\n\nSection\n-------\n\nText.\n"
    headings = (Heading(1, "Chapter", 0), Heading(2, "Section", text.index("Section")))
    (only,) = chunks(document(text, media_type="text/x-rst", headings=headings))
    assert only.heading_path == ("Chapter", "Section")
    assert only.text == text.strip()


def test_small_parts_of_data_share_a_chunk_and_small_sections_of_prose_do_not() -> None:
    text = "".join(f"part{n}:\n  a: {n}\n" for n in range(4))
    headings = tuple(Heading(1, f"part{n}", text.index(f"part{n}")) for n in range(4))
    (only,) = chunks(document(text, media_type="application/yaml", headings=headings))
    assert (only.text, only.heading_path) == (text.strip(), ())
    assert len(chunks(document(text, headings=headings))) == 4


def test_a_large_part_does_not_take_in_its_small_neighbours() -> None:
    large = "large:\n" + "  key: 1\n" * 11
    text = f"one:\n  a: 1\n{large}two:\n  b: 2\n"
    headings = tuple(Heading(1, name, text.index(name)) for name in ("one", "large", "two"))
    found = chunks(document(text, media_type="application/yaml", headings=headings))
    assert [piece.heading_path for piece in found] == [("one",), ("large",), ("two",)]
