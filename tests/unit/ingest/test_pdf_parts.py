"""What a PDF holds besides its pages: forms, notes, other files; and passwords."""

from __future__ import annotations

import re

import pytest
from unit.ingest.pdf_craft import Drawn, build, nameless, note, picture, text, widget

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted, DocumentScanned, DocumentUnsupported
from edgerag.ingest.parse.pdf import draw, parse
from edgerag.ingest.parse.source import Container, Recognised, Source, Unrecognised
from edgerag.types import ParsedDocument

TICKED = b"/V /Yes /AS /Yes /AP << /N << /Yes 1 0 R /Off 1 0 R >> >>"
FORM = [
    widget(b"/Tx", "page[0].Surname[0]", b"/V (M\374ller)"),
    widget(b"/Tx", "f1_02", b"/TU (Given name) /V (Anna)"),
    widget(b"/Tx", "Street", b""),
    widget(b"/Tx", "PIN", b"/V (1234) /Ff 8192"),
    widget(b"/Btn", "Agreed", TICKED),
    widget(b"/Btn", "Refused", TICKED.replace(b"/AS /Yes", b"/AS /Off").replace(b"/V /Yes", b"/V /Off")),
    widget(b"/Ch", "Country", b"/V (Austria) /Opt [(Austria) (Peru)]"),
]


def read(data: bytes, *passwords: str) -> ParsedDocument:
    parsed = parse(Source(data, "sheet.pdf", passwords))
    assert isinstance(parsed, ParsedDocument)
    return parsed


def test_filled_fields_stand_below_their_page() -> None:
    parsed = read(build([Drawn(text(72, 700, "Application"), FORM), text(72, 700, "Next page")]))
    first = parsed.text[parsed.pages[0].start : parsed.pages[0].end]
    assert first == "Application\n\nSurname: Müller\nGiven name: Anna\nAgreed: Yes\nCountry: Austria"
    assert parsed.text[parsed.pages[1].start :] == "Next page"


def test_a_form_alone_is_a_document_when_it_is_filled_in() -> None:
    assert read(build([Drawn(b"", FORM)])).text.startswith("Surname: Müller")
    with pytest.raises(DocumentEmpty, match="not filled in"):
        read(build([Drawn(b"", [widget(b"/Tx", "Name", b"")])]))


def test_notes_name_their_author_and_hidden_ones_are_no_notes() -> None:
    notes = [note("Check this figure.", author="Bo"), note("Why?"), note("never shown", entries=b"/F 2"), note("")]
    assert read(build([Drawn(text(72, 700, "Report"), notes)])).text == (
        "Report\n\nNote by Bo: Check this figure.\nNote: Why?"
    )


def test_attached_files_are_members() -> None:
    files = [("C:\\\\me\\\\data.csv", b"a,b\n1,2\n"), ("data.csv", b"another"), ("empty.txt", b"")]
    found = parse(Source(build([text(72, 700, "See the files.")], attached=files), "sheet.pdf"))
    assert isinstance(found, Container) and found.document is not None
    assert found.document.text == "See the files."
    assert found.members == ("data.csv", "data (2).csv", "empty.txt")
    assert [found.read(name, 100) for name in found.members] == [data for _, data in files]
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        found.read("data.csv", 3)


def test_the_files_of_a_cover_without_text_are_not_lost() -> None:
    found = parse(Source(build([picture(595, 842)], attached=[("a.txt", b"text")]), "portfolio.pdf"))
    assert isinstance(found, Container) and found.members == ("a.txt",)
    assert found.document is not None and found.document.text == "" and "a scan" in found.document.warnings[0]


def test_passwords_are_tried_one_after_the_other() -> None:
    data = build([text(72, 700, "Secret words")], user_password="foo", owner_password="baz")
    for given in (("foo",), ("baz",), ("wrong", "", "foo")):
        assert read(data, *given).text == "Secret words"
    with pytest.raises(DocumentEncrypted, match=r"protected by a password\. .*--password"):
        read(data)
    with pytest.raises(DocumentEncrypted, match="none of the given passwords opens it") as caught:
        read(data, "wrong", "hunter2")
    assert "hunter2" not in str(caught.value)


