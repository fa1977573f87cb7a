from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.ingest.craft import archive

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse import reader
from edgerag.ingest.parse.opendocument import PRESENTATION_TYPE, TEXT_TYPE, parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

_NAMES = {
    **dict.fromkeys(("office", "text", "table", "style", "presentation", "meta"), ""),
    "draw": "drawing",
    "svg": "svg-compatible",
}
NAMESPACES = (
    " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name or prefix}:1.0"'
        for prefix, name in _NAMES.items()
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def content(body: str, styles: str = "", *, kind: str = "text", root: str = "document-content") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:{root} {NAMESPACES}>'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:{root}>"
    )


def odt(body: str, styles: str = "", parts: Mapping[str, str] | None = None) -> ParsedDocument:
    return parse(Source(archive({"content.xml": content(body, styles), **(parts or {})}), "letter.odt"))


def odp(pages: str, styles: str = "") -> ParsedDocument:
    return parse(Source(archive({"content.xml": content(pages, styles, kind="presentation")}), "talk.odp"))


def p(text: str, style: str = "Standard") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def row(*cells: str) -> str:
    return (
        "<table:table-row>"
        + "".join(f"<table:table-cell>{p(c)}</table:table-cell>" for c in cells)
        + "</table:table-row>"
    )


def box(text: str, *, at: tuple[str, str] | None = None, kind: str = "") -> str:
    place = "" if at is None else f'svg:x="{at[0]}" svg:y="{at[1]}" svg:width="2cm" svg:height="1cm"'
    class_ = f'presentation:class="{kind}"' if kind else ""
    return f"<draw:frame {place} {class_}><draw:text-box>{p(text)}</draw:text-box></draw:frame>"


def test_paragraphs_headings_and_tables_in_document_order() -> None:
    parsed = odt(
        p("The report", "P1")
        + '<text:h text:outline-level="1">First part</text:h>'
        + p("Text &amp; more.")
        + f"<table:table><table:table-header-rows>{row('Item', 'Price')}</table:table-header-rows>{row('Bolt', '12')}"
        "</table:table>"
        '<text:list><text:list-item><text:h text:outline-level="2">Deeper</text:h></text:list-item></text:list>'
        + p("The end."),
        '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>',
    )
    assert parsed.text == "The report\n\nFirst part\n\nText & more.\n\nItem | Price\nBolt | 12\n\nDeeper\n\nThe end."
    assert parsed.title == "The report"
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "The report"), (1, "First part"), (2, "Deeper")]
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)
    assert parsed.media_type == TEXT_TYPE


def test_lists_keep_their_depth() -> None:
    inner = f"<text:list><text:list-item>{p('deeper')}</text:list-item></text:list>"
    parsed = odt(f"<text:list><text:list-item>{p('one')}{p('more')}{inner}</text:list-item></text:list>")
    assert parsed.text == "- one\n  more\n  - deeper"


def test_white_space_is_that_of_the_document_not_of_its_xml() -> None:
    parsed = odt(
        '<text:p>\n   a <text:span> b</text:span><text:s text:c="3"/>c<text:tab/>d\n   e<text:line-break/>'
        '<text:s text:c="99999999"/>f</text:p>'
    )
    assert re.fullmatch("a b   c\td e\n {1,1000}f", parsed.text)


def test_insertions_are_in_deletions_and_comments_are_out() -> None:
    parsed = odt(
        f"<text:tracked-changes><text:changed-region><text:deletion>{p('deleted')}</text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        "<text:p>kept <text:change-start/>inserted<text:change-end/><office:annotation><text:p>remark</text:p>"
        "</office:annotation>"
        "<text:ruby><text:ruby-base> base</text:ruby-base><text:ruby-text>spoken</text:ruby-text></text:ruby></text:p>",
    )
    assert parsed.text == "kept inserted base"
    assert parsed.warnings == ("Comments were left out.",)


def test_headers_are_not_repeated_and_notes_follow() -> None:
    def master(name: str, header: str, footer: str = "") -> str:
        return (
            f'<style:master-page style:name="{name}"><style:header>{p(header)}</style:header>'
            f"<style:footer>{p(footer)}</style:footer></style:master-page>"
        )

    masters = master("Standard", "ACME, page 1", "Secret") + master("First", "ACME, page 2") + master("Unused", "Draft")
    styles = f"<office:document-styles {NAMESPACES}><office:master-styles>{masters}</office:master-styles>"
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        f"<text:note-body>{p('The note.')}</text:note-body></text:note>"
    )
    parsed = odt(
        p(f"Body{note} text."),
        '<style:style style:name="P1" style:family="paragraph" style:master-page-name="First"/>',
        {"styles.xml": styles + "</office:document-styles>"},
    )
    assert parsed.text == "ACME, page 1\n\nSecret\n\nBody text.\n\nThe note."


def test_text_boxes_formulas_and_charts() -> None:
    math = (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><mi>x</mi><mo>=</mo><mn>2</mn></mrow>'
        "<annotation>x = 2</annotation></semantics></math>"
    )
    chart = content(f"<table:table>{row('May', '3')}</table:table>", kind="chart")
    frame = '<draw:frame><draw:object xlink:href="./{0}"/><draw:image xlink:href="./{0}.png"/></draw:frame>'
    parsed = odt(
        p("Around" + box("In the box") + " it." + frame.format("Object 1") + frame.format("Object%202")),
        parts={"Object 1/content.xml": math, "Object 2/content.xml": chart},
    )
    assert parsed.text == "Around it.\n\nIn the box\n\nx=2\n\nMay | 3"


