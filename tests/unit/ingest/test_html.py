from __future__ import annotations

import pytest

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse.html import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def html(page: str | bytes, name: str = "page.html") -> ParsedDocument:
    return parse(Source(page.encode() if isinstance(page, str) else page, name))


def test_what_a_reader_sees() -> None:
    parsed = html("""<!doctype html><html><head><title> The
        page </title><style>p {color: red}</style><script>var tracker = 1;</script></head>
        <body><nav><a href="/">Home</a></nav><header>Site banner</header>
        <h1>Caf&eacute; &amp; bar</h1><p>First <b>bold</b>
        words.<br>Second line.</p><div>In a div<p>and inside</p>after it</div>
        <template>secret</template>
        <footer>Imprint</footer></body></html>""")
    assert parsed.text == ("Café & bar\n\nFirst bold words.\nSecond line.\n\nIn a div\n\nand inside\n\nafter it")
    assert parsed.title == "The page"
    assert [(h.level, h.title, h.start) for h in parsed.headings] == [(1, "Café & bar", 0)]


def test_headings_stand_where_they_say() -> None:
    parsed = html("<p>x</p><h2>One</h2><p>y</p><h3>Two\n <i>words</i></h3>")
    assert [(h.level, parsed.text[h.start : h.start + len(h.title)]) for h in parsed.headings] == [
        (2, "One"), (3, "Two words")
    ]  # fmt: skip


def test_tables_become_rows() -> None:
    parsed = html(
        "<table><caption>Prices</caption><tr><th>Item<th>Price<tr><td>Bolt<td><p>12</p><td>"
        "<tr><td colspan=2>Total</td></tr></table><p>end</p>"
    )
    assert parsed.text == "Prices\n\nItem | Price\nBolt | 12\n\nTotal\n\nend"


def test_a_table_made_for_layout_is_read_cell_by_cell() -> None:
    prose = "This is a long paragraph in a cell. " * 15
    parsed = html(f"<table><tr><td>menu</td><td><h1>Title</h1><p>{prose}</p></td></tr></table>")
    assert parsed.text == f"menu\n\nTitle\n\n{prose.strip()}"
    assert parsed.headings[0].title == "Title"


def test_lists_and_preformatted_text_keep_their_shape() -> None:
    parsed = html("<ul><li>one<li>two<ul><li>deep</ul></ul><pre>\n  a  =  1\n\n  b</pre>")
    assert parsed.text == "- one\n- two\n  - deep\n\n  a  =  1\n\n  b"


def test_the_main_element_is_preferred() -> None:
    assert html("<div>menu</div><main><p>Content.</p></main><div>more</div>").text == "Content."


def test_noise_is_better_than_nothing() -> None:
    assert html("<nav><p>Only a menu.</p></nav>").text == "Only a menu."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<meta charset="gb2312"><p>更换电池。</p>'.encode("gb18030"), "更换电池。"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Да</p>'.encode("koi8_r"), "Да"),
        ('<meta charset="iso-8859-1"><p>“quoted” €</p>'.encode("cp1252"), "“quoted” €"),
        ('<meta charset="iso-8859-1"><p>Größe</p>'.encode(), "Größe"),
        ("<p>Größe</p>".encode("utf-16"), "Größe"),
        ("<p>naïve café</p>".encode("cp1252"), "naïve café"),
        ('<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><p>ä</p>'.encode(), "ä"),
        ('<meta charset="no-such-thing"><p>Größe</p>'.encode("cp1252"), "Größe"),
    ],
)  # fmt: skip
def test_encodings(page: bytes, text: str) -> None:
    assert html(page).text == text


def test_entities_do_not_explode_and_no_file_is_read() -> None:
    bomb = '<!DOCTYPE html [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    parsed = html(f"{bomb}<p>x &b; &c; y</p>")
    assert len(parsed.text) < 300
    assert "root:" not in parsed.text


def test_deep_nesting_is_read_to_the_bottom() -> None:
    parsed = html("<div>" * 20_000 + "bottom" + "</div>" * 20_000)
    assert parsed.text == "bottom"


def test_deep_tables_are_read_to_the_bottom() -> None:
    assert "bottom" in html("<table><tr><td>" * 3_000 + "bottom").text


@pytest.mark.parametrize("page", ["", "   ", "<html><script>x()</script></html>", "<p></p>", "<!-- x -->", "\x00"])
def test_nothing_is_a_finding(page: str) -> None:
    with pytest.raises(DocumentEmpty):
        html(page)


def test_without_a_title_the_only_h1_or_the_file_name_serves() -> None:
    assert html("<h1>Sole</h1><p>x</p>").title == "Sole"
    assert html("<p>x</p>").title == "page.html"
