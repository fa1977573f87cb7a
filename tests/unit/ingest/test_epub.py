from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from unit.ingest.craft import archive

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse.epub import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
)
XHTML = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'


def read(data: bytes) -> ParsedDocument:
    return parse(Source(data, "book.epub"))


def page(body: str) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE html><html {XHTML}><head><title/>'
        f'<script src="x.js"/></head><body>{body}</body></html>'
    )


def contents(entries: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<li><a href="{address}">{name}</a></li>' for address, name in entries)
    return page(f'<nav epub:type="toc"><h1>Contents</h1><ol>{links}</ol></nav>')


def book(
    pages: Mapping[str, str],
    *,
    toc: Sequence[tuple[str, str]] = (),
    spine: Sequence[str] = (),
    metadata: str = "<dc:title>The Book</dc:title>",
    parts: Mapping[str, str | bytes] | None = None,
    extra: str = "",
) -> bytes:
    """A book; ``spine`` names the pages in reading order (all of them in theirs when it is empty)."""
    names = [*pages, "nav.xhtml"]
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml" {_properties(name)}/>'
        for n, name in enumerate(names)
    )
    order = "".join(f'<itemref idref="i{names.index(name)}"/>' for name in (spine or ["nav.xhtml", *pages]))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/" version="3.0">'
        f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{order}</spine>{extra}</package>"
    )
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/content.opf": package,
            "OEBPS/nav.xhtml": contents(toc),
            **{f"OEBPS/{name}": content for name, content in pages.items()},
            **(parts or {}),
        }
    )


def _properties(name: str) -> str:
    return 'properties="nav"' if name == "nav.xhtml" else ""


def test_pages_are_read_in_the_order_of_the_spine() -> None:
    pages = {f"{n}.xhtml": page(f"<h1>Chapter {n}</h1><p>Text {n}.</p>") for n in (1, 2)}
    parsed = read(book(pages, spine=["nav.xhtml", "2.xhtml", "1.xhtml", "2.xhtml"], toc=[("1.xhtml", "Chapter 1")]))
    assert parsed.text == "Chapter 2\n\nText 2.\n\nChapter 1\n\nText 1."
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "Chapter 2"), (1, "Chapter 1")]
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)


def test_title_and_authors_are_those_of_the_book() -> None:
    pages = {"a.xhtml": page("<p>x</p>")}
    one = "<dc:title>Walden</dc:title><dc:creator>H. D. Thoreau</dc:creator>"
    assert read(book(pages, metadata=one)).title == "Walden (H. D. Thoreau)"
    many = "<dc:title>Walden</dc:title>" + "".join(f"<dc:creator>{name}</dc:creator>" for name in "ABCD")
    assert read(book(pages, metadata=many)).title == "Walden (A, B, C and others)"
    assert read(book(pages, metadata="<dc:title>Untitled document</dc:title>")).title == "book.epub"


def test_headings_stand_under_the_names_of_their_chapters() -> None:
    pages = {
        "1.xhtml": page("<h2>One</h2><p>a</p><h3>Inner</h3><p>b</p>"),
        "1b.xhtml": page("<h3>Still of one</h3><p>c</p>"),
        "2.xhtml": page("<p>Chapter the Second</p><p>d</p><h1>Part of it</h1><p>e</p>"),
        "3.xhtml": page("<p>No heading at all.</p>"),
    }
    toc = [("1.xhtml", "One"), ("2.xhtml", "Chapter the Second"), ("3.xhtml#top", "Three")]
    parsed = read(book(pages, toc=toc))
    assert [(h.level, h.title) for h in parsed.headings] == [
        (1, "One"),
        (2, "Inner"),
        (2, "Still of one"),
        (1, "Chapter the Second"),
        (2, "Part of it"),
        (1, "Three"),
    ]
    assert parsed.text.count("Chapter the Second") == 1
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)


def test_the_levels_of_an_old_table_of_contents() -> None:
    ncx = (
        '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Part I</text></navLabel>'
        '<content src="1.xhtml"/><navPoint><navLabel><text>Chapter 1</text></navLabel><content src="2.xhtml"/>'
        "</navPoint></navPoint></navMap></ncx>"
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="n" href="toc.ncx"'
        ' media-type="application/x-dtbncx+xml"/><item id="a" href="1.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="2.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine toc="n"><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    parts = {
        "OEBPS/content.opf": package,
        "OEBPS/toc.ncx": ncx,
        "OEBPS/1.xhtml": page("<h1>Part I</h1>"),
        "OEBPS/2.xhtml": page("<h1>Chapter 1: Start</h1><p>x</p><h2>Inner</h2><p>y</p>"),
    }
    parsed = read(archive({"META-INF/container.xml": CONTAINER, **parts}))
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "Part I"), (2, "Chapter 1: Start"), (3, "Inner")]


