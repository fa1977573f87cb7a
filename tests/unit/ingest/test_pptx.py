from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.ingest.craft import archive

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse.pptx import parse
from edgerag.ingest.parse.slides import Box, reading_order
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    f' xmlns:r="{OFFICE}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    ' xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
)


def read(data: bytes) -> ParsedDocument:
    return parse(Source(data, "talk.pptx"))


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """Id -> kind and target."""
    entries = "".join(
        f'<Relationship Id="{id_}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for id_, (kind, target) in targets.items()
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{entries}</Relationships>'
    )


def slide(*shapes: str, attributes: str = "", tag: str = "sld") -> str:
    return f"<p:{tag} {NAMESPACES} {attributes}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:{tag}>"


def shape(*lines: str, kind: str = "", at: tuple[int, int] | None = None, size: tuple[int, int] = (100, 100)) -> str:
    placeholder = f'<p:ph type="{kind}"/>' if kind else ""
    place = "" if at is None else _frame("a:xfrm", at, size)
    text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return (
        f"<p:sp><p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr><p:spPr>{place}</p:spPr>"
        f"<p:txBody>{text}</p:txBody></p:sp>"
    )


def _frame(tag: str, at: tuple[int, int], size: tuple[int, int]) -> str:
    return f'<{tag}><a:off x="{at[0]}" y="{at[1]}"/><a:ext cx="{size[0]}" cy="{size[1]}"/></{tag}>'


def graphic(content: str) -> str:
    return f"<p:graphicFrame><a:graphic><a:graphicData>{content}</a:graphicData></a:graphic></p:graphicFrame>"


def deck(
    slides: Sequence[str], parts: Mapping[str, str] | None = None, *, order: Sequence[int] = (), target: str = "{}"
) -> bytes:
    """A presentation; ``order`` is that of its slides, ``target`` how the main part names them."""
    shown = order or range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId r:id="r{number}"/>' for number in shown)
    named = {f"r{n}": ("slide", target.format(f"slides/slide{n}.xml")) for n in range(1, len(slides) + 1)}
    return archive(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", "ppt/presentation.xml")}),
            "ppt/presentation.xml": f"<p:presentation {NAMESPACES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(named),
            **{f"ppt/slides/slide{number}.xml": content for number, content in enumerate(slides, 1)},
            **(parts or {}),
        }
    )


def test_slides_are_pages_in_the_order_of_the_presentation() -> None:
    slides = [slide(shape(f"Title {n}", kind="title"), shape(f"Text {n}.")) for n in (1, 2, 3)]
    parsed = read(deck(slides, order=(3, 1, 2)))
    assert parsed.text == "Title 3\n\nText 3.\n\nTitle 1\n\nText 1.\n\nTitle 2\n\nText 2."
    assert [(page.number, parsed.text[page.start : page.end]) for page in parsed.pages] == [
        (1, "Title 3\n\nText 3."),
        (2, "Title 1\n\nText 1."),
        (3, "Title 2\n\nText 2."),
    ]
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "Title 3"), (1, "Title 1"), (1, "Title 2")]
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)
    assert parsed.title == "Title 3"


def test_notes_follow_the_text_of_their_slide() -> None:
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r1": ("notesSlide", "../notesSlides/n.xml")}),
        "ppt/notesSlides/n.xml": slide(
            shape(kind="sldImg"),
            shape("Say this.", "Then that.", kind="dt"),
            shape("Say hello.", kind="body"),
            shape("7", kind="sldNum"),
            tag="notes",
        ),
    }
    parsed = read(deck([slide(shape("One", kind="title")), slide(shape("Two", kind="title"))], parts))
    assert parsed.text == "One\n\nNotes:\n\nSay hello.\n\nTwo"
    assert parsed.pages[0].end == parsed.text.index("\n\nTwo")


def test_boxes_are_read_from_top_to_bottom_and_left_to_right() -> None:
    shapes = (
        shape("bottom", at=(0, 900)),
        shape("right 2", at=(500, 450)),
        shape("left", at=(0, 210), size=(200, 400)),
        shape("right 1", at=(510, 200)),
        shape("top", at=(300, 10)),
        shape("The title", kind="title", at=(0, 1000)),
    )
    assert read(deck([slide(*shapes)])).text.split("\n\n") == [
        "The title",
        "top",
        "left",
        "right 1",
        "right 2",
        "bottom",
    ]