def test_an_empty_user_password_needs_none() -> None:
    assert read(build([text(72, 700, "Not to be printed")], user_password="", owner_password="x")).text


def test_attachments_of_a_protected_file_open_with_its_password() -> None:
    data = build([text(72, 700, "Cover")], attached=[("a.txt", b"inner words")], user_password="foo")
    found = parse(Source(data, "sheet.pdf", ("foo",)))
    assert isinstance(found, Container)
    assert found.read(found.members[0], 1000) == b"inner words"


def test_a_source_never_shows_its_passwords() -> None:
    assert "hunter2" not in repr(Source(b"", "a.pdf", ("hunter2",)))


SCANNED = build([text(72, 700, "A page of text."), picture(595, 842), b"", picture(595, 842)])


def test_with_ocr_scanned_pages_are_asked_for_once() -> None:
    assert parse(Source(SCANNED, "a.pdf", ocr="auto")) == Unrecognised((2, 4))
    assert parse(Source(SCANNED, "a.pdf", ocr="force")) == Unrecognised((1, 2, 3, 4))
    recognised = (Recognised(2, "First line\nsecond line\n\nNew paragraph", 90.0), Recognised(4, "", 0.0, "It died."))
    parsed = parse(Source(SCANNED, "a.pdf", ocr="auto", recognised=recognised))
    assert isinstance(parsed, ParsedDocument)
    page = parsed.pages[1]
    assert parsed.text[page.start : page.end] == "First line\nsecond line\n\nNew paragraph"
    assert parsed.warnings == (
        "Page 2 was read by OCR (confidence 90 %).",
        "OCR found no text on page 4: It died.",
    )


def test_pages_whose_letters_are_unknown_are_asked_for_too() -> None:
    noise = nameless(72, 700, "Nobody knows what this says")
    data = build([noise, text(72, 700, "A page of text.") + nameless(72, 600, "Who?")])
    assert parse(Source(data, "a.pdf", ocr="auto")) == Unrecognised((1,))
    parsed = parse(Source(data, "a.pdf", ocr="auto", recognised=(Recognised(1, "Now known.", 90.0),)))
    assert isinstance(parsed, ParsedDocument) and parsed.text == "Now known.\n\nA page of text."
    without = parse(Source(data, "a.pdf"))
    assert isinstance(without, ParsedDocument) and without.text.strip() == "A page of text."
    assert without.warnings[0] == ("The text of page 1 cannot be read and was left out: no Unicode mapping. See --ocr.")
    only = Source(build([noise]), "a.pdf", ocr="auto", recognised=(Recognised(1, "", 0.0, "It died."),))
    with pytest.raises(DocumentScanned, match="no Unicode mapping"):
        parse(only)


def test_forced_ocr_that_finds_nothing_takes_no_text_away() -> None:
    source = Source(build([text(72, 700, "As printed.")]), "a.pdf", ocr="force", recognised=(Recognised(1, "", 9.0),))
    parsed = parse(source)
    assert isinstance(parsed, ParsedDocument) and parsed.text == "As printed."


def test_a_page_is_drawn_in_grey_with_a_bound_on_its_pixels() -> None:
    drawn = draw(Source(SCANNED, "a.pdf"), 2)
    assert re.match(rb"P5\n2480 3509\n255\n", drawn) and len(drawn) == 2480 * 3509 + len(b"P5\n2480 3509\n255\n")
    poster = draw(Source(build([Drawn(b"", box=b"0 0 14400 14400")]), "a.pdf"), 1)
    assert len(poster) <= 40_100_000
    with pytest.raises(DocumentDamaged, match="Page 9"):
        draw(Source(SCANNED, "a.pdf"), 9)