def test_the_page_of_contents_of_an_old_book_is_left_out() -> None:
    links = "".join(f'<p><a href="{n}.xhtml">A chapter</a></p>' for n in range(9))
    pages = {"toc.xhtml": page(f"<h1>Contents</h1>{links}"), "1.xhtml": page("<p>Text.</p>")}
    guide = '<guide><reference type="toc" href="toc.xhtml"/></guide>'
    assert read(book(pages, extra=guide)).text == "Text."
    pages["toc.xhtml"] = page(f"<p>{'A long preface. ' * 50}</p>{links}")
    assert "preface" in read(book(pages, extra=guide)).text


def test_notes_in_asides_and_sections_of_characters_are_kept() -> None:
    body = '<p>Body.<a id="r"/></p><aside epub:type="footnote"><p>The note.</p></aside><p><![CDATA[a < b]]> c</p>'
    assert read(book({"a.xhtml": page(body)})).text == "Body.\n\nThe note.\n\na < b c"


def test_how_a_word_is_spoken_does_not_divide_it() -> None:
    body = "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>を読む</p>"
    assert read(book({"a.xhtml": page(body)})).text == "漢字を読む"


def test_tables_and_lists_of_neighbouring_pages_stay_apart() -> None:
    table = "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
    body = "<ul><li>one</li><li>two</li></ul>"
    text = read(book({"1.xhtml": page(table), "2.xhtml": page(table), "3.xhtml": page(body)})).text
    assert text == "a | b\nc | d\n\na | b\nc | d\n\n- one\n- two"


def test_parts_are_found_however_they_are_named() -> None:
    pages = {"my%20page.xhtml": page("<p>x</p>")}
    data = book(pages, parts={"OEBPS/my page.xhtml": page("<p>Found</p>")})
    assert read(data).text == "Found"
    container = CONTAINER.replace("OEBPS/content.opf", "/oebps/Content.opf")
    assert read(book({"a.xhtml": page("<p>x</p>")}, parts={"META-INF/container.xml": container})).text == "x"
    assert read(book({"a.xhtml": page("<p>x</p>")}, parts={"META-INF/container.xml": "<container/>"})).text == "x"


def test_what_is_missing_or_damaged_is_named() -> None:
    pages = {"a.xhtml": page("<p>Here.</p>")}
    data = book({**pages, "b.xhtml": "y" * 900, "gone.xhtml": "z" * 700})
    data = data.replace(b"OEBPS/gone.xhtml", b"OEBPS/lost.xhtml")
    parsed = read(data)
    assert parsed.text.startswith("Here.")
    assert parsed.warnings == ("Listed but missing in the file: OEBPS/gone.xhtml.",)


def test_protected_books_are_named_but_not_scrambled_fonts() -> None:
    def encryption(algorithm: str, name: str) -> str:
        return (
            '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData'
            f' xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{algorithm}"/><CipherData>'
            f'<CipherReference URI="{name}"/></CipherData></EncryptedData></encryption>'
        )

    def protected(algorithm: str, name: str) -> bytes:
        parts = {"META-INF/encryption.xml": encryption(algorithm, name)}
        return book({"a.xhtml": page("<p>Text</p>")}, parts=parts)

    assert read(protected("http://www.idpf.org/2008/embedding", "OEBPS/font.otf")).text == "Text"
    assert read(protected("http://www.w3.org/2001/04/xmlenc#aes256-cbc", "OEBPS/film.mp4")).text == "Text"
    with pytest.raises(DocumentEncrypted, match="DRM"):
        read(protected("http://www.w3.org/2001/04/xmlenc#aes256-cbc", "OEBPS/a.xhtml"))


def test_damage_is_named() -> None:
    for broken in (
        archive({"META-INF/container.xml": CONTAINER}),
        archive({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": "<package"}),
        b"PK\x03\x04 cut",
    ):
        with pytest.raises(DocumentDamaged):
            read(broken)
    with pytest.raises(DocumentEmpty):
        read(book({"a.xhtml": page('<img src="cover.jpg"/>')}))


def test_a_table_of_contents_that_is_damaged_takes_no_text_away() -> None:
    pages = {"a.xhtml": page("<h1>Own</h1><p>x</p>")}
    assert read(book(pages, parts={"OEBPS/nav.xhtml": "<html"})).text == "Own\n\nx"
