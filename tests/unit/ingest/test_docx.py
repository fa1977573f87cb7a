from __future__ import annotations

import pytest
from unit.ingest import craft
from unit.ingest.craft import docx, paragraph, table

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse.docx import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def read(data: bytes) -> ParsedDocument:
    return parse(Source(data, "report.docx"))


def test_paragraphs_headings_and_tables_in_document_order() -> None:
    body = (
        paragraph("The report", "T")
        + paragraph("First part", "H1")
        + paragraph("Text &amp; more.")
        + table(("Item", "Price"), ("Bolt", "12"))
        + paragraph("Deeper", "Own")
        + paragraph("The end.")
    )
    parsed = read(docx(body))
    assert parsed.text == "The report\n\nFirst part\n\nText & more.\n\nItem | Price\nBolt | 12\n\nDeeper\n\nThe end."
    assert parsed.title == "The report"
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "The report"), (1, "First part"), (2, "Deeper")]
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)


def test_insertions_are_in_and_deletions_are_out() -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = (
        f"<w:p>{run.format('kept ')}<w:ins>{run.format('inserted')}</w:ins>"
        "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        f"<w:moveFrom>{run.format('moved away')}</w:moveFrom>"
        "</w:p>"
    )
    assert read(docx(body)).text == "kept inserted"


def test_links_fields_tabs_and_breaks() -> None:
    body = (
        "<w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink><w:r><w:tab/><w:t>tab</w:t><w:br/>"
        "<w:t>line</w:t><w:instrText>PAGE</w:instrText></w:r><w:sdt><w:sdtContent><w:r><w:t> control</w:t></w:r>"
        "</w:sdtContent></w:sdt></w:p>"
    )
    assert read(docx(body)).text == "link\ttab\nline control"


def test_a_text_box_is_read_once() -> None:
    box = f"<w:txbxContent>{paragraph('In the box')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>Around</w:t></w:r><w:r><mc:AlternateContent>"
        f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert read(docx(body)).text == "Around\n\nIn the box"


def test_headers_are_not_repeated_and_notes_follow() -> None:
    header = f"<w:hdr {craft.W}>{paragraph('ACME handbook, page {}')}</w:hdr>"
    notes = (
        f"<w:footnotes {craft.W}><w:footnote w:type='separator'>{paragraph('-')}</w:footnote>"
        f"<w:footnote>{paragraph('The note.')}</w:footnote></w:footnotes>"
    )
    parts = {f"word/header{n}.xml": header.format(n) for n in (1, 2, 3)} | {"word/footnotes.xml": notes}
    assert read(docx(paragraph("Body."), parts)).text == "ACME handbook, page 1\n\nBody.\n\nThe note."


def test_a_form_in_one_big_table_is_read_as_text() -> None:
    prose = "Long text in a cell of a layout table. " * 12
    assert read(docx(table(("Label", prose)))).text == f"Label\n\n{prose.strip()}"


def test_nested_tables_are_not_lost() -> None:
    inner = f"<w:tbl><w:tr><w:tc>{table(('deep', 'er'))}{paragraph('x')}</w:tc></w:tr></w:tbl>"
    text = read(docx(inner)).text
    assert "deep | er" in text and "x" in text


def test_strict_files_are_read() -> None:
    document = f"<w:document {craft.W}><w:body>{paragraph('Strict.')}</w:body></w:document>"
    document = document.replace(
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    )
    assert read(craft.archive({"word/document.xml": document})).text == "Strict."


def test_the_title_of_the_file_comes_first() -> None:
    core = '<x xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>From the properties</dc:title></x>'
    assert read(docx(paragraph("x"), {"docProps/core.xml": core})).title == "From the properties"
    assert read(docx(paragraph("x"))).title == "report.docx"


def test_pictures_only_is_a_finding() -> None:
    with pytest.raises(DocumentEmpty, match="no text"):
        read(docx("<w:p><w:r><w:drawing/></w:r></w:p>"))


def test_damage_is_named() -> None:
    whole = docx(paragraph("Some words. " * 500))
    for broken in (
        whole[: len(whole) // 2],
        docx("<w:p>"),
        craft.archive({"word/other.xml": "<x/>"}),
        whole.replace(b"PK\x01\x02", b"PK\x09\x09"),
    ):
        with pytest.raises(DocumentDamaged):
            read(broken)


def test_a_zip_bomb_is_refused() -> None:
    data = craft.bomb()
    assert len(data) < 1_000_000
    with pytest.raises(DocumentDamaged, match="200 MB"):
        read(data)


def test_entities_are_refused() -> None:
    document = f'<!DOCTYPE d [<!ENTITY a "x">]><w:document {craft.W}><w:body>{paragraph("&a;")}</w:body></w:document>'
    with pytest.raises(DocumentDamaged, match="entities"):
        read(craft.archive({"word/document.xml": document}))