def test_the_title_of_the_file_comes_first() -> None:
    title = "<office:meta><dc:title>Given</dc:title></office:meta>"
    meta = f"<office:document-meta {NAMESPACES}>{title}</office:document-meta>"
    assert odt(p("x"), parts={"meta.xml": meta}).title == "Given"
    assert odt(p("x")).title == "letter.odt"


def test_flat_xml_is_read() -> None:
    flat = content(p("Flat."), root="document")
    assert parse(Source(flat.encode(), "x.fodt")).text == "Flat."
    with pytest.raises(DocumentDamaged, match="not well formed"):
        parse(Source(flat.encode()[:-40], "x.fodt"))


def test_slides_are_pages_with_their_notes() -> None:
    notes = f"<presentation:notes><draw:page-thumbnail/>{box('Say hello.', kind='notes')}</presentation:notes>"
    group = f"<draw:g>{box('grouped', at=('1cm', '20mm'))}</draw:g>"
    first = (
        '<draw:page draw:name="p1">'
        + box("right", at=("10cm", "5cm"))
        + box("left", at=("1in", "5.1cm"))
        + group
        + box("One", kind="title", at=("0cm", "9cm"))
        + '<draw:custom-shape svg:x="1cm" svg:y="8cm" svg:width="1cm" svg:height="1cm"><text:p>in a shape</text:p>'
        "</draw:custom-shape>" + notes + "</draw:page>"
    )
    second = f'<draw:page draw:style-name="dp2">{box("Two", kind="title")}{box("9", kind="page-number")}</draw:page>'
    parsed = odp(
        first + second,
        '<style:style style:name="dp2" style:family="drawing-page">'
        '<style:drawing-page-properties presentation:visibility="hidden"/></style:style>',
    )
    assert parsed.text == "One\n\ngrouped\n\nleft\n\nright\n\nin a shape\n\nNotes:\n\nSay hello.\n\nTwo"
    assert [parsed.text[page.start : page.end].split("\n")[0] for page in parsed.pages] == ["One", "Two"]
    assert [h.title for h in parsed.headings] == ["One", "Two"]
    assert parsed.warnings == ("Hidden and read all the same: slide 2.",)
    assert (parsed.title, parsed.media_type) == ("One", PRESENTATION_TYPE)


def test_tables_on_slides_and_footers_given_once() -> None:
    tables = [f"<table:table>{row('a', n)}{row('b', n)}</table:table>" for n in ("1", "2")]
    pages = '<presentation:footer-decl presentation:name="f1">ACME</presentation:footer-decl>' + "".join(
        f'<draw:page presentation:use-footer-name="f1"><draw:frame>{table}<draw:image/></draw:frame></draw:page>'
        for table in tables
    )
    assert odp(pages).text == "a | 1\nb | 1\n\nACME\n\na | 2\nb | 2"


def test_an_empty_placeholder_says_nothing() -> None:
    click = "<draw:text-box><text:p>Click</text:p></draw:text-box>"
    empty = f'<draw:frame presentation:placeholder="true">{click}</draw:frame>'
    assert odp(f"<draw:page>{empty}{box('Text')}</draw:page>").text == "Text"


def test_a_password_is_named() -> None:
    manifest = (
        '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        '<m:file-entry m:full-path="content.xml"><m:encryption-data/></m:file-entry></m:manifest>'
    )
    with pytest.raises(DocumentEncrypted, match="password"):
        parse(Source(archive({"META-INF/manifest.xml": manifest, "content.xml": b"\x8f\x01"}), "x.odt"))


def test_damage_is_named() -> None:
    for broken in (archive({"other.xml": "<x/>"}), archive({"content.xml": "<x"}), b"PK\x03\x04 cut"):
        with pytest.raises(DocumentDamaged):
            parse(Source(broken, "x.odt"))
    with pytest.raises(DocumentEmpty):
        odt(p(" "))
    with pytest.raises(DocumentEmpty):
        odp("")
    with pytest.raises(DocumentUnsupported):
        parse(Source(archive({"content.xml": content("", kind="drawing")}), "x.odg"))


def test_an_object_that_holds_itself_ends() -> None:
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    inner = content(p("inside") + frame, kind="chart")
    assert odt(p("x") + frame, parts={"Object 1/content.xml": inner}).text == "x\n\ninside"


def test_nesting_beyond_reason_is_named() -> None:
    deep = "<text:list><text:list-item>" * 3000 + p("x") + "</text:list-item></text:list>" * 3000
    source = Source(archive({"content.xml": content(deep)}), "x.odt")
    with pytest.raises(DocumentDamaged, match="too deeply"):
        reader.parse(source, "opendocument")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1), min_size=1))
def test_the_words_of_all_paragraphs_come_back(words: list[str]) -> None:
    escaped = [word.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for word in words]
    assert odt("".join(p(word) for word in escaped)).text == "\n\n".join(words)
