from __future__ import annotations

from contextlib import suppress

import pytest
from unit.ingest.craft import pdf, text_pdf

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse.pdf import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def read(data: bytes) -> ParsedDocument:
    parsed = parse(Source(data, "sheet.pdf"))
    assert isinstance(parsed, ParsedDocument)
    return parsed


def test_pages_and_their_spans() -> None:
    parsed = read(text_pdf("Page one.\nIts second line.", "Page two."))
    assert parsed.text == "Page one.\nIts second line.\n\nPage two."
    assert [(p.number, parsed.text[p.start : p.end]) for p in parsed.pages] == [
        (1, "Page one.\nIts second line."), (2, "Page two.")
    ]  # fmt: skip


def test_paragraphs_are_found_by_their_distance() -> None:
    lines = [(700 - 14 * n, 12, f"line {n}") for n in range(6)] + [(600 - 14 * n, 12, f"next {n}") for n in range(3)]
    assert "line 5\n\nnext 0\nnext 1" in read(pdf([lines])).text


def test_large_type_is_a_heading() -> None:
    body = [(600 - 14 * n, 11, f"Body text number {n} of this page.") for n in range(20)]
    parsed = read(pdf([[(760, 24, "Pump manual"), (640, 16, "Safety first"), *body]]))
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "Pump manual"), (2, "Safety first")]
    assert parsed.title == "Pump manual"
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)


@pytest.mark.parametrize(
    ("title", "expected"),
    [("The data sheet", "The data sheet"), ("", "sheet.pdf"), ("Microsoft Word - draft.doc", "sheet.pdf")],
)
def test_titles(title: str, expected: str) -> None:
    assert read(text_pdf("Some text.", title=title)).title == expected


def test_a_hyphen_that_only_divides_a_word_goes() -> None:
    parsed = read(text_pdf("The valve of the refrig-\nerator is part of a long-\nterm test."))
    assert "refrigerator" in parsed.text
    assert "\x02" not in parsed.text


def test_a_hyphen_that_belongs_to_the_word_stays() -> None:
    parsed = read(text_pdf("A privacy rule, and preserving it.\nWe ask for privacy-\npreserving technology."))
    assert "privacy-preserving technology" in parsed.text


def test_blank_pages_are_pages() -> None:
    parsed = read(text_pdf("text", "", "text"))
    assert [page.number for page in parsed.pages] == [1, 2, 3]
    assert parsed.warnings == ()


def test_a_blank_file_is_named_as_one() -> None:
    with pytest.raises(DocumentEmpty, match=r"blank.*3 pages"):
        read(text_pdf("", "", ""))


def test_a_password_is_named() -> None:
    with pytest.raises(DocumentEncrypted, match="password"):
        read(pdf([[(700, 12, "secret")]], encrypted=True))


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.7\n%%EOF\n", b"%PDF-1.4\nxref\n0 1\ntrailer <</Root 9 0 R>>"])
def test_damage_is_named(data: bytes) -> None:
    with pytest.raises(DocumentDamaged):
        read(data)


def test_every_cut_gives_text_or_a_reason() -> None:
    whole = text_pdf("A page of text.\nMore of it.", "Another page.")
    for end in range(8, len(whole), 37):
        with suppress(DocumentDamaged, DocumentEmpty):
            assert "page" in read(whole[:end]).text