def test_a_placeholder_stands_where_its_layout_puts_it() -> None:
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r1": ("slideLayout", "../slideLayouts/l.xml")}),
        "ppt/slideLayouts/l.xml": slide(shape("Click to edit", kind="body", at=(0, 500)), tag="sldLayout"),
    }
    shapes = slide(shape("below", at=(0, 700)), shape("in the body", kind="body"), shape("above", at=(0, 100)))
    assert read(deck([shapes], parts)).text == "above\n\nin the body\n\nbelow"


def test_groups_are_read_inside_and_as_one() -> None:
    group = (
        f"<p:grpSp><p:nvGrpSpPr/><p:grpSpPr>{_frame('a:xfrm', (0, 100), (900, 100))}</p:grpSpPr>"
        f"{shape('b', at=(500, 0))}<p:grpSp><p:grpSpPr/>{shape('a', at=(0, 0))}</p:grpSp></p:grpSp>"
    )
    assert read(deck([slide(shape("after", at=(0, 300)), group)])).text == "b\n\na\n\nafter"


def test_lists_links_breaks_and_fields() -> None:
    body = (
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="body"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody>'
        "<a:p><a:r><a:t>one</a:t></a:r><a:br/><a:r><a:t>line</a:t></a:r></a:p>"
        '<a:p><a:pPr lvl="1"/><a:r><a:t>deeper</a:t></a:r></a:p>'
        "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>no bullet</a:t></a:r></a:p>"
        '<a:p><a:fld type="slidenum"><a:t>12</a:t></a:fld></a:p></p:txBody></p:sp>'
    )
    assert read(deck([slide(shape("T", kind="title"), body)])).text == "T\n\n- one\nline\n  - deeper\n\nno bullet"


def test_tables_are_rows() -> None:
    def cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    header = cell("Item") + cell("Price", 'gridSpan="2"') + cell("", 'hMerge="1"')
    rows = f"<a:tr>{header}</a:tr><a:tr>{cell('Bolt')}{cell('12')}{cell('EUR')}</a:tr>"
    parsed = read(deck([slide(shape("T", kind="title"), graphic(f"<a:tbl>{rows}</a:tbl>"))]))
    assert parsed.text == "T\n\nItem | Price\nBolt | 12 | EUR"


def test_the_figures_of_a_chart_stand_below_their_names() -> None:
    def values(tag: str, *points: str) -> str:
        cached = "".join(f'<c:pt idx="{i}"><c:v>{value}</c:v></c:pt>' for i, value in enumerate(points) if value)
        return f"<c:{tag}><c:strRef><c:strCache>{cached}</c:strCache></c:strRef></c:{tag}>"

    chart = (
        f"<c:chartSpace {NAMESPACES}><c:title><a:t>Sales</a:t></c:title>"
        f"<c:ser>{values('tx', 'North')}{values('cat', 'May', 'June')}{values('val', '1.5', '')}</c:ser>"
        f"<c:ser>{values('tx', 'South')}{values('cat', 'May', 'June')}{values('val', '3', '4')}</c:ser></c:chartSpace>"
    )
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r7": ("chart", "/ppt/charts/a%20chart.xml")}),
        "ppt/charts/a chart.xml": chart,
    }
    parsed = read(deck([slide(graphic('<c:chart r:id="r7"/>'))], parts))
    assert parsed.text == "Sales\n\n | North | South\nMay | 1.5 | 3\nJune |  | 4"


def test_smartart_is_an_outline() -> None:
    def point(id_: str, text: str, kind: str = "node") -> str:
        return f'<dgm:pt modelId="{id_}" type="{kind}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'

    def link(source: str, target: str, rank: int) -> str:
        return f'<dgm:cxn srcId="{source}" destId="{target}" srcOrd="{rank}"/>'

    data = (
        f"<dgm:dataModel {NAMESPACES}><dgm:ptLst>{point('0', '', 'doc')}{point('c', 'child')}{point('b', 'second')}"
        f"{point('a', 'first')}{point('x', 'arrow', 'sibTrans')}</dgm:ptLst>"
        f"<dgm:cxnLst>{link('0', 'b', 1)}{link('0', 'a', 0)}{link('a', 'c', 0)}{link('c', 'a', 0)}</dgm:cxnLst>"
        "</dgm:dataModel>"
    )
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r2": ("diagramData", "../diagrams/data1.xml")}),
        "ppt/diagrams/data1.xml": data,
    }
    assert read(deck([slide(graphic('<dgm:relIds r:dm="r2"/>'))], parts)).text == "- first\n  - child\n- second"


def test_hidden_slides_are_read_and_named() -> None:
    parsed = read(deck([slide(shape("Shown")), slide(shape("Kept back"), attributes='show="0"')]))
    assert "Kept back" in parsed.text
    assert parsed.warnings == ("Hidden and read all the same: slide 2.",)


def test_footers_are_given_once_and_slide_numbers_never() -> None:
    slides = [slide(shape("ACME", kind="ftr"), shape(f"{n}", kind="sldNum"), shape(f"Text {n}")) for n in (1, 2)]
    assert read(deck(slides)).text == "Text 1\n\nACME\n\nText 2"


def test_a_slide_without_a_title_is_not_under_the_title_of_another() -> None:
    long = "This is a sentence that goes on for a while. " * 5
    slides = [slide(shape("Named", kind="title")), slide(shape("Short line"), shape("text")), slide(shape(long))]
    assert [h.title for h in read(deck(slides)).headings] == ["Named", "Short line", "Slide 3"]


def test_parts_are_found_however_they_are_named() -> None:
    for target in ("/ppt/{}", "./{}", "../ppt/{}", "SLIDES/../{}"):
        assert read(deck([slide(shape("Found"))], target=target)).text == "Found"


def test_strict_files_are_read() -> None:
    main = f'<p:presentation {NAMESPACES}><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>'
    transitional = {"ppt/presentation.xml": main, "ppt/slides/s.xml": slide(shape("Strict."))}
    strict = {
        name: xml.replace("http://schemas.openxmlformats.org/", "http://purl.oclc.org/ooxml/").replace("/2006/", "/")
        for name, xml in transitional.items()
    }
    parts = {**strict, "ppt/_rels/presentation.xml.rels": relations({"r1": ("slide", "slides/s.xml")})}
    assert read(archive(parts)).text == "Strict."


def test_a_damaged_or_missing_slide_is_named_and_the_others_are_read() -> None:
    data = deck([slide(shape("One")), "<p:sld", slide(shape("Three"))], order=(1, 2, 9, 3))
    parsed = read(data)
    assert parsed.text == "One\n\nThree"
    assert [page.number for page in parsed.pages] == [1, 2, 3, 4]
    assert parsed.warnings == ("Damaged or missing, and left out: slides 2, 3.",)
    with pytest.raises(DocumentDamaged, match="none of its slides"):
        read(deck(["<p:sld", ""]))


def test_slides_are_read_by_name_when_their_list_is_lost() -> None:
    parts = {f"ppt/slides/slide{n}.xml": slide(shape(f"Slide {n}.")) for n in (10, 9)}
    assert read(archive(parts)).text == "Slide 9.\n\nSlide 10."
    with pytest.raises(DocumentDamaged, match="no main part"):
        read(archive({"ppt/other.xml": "<x/>"}))


def test_nothing_to_read_is_a_finding() -> None:
    with pytest.raises(DocumentEmpty, match="no slides"):
        read(deck([]))
    with pytest.raises(DocumentEmpty, match="no text"):
        read(deck([slide("<p:pic/>")]))


def test_a_slide_that_is_shown_many_times_is_read_once() -> None:
    assert read(deck([slide(shape("Only once"))], order=[1] * 1000)).text == "Only once"


def test_a_bomb_is_refused_by_what_it_declares_and_by_what_it_unpacks() -> None:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("ppt/presentation.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(210):
            part.write(b" " * 1_000_000)
    honest = out.getvalue()
    with pytest.raises(DocumentDamaged, match="200 MB"):
        read(honest)
    lying = honest.replace((210_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    assert lying != honest
    with pytest.raises(DocumentDamaged):
        read(lying)


def test_a_part_with_a_password_is_named_as_such() -> None:
    data = bytearray(deck([slide(shape("Secret"))]))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        position = data.find(mark)
        while position >= 0:
            data[position + offset] |= 1
            position = data.find(mark, position + 4)
    with pytest.raises(DocumentEncrypted, match="password"):
        read(bytes(data))


def test_entities_are_refused() -> None:
    bad = f'<!DOCTYPE d [<!ENTITY a "x">]>{slide(shape("&a;"))}'
    for content in (bad.encode(), bad.encode("utf-16")):
        with pytest.raises(DocumentDamaged, match="none of its slides"):
            read(deck([content]))  # type: ignore[list-item]


boxes = st.builds(Box, *(st.integers(0, 1000),) * 4)


@given(st.lists(st.one_of(st.none(), boxes), max_size=30))
def test_every_box_is_read_once_whatever_its_place(places: list[Box | None]) -> None:
    items = list(enumerate(places))
    assert sorted(reading_order(items, lambda item: item[1]), key=lambda item: item[0]) == items
